#include "refdut/hold_queue.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace gatemark::refdut {
namespace {

TEST(RefdutHoldQueue, GivesOutInOrderOfTimeAndThenOfArrival) {
    std::mt19937_64 random{1};
    for (const unsigned spread : {0U, 1U, 10U, 1000U}) {
        HoldQueue<int> queue{64};
        std::multimap<std::uint64_t, int> expected;  // keeps the order of equal keys
        std::uint64_t now = 0;
        for (int i = 0; i < 20'000; ++i) {
            now += random() % 5;
            if (!queue.full()) {
                const std::uint64_t due = now + random() % (spread + 1);
                queue.push(due, i);
                expected.emplace(due, i);
            }
            ASSERT_EQ(queue.size(), expected.size());
            for (int out = 0; queue.pop_due(now, out);) {
                ASSERT_LE(expected.begin()->first, now);
                ASSERT_EQ(out, expected.begin()->second);
                expected.erase(expected.begin());
            }
            ASSERT_TRUE(expected.empty() || expected.begin()->first > now);
            ASSERT_EQ(queue.empty(), expected.empty());
        }
    }
}

TEST(RefdutHoldQueue, IsFullAtItsCapacity) {
    HoldQueue<int> queue{3};
    for (const std::uint64_t due : {30U, 10U, 20U}) {
        EXPECT_FALSE(queue.full());
        queue.push(due, static_cast<int>(due));
    }
    EXPECT_TRUE(queue.full());
    EXPECT_EQ(queue.last_due(), 30U);
    int out = 0;
    EXPECT_FALSE(queue.pop_due(9, out));
    EXPECT_TRUE(queue.pop_due(10, out));
    EXPECT_EQ(out, 10);
    EXPECT_FALSE(queue.full());
}

}  // namespace
}  // namespace gatemark::refdut
