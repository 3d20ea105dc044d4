#include "enumerate/connection_set.hpp"

#include "enumerate/connection_choice.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace gatemark::enumerate {
namespace {

constexpr TupleRanges small{.source_ports = {1024, 7}, .destination_ports = {1, 5}, .source_hosts = {2, 3}, .destination_hosts = {10, 2}};

TEST(TupleSpace, NumbersEveryTupleWithTheSourcePortLeastSignificant) {
    const TupleSpace space{small};
    ASSERT_EQ(space.count(), 210U);
    std::uint64_t number = 0;
    for (std::uint16_t destination_host = 10; destination_host < 12; ++destination_host) {
        for (std::uint16_t source_host = 2; source_host < 5; ++source_host) {
            for (std::uint16_t destination_port = 1; destination_port < 6; ++destination_port) {
                for (std::uint16_t source_port = 1024; source_port < 1031; ++source_port) {
                    const Tuple tuple{source_port, destination_port, source_host, destination_host};
                    EXPECT_EQ(space.tuple(number), tuple);
                    EXPECT_EQ(space.number(tuple), number++);
                }
            }
        }
    }
}

TEST(TupleSpace, CountsProductsBeyondThirtyTwoBits) {
    const TupleSpace space{
        {.source_ports = {1024, 64'512}, .destination_ports = {1, 49'151}, .source_hosts = {0, 250}, .destination_hosts = {}}};
    ASSERT_EQ(space.count(), std::uint64_t{64'512} * 49'151 * 250);
    const std::uint64_t last = space.count() - 1;
    EXPECT_EQ(space.tuple(last), (Tuple{65'535, 49'151, 249, 0}));
    EXPECT_EQ(space.number(space.tuple(last)), last);
    EXPECT_EQ(space.tuple((std::uint64_t{1} << 32) + 12'345).source_port, 1024 + ((std::uint64_t{1} << 32) + 12'345) % 64'512);
    const TupleRange all{0, 65'536};
    EXPECT_TRUE((TupleRanges{all, all, all, all}.count() == static_cast<Wide>(1) << 64));
}

TEST(TupleSpace, KnowsWhatLiesOutside) {
    const TupleSpace space{small};
    EXPECT_TRUE(space.contains({1024, 1, 2, 10}));
    EXPECT_TRUE(space.contains({1030, 5, 4, 11}));
    EXPECT_FALSE(space.contains({1023, 1, 2, 10}));
    EXPECT_FALSE(space.contains({1031, 1, 2, 10}));
    EXPECT_FALSE(space.contains({1024, 6, 2, 10}));
    EXPECT_FALSE(space.contains({1024, 1, 5, 10}));
    EXPECT_FALSE(space.contains({1024, 1, 2, 12}));
    EXPECT_TRUE((TupleRange{0, 65'536}).contains(65'535));
}

TEST(ConnectionSet, HasEveryTupleOnceAndFindsTheConnectionAgain) {
    for (const Order order : {Order::increasing, Order::decreasing, Order::pseudorandom}) {
        const ConnectionSet set{small, order, 210, 42};
        std::set<std::uint64_t> visited;
        for (std::uint64_t connection = 0; connection < set.count(); ++connection) {
            const Tuple tuple = set.tuple_of(connection);
            visited.insert(set.space().number(tuple));
            EXPECT_EQ(set.connection_of(tuple), connection);
        }
        EXPECT_EQ(visited.size(), 210U);
        EXPECT_EQ(set.connection_of({9, 9, 9, 9}), std::nullopt);
    }
}

TEST(ConnectionSet, OfFewerConnectionsThanTuplesKnowsTheOthersAsStrangers) {
    const ConnectionSet set{small, Order::pseudorandom, 100, 42};
    std::size_t known = 0;
    for (std::uint64_t number = 0; number < 210; ++number) {
        const auto connection = set.connection_of(set.space().tuple(number));
        known += connection ? 1 : 0;
        if (connection) {
            EXPECT_LT(*connection, 100U);
            EXPECT_EQ(set.space().number(set.tuple_of(*connection)), number);
        }
    }
    EXPECT_EQ(known, 100U);
}

TEST(ConnectionChoice, TakesEachInTurnOrDraws) {
    using Mode = ConnectionChoice::Mode;
    const RandomSequence words{1, 2};
    const ConnectionChoice fixed{Mode::fixed, 10, words}, up{Mode::increasing, 10, words}, down{Mode::decreasing, 10, words};
    for (std::uint64_t j = 0; j < 30; ++j) {
        EXPECT_EQ(fixed.at(j), 0U);
        EXPECT_EQ(up.at(j), j % 10);
        EXPECT_EQ(down.at(j), 9 - j % 10);
    }
    const std::uint64_t count = std::uint64_t{3} << 33;
    const ConnectionChoice drawn{Mode::pseudorandom, count, words};
    std::array<std::uint64_t, 3> thirds{};
    for (std::uint64_t j = 0; j < 30'000; ++j) {
        const std::uint64_t connection = drawn.at(j);
        ASSERT_LT(connection, count);
        ++thirds[connection >> 33];
    }
    for (const std::uint64_t times : thirds) {
        EXPECT_NEAR(static_cast<double>(times), 10'000, 500);
    }
}

/// Of K connections, F independent draws leave out K * (1 - 1/K)^F. With c = F / K and a large K,
/// the variance of that number is K * e^-c * (1 - (1 + c) * e^-c).
TEST(ConnectionChoice, DrawsAreIndependent) {
    constexpr std::uint64_t count = 400'000;
    for (const auto& [frames, expected] : {std::pair{count, 252'848.4}, std::pair{10 * count, 399'981.8}}) {
        const double c = static_cast<double>(frames) / count;
        const double deviation = std::sqrt(count * std::exp(-c) * (1 - (1 + c) * std::exp(-c)));
        for (const std::uint64_t seed : {1, 2, 42}) {
            const ConnectionChoice drawn{ConnectionChoice::Mode::pseudorandom, count, RandomSequence{seed, 3}};
            std::vector<bool> visited(count);
            std::uint64_t distinct = 0;
            for (std::uint64_t j = 0; j < frames; ++j) {
                const std::uint64_t connection = drawn.at(j);
                distinct += visited[connection] ? 0 : 1;
                visited[connection] = true;
            }
            EXPECT_NEAR(static_cast<double>(distinct), expected, 4 * deviation) << frames << " frames, seed " << seed;
        }
    }
}

}  // namespace
}  // namespace gatemark::enumerate
