#include "memory_queues.hpp"
#include "pace/calibrate.hpp"
#include "pace/tick_scale.hpp"
#include "ports.hpp"
#include "record/delay_histogram.hpp"
#include "trial/worker.hpp"

#include <sched.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

/// How well frames are paced: a real sender on a worker of the engine and the null port, with every
/// handover recorded. Prints a line of JSON for the gaps of the CPU itself and one for each rate.
namespace gatemark::bench {

namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a < b ? b - a : a - b; }

json distribution(const record::DelayHistogram& histogram, const pace::TickScale& scale) {
    const auto ns = [&](pace::Ticks ticks) { return scale.time(ticks).count(); };
    const std::uint64_t samples = histogram.samples();
    json summary{{"samples", samples}, {"max", ns(histogram.maximum())}};
    for (const auto& [name, share] : {std::pair{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}}) {
        const auto rank = static_cast<std::uint64_t>(share * static_cast<double>(samples) + 0.999999);
        summary[name] = ns(histogram.of_rank(std::clamp<std::uint64_t>(rank, 1, samples)));
    }
    return summary;
}

double share_within(const record::DelayHistogram& histogram, pace::Ticks limit) {
    std::uint64_t within = 0;
    histogram.visit([&](pace::Ticks ticks, std::uint64_t count) { within += ticks <= limit ? count : 0; });
    return static_cast<double>(within) / static_cast<double>(histogram.samples());
}

/// The null port, which records when each frame was handed over.
class NotingQueue : public io::TransmitQueue {
public:
    NotingQueue(std::span<io::FramePool> pools, const pace::Schedule& schedule)
        : io::TransmitQueue{null_port(), 0, pools}, schedule_{schedule}, next_{schedule.begin()} {}

    std::size_t send(std::span<Buffer> given) noexcept {
        const std::uint64_t now = pace::CycleClock{}.now().value;
        const std::size_t accepted = io::TransmitQueue::send(given);
        for (std::size_t i = 0; i < accepted; ++i, schedule_.advance(next_)) {
            const std::uint64_t due = next_.due().value;
            late_.add({now - due});
            if (last_due_ != 0) {
                gap_error_.add({distance(now - last_handover_, due - last_due_)});
            }
            last_due_ = due;
            last_handover_ = now;
        }
        bursts_[accepted] += 1;
        return accepted;
    }
    [[nodiscard]] json facts(const pace::TickScale& scale) const {
        json bursts = json::object();
        for (std::size_t frames = 1; frames <= burst_frames; ++frames) {
            if (bursts_[frames] != 0) {
                bursts[std::to_string(frames)] = bursts_[frames];
            }
        }
        return {{"frames", late_.samples()},
                {"gap_error_ns", distribution(gap_error_, scale)},
                {"lateness_ns", distribution(late_, scale)},
                {"share_within_1us", share_within(late_, scale.ticks(1us))},
                {"bursts", bursts}};
    }

private:
    pace::Schedule schedule_;
    pace::Schedule::Position next_;
    record::DelayHistogram late_, gap_error_;
    std::array<std::uint64_t, burst_frames + 1> bursts_{};
    std::uint64_t last_due_ = 0, last_handover_ = 0;
};

/// Only reads the clock and records where it jumps: for how long the CPU was taken away.
class GapTask final : public loop::Task {
public:
    GapTask(pace::Ticks shortest, pace::Ticks end) : shortest_{shortest}, end_{end} {}

    bool poll() noexcept override {
        std::uint64_t before = pace::CycleClock{}.now().value;
        start_ = start_ == 0 ? before : start_;
        while (before < end_.value) {
            const std::uint64_t now = pace::CycleClock{}.now().value;
            if (now - before > shortest_.value) {
                gaps_.add({now - before});
                lost_ += now - before;
            }
            before = now;
        }
        finished_.store(true, std::memory_order_release);
        return false;
    }
    [[nodiscard]] bool finished() const { return finished_.load(std::memory_order_acquire); }
    [[nodiscard]] json facts(const pace::TickScale& scale) const {
        return {{"gaps", gaps_.samples()},
                {"gaps_over_ns", scale.time(shortest_).count()},
                {"longest_gap_ns", scale.time(gaps_.maximum()).count()},
                {"share_lost", static_cast<double>(lost_) / static_cast<double>(end_.value - start_)}};
    }

private:
    pace::Ticks shortest_, end_;
    std::uint64_t start_ = 0, lost_ = 0;
    record::DelayHistogram gaps_;
    std::atomic<bool> finished_{false};
};

/// Has `task` polled by the worker until it is finished.
template <class Polled>
void run(trial::Worker& worker, Polled& task, const trial::TaskList& idle) {
    const trial::TaskList list{.tasks = {&task}, .idle = false};
    worker.ask(list);
    while (!task.finished()) {
        std::this_thread::sleep_for(10ms);
    }
    worker.ask(idle);
    worker.wait();
}

pace::Ticks in(std::chrono::nanoseconds time, const pace::TickScale& scale) {
    return {pace::CycleClock{}.now().value + scale.ticks(time).value};
}

json measure_gaps(trial::Worker& worker, const trial::TaskList& idle, const pace::TickScale& scale, std::chrono::milliseconds duration) {
    GapTask task{scale.ticks(1us), in(duration, scale)};
    run(worker, task, idle);
    return task.facts(scale);
}

json measure_rate(trial::Worker& worker, const trial::TaskList& idle, const pace::TickScale& scale, std::uint64_t rate,
                  std::chrono::milliseconds duration) {
    const frame::Stream stream = stream_for(net::Family::ipv4, Varying::ports_and_hosts);
    const auto pools = pools_for(null_port(), stream.sent().frame);
    loop::SenderPlan plan = flat_out(stream, rate * static_cast<std::uint64_t>(duration.count()) / 1000);
    plan.schedule = pace::Schedule{{.frames_per_second = rate}, in(20ms, scale), scale.ticks_per_second()};
    NotingQueue queue{pools, plan.schedule};
    const pace::CycleClock clock;
    const auto sender = std::make_unique<loop::Sender<NotingQueue, pace::CycleClock>>(plan, queue, clock);
    run(worker, *sender, idle);
    json facts = queue.facts(scale);
    facts["frames_per_second"] = rate;
    facts["sender_lateness_max_ns"] = scale.time(sender->counts().lateness.maximum()).count();
    return facts;
}

unsigned last_cpu() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    unsigned last = 0;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        last = CPU_ISSET(cpu, &allowed) ? cpu : last;
    }
    return last;
}

}  // namespace

/// Arguments: milliseconds for each rate (0: only the gaps of the CPU), milliseconds of watching
/// for gaps.
int run_pacing(std::chrono::milliseconds each, std::chrono::milliseconds gaps) {
    const pace::TickScale scale{pace::ticks_per_second()};
    null_port();
    const trial::TaskList idle;
    trial::Worker worker{last_cpu(), trial::Precedence::alone, idle};
    json about = measure_gaps(worker, idle, scale, gaps);
    about["ticks_per_second"] = scale.ticks_per_second();
    about["compiler"] = "g++ " __VERSION__ " " GATEMARK_BUILD;
    std::cout << about << std::endl;
    for (const std::uint64_t rate : {100'000U, 1'000'000U, 5'000'000U, 10'000'000U}) {
        if (each > 0ms) {
            std::cout << measure_rate(worker, idle, scale, rate, each) << std::endl;
        }
    }
    return 0;
}

}  // namespace gatemark::bench

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: gatemark-pacing MILLISECONDS_OF_EACH_RATE MILLISECONDS_OF_LOOKING_FOR_GAPS\n";
        return 2;
    }
    return gatemark::bench::run_pacing(std::chrono::milliseconds{std::atol(argv[1])}, std::chrono::milliseconds{std::atol(argv[2])});
}
