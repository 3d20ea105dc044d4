#include "enumerate/permutation.hpp"

#include "enumerate/sequence.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace gatemark::enumerate {
namespace {

void expect_every_number_once(const Permutation& permutation) {
    std::vector<bool> visited(permutation.count());
    for (std::uint64_t i = 0; i < permutation.count(); ++i) {
        const std::uint64_t number = permutation.at(i);
        ASSERT_LT(number, permutation.count());
        ASSERT_FALSE(visited[number]) << number << " twice, at " << i << " of " << permutation.count();
        ASSERT_EQ(permutation.place_of(number), i);
        visited[number] = true;
    }
}

TEST(Permutation, HasEveryNumberOnceForEverySmallCount) {
    for (std::uint64_t count = 1; count <= 1200; ++count) {
        expect_every_number_once({count, count * 31});
    }
}

TEST(Permutation, HasEveryNumberOnceAroundSquaresAndPowersOfTwo) {
    for (const std::uint64_t count :
         {65535U, 65536U, 65537U, 1U << 20, (1U << 20) + 1, 999U * 999, 999U * 999 + 1, 999U * 1000 + 1, 1'000'003U}) {
        for (const std::uint64_t key : {0U, 42U}) {
            expect_every_number_once({count, key});
        }
    }
}

/// For any number of places, anywhere, including values at or above the count, which are permuted
/// again.
TEST(Permutation, SeveralPlacesTogetherHaveTheNumbersOfEachAlone) {
    for (const std::uint64_t count :
         {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{7}, std::uint64_t{1000}, std::uint64_t{65'537}, std::uint64_t{999 * 999 + 1},
          std::uint64_t{1'600'000'000}, (std::uint64_t{1} << 32) + 1, Permutation::count_limit - 1, Permutation::count_limit}) {
        const Permutation permutation{count, count * 31};
        for (std::size_t size = 0; size < 70; ++size) {
            std::vector<std::uint64_t> places(size);
            for (std::size_t i = 0; i < size; ++i) {
                places[i] = size % 3 == 0   ? (size + i) % count
                            : size % 3 == 1 ? count - 1 - i % count
                                            : RandomSequence{count, size}.at(i) % count;
            }
            std::vector<std::uint64_t> numbers = places;
            permutation.put_at(numbers);
            for (std::size_t i = 0; i < size; ++i) {
                ASSERT_EQ(numbers[i], permutation.at(places[i])) << count << ", " << size;
            }
        }
    }
}

TEST(Permutation, FindsItsWayBackInRangesThatNoArrayHolds) {
    for (const std::uint64_t count : {std::uint64_t{1'600'000'000}, (std::uint64_t{1} << 32) + 1, std::uint64_t{64'512} * 49'151 * 250,
                                      Permutation::count_limit - 1, Permutation::count_limit}) {
        const Permutation permutation{count, 42};
        for (std::uint64_t i = 0; i < 20'000; ++i) {
            const std::uint64_t place = i < 10 ? i : i < 20 ? count - 1 - i : RandomSequence{1, 2}.at(i) % count;
            const std::uint64_t number = permutation.at(place);
            ASSERT_LT(number, count);
            ASSERT_EQ(permutation.place_of(number), place);
        }
    }
}

TEST(Permutation, DependsOnItsKeyAlone) {
    const Permutation a{1'000'000, 1}, again{1'000'000, 1}, b{1'000'000, 2};
    std::size_t same = 0;
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        ASSERT_EQ(a.at(i), again.at(i));
        same += a.at(i) == b.at(i) ? 1 : 0;
    }
    EXPECT_LT(same, 5U) << "two keys agree by chance about once in a million";
}

/// Chi-square with 63 degrees of freedom: above 130 once in a million.
double chi_square(const std::vector<std::uint64_t>& counts, double expected) {
    double sum = 0;
    for (const std::uint64_t count : counts) {
        const double off = static_cast<double>(count) - expected;
        sum += off * off / expected;
    }
    return sum;
}

TEST(Permutation, LooksRandom) {
    constexpr std::uint64_t count = 4'000'000, sample = 640'000, bins = 64;
    const Permutation permutation{count, 42};
    std::vector<std::uint64_t> places(bins), steps(bins);
    for (std::uint64_t i = 0; i < sample; ++i) {
        ++places[permutation.at(i) * bins / count];
        ++steps[(permutation.at(i + 1) + count - permutation.at(i)) % count * bins / count];
    }
    EXPECT_LT(chi_square(places, sample / static_cast<double>(bins)), 130);
    EXPECT_LT(chi_square(steps, sample / static_cast<double>(bins)), 130);
}

TEST(Permutation, OfFewNumbersTakesEveryOrder) {
    std::vector<std::uint64_t> orders(6);
    for (std::uint64_t key = 0; key < 6000; ++key) {
        const Permutation permutation{3, key};
        ++orders[permutation.at(0) * 2 + (permutation.at(1) > permutation.at(2) ? 1 : 0)];
    }
    EXPECT_GT(*std::min_element(orders.begin(), orders.end()), 500U);
}

TEST(Sequence, GoesUpDownOrAnyWay) {
    for (const Order order : {Order::increasing, Order::decreasing, Order::pseudorandom}) {
        const Sequence sequence{order, 1000, 5};
        std::vector<bool> visited(1000);
        for (std::uint64_t i = 0; i < 1000; ++i) {
            const std::uint64_t number = sequence.at(i);
            visited[number] = true;
            EXPECT_EQ(sequence.place_of(number), i);
            std::array<std::uint64_t, 1> place{i};
            sequence.put_at(place);
            EXPECT_EQ(place.front(), number);
            if (order != Order::pseudorandom) {
                EXPECT_EQ(number, order == Order::increasing ? i : 999 - i);
            }
        }
        EXPECT_EQ(std::count(visited.begin(), visited.end(), true), 1000);
    }
}

}  // namespace
}  // namespace gatemark::enumerate
