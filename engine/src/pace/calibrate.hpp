#pragma once

#include "pace/clock.hpp"

#include <cstdint>

namespace gatemark::pace {

/// The CycleClock and CLOCK_MONOTONIC_RAW at one moment. A time service slews CLOCK_MONOTONIC by up
/// to 500 in a million; nobody slews or sets this one.
struct ClockReading {
    std::uint64_t ticks, nanoseconds;
    std::uint64_t width;  ///< ticks within which both were read
};

/// The reading with the least uncertainty out of several.
[[nodiscard]] ClockReading read_clocks();

/// Compares both clocks, starting at construction; the caller may do other work in between.
class Calibration {
public:
    Calibration();
    /// Ticks per second, accurate to a few in a million. Waits until 50 ms have passed since
    /// construction.
    [[nodiscard]] std::uint64_t ticks_per_second() const;

private:
    ClockReading begin_;
};

[[nodiscard]] inline std::uint64_t ticks_per_second() { return Calibration{}.ticks_per_second(); }

/// How precise a reading of the CycleClock is, and what it costs.
struct ClockQuality {
    Ticks resolution;                       ///< the smallest difference between two successive readings
    std::uint64_t ticks_per_hundred_reads;  ///< the cost of reading the clock
};

[[nodiscard]] ClockQuality clock_quality();

}  // namespace gatemark::pace
