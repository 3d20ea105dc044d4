#include "pace/calibrate.hpp"

#include "base/wide.hpp"
#include "pace/clock.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace gatemark::pace {

namespace {

/// CLOCK_MONOTONIC is the best time source of the machine; 50 ms of it give the rate to about one
/// in a million.
constexpr std::uint64_t calibration_ns = 50'000'000;

/// The reading with the least uncertainty out of several.
ClockReading read_both() {
    ClockReading best{0, 0, ~std::uint64_t{0}};
    const CycleClock clock;
    for (int i = 0; i < 20; ++i) {
        timespec time{};
        const std::uint64_t before = clock.now().value;
        clock_gettime(CLOCK_MONOTONIC, &time);
        const std::uint64_t after = clock.now().value;
        if (after - before < best.width) {
            best = {before + (after - before) / 2,
                    static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec), after - before};
        }
    }
    return best;
}

}  // namespace

Calibration::Calibration() : begin_{read_both()} {}

std::uint64_t Calibration::ticks_per_second() const {
    const std::uint64_t until = begin_.nanoseconds + calibration_ns;
    const timespec wanted{.tv_sec = static_cast<time_t>(until / 1'000'000'000), .tv_nsec = static_cast<long>(until % 1'000'000'000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wanted, nullptr) == EINTR) {}
    const ClockReading end = read_both();
    return static_cast<std::uint64_t>(static_cast<Wide>(end.ticks - begin_.ticks) * 1'000'000'000 / (end.nanoseconds - begin_.nanoseconds));
}

ClockQuality clock_quality() {
    constexpr std::uint64_t reads = 10'000;
    const CycleClock clock;
    ClockQuality quality{.resolution = {~std::uint64_t{0}}, .ticks_per_hundred_reads = 0};
    const Ticks begin = clock.now();
    Ticks last = begin;
    for (std::uint64_t i = 0; i < reads; ++i) {
        const Ticks now = clock.now();
        if (now.value > last.value) {
            quality.resolution.value = std::min(quality.resolution.value, now.value - last.value);
        }
        last = now;
    }
    quality.ticks_per_hundred_reads = (last.value - begin.value) * 100 / reads;
    return quality;
}

}  // namespace gatemark::pace
