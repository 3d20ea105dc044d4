#include "base/divider.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gatemark {
namespace {

TEST(Divider, EqualsTheDivisionOfTheCpu) {
    std::mt19937_64 random{3};
    std::vector<std::uint64_t> numbers{1,
                                       2,
                                       3,
                                       10,
                                       63,
                                       64,
                                       65535,
                                       65536,
                                       0x7fffffffffffffff,
                                       0x8000000000000000,
                                       0x8000000000000001,
                                       0xfffffffffffffffe,
                                       0xffffffffffffffff};
    for (int i = 0; i < 300; ++i) {
        numbers.push_back((random() >> (random() % 64)) | 1);
    }
    for (const std::uint64_t divisor : numbers) {
        const Divider divider{divisor};
        EXPECT_EQ(divider.divisor(), divisor);
        ASSERT_EQ(divider.divide(0).quotient, 0U);
        for (const std::uint64_t value : numbers) {
            for (const std::uint64_t near : {value - 1, value, value + 1, value * divisor, value * divisor - 1}) {
                const auto [quotient, remainder] = divider.divide(near);
                ASSERT_EQ(quotient, near / divisor) << near << " / " << divisor;
                ASSERT_EQ(remainder, near % divisor) << near << " % " << divisor;
                ASSERT_EQ(divider.remainder(near), near % divisor);
            }
        }
    }
}

TEST(ShortDivider, EqualsTheDivisionOfTheCpuWithinItsLimit) {
    std::mt19937_64 random{4};
    for (int i = 0; i < 2'000; ++i) {
        const std::uint64_t divisor = i < 100 ? static_cast<std::uint64_t>(i) + 1 : (random() >> (32 + random() % 32)) + 1;
        const ShortDivider divider{divisor};
        EXPECT_EQ(divider.divisor(), divisor);
        const std::uint64_t largest = ShortDivider::value_limit - 1;
        for (int j = 0; j < 100; ++j) {
            const std::uint64_t any = j == 0 ? largest : j == 1 ? 0 : random() >> (16 + random() % 48);
            for (const std::uint64_t value : {any, any / divisor * divisor, any / divisor * divisor - 1}) {
                if (value > largest) {
                    continue;
                }
                const auto [quotient, remainder] = divider.divide(value);
                ASSERT_EQ(quotient, value / divisor) << value << " / " << divisor;
                ASSERT_EQ(remainder, value % divisor) << value << " % " << divisor;
            }
        }
    }
}

}  // namespace
}  // namespace gatemark
