#include "pace/calibrate.hpp"

#include "base/wide.hpp"
#include "pace/clock.hpp"

#include <algorithm>
#include <ctime>

namespace gatemark::pace {

namespace {

struct Reading {
    std::uint64_t ticks, nanoseconds, width;
};

/// Both clocks at one moment: the narrowest of some tries.
Reading read_both() {
    Reading best{0, 0, ~std::uint64_t{0}};
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

std::uint64_t ticks_per_second() {
    // CLOCK_MONOTONIC is the machine's best idea of time; 50 ms of it fix the rate to about one in a million.
    const Reading start = read_both();
    const timespec pause{.tv_sec = 0, .tv_nsec = 50'000'000};
    nanosleep(&pause, nullptr);
    const Reading end = read_both();
    return static_cast<std::uint64_t>(static_cast<Wide>(end.ticks - start.ticks) * 1'000'000'000 / (end.nanoseconds - start.nanoseconds));
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
