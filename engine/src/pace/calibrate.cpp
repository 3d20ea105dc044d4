#include "pace/calibrate.hpp"

#include "base/wide.hpp"
#include "pace/clock.hpp"

#include <algorithm>
#include <ctime>

namespace gatemark::pace {

namespace {

constexpr std::uint64_t second = 1'000'000'000;

/// 50 ms give the rate to about two in a million, because both clocks are read within 100 ns.
constexpr std::uint64_t calibration_ns = 50'000'000;

/// No clock that can be waited for is this one: CLOCK_MONOTONIC is slewed.
void sleep_for(std::uint64_t nanoseconds) {
    const timespec time{.tv_sec = static_cast<time_t>(nanoseconds / second), .tv_nsec = static_cast<long>(nanoseconds % second)};
    (void)nanosleep(&time, nullptr);
}

}  // namespace

ClockReading read_clocks() {
    ClockReading best{0, 0, ~std::uint64_t{0}};
    const CycleClock clock;
    for (int i = 0; i < 20; ++i) {
        timespec time{};
        const std::uint64_t before = clock.now().value;
        clock_gettime(CLOCK_MONOTONIC_RAW, &time);
        const std::uint64_t after = clock.now().value;
        if (after - before < best.width) {
            best = {before + (after - before) / 2,
                    static_cast<std::uint64_t>(time.tv_sec) * second + static_cast<std::uint64_t>(time.tv_nsec), after - before};
        }
    }
    return best;
}

Calibration::Calibration() : begin_{read_clocks()} {}

std::uint64_t Calibration::ticks_per_second() const {
    ClockReading end = read_clocks();
    for (; end.nanoseconds - begin_.nanoseconds < calibration_ns; end = read_clocks()) {
        sleep_for(begin_.nanoseconds + calibration_ns - end.nanoseconds);
    }
    return static_cast<std::uint64_t>(static_cast<Wide>(end.ticks - begin_.ticks) * second / (end.nanoseconds - begin_.nanoseconds));
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
