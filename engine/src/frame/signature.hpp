#pragma once

#include "base/bytes.hpp"
#include "base/checksum.hpp"
#include "base/random.hpp"

#include <cstdint>

/// The Tester's signature in every test frame: the first 18 bytes of the UDP data, which is all
/// that a 64-byte IPv4 or an 84-byte IPv6 frame has.
///
///     0          4        5          10            18
///     | trial_id | stream |  index   |  timestamp  |
///
/// `trial_id` has 20 bits from the campaign's seed and 12 bits of the trial number, so a straggler
/// of an earlier trial is never taken for a frame of this one. `stream` identifies direction and
/// class. `index` numbers the frames of a direction. `timestamp` is in ticks of the Tester's clock.
namespace gatemark::frame::signature {

constexpr std::size_t bytes = 18, trial_id_offset = 0, stream_offset = 4, index_offset = 5, timestamp_offset = 10;
constexpr std::uint64_t index_limit = std::uint64_t{1} << 40;

[[nodiscard]] constexpr std::uint32_t trial_id_of(std::uint64_t seed, std::uint32_t trial_number) noexcept {
    const auto campaign = static_cast<std::uint32_t>(mix_bits(seed ^ 0x67617465'6d61726b) >> 44);
    return (campaign << 12) | (trial_number & 0xfff);
}
[[nodiscard]] constexpr bool same_campaign(std::uint32_t a, std::uint32_t b) noexcept { return (a >> 12) == (b >> 12); }

enum class Direction : std::uint8_t { forward, reverse };
enum class TrafficClass : std::uint8_t { foreground, background };

/// 0xa0 | direction << 1 | class; the constant upper half keeps the byte from being zero.
[[nodiscard]] constexpr std::uint8_t stream_id(Direction direction, TrafficClass traffic_class) noexcept {
    return static_cast<std::uint8_t>(0xa0U | (static_cast<unsigned>(direction) << 1) | static_cast<unsigned>(traffic_class));
}

[[nodiscard]] constexpr bool is_stream_id(std::uint8_t id) noexcept { return (id & 0xfcU) == 0xa0U; }

/// Writes stream and index, and returns their share of the UDP checksum (the UDP data starts at an
/// even offset).
inline Sum write_stream_and_index(std::byte* payload, std::uint8_t stream, std::uint64_t index) noexcept {
    const std::uint64_t raw = swap_bytes((static_cast<std::uint64_t>(stream) << 56) | (index << 16));
    store_raw(payload + stream_offset, static_cast<std::uint32_t>(raw));
    store_raw(payload + stream_offset + 4, static_cast<std::uint16_t>(raw >> 32));
    return (raw & 0xffff'ffff) + (raw >> 32);
}

inline Sum write_timestamp(std::byte* payload, std::uint64_t ticks) noexcept {
    const std::uint64_t raw = swap_bytes(ticks);
    store_raw(payload + timestamp_offset, raw);
    return (raw & 0xffff'ffff) + (raw >> 32);
}

[[nodiscard]] inline std::uint32_t trial_id(const std::byte* payload) noexcept {
    return load_big_endian<std::uint32_t>(payload + trial_id_offset);
}
[[nodiscard]] inline std::uint8_t stream(const std::byte* payload) noexcept {
    return std::to_integer<std::uint8_t>(payload[stream_offset]);
}
/// The index together with the three bytes before it, in the byte order of memory.
[[nodiscard]] inline std::uint64_t raw_index(const std::byte* payload) noexcept {
    return load_raw<std::uint64_t>(payload + index_offset - 3);
}
[[nodiscard]] constexpr std::uint64_t index_of_raw(std::uint64_t raw) noexcept { return swap_bytes(raw) & (index_limit - 1); }
[[nodiscard]] inline std::uint64_t index(const std::byte* payload) noexcept { return index_of_raw(raw_index(payload)); }
[[nodiscard]] inline std::uint64_t timestamp(const std::byte* payload) noexcept {
    return load_big_endian<std::uint64_t>(payload + timestamp_offset);
}

}  // namespace gatemark::frame::signature
