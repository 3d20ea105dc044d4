#pragma once

#include "loop/task.hpp"
#include "pace/clock.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace gatemark::trial {

/// The tasks that a worker polls in turn. An idle list is polled from time to time, a busy one
/// without pause.
struct TaskList {
    std::vector<loop::Task*> tasks;
    bool idle = true;
    std::chrono::microseconds pause{1000};  ///< of an idle list, whenever it has nothing to do
};

/// How a worker treats other work on its CPU.
enum class Precedence {
    shared,  ///< has precedence, by its nice value
    alone,   ///< displaces it: only if a CPU is left for everything else
};

/// Gives this thread precedence over other work on its CPU, as far as we may. A thread of the
/// ordinary class waits up to a scheduler tick of 4 ms for any other that wakes up there, whatever
/// the nice values; kernel threads alone cause that often.
void prefer_this_thread(Precedence precedence) noexcept;

/// A thread on one CPU that polls a list of tasks until it is given another list. It changes lists
/// between two rounds. An idle list has no round after another one was asked for: what arrives from
/// then on is not for it. Any other list has one: if the thread was held up until then, this is
/// seen.
class Worker {
public:
    /// `idle` must outlive the worker, as must any list it is given.
    Worker(unsigned cpu, Precedence precedence, const TaskList& idle);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    [[nodiscard]] unsigned cpu() const noexcept { return cpu_; }
    /// Requests another list and returns at once. To hand lists to several workers, ask all of
    /// them, then wait for each.
    void ask(const TaskList& list) noexcept { wanted_.store(&list, std::memory_order_release); }
    /// Waits until the worker polls the latest list; nothing of earlier lists is then in use.
    void wait() const noexcept;
    /// The longest time for which the worker did nothing while there was work, since it last had an
    /// idle list: from the begin of a round to that of the next, which had something to do. Valid
    /// once an idle list is polled again.
    [[nodiscard]] pace::Ticks longest_pause() const noexcept { return longest_pause_; }
    /// False if the thread could not be pinned to its CPU.
    [[nodiscard]] bool pinned() const noexcept { return pinned_.load(std::memory_order_acquire); }

private:
    void work() noexcept;

    unsigned cpu_;
    Precedence precedence_;
    std::atomic<const TaskList*> wanted_;            ///< release by ask pairs with acquire in work
    std::atomic<const TaskList*> running_{nullptr};  ///< release in work pairs with acquire in wait
    std::atomic<bool> stop_{false}, pinned_{false};
    pace::Ticks longest_pause_;  ///< written before `running_` changes
    std::thread thread_;
};

}  // namespace gatemark::trial
