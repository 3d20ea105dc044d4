#pragma once

#include "base/bytes.hpp"

#include <cstddef>
#include <cstdint>

namespace gatemark::refdut {

/// A one's complement sum of big-endian 16-bit words (RFC 1071), not yet folded. 32-bit words may
/// be added as they are, because 2^16 counts as 1.
class OnesSum {
public:
    constexpr void add(std::uint32_t word) noexcept { sum_ += word; }
    /// Removes a word from a sum that contains it (RFC 1624 equation 3: ~m).
    constexpr void take_away(std::uint32_t word) noexcept { sum_ += ~word; }

    void add(const std::byte* bytes, std::size_t count) noexcept {
        for (; count >= 4; bytes += 4, count -= 4) {
            add(load_big_endian<std::uint32_t>(bytes));
        }
        if (count >= 2) {
            add(load_big_endian<std::uint16_t>(bytes));
            bytes += 2;
            count -= 2;
        }
        if (count == 1) {  // padded with a zero byte (RFC 1071)
            add(std::to_integer<std::uint32_t>(*bytes) << 8);
        }
    }
    /// `count` is a multiple of 4.
    void take_away(const std::byte* bytes, std::size_t count) noexcept {
        for (std::size_t i = 0; i < count; i += 4) {
            take_away(load_big_endian<std::uint32_t>(bytes + i));
        }
    }

    [[nodiscard]] constexpr std::uint16_t folded() const noexcept {
        std::uint64_t sum = sum_;
        while (sum > 0xffff) {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        return static_cast<std::uint16_t>(sum);
    }

private:
    std::uint64_t sum_ = 0;
};

/// The checksum of bytes that sum to `sum`, the checksum field being zero in them.
[[nodiscard]] constexpr std::uint16_t checksum_of(const OnesSum& sum) noexcept { return static_cast<std::uint16_t>(~sum.folded()); }

/// The checksum after a change (RFC 1624 equation 3): HC' = ~(~HC + ~m + m'), where `change` is the
/// sum of all ~m and m'.
[[nodiscard]] constexpr std::uint16_t updated(std::uint16_t checksum, OnesSum change) noexcept {
    change.add(static_cast<std::uint16_t>(~checksum));
    return checksum_of(change);
}

/// UDP sends a checksum of zero as all ones, because zero means that there is none (RFC 768; RFC
/// 8200 section 8.1).
[[nodiscard]] constexpr std::uint16_t as_udp(std::uint16_t checksum) noexcept { return checksum == 0 ? std::uint16_t{0xffff} : checksum; }

}  // namespace gatemark::refdut
