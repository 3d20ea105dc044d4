#include "frame/value_sequence.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gatemark::frame {
namespace {

TEST(ValueSequence, FixedIsItsMinimum) {
    const ValueSequence sequence{{ValueMode::fixed, 7, 9}};
    for (const std::uint64_t j : {0U, 1U, 1000U}) {
        EXPECT_EQ(sequence.at(j, 0xffffffff), 7);
    }
}

TEST(ValueSequence, IncreasingAndDecreasingTakeEveryValueInTurn) {
    for (const auto& [minimum, maximum] :
         {std::pair<std::uint16_t, std::uint16_t>{0, 65535}, {1, 49151}, {1024, 65535}, {5, 5}, {0, 0}, {65535, 65535}}) {
        const ValueSequence up{{ValueMode::increasing, minimum, maximum}}, down{{ValueMode::decreasing, minimum, maximum}};
        const std::uint64_t count = static_cast<std::uint64_t>(maximum) - minimum + 1;
        for (std::uint64_t j = 0; j < 2 * count + 3; ++j) {
            ASSERT_EQ(up.at(j, 0), minimum + j % count);
            ASSERT_EQ(down.at(j, 0), maximum - j % count);
        }
    }
}

TEST(ValueSequence, PseudorandomReachesBothEndsAndStaysWithin) {
    for (const auto& [minimum, maximum] : {std::pair<std::uint16_t, std::uint16_t>{0, 65535}, {1024, 65535}, {2, 254}, {9, 9}}) {
        const ValueSequence sequence{{ValueMode::pseudorandom, minimum, maximum}};
        EXPECT_EQ(sequence.at(3, 0), minimum);
        EXPECT_EQ(sequence.at(3, 0xffffffff), maximum);
        std::set<std::uint16_t> values;
        for (std::uint64_t uniform = 0; uniform <= 0xffffffff; uniform += 65521) {
            const std::uint16_t value = sequence.at(uniform, static_cast<std::uint32_t>(uniform));
            ASSERT_TRUE(value >= minimum && value <= maximum);
            values.insert(value);
        }
        EXPECT_GT(values.size(), (static_cast<std::size_t>(maximum) - minimum + 1) * 9 / 10);
    }
}

}  // namespace
}  // namespace gatemark::frame
