#pragma once

#include "loop/task.hpp"
#include "pace/clock.hpp"

namespace gatemark::loop {

/// Adds up the time of those polls of a task that had something to do.
template <pace::TickClock Clock = pace::CycleClock>
class TimedTask final : public Task {
public:
    explicit TimedTask(Task& task, const Clock& clock = {}) noexcept : task_{task}, clock_{clock} {}

    bool poll() noexcept override {
        const pace::Ticks begin = clock_.now();
        if (!task_.poll()) {
            return false;
        }
        busy_.value += clock_.now().value - begin.value;
        return true;
    }
    void finish() noexcept override { task_.finish(); }
    /// Valid after the worker has left the trial.
    [[nodiscard]] pace::Ticks busy() const noexcept { return busy_; }

private:
    Task& task_;
    const Clock clock_;
    pace::Ticks busy_{};
};

}  // namespace gatemark::loop
