#include "pace/schedule.hpp"
#include "pace/calibrate.hpp"
#include "pace/tick_scale.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gatemark::pace {
namespace {

using namespace std::chrono_literals;

TEST(Schedule, StaysOnTheFormulaForMillionsOfFrames) {
    std::mt19937_64 random{5};
    for (int k = 0; k < 40; ++k) {
        const std::uint64_t ticks_per_second = 24'000'000 + random() % 5'000'000'000,
                            rate = 1 + random() % (k % 2 == 0 ? 1000 : 148'809'523), stride = 1 + random() % 8, first = random() % stride;
        Schedule schedule{Ticks{1000}, ticks_per_second, rate, first, stride};
        for (std::uint64_t i = first; i < 100'000; i += stride) {
            ASSERT_EQ(schedule.due().value, 1000 + static_cast<std::uint64_t>(static_cast<Wide>(i) * ticks_per_second / rate))
                << ticks_per_second << " " << rate;
            schedule.advance();
        }
    }
}

TEST(Schedule, SendersOfOneDirectionTogetherAreOneSchedule) {
    Schedule whole{Ticks{5}, 2'600'000'000, 1'488'095};
    std::array<Schedule, 3> parts{Schedule{Ticks{5}, 2'600'000'000, 1'488'095, 0, 3}, Schedule{Ticks{5}, 2'600'000'000, 1'488'095, 1, 3},
                                  Schedule{Ticks{5}, 2'600'000'000, 1'488'095, 2, 3}};
    for (std::uint64_t i = 0; i < 30'000; ++i) {
        ASSERT_EQ(parts[i % 3].due(), whole.due()) << i;
        parts[i % 3].advance();
        whole.advance();
    }
}

TEST(Schedule, MoreFramesThanTicksAreDueTogether) {
    Schedule schedule{Ticks{0}, 10, 100};
    for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(schedule.due().value, i / 10);
        schedule.advance();
    }
}

TEST(TickScale, ConvertsBothWaysToOneUnit) {
    const TickScale scale{2'599'999'937};
    EXPECT_EQ(scale.ticks(1s).value, 2'599'999'937U);
    EXPECT_EQ(scale.time({2'599'999'937}), 1s);
    EXPECT_EQ(scale.ticks(0ns).value, 0U);
    for (const std::chrono::nanoseconds time : {1ns, 999ns, 60'000'000'000ns, std::chrono::nanoseconds{168h}}) {
        const auto back = scale.time(scale.ticks(time));
        EXPECT_LE(back, time);
        EXPECT_GE(back + 1ns, time);
    }
}

TEST(Calibration, FindsAPlausibleRate) {
    const std::uint64_t rate = ticks_per_second();
    EXPECT_GT(rate, 10'000'000U);
    EXPECT_LT(rate, 10'000'000'000U);
}

}  // namespace
}  // namespace gatemark::pace
