#include "record/late_bursts.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace gatemark::record {
namespace {

using CatchUps = std::vector<std::vector<std::uint64_t>>;

CatchUps kept_of(const LateBursts& bursts) {
    CatchUps kept;
    for (const LateBursts::CatchUp& burst : bursts.catch_ups()) {
        kept.push_back({burst.index, burst.end, burst.lateness.value});
    }
    return kept;
}

TEST(LateBursts, ABurstThatBeginsWhereTheLastOneEndedIsTheRestOfItsCatchUp) {
    LateBursts bursts;
    bursts.add({100, 132, {2000}});
    bursts.add({132, 164, {1500}});
    bursts.add({164, 170, {900}});
    bursts.add({200, 201, {600}});
    EXPECT_EQ(kept_of(bursts), (CatchUps{{100, 170, 2000}, {200, 201, 600}}));
}

TEST(LateBursts, TheLatestOnesAreKept) {
    LateBursts bursts;
    for (std::uint64_t i = 0; i < LateBursts::kept; ++i) {
        bursts.add({1000 * i, 1000 * i + 10, {100 + i}});
    }
    bursts.add({50'000, 50'001, {100}});
    EXPECT_EQ(bursts.catch_ups().size(), LateBursts::kept);
    EXPECT_EQ(bursts.catch_ups()[0].index, 0U) << "the new one is no later than the earliest of those that are kept";
    bursts.add({60'000, 60'001, {101}});
    EXPECT_EQ(bursts.catch_ups()[0].index, 60'000U);
    bursts.add({60'001, 60'003, {90}});
    EXPECT_EQ(bursts.catch_ups()[0].end, 60'003U);
}

TEST(LateBursts, TheRestOfACatchUpThatWasNotKeptIsNotKept) {
    LateBursts bursts;
    for (std::uint64_t i = 0; i < LateBursts::kept; ++i) {
        bursts.add({1000 * i, 1000 * i + 10, {500}});
    }
    const CatchUps before = kept_of(bursts);
    bursts.add({50'000, 50'032, {400}});
    bursts.add({50'032, 50'040, {300}});
    EXPECT_EQ(kept_of(bursts), before);
}

}  // namespace
}  // namespace gatemark::record
