#include "record/delay_histogram.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace gatemark::record {
namespace {

/// Delays of every size, as a slow gateway and a fast one would have them.
std::vector<std::uint64_t> delays(unsigned seed, std::size_t count) {
    std::mt19937_64 random{seed};
    std::vector<std::uint64_t> values(count);
    for (auto& value : values) {
        value = (random() >> 20) >> (random() % 44);
    }
    return values;
}

TEST(DelayHistogram, EveryPercentileIsWithinATenthOfAPercent) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        auto values = delays(seed, 1 + seed * 997);
        DelayHistogram histogram;
        for (const std::uint64_t value : values) {
            histogram.add(pace::Ticks{value});
        }
        std::sort(values.begin(), values.end());
        ASSERT_EQ(histogram.samples(), values.size());
        ASSERT_EQ(histogram.minimum().value, values.front());
        ASSERT_EQ(histogram.maximum().value, values.back());
        for (std::uint64_t rank = 1; rank <= values.size(); rank += 1 + seed) {
            const auto truth = static_cast<double>(values[rank - 1]);
            ASSERT_NEAR(static_cast<double>(histogram.of_rank(rank).value), truth, 0.0005 * truth) << "rank " << rank;
        }
    }
}

TEST(DelayHistogram, SmallDelaysAreExact) {
    DelayHistogram histogram;
    for (std::uint64_t value = 0; value < 2048; ++value) {
        histogram.add(pace::Ticks{value});
    }
    for (std::uint64_t rank = 1; rank <= 2048; ++rank) {
        ASSERT_EQ(histogram.of_rank(rank).value, rank - 1);
    }
}

TEST(DelayHistogram, DelaysBeyondItsRangeAreTheLongest) {
    DelayHistogram histogram;
    histogram.add(pace::Ticks{~std::uint64_t{0}});
    histogram.add(pace::Ticks{DelayHistogram::delay_limit});
    EXPECT_EQ(histogram.samples(), 2U);
    EXPECT_EQ(histogram.maximum().value, ~std::uint64_t{0});
    EXPECT_GE(histogram.of_rank(1).value, DelayHistogram::delay_limit);
}

TEST(DelayHistogram, SumsOfPartsAreTheWhole) {
    const auto values = delays(7, 5000);
    DelayHistogram whole, odd, even;
    for (std::size_t i = 0; i < values.size(); ++i) {
        whole.add(pace::Ticks{values[i]});
        (i % 2 == 0 ? even : odd).add(pace::Ticks{values[i]});
    }
    odd.add(even);
    for (std::uint64_t rank = 1; rank <= values.size(); ++rank) {
        ASSERT_EQ(odd.of_rank(rank), whole.of_rank(rank));
    }
    EXPECT_EQ(odd.minimum(), whole.minimum());
    std::uint64_t visited = 0;
    pace::Ticks last{};
    odd.visit([&](pace::Ticks delay, std::uint64_t count) {
        EXPECT_GE(delay, last);
        last = delay;
        visited += count;
    });
    EXPECT_EQ(visited, values.size());
}

}  // namespace
}  // namespace gatemark::record
