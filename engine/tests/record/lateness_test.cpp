#include "record/lateness.hpp"

#include <gtest/gtest.h>

namespace gatemark::record {
namespace {

TEST(LatenessHistogram, CountsBelowPowersOfTwo) {
    LatenessHistogram histogram;
    for (const std::uint64_t late : {0U, 1U, 2U, 3U, 4U, 1023U, 1024U}) {
        histogram.add(pace::Ticks{late});
    }
    EXPECT_EQ(histogram.bursts(0), 1U);
    EXPECT_EQ(histogram.bursts(1), 1U);
    EXPECT_EQ(histogram.bursts(2), 2U);
    EXPECT_EQ(histogram.bursts(3), 1U);
    EXPECT_EQ(histogram.bursts(10), 1U);
    EXPECT_EQ(histogram.bursts(11), 1U);
    EXPECT_EQ(LatenessHistogram::below(10).value, 1024U);
    EXPECT_EQ(histogram.maximum().value, 1024U);
}

TEST(LatenessHistogram, KeepsTheUnthinkableInItsLastBucketAndAddsUp) {
    LatenessHistogram a, b;
    a.add(pace::Ticks{~std::uint64_t{0}});
    b.add(pace::Ticks{7});
    b.add(a);
    EXPECT_EQ(b.bursts(LatenessHistogram::buckets - 1), 1U);
    EXPECT_EQ(b.bursts(3), 1U);
    EXPECT_EQ(b.maximum().value, ~std::uint64_t{0});
}

}  // namespace
}  // namespace gatemark::record
