#include "pace/false_clock.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

namespace {

constexpr std::int64_t second = 1'000'000'000;
std::atomic<std::int64_t> slew_begun{0}, slewed_before{0}, raw_behind{0};
std::atomic<int> slew{0};

std::int64_t time_of(clockid_t clock) {
    timespec time{};
    syscall(SYS_clock_gettime, clock, &time);
    return time.tv_sec * second + time.tv_nsec;
}

std::int64_t slewed(std::int64_t now) { return slewed_before + (now - slew_begun) * slew / 1'000'000; }

}  // namespace

namespace gatemark::test {

void slew_monotonic_clock(int parts_per_million) {
    const std::int64_t now = time_of(CLOCK_MONOTONIC);
    slewed_before = slewed(now);
    slew_begun = now;
    slew = parts_per_million;
}

void set_raw_clock_back(std::chrono::nanoseconds time) { raw_behind += time.count(); }

}  // namespace gatemark::test

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {  // NOLINT: libc's name
    const auto status = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
    if (status == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW)) {
        const std::int64_t now = time->tv_sec * second + time->tv_nsec;
        const std::int64_t told = clock == CLOCK_MONOTONIC ? now + slewed(now) : now - raw_behind;
        *time = {.tv_sec = told / second, .tv_nsec = told % second};
    }
    return status;
}
