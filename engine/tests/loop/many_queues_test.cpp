#include "frame/streams.hpp"
#include "io/memory_port.hpp"
#include "loop/receiver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>

/// Frames of one direction arrive on any of several queues, with losses, duplicates, faults and
/// reordering: the receivers of all queues together record what a single receiver of all frames
/// records.
namespace gatemark::loop {
namespace {

using frame::signature::Direction, frame::signature::TrafficClass;
using record::Count;
using test::Gateway, test::Bytes;

constexpr std::uint64_t frames_each_way = 600, trial_begun = 1000;

struct Arrived {
    std::size_t queue = 0;
    std::uint64_t time = 0;
    Bytes bytes{};
};

/// A queue whose port says when each frame arrived.
class StampedQueue {
public:
    using Buffer = const Arrived*;

    void put(const Arrived& frame) { frames_.push_back(&frame); }
    [[nodiscard]] std::size_t receive(std::span<Buffer> burst) noexcept {
        const std::size_t count = std::min(burst.size(), frames_.size() - taken_);
        std::copy_n(frames_.begin() + static_cast<std::ptrdiff_t>(taken_), count, burst.begin());
        taken_ += count;
        return count;
    }
    [[nodiscard]] static std::span<const std::byte> bytes(Buffer buffer) noexcept { return buffer->bytes; }
    [[nodiscard]] static pace::Ticks arrival(Buffer buffer, pace::Ticks /*polled*/) noexcept { return {buffer->time}; }
    void release(std::span<Buffer> /*burst*/) noexcept {}

private:
    std::vector<Buffer> frames_;
    std::size_t taken_ = 0;
};
static_assert(io::ReceivesFrames<StampedQueue>);

class Traffic {
public:
    Traffic()
        : foreground_{test::make_stream(test::request_for(Gateway::siit64))},
          background_{test::make_stream(test::request_for(Gateway::router66), {}, TrafficClass::background)} {
        for (std::uint64_t index = 0; index < frames_each_way; ++index) {
            const auto place = mix_.place_of(index);
            const frame::Stream& stream = place.foreground ? foreground_ : background_;
            frames_.push_back(
                test::write_packet(test::forwarded(test::frame_in(stream.sent(), stream, place.number_in_class, index, sent_at(index)),
                                                   place.foreground ? Gateway::siit64 : Gateway::router66)));
        }
    }
    [[nodiscard]] static std::uint64_t sent_at(std::uint64_t index) { return trial_begun + 10 * index; }
    [[nodiscard]] const Bytes& frame(std::uint64_t index) const { return frames_[index]; }
    [[nodiscard]] pace::Mix mix() const { return mix_; }
    [[nodiscard]] std::array<const frame::Stream*, 2> streams() const { return {&foreground_, &background_}; }

private:
    pace::Mix mix_{3, 4};
    frame::Stream foreground_, background_;
    std::vector<Bytes> frames_;
};

const Traffic& traffic() {
    static const Traffic all;
    return all;
}

/// Memory that is taken once: it is large, and the thread sanitizer pays for each new page.
std::array<record::DelayWindow, 2>& windows_of(record::Receivers kind) {
    static std::array<std::array<record::DelayWindow, 2>, 2> windows;
    return windows[kind == record::Receivers::one ? 0 : 1];
}

/// The receivers of all queues of one port, and what they share. One of one queue and one of
/// several may be in use at a time.
class Receivers {
public:
    Receivers(std::size_t queues, std::uint64_t senders)
        : queues_(queues), windows_{windows_of(queues == 1 ? record::Receivers::one : record::Receivers::many)} {
        const auto kind = queues == 1 ? record::Receivers::one : record::Receivers::many;
        arrivals_.reset(frames_each_way, kind);
        tags_.reset({.first = 100, .frames = frames_each_way, .count = 250});
        for (record::DelayWindow& window : windows_) {
            window.reset(kind);
        }
        ReceiverPlan plan{.trial_id = test::trial_id(), .earliest = {trial_begun}, .directions = {}, .kept_frames_max = 0};
        plan.directions[0] = {.active = true,
                              .arrives_here = true,
                              .frame_count = frames_each_way,
                              .mix = traffic().mix(),
                              .streams = traffic().streams(),
                              .arrivals = &arrivals_,
                              .senders = Divider{senders},
                              .delays = {.timeout = {900}, .windows = {&windows_[0], &windows_[1]}, .tags = &tags_}};
        for (StampedQueue& queue : queues_) {
            receivers_.push_back(std::make_unique<Receiver<StampedQueue>>(plan, queue, mailbox_));
        }
    }
    void put(const Arrived& frame) { queues_[frame.queue % queues_.size()].put(frame); }
    void poll(std::size_t queue) {
        while (receivers_[queue % queues_.size()]->poll()) {}
    }
    /// Every queue at the same time, as on a machine with a CPU for each.
    void poll_all_at_once() {
        std::vector<std::jthread> threads;
        for (std::size_t queue = 0; queue < queues_.size(); ++queue) {
            threads.emplace_back([this, queue] { poll(queue); });
        }
    }

    [[nodiscard]] record::ClassCounts counts(TrafficClass traffic_class) const {
        record::ClassCounts sum;
        for (const auto& receiver : receivers_) {
            sum.add(receiver->counts(Direction::forward, traffic_class));
        }
        return sum;
    }
    [[nodiscard]] record::ClassDelays delays(TrafficClass traffic_class) const {
        record::ClassDelays sum;
        for (const auto& receiver : receivers_) {
            sum.add(receiver->delays(Direction::forward)->delays(static_cast<std::size_t>(traffic_class)));
        }
        return sum;
    }
    [[nodiscard]] const record::ArrivalBitmap& arrivals() const { return arrivals_; }
    [[nodiscard]] const record::TaggedDelays& tags() const { return tags_; }

private:
    std::vector<StampedQueue> queues_;
    record::ArrivalBitmap arrivals_;
    record::TaggedDelays tags_;
    std::array<record::DelayWindow, 2>& windows_;
    NeighborMailbox mailbox_;
    std::vector<std::unique_ptr<Receiver<StampedQueue>>> receivers_;
};

template <class Visited>
std::vector<std::pair<std::int64_t, std::uint64_t>> buckets_of(const Visited& visited) {
    std::vector<std::pair<std::int64_t, std::uint64_t>> buckets;
    visited.visit([&](auto value, std::uint64_t count) {
        if constexpr (std::is_same_v<decltype(value), pace::Ticks>) {
            buckets.emplace_back(value.value, count);
        } else {
            buckets.emplace_back(value, count);
        }
    });
    return buckets;
}

void expect_same(const Receivers& many, const Receivers& single) {
    for (const TrafficClass traffic_class : {TrafficClass::foreground, TrafficClass::background}) {
        const record::ClassCounts ours = many.counts(traffic_class), theirs = single.counts(traffic_class);
        EXPECT_EQ(ours[Count::received], theirs[Count::received]);
        EXPECT_EQ(ours[Count::late], theirs[Count::late]);
        EXPECT_EQ(ours[Count::faulty], theirs[Count::faulty]);
        EXPECT_EQ(ours[Count::duplicate], theirs[Count::duplicate]);
        EXPECT_EQ(ours.faults, theirs.faults);
        EXPECT_LE(ours[Count::reordered], theirs[Count::reordered]);
        const record::ClassDelays our_delays = many.delays(traffic_class), their_delays = single.delays(traffic_class);
        EXPECT_EQ(buckets_of(our_delays.all), buckets_of(their_delays.all));
        EXPECT_EQ(our_delays.negative, their_delays.negative);
        EXPECT_EQ(buckets_of(*our_delays.variation), buckets_of(*their_delays.variation));
    }
    for (std::uint64_t index = 0; index < frames_each_way; ++index) {
        ASSERT_EQ(many.arrivals().arrived(index), single.arrivals().arrived(index)) << index;
    }
    for (std::uint64_t tag = 0; tag < 250; ++tag) {
        EXPECT_EQ(many.tags().delay(tag), single.tags().delay(tag));
    }
}

/// The traffic after a gateway and a card that scatter it randomly, in order of arrival. If
/// `copies_are_alike`, the second copy of a frame is as late as the first, so that it does not
/// matter which is received first.
std::vector<Arrived> scattered(std::uint64_t seed, bool copies_are_alike) {
    std::mt19937_64 random{seed};
    const auto below = [&](std::uint64_t limit) { return random() % limit; };
    std::vector<Arrived> arrived;
    for (std::uint64_t index = 0; index < frames_each_way; ++index) {
        if (below(10) == 0) {
            continue;  // lost
        }
        Arrived frame{.queue = random(), .time = Traffic::sent_at(index) + below(1000), .bytes = traffic().frame(index)};
        if (below(12) == 0) {
            frame.bytes[frame.bytes.size() - 1] ^= std::byte{1};  // damaged
        }
        if (below(6) == 0) {
            Arrived copy = frame;
            copy.queue = random();
            copy.time += copies_are_alike ? 0 : below(300);
            arrived.push_back(std::move(copy));
        }
        arrived.push_back(std::move(frame));
    }
    std::ranges::stable_sort(arrived, {}, &Arrived::time);
    return arrived;
}

TEST(ManyQueues, RecordTogetherWhatOneQueueRecords) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const std::vector<Arrived> arrived = scattered(seed, false);
        const std::uint64_t senders = seed % 4 + 1;
        Receivers single{1, senders}, many{seed % 3 + 2, senders};
        for (const Arrived& frame : arrived) {
            for (Receivers* const receivers : {&single, &many}) {
                receivers->put(frame);
                receivers->poll(frame.queue);
            }
        }
        EXPECT_GT(single.counts(TrafficClass::foreground)[Count::duplicate], 0U);
        EXPECT_GT(single.counts(TrafficClass::foreground)[Count::late], 0U);
        EXPECT_GT(single.counts(TrafficClass::foreground)[Count::reordered], 0U);
        expect_same(many, single);
    }
}

TEST(ManyQueues, PolledAtTheSameTimeRecordWhatOneQueueRecords) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const std::vector<Arrived> arrived = scattered(seed, true);
        const std::uint64_t senders = seed % 4 + 1;
        Receivers single{1, senders}, many{seed % 3 + 2, senders};
        for (const Arrived& frame : arrived) {
            single.put(frame);
            many.put(frame);
        }
        single.poll(0);
        many.poll_all_at_once();
        expect_same(many, single);
    }
}

TEST(ManyQueues, FramesOfSeveralSendersHaveNoOrderAmongThem) {
    // Two senders: even and odd frames. The second one's frames come out of the card first.
    Receivers receivers{2, 2};
    std::vector<Arrived> arrived;
    for (std::uint64_t index = 0; index < frames_each_way; index += 2) {
        arrived.push_back({.queue = 0, .time = Traffic::sent_at(frames_each_way), .bytes = traffic().frame(index + 1)});
        arrived.push_back({.queue = 0, .time = Traffic::sent_at(frames_each_way), .bytes = traffic().frame(index)});
    }
    for (const Arrived& frame : arrived) {
        receivers.put(frame);
    }
    receivers.poll(0);
    EXPECT_EQ(receivers.counts(TrafficClass::foreground)[Count::reordered], 0U);
    EXPECT_EQ(receivers.counts(TrafficClass::background)[Count::reordered], 0U);
}

TEST(ManyQueues, AnOvertakingOnAnotherQueueIsNotSeenAndOnTheSameQueueIsTheGateways) {
    // Frames 0, 2, 4 are foreground frames of sender 0. Frame 2 is last, on the queue of frame 4 or
    // on another one.
    for (const auto& [queue_of_last, reordered] : {std::pair{std::size_t{0}, 1U}, std::pair{std::size_t{1}, 0U}}) {
        Receivers receivers{2, 2};
        const std::vector<Arrived> arrived{{.queue = 0, .time = 9000, .bytes = traffic().frame(0)},
                                           {.queue = 0, .time = 9000, .bytes = traffic().frame(4)},
                                           {.queue = queue_of_last, .time = 9000, .bytes = traffic().frame(2)}};
        for (const Arrived& frame : arrived) {
            receivers.put(frame);
            receivers.poll(frame.queue);
        }
        EXPECT_EQ(receivers.counts(TrafficClass::foreground)[Count::reordered], reordered);
        EXPECT_EQ(receivers.counts(TrafficClass::foreground)[Count::reordering_extent_max], 2 * reordered);
    }
}

}  // namespace
}  // namespace gatemark::loop
