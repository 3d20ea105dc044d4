#pragma once

#include "pace/clock.hpp"

#include <cstdint>

namespace gatemark::pace {

/// Both clocks at one moment.
struct ClockReading {
    std::uint64_t ticks, nanoseconds;
    std::uint64_t width;  ///< ticks within which both were read
};

/// Compares the CycleClock with the monotonic clock, from its construction on: other work may be done meanwhile.
class Calibration {
public:
    Calibration();
    /// Ticks per second, good to a few in a million: waits until 50 ms have passed since the beginning.
    [[nodiscard]] std::uint64_t ticks_per_second() const;

private:
    ClockReading begin_;
};

[[nodiscard]] inline std::uint64_t ticks_per_second() { return Calibration{}.ticks_per_second(); }

/// What a reading of the CycleClock is good for.
struct ClockQuality {
    Ticks resolution;                       ///< the smallest step seen between two readings in a row
    std::uint64_t ticks_per_hundred_reads;  ///< what it costs to look
};

[[nodiscard]] ClockQuality clock_quality();

}  // namespace gatemark::pace
