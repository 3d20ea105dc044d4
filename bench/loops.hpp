#pragma once

#include "memory_queues.hpp"
#include "tick_counter.hpp"

/// Complete senders and receivers on any queue, polled by the benchmark's thread as fast as
/// possible.
namespace gatemark::bench {

template <class Queue, class Foreground>
void send(benchmark::State& state, const frame::Stream& stream, Queue& queue, Foreground foreground) {
    const pace::CycleClock clock;
    const auto sender = std::make_unique<loop::Sender<Queue, pace::CycleClock, Foreground>>(flat_out(stream), queue, clock, foreground);
    TickCounter counter{state};
    for (auto unused : state) {
        sender->poll();
    }
    counter.add(sender->counts().offered_foreground);
}

/// Stands still but when it is moved on; each reading costs what one of the CPU's counter costs.
struct SteppingClock {
    [[nodiscard]] pace::Ticks now() const noexcept {
        benchmark::DoNotOptimize(pace::CycleClock{}.now());
        return {ticks};
    }
    std::uint64_t ticks = 0;
};

/// One frame at a time, as at every rate that a worker keeps up with easily.
template <class Queue>
void send_one_by_one(benchmark::State& state, const frame::Stream& stream, Queue& queue) {
    constexpr std::uint64_t ticks_per_frame = 1000;
    SteppingClock clock;
    loop::SenderPlan plan = flat_out(stream);
    plan.schedule = pace::Schedule{{.frames_per_second = 1'000'000}, {}, 1'000'000 * ticks_per_frame};
    const auto sender = std::make_unique<loop::Sender<Queue, SteppingClock>>(plan, queue, clock);
    std::uint64_t polls = 0;
    TickCounter counter{state};
    for (auto unused : state) {
        sender->poll();
        clock.ticks += ticks_per_frame;
        ++polls;
    }
    counter.add(polls);
    if (sender->counts().offered_foreground != polls) {
        state.SkipWithError("a burst was not of one frame");
    }
}

template <class Receiver>
void expect_received(benchmark::State& state, const Receiver& receiver, std::uint64_t frame_count) {
    std::uint64_t received = 0;
    for (const auto direction : {frame::signature::Direction::forward, frame::signature::Direction::reverse}) {
        received += receiver.counts(direction, frame::signature::TrafficClass::foreground)[record::Count::received];
    }
    if (received != frame_count) {
        state.SkipWithError("a correct frame was not counted as received");
    }
}

/// The queue has a burst for every poll.
template <class Clock = pace::CycleClock, class Queue>
void receive(benchmark::State& state, Queue& queue, ReceiverParts& parts) {
    const auto receiver = std::make_unique<loop::Receiver<Queue, Clock>>(parts.plan, queue, parts.mailbox);
    std::uint64_t polls = 0;
    TickCounter counter{state};
    for (auto unused : state) {
        if constexpr (requires { queue.restart(); }) {
            if (queue.at_end()) [[unlikely]] {
                receiver->finish();
                counter.leave_out([&] { queue.restart(); });
            }
        }
        receiver->poll();
        ++polls;
    }
    receiver->finish();
    counter.add(polls * burst_frames);
    expect_received(state, *receiver, polls * burst_frames);
}

}  // namespace gatemark::bench
