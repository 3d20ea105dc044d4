#include "record/delay_variation.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <thread>

namespace gatemark::record {
namespace {

constexpr std::uint64_t frames_in_all = 20'000;

/// The delay of a frame; none if it is lost.
std::optional<std::uint64_t> delay_of(std::uint64_t number) {
    const std::uint64_t mixed = number * 0x9e3779b97f4a7c15;
    return mixed >> 60 == 0 ? std::nullopt : std::optional{(mixed >> 20) % 100'000};
}

void put(DelayWindow& window, DelayVariation& variation, std::uint64_t number) {
    if (const auto delay = delay_of(number)) {
        const auto differences = window.put(number, pace::Ticks{*delay});
        for (const auto& difference : {differences.to_before, differences.to_after}) {
            if (difference) {
                variation.add(*difference);
            }
        }
    }
}

std::vector<std::int64_t> truth() {
    std::vector<std::int64_t> differences;
    for (std::uint64_t number = 1; number < frames_in_all; ++number) {
        const auto before = delay_of(number - 1), delay = delay_of(number);
        if (before && delay) {
            differences.push_back(static_cast<std::int64_t>(*delay) - static_cast<std::int64_t>(*before));
        }
    }
    std::sort(differences.begin(), differences.end());
    return differences;
}

void expect_truth(const DelayVariation& variation) {
    const auto differences = truth();
    ASSERT_EQ(variation.pairs(), differences.size());
    EXPECT_EQ(variation.minimum(), differences.front());
    EXPECT_EQ(variation.maximum(), differences.back());
    for (std::uint64_t rank = 1; rank <= differences.size(); rank += 37) {
        const auto value = static_cast<double>(differences[rank - 1]);
        ASSERT_NEAR(static_cast<double>(variation.of_rank(rank)), value, std::abs(value) * 0.0005);
    }
}

TEST(DelayVariation, FollowsTheOrderOfSendingHoweverFramesArrive) {
    std::vector<std::uint64_t> order(frames_in_all);
    std::iota(order.begin(), order.end(), 0U);
    for (int round = 0; round < 8; ++round) {
        DelayWindow window;
        window.reset(round < 4 ? Receivers::one : Receivers::many);
        DelayVariation variation;
        for (const std::uint64_t number : order) {
            put(window, variation, number);
        }
        expect_truth(variation);
        std::shuffle(order.begin(), order.end(), std::mt19937_64{static_cast<unsigned>(round)});
    }
}

TEST(DelayVariation, EachPairIsCountedOnceWhenSeveralReceiversShareIt) {
    for (int round = 0; round < 5; ++round) {
        DelayWindow window;
        window.reset();
        std::array<DelayVariation, 2> parts;
        std::vector<std::thread> receivers;
        for (std::uint64_t receiver = 0; receiver < 2; ++receiver) {
            receivers.emplace_back([&, receiver] {
                for (std::uint64_t number = receiver; number < frames_in_all; number += 2) {
                    put(window, parts[receiver], number);
                }
            });
        }
        for (std::thread& receiver : receivers) {
            receiver.join();
        }
        parts[0].add(parts[1]);
        expect_truth(parts[0]);
    }
}

TEST(DelayVariation, AFrameOfAnotherTurnOfTheWindowIsNoNeighbour) {
    DelayWindow window;
    window.reset();
    EXPECT_FALSE(window.put(4, pace::Ticks{10}).to_before);
    EXPECT_FALSE(window.put(DelayWindow::frames + 5, pace::Ticks{20}).to_before);
    EXPECT_FALSE(window.put(DelayWindow::frames + 3, pace::Ticks{20}).to_after);
    EXPECT_EQ(window.put(DelayWindow::frames + 4, pace::Ticks{50}).to_before, std::optional<std::int64_t>{30});
}

TEST(DelayVariation, SignsAreKept) {
    DelayVariation variation;
    for (const std::int64_t difference : {-500, -3, 0, 2}) {
        variation.add(difference);
    }
    EXPECT_EQ(variation.minimum(), -500);
    EXPECT_EQ(variation.maximum(), 2);
    EXPECT_EQ(variation.of_rank(1), -500);
    EXPECT_EQ(variation.of_rank(2), -3);
    EXPECT_EQ(variation.of_rank(3), 0);
    std::vector<std::int64_t> visited;
    variation.visit([&](std::int64_t difference, std::uint64_t) { visited.push_back(difference); });
    EXPECT_EQ(visited, (std::vector<std::int64_t>{-500, -3, 0, 2}));
    DelayVariation one_sided;
    one_sided.add(-7);
    EXPECT_EQ(one_sided.maximum(), -7);
}

}  // namespace
}  // namespace gatemark::record
