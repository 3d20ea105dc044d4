#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gatemark::frame {

/// A burst is the frames that one poll of a task sends or receives together.
constexpr std::size_t burst_frames_max = 32;

/// This many frames are a whole number of vectors on every CPU; work on a few frames more than a
/// burst has is harmless and saves the vectors a tail.
constexpr std::size_t lanes = 8;
constexpr std::size_t in_lanes(std::size_t count) noexcept { return (count + lanes - 1) / lanes * lanes; }
static_assert(in_lanes(burst_frames_max) == burst_frames_max);

using BurstNumbers = std::array<std::uint64_t, burst_frames_max>;

/// The frames of one class in a burst, in buffers of `Byte`.
template <class Byte>
struct BurstFramesOf {
    std::size_t count = 0;
    alignas(64) BurstNumbers numbers{};            ///< in the class
    alignas(64) BurstNumbers indexes{};            ///< in the direction
    std::array<Byte*, burst_frames_max> frames{};  ///< if to be written, they hold the template
};
using BurstFrames = BurstFramesOf<std::byte>;
using ReceivedFrames = BurstFramesOf<const std::byte>;

/// What varies in these frames on one side of the gateway: an array for each field, so that vector
/// instructions work on several frames at once. Everything is in the byte order of memory.
struct BurstFields {
    template <class T>
    using OfEach = std::array<T, burst_frames_max>;

    alignas(64) OfEach<std::uint32_t> ports{};            ///< source, destination
    alignas(64) OfEach<std::uint32_t> words{};            ///< the values of hosts: source, destination
    alignas(64) OfEach<std::uint32_t> addresses{};        ///< what the other addresses add to the checksums
    alignas(64) OfEach<std::uint32_t> identifications{};  ///< of IPv4 headers, if someone else chose them
    alignas(64) OfEach<std::uint64_t> marks{};            ///< stream and index, and two bytes of zero
    alignas(64) OfEach<std::uint64_t> times{};            ///< time stamps
    alignas(64) OfEach<std::uint32_t> header_checksums{}, udp_checksums{};

    /// The value of a host of frame `k`.
    [[nodiscard]] std::uint16_t host(std::size_t k, bool of_source) const noexcept {
        return static_cast<std::uint16_t>(of_source ? words[k] : words[k] >> 16);
    }
};

}  // namespace gatemark::frame
