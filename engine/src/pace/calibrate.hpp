#pragma once

#include "pace/clock.hpp"

#include <cstdint>

namespace gatemark::pace {

/// Ticks of the CycleClock per second, measured for 50 ms against the monotonic clock (good to a few in a million).
[[nodiscard]] std::uint64_t ticks_per_second();

/// What a reading of the CycleClock is good for.
struct ClockQuality {
    Ticks resolution;                       ///< the smallest step seen between two readings in a row
    std::uint64_t ticks_per_hundred_reads;  ///< what it costs to look
};

[[nodiscard]] ClockQuality clock_quality();

}  // namespace gatemark::pace
