#include "record/loss.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gatemark::record {
namespace {

/// What find_losses promises, one frame after the other.
LossFacts slow_losses(const ArrivalBitmap& arrivals, const pace::Mix& mix, const std::vector<std::uint64_t>& offered_end, bool foreground) {
    LossFacts facts;
    std::uint64_t run = 0;
    for (std::uint64_t i = 0; i < arrivals.frame_count(); ++i) {
        if ((i % mix.n() < mix.m()) != foreground) {
            continue;
        }
        const bool offered = i < offered_end[i % offered_end.size()];
        if (!offered || arrivals.arrived(i)) {
            run = 0;
            continue;
        }
        if (facts.lost++ == 0) {
            facts.first_index = i;
        }
        facts.last_index = i;
        ++facts.by_slice[i * 100 / arrivals.frame_count()];
        if (++run == 1) {
            ++facts.runs;
            if (facts.first_runs.size() < LossFacts::runs_kept) {
                facts.first_runs.push_back({i, 0});
            }
        }
        if (facts.runs <= LossFacts::runs_kept) {
            facts.first_runs.back().length = run;
        }
        facts.longest_run = std::max(facts.longest_run, run);
    }
    return facts;
}

void expect_same(const LossFacts& losses, const LossFacts& slow) {
    ASSERT_EQ(losses.lost, slow.lost);
    ASSERT_EQ(losses.runs, slow.runs);
    ASSERT_EQ(losses.longest_run, slow.longest_run);
    ASSERT_EQ(losses.first_index, slow.first_index);
    ASSERT_EQ(losses.last_index, slow.last_index);
    ASSERT_EQ(losses.by_slice, slow.by_slice);
    ASSERT_EQ(losses.first_runs.size(), slow.first_runs.size());
    for (std::size_t i = 0; i < slow.first_runs.size(); ++i) {
        ASSERT_EQ(losses.first_runs[i].index, slow.first_runs[i].index);
        ASSERT_EQ(losses.first_runs[i].length, slow.first_runs[i].length);
    }
}

TEST(FindLosses, EqualsLookingAtOneFrameAfterTheOther) {
    std::mt19937 random{6};
    for (int k = 0; k < 400; ++k) {
        const std::uint64_t frame_count =
            1 + random() % std::array<std::uint64_t, 4>{70, 3000, 3000, 50'000}[static_cast<std::size_t>(k % 4)];
        const auto n = static_cast<std::uint32_t>(1 + random() % 10), m = k % 8 < 4 ? n : static_cast<std::uint32_t>(random() % (n + 1));
        const pace::Mix mix{m, n};
        ArrivalBitmap arrivals;
        arrivals.reset(frame_count);
        const std::uint32_t loss_percent = std::array<std::uint32_t, 4>{0, 2, 50, 100}[random() % 4];
        const std::uint64_t lost_in_turn = random() % 3 == 0 ? 1 + random() % 130 : 1;  // the length of a run
        const std::uint64_t outage_start = random() % frame_count, outage_end = outage_start + random() % 200;
        std::vector<std::uint64_t> offered_end;
        const std::size_t senders = 1 + random() % 4;
        for (std::size_t sender = 0; sender < senders; ++sender) {
            offered_end.push_back(random() % 3 == 0 ? sender + senders * (random() % (frame_count / senders + 1)) : frame_count + senders);
        }
        bool is_lost = false;
        for (std::uint64_t i = 0; i < frame_count; ++i) {
            is_lost = i % lost_in_turn == 0 ? random() % 100 < loss_percent : is_lost;
            const bool lost = is_lost || (i >= outage_start && i < outage_end);
            if (!lost && i < offered_end[i % senders]) {
                arrivals.mark(i);
            }
        }
        const LossByClass losses = find_losses(arrivals, mix, offered_end);
        ASSERT_NO_FATAL_FAILURE(expect_same(losses.foreground, slow_losses(arrivals, mix, offered_end, true))) << k;
        ASSERT_NO_FATAL_FAILURE(expect_same(losses.background, slow_losses(arrivals, mix, offered_end, false))) << k;
    }
}

TEST(FindLosses, OneLostFrameIsFoundWhereverItLies) {
    for (const std::uint64_t frame_count : {1, 511, 512, 513, 1024, 1087, 1536}) {
        for (std::uint64_t lost = 0; lost <= frame_count; ++lost) {  // the last round loses none
            ArrivalBitmap arrivals;
            arrivals.reset(frame_count);
            for (std::uint64_t i = 0; i < frame_count; ++i) {
                if (i != lost) {
                    arrivals.mark(i);
                }
            }
            const LossFacts losses = find_losses(arrivals, pace::Mix{1, 1}, std::array<std::uint64_t, 1>{frame_count}).foreground;
            ASSERT_EQ(losses.lost, lost < frame_count ? 1U : 0U) << frame_count;
            ASSERT_EQ(losses.first_index, lost < frame_count ? lost : 0U) << frame_count;
        }
    }
}

TEST(FindLosses, OneRunOfAClassGoesOnOverFramesOfTheOther) {
    ArrivalBitmap arrivals;
    arrivals.reset(20);
    for (std::uint64_t i = 0; i < 20; ++i) {
        if (i % 2 == 1) {
            arrivals.mark(i);
        }  // all background frames arrive, no foreground frame does
    }
    const LossByClass losses = find_losses(arrivals, pace::Mix{1, 2}, std::array<std::uint64_t, 1>{20});
    EXPECT_EQ(losses.foreground.lost, 10U);
    EXPECT_EQ(losses.foreground.runs, 1U);
    EXPECT_EQ(losses.foreground.longest_run, 10U);
    EXPECT_EQ(losses.foreground.last_index, 18U);
    EXPECT_EQ(losses.background.lost, 0U);
}

TEST(FindLosses, ManyRunsAreCountedButFewAreKept) {
    ArrivalBitmap arrivals;
    arrivals.reset(1000);
    for (std::uint64_t i = 0; i < 1000; i += 2) {
        arrivals.mark(i);
    }
    const LossByClass losses = find_losses(arrivals, pace::Mix{1, 1}, std::array<std::uint64_t, 1>{1000});
    EXPECT_EQ(losses.foreground.runs, 500U);
    EXPECT_EQ(losses.foreground.first_runs.size(), LossFacts::runs_kept);
    EXPECT_EQ(losses.foreground.longest_run, 1U);
    EXPECT_EQ(losses.foreground.by_slice[0], 5U);
    EXPECT_EQ(losses.foreground.by_slice[99], 5U);
}

}  // namespace
}  // namespace gatemark::record
