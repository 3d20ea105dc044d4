#include "io/unsent_frames.hpp"

#include <gtest/gtest.h>

namespace gatemark::io {
namespace {

using namespace std::chrono_literals;
using Counts = UnsentFrames::Counts;

/// What is missing once a card has said `counts`, however long one waits.
std::uint64_t missing(UnsentFrames& unsent, const Counts& counts) {
    return unsent.update([&] { return counts; }, 3ms);
}

TEST(UnsentFrames, AreThoseThatACardNeverCounts) {
    UnsentFrames unsent{{}};
    EXPECT_EQ(missing(unsent, {.accepted = 1000, .sent = 1000}), 0U);
    EXPECT_EQ(missing(unsent, {.accepted = 2000, .sent = 1500}), 500U) << "the second queue stands still";
    EXPECT_EQ(missing(unsent, {.accepted = 2000, .sent = 1500}), 500U) << "they are counted once";
    EXPECT_EQ(missing(unsent, {.accepted = 3000, .sent = 2499}), 501U);
}

TEST(UnsentFrames, WaitForACardThatCountsLate) {
    UnsentFrames unsent{{}};
    int readings = 0;
    const auto late = [&] { return Counts{.accepted = 1000, .sent = ++readings < 5 ? 0U : 1000U}; };
    EXPECT_EQ(unsent.update(late, 60s), 0U);
    EXPECT_EQ(readings, 5);
}

TEST(UnsentFrames, AreNotMadeUpForByFramesOfTheCardsOwn) {
    UnsentFrames unsent{{.accepted = 7, .sent = 100}};
    EXPECT_EQ(missing(unsent, {.accepted = 1007, .sent = 1110}), 0U) << "ten of the card's own";
    EXPECT_EQ(missing(unsent, {.accepted = 2007, .sent = 2107}), 3U);
}

TEST(UnsentFrames, KnowThatCountersWrapAround) {
    constexpr std::uint64_t wrap = std::uint64_t{1} << 32;
    UnsentFrames unsent{{.accepted = 0, .sent = wrap - 10}};
    EXPECT_EQ(missing(unsent, {.accepted = 100, .sent = 90}), 0U);
    EXPECT_EQ(missing(unsent, {.accepted = 3 * wrap, .sent = wrap - 12}), 2U) << "a long trial went by";
}

TEST(AcceptedFrames, AreASum) {
    AcceptedFrames accepted;
    accepted.add(32);
    accepted.add(0);
    accepted.add(5);
    EXPECT_EQ(accepted.count(), 37U);
}

}  // namespace
}  // namespace gatemark::io
