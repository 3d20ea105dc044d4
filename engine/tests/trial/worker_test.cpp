#include "trial/worker.hpp"

#include "pace/calibrate.hpp"
#include "pace/tick_scale.hpp"

#include <gtest/gtest.h>

namespace gatemark::trial {
namespace {

using namespace std::chrono_literals;

/// Is held up in its third round. It has something to do in that round or not, and in the others or
/// not.
struct Work {
    bool in_that_round = true, in_others = true;
};

class HeldUp final : public loop::Task {
public:
    explicit HeldUp(const Work& work) : work_{work} {}
    bool poll() noexcept override {
        if (++round_ == 3) {
            std::this_thread::sleep_for(50ms);
            done_ = true;
            return work_.in_that_round;
        }
        return work_.in_others;
    }
    [[nodiscard]] bool done() const noexcept { return done_; }

private:
    Work work_;
    int round_ = 0;
    std::atomic<bool> done_{false};
};

std::chrono::nanoseconds pause_of(Worker& worker, const TaskList& idle, const Work& work) {
    HeldUp task{work};
    const TaskList list{.tasks = {&task}, .idle = false};
    worker.ask(list);
    worker.wait();
    while (!task.done()) {
        std::this_thread::sleep_for(1ms);
    }
    worker.ask(idle);
    worker.wait();
    return pace::TickScale{pace::ticks_per_second()}.time(worker.longest_pause());
}

TEST(Worker, TellsForHowLongItDidNothingWhileThereWasWork) {
    const TaskList idle;
    Worker worker{0, Precedence::shared, idle};
    EXPECT_GE(pause_of(worker, idle, {}), 49ms);
    EXPECT_EQ(pause_of(worker, idle, {.in_that_round = false, .in_others = false}), 0ms) << "nothing waited for it";
    EXPECT_GE(pause_of(worker, idle, {.in_that_round = false}), 49ms) << "something came meanwhile";
}

/// Asks for another list in its first round.
class AsksForAnother final : public loop::Task {
public:
    AsksForAnother(Worker& worker, const TaskList& next) : worker_{worker}, next_{next} {}
    bool poll() noexcept override {
        if (++rounds_ == 1) {
            worker_.ask(next_);
        }
        return true;
    }
    void finish() noexcept override { finished_after_ = rounds_.load(); }
    [[nodiscard]] int rounds() const noexcept { return rounds_; }
    [[nodiscard]] int finished_after() const noexcept { return finished_after_; }

private:
    Worker& worker_;
    const TaskList& next_;
    std::atomic<int> rounds_{0}, finished_after_{0};
};

int rounds_until_the_next_list(bool idle_list) {
    const TaskList nothing;
    Worker worker{0, Precedence::shared, nothing};
    AsksForAnother task{worker, nothing};
    const TaskList list{.tasks = {&task}, .idle = idle_list};
    worker.ask(list);
    while (task.rounds() == 0) {
        std::this_thread::sleep_for(1ms);
    }
    worker.wait();
    EXPECT_EQ(task.finished_after(), task.rounds()) << "what the last poll has left";
    return task.rounds();
}

TEST(Worker, PollsAListOnceMoreAfterAnotherWasAskedForUnlessItIsIdle) {
    EXPECT_EQ(rounds_until_the_next_list(false), 2) << "what came while the thread was held up until then would not be seen";
    EXPECT_EQ(rounds_until_the_next_list(true), 1) << "it would take the frames of the next list";
}

}  // namespace
}  // namespace gatemark::trial
