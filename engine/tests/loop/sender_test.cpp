#include "loop/sender.hpp"
#include "frame/arrival.hpp"

#include "frame/streams.hpp"
#include "io/memory_port.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>

namespace gatemark::loop {
namespace {

using test::Gateway;

struct FakeClock {
    std::uint64_t ticks = 0;
    [[nodiscard]] pace::Ticks now() const noexcept { return {ticks}; }
};
static_assert(pace::TickClock<FakeClock>);

using MemorySender = Sender<io::MemoryTransmitQueue, FakeClock>;

constexpr std::uint64_t ticks_per_second = 1'000'000, frames_per_second = 7'000, start = 5'000;

[[nodiscard]] constexpr std::uint64_t due_of(std::uint64_t index) { return start + index * ticks_per_second / frames_per_second; }

class SenderTest : public testing::Test {
protected:
    SenderTest()
        : foreground_{test::make_stream(test::request_for(Gateway::siit64))},
          background_{test::make_stream(test::request_for(Gateway::router66), {}, frame::signature::TrafficClass::background)} {
        queue_.set_template(0, foreground_.sent().frame);
        queue_.set_template(1, background_.sent().frame);
    }

    [[nodiscard]] SenderPlan plan(std::uint64_t frame_count, pace::Mix mix = {1, 1}, std::uint64_t first = 0,
                                  std::uint64_t stride = 1) const {
        return {.frame_count = frame_count,
                .first = first,
                .stride = stride,
                .schedule = pace::Schedule{{.frames_per_second = frames_per_second}, {start}, ticks_per_second, first, stride},
                .mix = mix,
                .give_up_lateness = {1'000'000'000},
                .foreground = mix.m() != 0 ? &foreground_ : nullptr,
                .background = mix.m() != mix.n() ? &background_ : nullptr};
    }

    /// Polls once and checks the output: no frame is early, no burst too long, and each frame is
    /// byte for byte what its index determines.
    void poll(MemorySender& sender, const SenderPlan& plan, std::vector<std::uint64_t>& indexes) {
        const std::size_t before = wire_.frames.size();
        sender.poll();
        ASSERT_LE(wire_.frames.size() - before, frame::burst_frames_max);
        for (std::size_t k = before; k < wire_.frames.size(); ++k) {
            const auto& bytes = wire_.frames[k];
            const frame::Arrival arrival = frame::classify(bytes, test::trial_id());
            ASSERT_EQ(arrival.kind, frame::ArrivalKind::ours);
            const std::uint64_t index = frame::signature::index(bytes.data() + arrival.payload);
            const auto written_at = load_big_endian<std::uint64_t>(bytes.data() + arrival.payload + frame::signature::timestamp_offset);
            ASSERT_GE(written_at, due_of(index)) << "early";
            ASSERT_LE(written_at, clock_.ticks);
            const auto place = plan.mix.place_of(index);
            const frame::Stream& stream = place.foreground ? foreground_ : background_;
            ASSERT_EQ(test::to_hex(bytes), test::to_hex(test::frame_in(stream.sent(), stream, place.number_in_class, index, written_at)));
            indexes.push_back(index);
        }
    }

    static void expect_each_once(const std::vector<std::uint64_t>& indexes, std::uint64_t frame_count, std::uint64_t first = 0,
                                 std::uint64_t stride = 1) {
        std::uint64_t expected = first;
        for (const std::uint64_t index : indexes) {
            ASSERT_EQ(index, expected);
            expected += stride;
        }
        EXPECT_GE(expected, frame_count);
    }

    io::MemoryWire wire_;
    io::MemoryTransmitQueue queue_{wire_};
    FakeClock clock_;
    frame::Stream foreground_, background_;
};

/// The frames of both classes carry what is special of their stream, and only that.
TEST_F(SenderTest, SendsWhatIsSpecial) {
    frame::StreamRequest request = test::request_for(Gateway::siit46);
    request.without_checksum = true;
    foreground_ = test::make_stream(request, {}, frame::signature::TrafficClass::foreground, frame::signature::Direction::forward, 5);
    background_ = test::make_stream(test::request_for(Gateway::router66), {}, frame::signature::TrafficClass::background,
                                    frame::signature::Direction::forward, 5);
    for (const pace::Mix& mix : {pace::Mix{1, 1}, pace::Mix{2, 3}, pace::Mix{0, 1}}) {
        wire_.frames.clear();
        queue_.set_template(0, foreground_.sent().frame);
        queue_.set_template(1, background_.sent().frame);
        const SenderPlan work = plan(200, mix);
        MemorySender sender{work, queue_, clock_};
        std::vector<std::uint64_t> indexes;
        clock_.ticks = start;
        while (!sender.finished()) {
            clock_.ticks += 900;
            poll(sender, work, indexes);
        }
        expect_each_once(indexes, 200);
        for (const auto& bytes : wire_.frames) {
            EXPECT_EQ(std::to_integer<unsigned>(bytes[net::ethernet::source + 2]), 1U) << "the number of the port";
        }
    }
}

TEST_F(SenderTest, SendsNothingBeforeTheStart) {
    const SenderPlan work = plan(10);
    MemorySender sender{work, queue_, clock_};
    clock_.ticks = start - 1;
    EXPECT_FALSE(sender.poll());
    EXPECT_TRUE(wire_.frames.empty());
    clock_.ticks = start;
    EXPECT_TRUE(sender.poll());
    EXPECT_EQ(wire_.frames.size(), 1U);
    EXPECT_FALSE(sender.poll());
}

TEST_F(SenderTest, SendsEachFrameWhenItIsDueAndNoBurstsAtLowRates) {
    const SenderPlan work = plan(700);
    MemorySender sender{work, queue_, clock_};
    std::vector<std::uint64_t> indexes;
    while (!sender.finished()) {
        const std::size_t before = indexes.size();
        ASSERT_NO_FATAL_FAILURE(poll(sender, work, indexes));
        ASSERT_LE(indexes.size() - before, 1U);
        ++clock_.ticks;
    }
    expect_each_once(indexes, 700);
    EXPECT_EQ(sender.counts().offered_foreground, 700U);
    EXPECT_EQ(sender.counts().offered_background, 0U);
    EXPECT_EQ(sender.counts().lateness.maximum().value, 0U);
    EXPECT_EQ(sender.counts().lateness.bursts(0), 700U);
    EXPECT_EQ(sender.counts().offered_end, 700U);
    EXPECT_EQ(sender.counts().last_handover.value, due_of(699));
    EXPECT_EQ(sender.counts().refused, 0U);
    EXPECT_FALSE(sender.counts().gave_up);
    EXPECT_FALSE(sender.poll());
}

/// A CPU that is taken away while a burst is written: every reading of the clock is later than the
/// one before.
struct StallingClock {
    mutable std::uint64_t ticks = start;
    [[nodiscard]] pace::Ticks now() const noexcept { return {std::exchange(ticks, ticks + 100)}; }
};

TEST_F(SenderTest, AStallBetweenWritingAndHandingOverIsLateness) {
    const StallingClock clock;
    Sender<io::MemoryTransmitQueue, StallingClock> sender{plan(1), queue_, clock};
    EXPECT_TRUE(sender.poll());
    EXPECT_EQ(sender.counts().lateness.maximum().value, 100U);
    EXPECT_EQ(sender.counts().last_handover.value, start + 100);
}

TEST_F(SenderTest, OffersEveryIndexExactlyOnceWhateverThePortRefuses) {
    std::mt19937 random{9};
    for (int round = 0; round < 30; ++round) {
        wire_.frames.clear();
        clock_.ticks = 0;
        const std::uint64_t frame_count = 1 + random() % 2000;
        const auto n = static_cast<std::uint32_t>(1 + random() % 10), m = static_cast<std::uint32_t>(random() % (n + 1));
        const SenderPlan work = plan(frame_count, pace::Mix{m, n});
        MemorySender sender{work, queue_, clock_};
        std::vector<std::uint64_t> indexes;
        while (!sender.finished()) {
            queue_.accept_at_most(random() % 3 == 0 ? 0 : random() % 40);
            clock_.ticks += random() % 3000;
            ASSERT_NO_FATAL_FAILURE(poll(sender, work, indexes));
        }
        expect_each_once(indexes, frame_count);
        EXPECT_EQ(indexes.size(), frame_count);
        EXPECT_EQ(sender.counts().offered_foreground, work.mix.foreground_before(frame_count));
        EXPECT_EQ(sender.counts().offered_background, frame_count - work.mix.foreground_before(frame_count));
        EXPECT_EQ(sender.counts().offered_end, frame_count);
        EXPECT_EQ(sender.offered_so_far(), frame_count);
        EXPECT_EQ(sender.counts().last_handover.value, clock_.ticks);
    }
}

TEST_F(SenderTest, ForegroundAndBackgroundFollowTheMix) {
    const SenderPlan work = plan(100, pace::Mix{9, 10});
    MemorySender sender{work, queue_, clock_};
    clock_.ticks = start + ticks_per_second;
    while (!sender.finished()) {
        sender.poll();
    }
    ASSERT_EQ(wire_.frames.size(), 100U);
    for (std::size_t i = 0; i < 100; ++i) {
        EXPECT_EQ(std::to_integer<unsigned>(wire_.frames[i][62 + frame::signature::stream_offset]), i % 10 < 9 ? 0xa0U : 0xa1U) << i;
    }
}

TEST_F(SenderTest, EitherClassMayBeAbsent) {
    for (const pace::Mix& mix : {pace::Mix{0, 1}, pace::Mix{1, 1}}) {
        const SenderPlan work = plan(100, mix);
        MemorySender sender{work, queue_, clock_};
        clock_.ticks = due_of(99);
        std::vector<std::uint64_t> indexes;
        while (!sender.finished()) {
            ASSERT_NO_FATAL_FAILURE(poll(sender, work, indexes));
        }
        expect_each_once(indexes, 100);
        EXPECT_EQ(sender.counts().offered_foreground, 100 * mix.m());
        EXPECT_EQ(sender.counts().offered_background, 100 - 100 * mix.m());
    }
}

TEST_F(SenderTest, SeveralSendersTogetherCoverAllFrames) {
    constexpr std::uint64_t frame_count = 1001, stride = 3;
    std::vector<bool> arrived(frame_count);
    for (std::uint64_t first = 0; first < stride; ++first) {
        wire_.frames.clear();
        clock_.ticks = 0;
        const SenderPlan work = plan(frame_count, pace::Mix{1, 2}, first, stride);
        MemorySender sender{work, queue_, clock_};
        std::vector<std::uint64_t> indexes;
        for (; !sender.finished(); clock_.ticks += 50) {
            ASSERT_NO_FATAL_FAILURE(poll(sender, work, indexes));
        }
        expect_each_once(indexes, frame_count, first, stride);
        EXPECT_GE(sender.counts().offered_end, frame_count);
        for (const std::uint64_t index : indexes) {
            EXPECT_FALSE(arrived[index]);
            arrived[index] = true;
        }
    }
    EXPECT_EQ(std::count(arrived.begin(), arrived.end(), true), static_cast<std::ptrdiff_t>(frame_count));
}

TEST_F(SenderTest, ASenderWithoutFramesIsFinishedAtOnce) {
    MemorySender sender{plan(2, pace::Mix{1, 1}, 2, 3), queue_, clock_};
    EXPECT_FALSE(sender.poll());
    EXPECT_TRUE(sender.finished());
    EXPECT_EQ(sender.counts().offered_end, 2U);
}

TEST_F(SenderTest, CatchesUpInBurstsOf32AndReportsItsLateness) {
    MemorySender sender{plan(100), queue_, clock_};
    clock_.ticks = start + 500'000;
    for (const std::size_t burst : {32U, 32U, 32U, 4U}) {
        const std::size_t before = wire_.frames.size();
        EXPECT_TRUE(sender.poll());
        EXPECT_EQ(wire_.frames.size() - before, burst);
    }
    EXPECT_TRUE(sender.finished());
    EXPECT_EQ(sender.counts().lateness.maximum().value, 500'000U);
    EXPECT_EQ(sender.counts().lateness.bursts(19), 4U);  // 2^18 <= lateness < 2^19
}

TEST_F(SenderTest, KeepsEachCatchUpThatWasLateAndNoOrdinaryBurst) {
    SenderPlan work = plan(1000);
    work.late = {50'000};
    MemorySender sender{work, queue_, clock_};
    const auto poll_until = [&](std::uint64_t ticks) {
        clock_.ticks = ticks;
        while (sender.poll()) {}
    };
    const auto poll_on_time = [&](std::uint64_t first, std::uint64_t last) {
        for (std::uint64_t frame = first; frame <= last; ++frame) {
            poll_until(due_of(frame));
        }
    };
    poll_on_time(0, 9);
    poll_until(due_of(500));
    poll_on_time(501, 510);
    poll_until(due_of(511) + 50'000);  // no later than what is not kept
    EXPECT_EQ(sender.counts().offered_end, 862U);
    const auto kept = sender.counts().late_bursts.catch_ups();
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(kept[0].index, 10U);
    EXPECT_EQ(kept[0].end, 170U) << "the bursts behind it were less late";
    EXPECT_EQ(kept[0].lateness.value, due_of(500) - due_of(10));
}

TEST_F(SenderTest, GivesUpWhenHopelesslyLateAndReportsWhatItOffered) {
    SenderPlan work = plan(1000);
    work.give_up_lateness = {10'000};
    MemorySender sender{work, queue_, clock_};
    clock_.ticks = due_of(9);
    while (sender.poll()) {}
    EXPECT_FALSE(sender.finished());
    queue_.accept_at_most(0);
    clock_.ticks = due_of(10) + 10'000;
    sender.poll();
    EXPECT_FALSE(sender.finished());
    ++clock_.ticks;
    sender.poll();
    EXPECT_TRUE(sender.finished());
    EXPECT_TRUE(sender.counts().gave_up);
    EXPECT_EQ(sender.counts().offered_foreground, 10U);
    EXPECT_EQ(sender.counts().offered_end, 10U);
    EXPECT_EQ(sender.counts().refused, 2U);
    EXPECT_EQ(wire_.frames.size(), 10U);
    sender.release_rest();
    std::vector<io::MemoryFrame*> all(5000);
    EXPECT_EQ(queue_.acquire(0, all), 4096U) << "every buffer came back";
    queue_.release(std::span{all}.first(4096));
}

TEST_F(SenderTest, OffersNothingMoreOnceStopped) {
    MemorySender sender{plan(1000), queue_, clock_};
    clock_.ticks = due_of(9);
    while (sender.poll()) {}
    sender.stop();
    clock_.ticks = due_of(20);
    EXPECT_FALSE(sender.poll());
    EXPECT_TRUE(sender.finished());
    EXPECT_FALSE(sender.counts().gave_up);
    EXPECT_EQ(sender.counts().offered_end, 10U);
}

TEST_F(SenderTest, WithoutBuffersFramesStayDue) {
    io::MemoryTransmitQueue scarce{wire_, 3};
    scarce.set_template(0, foreground_.sent().frame);
    scarce.set_template(1, background_.sent().frame);
    SenderPlan work = plan(10, pace::Mix{1, 2});
    work.give_up_lateness = {10'000};
    MemorySender sender{work, scarce, clock_};
    clock_.ticks = due_of(4);
    EXPECT_FALSE(sender.poll());
    EXPECT_EQ(sender.counts().refused, 1U);
    std::array<io::MemoryFrame*, 3> all{};
    EXPECT_EQ(scarce.acquire(0, all), 3U) << "all or nothing: none is kept";
    clock_.ticks = due_of(0) + 10'001;
    sender.poll();
    EXPECT_TRUE(sender.counts().gave_up);
    EXPECT_EQ(sender.counts().offered_end, 0U);
    scarce.release(all);
}

}  // namespace
}  // namespace gatemark::loop
