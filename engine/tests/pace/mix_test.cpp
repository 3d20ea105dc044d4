#include "pace/mix.hpp"

#include <gtest/gtest.h>

#include <random>

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

}  // namespace
}  // namespace gatemark::pace
