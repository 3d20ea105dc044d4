#pragma once

#include "base/pin_to.hpp"
#include "pace/clock.hpp"

#include <benchmark/benchmark.h>
#include <sched.h>

#include <cstdint>

namespace gatemark::bench {

/// Keeps the calling thread on the last CPU that the program may use; further threads on those
/// before it.
inline void pin_from_last(int place) {
    static const cpu_set_t allowed = [] {
        cpu_set_t set;
        CPU_ZERO(&set);
        sched_getaffinity(0, sizeof set, &set);
        return set;
    }();
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
        if (CPU_ISSET(cpu, &allowed) && place-- == 0) {
            (void)pin_to(static_cast<unsigned>(cpu));
            return;
        }
    }
}

/// Counts ticks of the constant-rate counter around a loop and reports them per frame.
class TickCounter {
public:
    explicit TickCounter(benchmark::State& state) : state_{state}, start_{pace::CycleClock{}.now()} {}
    TickCounter(const TickCounter&) = delete;
    TickCounter& operator=(const TickCounter&) = delete;
    ~TickCounter() {
        const double ticks = static_cast<double>(pace::CycleClock{}.now().value - start_.value);
        state_.counters["ticks/frame"] = benchmark::Counter(ticks / static_cast<double>(frames_), benchmark::Counter::kAvgThreads);
    }
    void restart() { start_ = pace::CycleClock{}.now(); }
    void add(std::uint64_t frames) { frames_ += frames; }
    /// Does `work` without counting it.
    template <class Work>
    void leave_out(Work&& work) {
        state_.PauseTiming();
        const pace::Ticks before = pace::CycleClock{}.now();
        work();
        start_.value += pace::CycleClock{}.now().value - before.value;
        state_.ResumeTiming();
    }

private:
    benchmark::State& state_;
    pace::Ticks start_;
    std::uint64_t frames_ = 0;
};

}  // namespace gatemark::bench
