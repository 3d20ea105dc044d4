#include "refdut/shaper.hpp"

#include "refdut/ticks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

namespace gatemark::refdut {
namespace {

using Verdict = Shaper::Verdict;

TEST(RefdutShaper, WithoutCapacityServesAtOnce) {
    Shaper shaper{{}, second};
    for (std::uint64_t t = 0; t < 100; t += 7) {
        const auto answer = shaper.arrive(t);
        EXPECT_TRUE(answer.verdict == Verdict::served && answer.end_ticks == t);
    }
}

/// The known truth that measurements are compared with: frame i arrives at i/r and is the first to
/// be lost when (r - C) * t exceeds the queue.
TEST(RefdutShaper, ConstantOverloadLosesItsFirstFrameWhenTheQueueIsFull) {
    for (const std::uint64_t capacity : {1'000U, 33'333U, 100'000U, 977'777U}) {
        for (const std::uint64_t queue : {0U, 1U, 100U, 5'000U}) {
            for (const std::uint64_t percent : {101U, 110U, 150U, 300U}) {
                const std::uint64_t rate = capacity * percent / 100;
                Shaper shaper{{.frames_per_second = capacity, .queue_frames = queue}, 2'599'999'999};
                std::uint64_t first_lost = 0;
                for (std::uint64_t i = 0; first_lost == 0; ++i) {
                    const auto due = static_cast<std::uint64_t>(static_cast<Wide>(i) * 2'599'999'999 / rate);
                    first_lost = shaper.arrive(due).verdict == Verdict::queue_full ? i : 0;
                }
                const double when = static_cast<double>(first_lost) / static_cast<double>(rate);
                const double excess = when * static_cast<double>(rate - capacity);
                EXPECT_NEAR(excess, static_cast<double>(queue) + 1, 2.0) << capacity << " frames/s, queue " << queue << ", load " << rate;
            }
        }
    }
}

TEST(RefdutShaper, ServesExactlyItsCapacityForAsLongAsItIsBusy) {
    constexpr std::uint64_t capacity = 333'333, ticks = 2'600'000'003;
    Shaper shaper{{.frames_per_second = capacity, .queue_frames = 1 << 30}, ticks};
    std::uint64_t last = 0;
    for (std::uint64_t i = 1; i <= 3 * capacity; ++i) {
        last = shaper.arrive(0).end_ticks;
        ASSERT_EQ(last, static_cast<std::uint64_t>((static_cast<Wide>(i) * ticks + capacity - 1) / capacity));
    }
    EXPECT_EQ(last, 3 * ticks);
}

/// Against a list of service ends, for random arrivals.
TEST(RefdutShaper, AgreesWithASlowQueue) {
    std::mt19937_64 random{1};
    for (int round = 0; round < 50; ++round) {
        constexpr std::uint64_t service = 10'000;
        const std::uint64_t queue = random() % 20;
        Shaper shaper{{.frames_per_second = second / service, .queue_frames = queue}, second};
        std::deque<std::uint64_t> ends;
        std::uint64_t now = 5;
        for (int i = 0; i < 3000; ++i) {
            now += random() % (2 * service);
            while (!ends.empty() && ends.front() <= now) {
                ends.pop_front();
            }
            const auto answer = shaper.arrive(now);
            if (ends.size() > queue) {
                ASSERT_EQ(answer.verdict, Verdict::queue_full);
                continue;
            }
            ends.push_back(std::max(now, ends.empty() ? 0 : ends.back()) + service);
            ASSERT_TRUE(answer.verdict == Verdict::served && answer.end_ticks == ends.back());
        }
    }
}

TEST(RefdutShaper, LosesEveryNthFrameUntilRecoveredFromItsLastDrop) {
    constexpr std::uint64_t capacity = 10'000, recovery = 200'000'000;
    for (const std::uint64_t nth : {1U, 2U, 5U}) {
        Shaper shaper{{.frames_per_second = capacity, .queue_frames = 10, .recovery_ns = recovery, .recovery_loss = nth}, second};
        std::uint64_t now = 0, last_drop = 0;
        for (; now < second; now += second / (capacity * 11 / 10)) {  // 110 % for a second
            last_drop = shaper.arrive(now).verdict == Verdict::queue_full ? now : last_drop;
        }
        EXPECT_GT(last_drop, second - 20 * second / capacity);
        std::uint64_t last_loss = 0, losses = 0, frames = 0;
        for (; now < 2 * second; now += 2 * second / capacity, ++frames) {  // then 50 %
            const auto verdict = shaper.arrive(now).verdict;
            ASSERT_NE(verdict, Verdict::queue_full);
            if (verdict == Verdict::lost_in_recovery) {
                last_loss = now;
                ++losses;
            }
        }
        EXPECT_NEAR(static_cast<double>(last_loss), static_cast<double>(last_drop + recovery),
                    static_cast<double>(2 * nth * second / capacity));
        EXPECT_NEAR(static_cast<double>(losses), static_cast<double>(capacity) / 2 * 0.2 / static_cast<double>(nth), 8.0);
    }
}

/// The known law: 1 / (1 / C + (n - 1) * cost), rounded down.
TEST(RefdutShaper, TakesLongerForEachFlowBeyondTheFirst) {
    constexpr std::uint64_t capacity = 100'000, cost = 250;
    for (const std::uint64_t flows : {1U, 2U, 41U, 1'000U}) {
        const std::uint64_t rate = second / (10'000 + (flows - 1) * cost);
        Shaper shaper{{.frames_per_second = capacity, .queue_frames = 1 << 30, .flow_cost_ns = cost}, second};
        std::uint64_t last = 0;
        for (std::uint64_t i = 0; i < rate; ++i) {
            shaper.set_flows(0, flows);
            last = shaper.arrive(0).end_ticks;
        }
        EXPECT_EQ(last, second) << flows;
    }
}

TEST(RefdutShaper, KeepsTheFramesInItsQueueWhenFlowsAreAdded) {
    Shaper shaper{{.frames_per_second = 1000, .queue_frames = 3, .flow_cost_ns = ms}, second};
    for (int i = 0; i < 4; ++i) {
        shaper.set_flows(0, 1);
        EXPECT_EQ(shaper.arrive(0).verdict, Verdict::served);
    }
    shaper.set_flows(ms, 2);  // one has been served, the three others take 2 ms each from now on
    EXPECT_EQ(shaper.arrive(ms).end_ticks, ms + 4 * 2 * ms);
    EXPECT_EQ(shaper.arrive(ms).verdict, Verdict::queue_full);
}

TEST(RefdutShaper, IsNeverSlowerThanAFrameASecond) {
    Shaper shaper{{.frames_per_second = 1000, .flow_cost_ns = 3600 * second}, second};
    shaper.set_flows(0, 1 << 20);
    EXPECT_EQ(shaper.arrive(0).end_ticks, second);
}

TEST(RefdutShaper, ForgetsWhoWaitsWhenCleared) {
    Shaper shaper{{.frames_per_second = 1000, .queue_frames = 1}, second};
    (void)shaper.arrive(0);
    (void)shaper.arrive(0);
    EXPECT_EQ(shaper.arrive(0).verdict, Verdict::queue_full);
    shaper.clear();
    EXPECT_EQ(shaper.arrive(0).verdict, Verdict::served);
}

}  // namespace
}  // namespace gatemark::refdut
