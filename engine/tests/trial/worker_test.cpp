#include "trial/worker.hpp"

#include "pace/calibrate.hpp"
#include "pace/tick_scale.hpp"

#include <gtest/gtest.h>

namespace gatemark::trial {
namespace {

using namespace std::chrono_literals;

/// Is held up in its third round, and has something to do in every round, or in none.
class HeldUp final : public loop::Task {
public:
    explicit HeldUp(bool busy) : busy_{busy} {}
    bool poll() noexcept override {
        if (++round_ == 3) {
            std::this_thread::sleep_for(50ms);
            done_ = true;
        }
        return busy_;
    }
    [[nodiscard]] bool done() const noexcept { return done_; }

private:
    bool busy_;
    int round_ = 0;
    std::atomic<bool> done_{false};
};

std::chrono::nanoseconds pause_of(Worker& worker, const TaskList& idle, bool busy) {
    HeldUp task{busy};
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
    EXPECT_GE(pause_of(worker, idle, true), 49ms);
    EXPECT_LT(pause_of(worker, idle, false), 49ms) << "nothing waited for it";
    EXPECT_GE(pause_of(worker, idle, true), 49ms) << "each list is a new beginning";
}

}  // namespace
}  // namespace gatemark::trial
