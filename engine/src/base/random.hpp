#pragma once

#include "base/wide.hpp"

#include <cstdint>

namespace gatemark {

/// A bijective mix of 64 bits, the finaliser of SplitMix64 (Stafford's variant 13). Counter-based:
/// the i-th word of a stream is mix(key + i * odd constant), so the values of any frame can be
/// computed on their own, on any core, by sender and receiver alike.
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t x) noexcept {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 27;
    x *= 0x94d049bb133111eb;
    x ^= x >> 31;
    return x;
}

/// A pseudorandom sequence with random access. Different purposes of one seed give independent
/// sequences.
class RandomSequence {
public:
    constexpr RandomSequence(std::uint64_t seed, std::uint64_t purpose) noexcept
        : key_{mix_bits(mix_bits(seed + golden) ^ (purpose * golden))} {}
    [[nodiscard]] constexpr std::uint64_t at(std::uint64_t index) const noexcept { return mix_bits(key_ + index * golden); }

private:
    static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
    std::uint64_t key_;
};

/// Maps 32 uniform bits to [0, count) by multiply-shift; the relative bias of a value's probability
/// is below count / 2^32.
[[nodiscard]] constexpr std::uint32_t scale_to(std::uint32_t uniform, std::uint32_t count) noexcept {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(uniform) * count) >> 32);
}

/// The same for 64 uniform bits and counts beyond 2^32.
[[nodiscard]] constexpr std::uint64_t scale_wide_to(std::uint64_t uniform, std::uint64_t count) noexcept {
    return static_cast<std::uint64_t>((static_cast<Wide>(uniform) * count) >> 64);
}

// The published first output of SplitMix64 with seed 0.
static_assert(mix_bits(0x9e3779b97f4a7c15) == 0xe220a8397b1dcdaf);

}  // namespace gatemark
