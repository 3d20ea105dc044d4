#pragma once

#include "pace/clock.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace gatemark::record {

/// How late bursts were handed over: the Tester's own error, reported with every result. Bucket b
/// counts bursts whose oldest frame was less than 2^b ticks late.
class LatenessHistogram {
public:
    static constexpr std::size_t buckets = 44;

    void add(pace::Ticks late) noexcept {
        ++bursts_[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(late.value)), buckets - 1)];
        maximum_.value = std::max(maximum_.value, late.value);
    }
    void add(const LatenessHistogram& other) noexcept {
        for (std::size_t i = 0; i < buckets; ++i) {
            bursts_[i] += other.bursts_[i];
        }
        maximum_.value = std::max(maximum_.value, other.maximum_.value);
    }
    [[nodiscard]] std::uint64_t bursts(std::size_t bucket) const noexcept { return bursts_[bucket]; }
    [[nodiscard]] static pace::Ticks below(std::size_t bucket) noexcept { return {std::uint64_t{1} << bucket}; }
    [[nodiscard]] pace::Ticks maximum() const noexcept { return maximum_; }

private:
    std::array<std::uint64_t, buckets> bursts_{};
    pace::Ticks maximum_{};
};

}  // namespace gatemark::record
