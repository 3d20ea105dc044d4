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

template <class Receiver>
void expect_received(benchmark::State& state, const Receiver& receiver, std::uint64_t frame_count) {
    std::uint64_t received = 0;
    for (const auto direction : {frame::signature::Direction::forward, frame::signature::Direction::reverse}) {
        received += receiver.counts(direction, frame::signature::TrafficClass::foreground).received;
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
        receiver->poll();
        ++polls;
    }
    counter.add(polls * burst_frames);
    expect_received(state, *receiver, polls * burst_frames);
}

}  // namespace gatemark::bench
