#include "pace/mix.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gatemark::pace {
namespace {

TEST(Mix, FrameIsForegroundIffItsRemainderIsBelowM) {
    std::mt19937 random{4};
    for (int k = 0; k < 200; ++k) {
        const auto n = static_cast<std::uint32_t>(1 + random() % (k % 2 == 0 ? 12 : 65536)),
                   m = static_cast<std::uint32_t>(random() % (n + 1));
        const Mix mix{m, n};
        std::uint64_t foreground = 0, background = 0;
        for (std::uint64_t i = 0; i < 3000; ++i) {
            ASSERT_EQ(mix.foreground_before(i), foreground) << m << "/" << n << " at " << i;
            const auto place = mix.place_of(i);
            ASSERT_EQ(place.foreground, i % n < m) << m << "/" << n << " at " << i;
            ASSERT_EQ(place.number_in_class, place.foreground ? foreground : background);
            ++(place.foreground ? foreground : background);
        }
    }
}

TEST(Mix, HoldsForLargeIndexesAsWell) {
    const Mix mix{9, 10};
    constexpr std::uint64_t far = (std::uint64_t{1} << 36) + 9;  // remainder of 2^36 by 10 is 6
    EXPECT_EQ(mix.place_of(far - 6).foreground, (far - 6) % 10 < 9);
    EXPECT_EQ(mix.place_of(far).number_in_class, far / 10 * 9 + far % 10);
    EXPECT_EQ(mix.foreground_before(far), far / 10 * 9 + far % 10);
}

/// A flow that counts its frames beside the formula.
TEST(Mix, FlowsStartOneAfterAnotherAndKeepTheirRate) {
    std::mt19937 random{7};
    for (int k = 0; k < 50; ++k) {
        const std::uint64_t flows = 1 + random() % 40, rounds = 1 + random() % 30;
        const Mix mix{FlowStart{flows, rounds}};
        EXPECT_FALSE(mix.numbers_are_indexes());
        std::vector<std::uint64_t> next_round(flows);
        for (std::uint64_t flow = 0; flow < flows; ++flow) {
            next_round[flow] = flow * rounds;
        }
        for (std::uint64_t i = 0, before = 0; i < flows * flows * rounds; ++i) {
            const auto place = mix.place_of(i);
            ASSERT_TRUE(place.foreground && (i == 0 || place.number_in_class > before));
            ASSERT_EQ(place.number_in_class / flows, next_round[place.number_in_class % flows]++) << flows << " flows, frame " << i;
            before = place.number_in_class;
        }
        EXPECT_EQ(mix.foreground_before(1000), 1000U);
    }
}

TEST(Mix, FlowsStartExactlyInTheLongestTrialsAsWell) {
    constexpr std::uint64_t flows = 1000, rounds = 60'000;
    const FlowStart start{flows, rounds};
    for (std::uint64_t flow = 1; flow < flows; ++flow) {
        const std::uint64_t first_slot = flow * rounds * flows + flow, first = start.frames_before(first_slot);
        ASSERT_EQ(start.slot_of(first), first_slot);
        ASSERT_EQ(first, rounds * flow * (flow + 1) / 2 + flow);  // those of the steps before, and of its first round
        ASSERT_EQ(start.slot_of(first - flow - 1), (flow * rounds - 1) * flows + flow - 1);
    }
}

}  // namespace
}  // namespace gatemark::pace
