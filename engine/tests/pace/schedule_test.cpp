#include "pace/schedule.hpp"
#include "pace/tick_scale.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gatemark::pace {
namespace {

using namespace std::chrono_literals;

/// floor(frames * ticks_per_second / rate)
std::uint64_t ticks_of(std::uint64_t frames, std::uint64_t ticks_per_second, std::uint64_t rate) {
    return static_cast<std::uint64_t>(static_cast<Wide>(frames) * ticks_per_second / rate);
}

TEST(Schedule, StaysOnTheFormulaForMillionsOfFrames) {
    std::mt19937_64 random{5};
    for (int k = 0; k < 40; ++k) {
        const std::uint64_t ticks_per_second = 24'000'000 + random() % 5'000'000'000,
                            rate = 1 + random() % (k % 2 == 0 ? 1000 : 148'809'523), stride = 1 + random() % 8, first = random() % stride;
        const Schedule schedule{{.frames_per_second = rate}, Ticks{1000}, ticks_per_second, first, stride};
        Schedule::Position position = schedule.begin();
        for (std::uint64_t i = first; i < 100'000; i += stride) {
            ASSERT_EQ(position.due().value, 1000 + ticks_of(i, ticks_per_second, rate)) << ticks_per_second << " " << rate;
            schedule.advance(position);
        }
    }
}

TEST(Schedule, BurstsStayOnTheFormulaWhateverTheStride) {
    std::mt19937_64 random{6};
    for (int k = 0; k < 60; ++k) {
        const std::uint64_t ticks_per_second = 24'000'000 + random() % 5'000'000'000, rate = 1 + random() % 1'488'095;
        const BurstyTraffic bursts{.frames = 1 + random() % (k % 3 == 0 ? 4 : 1000), .frames_per_second = rate + random() % 148'809'523};
        const std::uint64_t stride = 1 + random() % 8, first = (k % 2 == 0 ? 0 : random() % (std::uint64_t{1} << 36)) + random() % stride;
        const Schedule schedule{{.frames_per_second = rate, .bursts = bursts}, Ticks{1000}, ticks_per_second, first, stride};
        Schedule::Position position = schedule.begin();
        for (std::uint64_t i = first, before = 0; i < first + 50'000; i += stride) {
            const std::uint64_t begin = i - i % bursts.frames;
            ASSERT_EQ(position.due().value,
                      1000 + ticks_of(begin, ticks_per_second, rate) + ticks_of(i - begin, ticks_per_second, bursts.frames_per_second))
                << "frame " << i << ", stride " << stride << ", bursts of " << bursts.frames;
            ASSERT_GE(position.due().value, before);
            ASSERT_LE(position.due().value, 1000 + ticks_of(i, ticks_per_second, rate)) << "later than without bursts";
            before = position.due().value;
            schedule.advance(position);
        }
    }
}

TEST(Schedule, SendersOfOneDirectionTogetherAreOneSchedule) {
    constexpr std::uint64_t rate = 1'488'095, ticks_per_second = 2'600'000'000;
    const Step step{.frames_before = 10'001, .after = {20'000'000}, .frames_per_second = 700'001};
    for (const Load& load : {Load{.frames_per_second = rate}, Load{.frames_per_second = rate, .step = step},
                             Load{.frames_per_second = rate, .bursts = BurstyTraffic{.frames = 64, .frames_per_second = 2 * rate}},
                             Load{.frames_per_second = rate, .bursts = BurstyTraffic{.frames = 2, .frames_per_second = rate}},
                             Load{.frames_per_second = rate, .flow_start = FlowStart{50, 10}}}) {
        const Schedule whole{load, Ticks{5}, ticks_per_second};
        Schedule::Position next = whole.begin();
        const std::array<Schedule, 3> parts{Schedule{load, Ticks{5}, ticks_per_second, 0, 3},
                                            Schedule{load, Ticks{5}, ticks_per_second, 1, 3},
                                            Schedule{load, Ticks{5}, ticks_per_second, 2, 3}};
        std::array<Schedule::Position, 3> positions{parts[0].begin(), parts[1].begin(), parts[2].begin()};
        for (std::uint64_t i = 0; i < 30'000; ++i) {
            ASSERT_EQ(positions[i % 3].due(), next.due()) << i;
            parts[i % 3].advance(positions[i % 3]);
            whole.advance(next);
        }
    }
}

TEST(Schedule, MoreFramesThanTicksAreDueTogether) {
    const Schedule schedule{{.frames_per_second = 100}, Ticks{0}, 10};
    Schedule::Position position = schedule.begin();
    for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(position.due().value, i / 10);
        schedule.advance(position);
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

}  // namespace
}  // namespace gatemark::pace
