#include "record/tagged_delays.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

namespace gatemark::record {
namespace {

TEST(TagPlaces, AreFoundInAnyOrderAndNowhereElse) {
    std::mt19937_64 random{3};
    for (int round = 0; round < 200; ++round) {
        const std::uint64_t frames = 1 + random() % 3000, first = random() % frames;
        const TagPlaces places{.first = first, .frames = frames, .count = 1 + random() % (frames - first)};
        std::set<std::uint64_t> tagged;
        for (std::uint64_t k = 0; k < places.count; ++k) {
            tagged.insert(places.index_of(k));
        }
        ASSERT_EQ(tagged.size(), places.count);
        ASSERT_EQ(*tagged.begin(), first);
        ASSERT_LT(*tagged.rbegin(), frames);
        std::vector<std::uint64_t> order(frames);
        std::iota(order.begin(), order.end(), 0U);
        if (round % 2 == 1) {
            std::shuffle(order.begin(), order.end(), random);
        }
        TagFinder finder{places};
        for (const std::uint64_t index : order) {
            const auto tag = finder.find(index);
            ASSERT_EQ(tag.has_value(), tagged.contains(index)) << index;
            if (tag) {
                ASSERT_EQ(places.index_of(*tag), index);
            }
        }
    }
}

TEST(TagPlaces, HoldForTheLongestTrial) {
    const TagPlaces places{.first = 1, .frames = std::uint64_t{1} << 36, .count = 100'000'000};
    TagFinder finder{places};
    for (const std::uint64_t k : {std::uint64_t{0}, std::uint64_t{1}, places.count / 2, places.count - 1}) {
        EXPECT_EQ(finder.find(places.index_of(k)), std::optional{k});
    }
}

std::vector<std::uint64_t> one_to(std::uint64_t last) {
    std::vector<std::uint64_t> values(last);
    std::iota(values.begin(), values.end(), 1U);
    std::shuffle(values.begin(), values.end(), std::mt19937_64{last});
    return values;
}

TEST(TagFacts, AreThoseOfRfc2330) {
    EXPECT_EQ(tag_facts(one_to(500), 500).p999, std::optional{pace::Ticks{500}});
    EXPECT_EQ(tag_facts(one_to(1000), 1000).p999, std::optional{pace::Ticks{999}});
    const TagFacts many = tag_facts(one_to(50'000), 50'000);
    EXPECT_EQ(many.p999, std::optional{pace::Ticks{49'950}});
    EXPECT_EQ(many.median, std::optional{pace::Ticks{25'000}});  // 25,000.5
    EXPECT_EQ(tag_facts({4, 2, 7}, 3).median, std::optional{pace::Ticks{4}});
}

TEST(TagFacts, ALostTagRanksAboveEveryDelay) {
    EXPECT_EQ(tag_facts(one_to(49'950), 50'000).p999, std::optional{pace::Ticks{49'950}});
    EXPECT_EQ(tag_facts(one_to(49'949), 50'000).p999, std::nullopt);
    EXPECT_EQ(tag_facts(one_to(499), 500).p999, std::nullopt);
    EXPECT_EQ(tag_facts({1, 2}, 4).median, std::nullopt);  // the upper of the two in the middle is lost
    EXPECT_EQ(tag_facts({1, 3, 3}, 4).median, std::optional{pace::Ticks{3}});
    EXPECT_EQ(tag_facts({}, 4).median, std::nullopt);
    EXPECT_EQ(tag_facts({}, 0).median, std::nullopt);
    EXPECT_EQ(tag_facts({}, 0).p999, std::nullopt);
}

}  // namespace
}  // namespace gatemark::record
