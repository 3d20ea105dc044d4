#pragma once

#include <chrono>

/// Takes the place of libc's clock_gettime() in a test program. Without an error it tells the time.
namespace gatemark::test {

/// CLOCK_MONOTONIC goes faster by this many millionths from now on, as while a time service slews
/// it, where Linux takes at most 500. 0 ends it.
void slew_monotonic_clock(int parts_per_million);

/// CLOCK_MONOTONIC_RAW goes back by this once, as the clock of a machine that slept seems to do
/// beside a counter that went on.
void set_raw_clock_back(std::chrono::nanoseconds time);

}  // namespace gatemark::test
