#include "base/random.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <unordered_set>
#include <vector>

namespace gatemark {
namespace {

/// Chi-squared of `counts` against equal shares, as a number of standard deviations from its mean.
double deviations(const std::vector<std::uint64_t>& counts, std::uint64_t total) {
    const double expected = static_cast<double>(total) / static_cast<double>(counts.size()),
                 degrees = static_cast<double>(counts.size() - 1);
    double chi_squared = 0;
    for (const std::uint64_t count : counts) {
        chi_squared += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) / expected;
    }
    return (chi_squared - degrees) / std::sqrt(2 * degrees);
}

TEST(RandomSequence, IsAFunctionOfSeedPurposeAndIndex) {
    const RandomSequence a{42, 1}, b{42, 1};
    EXPECT_EQ(a.at(1'000'000'007), b.at(1'000'000'007));
    EXPECT_NE(a.at(0), RandomSequence(43, 1).at(0));
    EXPECT_NE(a.at(0), RandomSequence(42, 2).at(0));
}

TEST(RandomSequence, BothHalvesOfAWordAreUniform) {
    for (const std::uint64_t purpose : {0U, 0xa000U, 0xa001U, 0xa301U}) {
        const RandomSequence sequence{42, purpose};
        std::vector<std::uint64_t> high(253), low(64512);
        constexpr std::uint64_t total = 2'000'000;
        for (std::uint64_t i = 0; i < total; ++i) {
            const std::uint64_t word = sequence.at(i);
            ++high[scale_to(static_cast<std::uint32_t>(word >> 32), 253)];
            ++low[scale_to(static_cast<std::uint32_t>(word), 64512)];
        }
        EXPECT_LT(std::abs(deviations(high, total)), 5) << purpose;
        EXPECT_LT(std::abs(deviations(low, total)), 5) << purpose;
    }
}

TEST(RandomSequence, PurposesSeedsAndNeighboursAreIndependent) {
    const RandomSequence base{42, 0xa000}, purpose{42, 0xa001}, seed{43, 0xa000};
    constexpr std::uint64_t total = 200'000;
    std::uint64_t with_purpose = 0, with_seed = 0, with_next = 0;
    std::vector<std::uint64_t> pairs(64 * 64);
    for (std::uint64_t i = 0; i < total; ++i) {
        with_purpose += static_cast<std::uint64_t>(std::popcount(base.at(i) ^ purpose.at(i)));
        with_seed += static_cast<std::uint64_t>(std::popcount(base.at(i) ^ seed.at(i)));
        with_next += static_cast<std::uint64_t>(std::popcount(base.at(i) ^ base.at(i + 1)));
        ++pairs[(base.at(i) >> 58) * 64 + (purpose.at(i) >> 58)];
    }
    for (const std::uint64_t differing : {with_purpose, with_seed, with_next}) {  // mean 32 bits a word, standard deviation 4 / sqrt(total)
        EXPECT_NEAR(static_cast<double>(differing) / static_cast<double>(total), 32.0, 5 * 4 / std::sqrt(static_cast<double>(total)));
    }
    EXPECT_LT(std::abs(deviations(pairs, total)), 5);
}

TEST(RandomSequence, MixIsABijectionSoWordsDoNotRepeat) {
    const RandomSequence sequence{7, 3};
    std::unordered_set<std::uint64_t> values;
    for (std::uint64_t i = 0; i < 200'000; ++i) {
        ASSERT_TRUE(values.insert(sequence.at(i)).second);
    }
}

TEST(ScaleTo, ReachesBothEndsAndNothingElse) {
    EXPECT_EQ(scale_to(0, 65536), 0U);
    EXPECT_EQ(scale_to(0xffffffff, 65536), 65535U);
    EXPECT_EQ(scale_to(0xffffffff, 1), 0U);
    EXPECT_EQ(scale_to(0x80000000, 2), 1U);
    EXPECT_EQ(scale_to(0x7fffffff, 2), 0U);
}

}  // namespace
}  // namespace gatemark
