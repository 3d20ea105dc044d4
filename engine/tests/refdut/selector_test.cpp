#include "refdut/selector.hpp"
#include "refdut/delay.hpp"
#include "refdut/impairment.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gatemark::refdut {
namespace {

using Kind = SelectorSpec::Kind;

std::vector<std::uint64_t> taken_of(Selectors selectors, std::uint64_t frames) {
    std::vector<std::uint64_t> taken;
    for (std::uint64_t i = 0; i < frames; ++i) {
        if (selectors.takes(i * 10)) {
            taken.push_back(i);
        }
    }
    return taken;
}

TEST(RefdutSelector, EveryTakesTheLastOfEachN) {
    EXPECT_EQ(taken_of({{{.kind = Kind::every, .count = 3}}, 1, 1}, 10), (std::vector<std::uint64_t>{2, 5, 8}));
    EXPECT_EQ(taken_of({{{.kind = Kind::every, .count = 1}}, 1, 1}, 4).size(), 4U);
    for (const std::uint64_t n : {7U, 1000U}) {
        EXPECT_EQ(taken_of({{{.kind = Kind::every, .count = n}}, 1, 1}, 5000).size(), 5000 / n);
    }
}

TEST(RefdutSelector, FirstAndWindow) {
    EXPECT_EQ(taken_of({{{.kind = Kind::first, .count = 3}}, 1, 1}, 10), (std::vector<std::uint64_t>{0, 1, 2}));
    EXPECT_EQ(taken_of({{{.kind = Kind::window, .from_ns = 20, .to_ns = 50}}, 1, 1}, 10), (std::vector<std::uint64_t>{2, 3, 4}));
}

TEST(RefdutSelector, ProbabilityIsMetAndRepeatsWithTheSeed) {
    const SelectorSpec one_in_a_hundred{.kind = Kind::probability, .probability = 0.01};
    const auto taken = taken_of({{one_in_a_hundred}, 7, 1}, 1'000'000);
    EXPECT_NEAR(static_cast<double>(taken.size()), 10'000, 500);
    EXPECT_EQ(taken, taken_of({{one_in_a_hundred}, 7, 1}, 1'000'000));
    EXPECT_NE(taken, taken_of({{one_in_a_hundred}, 8, 1}, 1'000'000));
    EXPECT_NE(taken, taken_of({{one_in_a_hundred}, 7, 2}, 1'000'000));
    EXPECT_EQ(taken_of({{{.kind = Kind::probability, .probability = 1}}, 1, 1}, 1000).size(), 1000U);
    EXPECT_EQ(taken_of({{{.kind = Kind::probability, .probability = 0}}, 1, 1}, 1000).size(), 0U);
}

TEST(RefdutSelector, SeveralTakeWhatAnyTakesAndRestartFromTheBeginning) {
    const std::vector<SelectorSpec> specs{{.kind = Kind::every, .count = 4}, {.kind = Kind::first, .count = 2}};
    Selectors selectors{specs, 1, 1};
    std::vector<bool> before, after;
    for (int i = 0; i < 9; ++i) {
        before.push_back(selectors.takes(0));
    }
    EXPECT_EQ(before, (std::vector<bool>{true, true, false, true, false, false, false, true, false}));
    selectors.restart();
    for (int i = 0; i < 9; ++i) {
        after.push_back(selectors.takes(0));
    }
    EXPECT_EQ(before, after);
}

TEST(RefdutImpairments, EachStageSeesWhatTheStagesBeforeLeftAlone) {
    const SelectorSpec every_second{.kind = Kind::every, .count = 2};
    Impairments impairments{{.loss = {every_second},
                             .duplicate = {every_second},
                             .reorder = {{.selector = every_second, .by = 3}},
                             .corrupt = {{.selector = every_second, .field = Field::hop_limit}}},
                            1,
                            0};
    std::array<int, 5> counts{};
    for (int i = 0; i < 1600; ++i) {
        ++counts[static_cast<std::size_t>(impairments.next(0, [](Field field) { return Fields{field}; }).kind)];
    }
    EXPECT_EQ(counts, (std::array<int, 5>{100, 800, 400, 200, 100}));  // forward, lose, corrupt, duplicate, reorder
}

TEST(RefdutImpairments, ADamageThatTheFrameHasNoFieldForIsCountedAndTheFrameGoesOn) {
    Impairments impairments{{.loss = {},
                             .duplicate = {{.kind = Kind::every, .count = 1}},
                             .reorder = {},
                             .corrupt = {{.selector = {.kind = Kind::every, .count = 1}, .field = Field::flow_label}}},
                            1,
                            0};
    EXPECT_EQ(impairments.next(0, [](Field) { return Fields{}; }).kind, Fate::Kind::duplicate);
    EXPECT_EQ(impairments.not_applicable(), 1U);
}

TEST(RefdutDelay, DrawsWhatWasAskedFor) {
    DelaySource none, fixed{{.kind = DelaySpec::Kind::fixed, .values_ns = {1000}}, 1, 1, 2'000'000'000};
    DelaySource periodic{{.kind = DelaySpec::Kind::periodic, .values_ns = {10, 20, 50}}, 1, 1, 1'000'000'000};
    DelaySource uniform{{.kind = DelaySpec::Kind::uniform, .values_ns = {100, 109}}, 1, 1, 1'000'000'000};
    std::set<std::uint64_t> values;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        EXPECT_EQ(none.next(), 0U);
        EXPECT_EQ(fixed.next(), 2000U);
        EXPECT_EQ(periodic.next(), (std::array<std::uint64_t, 3>{10, 20, 50}[i % 3]));
        values.insert(uniform.next());
    }
    EXPECT_EQ(values.size(), 10U);
    EXPECT_TRUE(*values.begin() == 100 && *values.rbegin() == 109);
    const std::uint64_t next = periodic.next();
    periodic.restart();
    EXPECT_EQ(next, 20U);
    EXPECT_EQ(periodic.next(), 10U);
}

}  // namespace
}  // namespace gatemark::refdut
