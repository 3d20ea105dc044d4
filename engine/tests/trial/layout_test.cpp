#include "trial/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace gatemark::trial {
namespace {

using Processors = std::vector<unsigned>;

std::vector<std::vector<std::string>> texts_of(const std::vector<WorkerLayout>& layout) {
    std::vector<std::vector<std::string>> texts;
    for (const WorkerLayout& worker : layout) {
        auto& tasks = texts.emplace_back();
        for (const TaskPlace& task : worker.tasks) {
            tasks.push_back(task.text());
        }
    }
    return texts;
}

using Texts = std::vector<std::vector<std::string>>;

TEST(Layout, OneProcessorPollsAll) {
    EXPECT_EQ(texts_of(lay_out(1, 1, {3})), (Texts{{"send forward 0", "receive reverse 0", "send reverse 0", "receive forward 0"}}));
    EXPECT_EQ(lay_out(1, 1, {3})[0].processor, 3U);
}

TEST(Layout, TwoProcessorsHaveAPortEach) {
    EXPECT_EQ(texts_of(lay_out(1, 1, {1, 2})), (Texts{{"send forward 0", "receive reverse 0"}, {"send reverse 0", "receive forward 0"}}));
}

TEST(Layout, FourProcessorsHaveATaskEachAndMoreStayIdle) {
    const Texts each{{"send forward 0"}, {"receive reverse 0"}, {"send reverse 0"}, {"receive forward 0"}};
    EXPECT_EQ(texts_of(lay_out(1, 1, {1, 2, 3, 4})), each);
    EXPECT_EQ(texts_of(lay_out(1, 1, {1, 2, 3, 4, 5, 6})), each);
}

TEST(Layout, EveryTaskHasExactlyOnePlaceAndNoWorkerIsWithout) {
    for (unsigned left = 1; left <= 4; ++left) {
        for (unsigned right = 1; right <= 4; ++right) {
            for (unsigned count = 1; count <= 10; ++count) {
                Processors processors(count);
                for (unsigned i = 0; i < count; ++i) {
                    processors[i] = i + 1;
                }
                std::vector<std::string> all;
                for (const auto& tasks : texts_of(lay_out(left, right, processors))) {
                    EXPECT_FALSE(tasks.empty());
                    all.insert(all.end(), tasks.begin(), tasks.end());
                }
                EXPECT_EQ(all.size(), 2 * (left + right));
                std::sort(all.begin(), all.end());
                EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
            }
        }
    }
}

TEST(Layout, WithoutProcessorsThereIsNone) { EXPECT_TRUE(lay_out(1, 1, {}).empty()); }

TEST(ChooseProcessors, IsolatedOnesNearThePortComeFirst) {
    EXPECT_EQ(choose_processors({.allowed = {0, 1, 2, 3}, .isolated = {2, 3}, .near_port = {3}}, 4), (Processors{3}));
    EXPECT_EQ(choose_processors({.allowed = {0, 1, 2, 3}, .isolated = {2, 3}, .near_port = {0, 1}}, 4), (Processors{2, 3}));
    EXPECT_EQ(choose_processors({.allowed = {0, 1, 2, 3}, .isolated = {2, 3}, .near_port = {}}, 1), (Processors{2}));
}

TEST(ChooseProcessors, TheLowestIsLeftToTheRestOfTheSystem) {
    EXPECT_EQ(choose_processors({.allowed = {0, 1, 2, 3}, .isolated = {}, .near_port = {}}, 4), (Processors{1, 2, 3}));
    EXPECT_EQ(choose_processors({.allowed = {0, 1, 2, 3}, .isolated = {}, .near_port = {2, 3}}, 4), (Processors{2, 3}));
    EXPECT_EQ(choose_processors({.allowed = {0}, .isolated = {}, .near_port = {}}, 4), (Processors{0}));
    EXPECT_EQ(choose_processors({.allowed = {4, 5, 6, 7, 8}, .isolated = {}, .near_port = {9}}, 2), (Processors{5, 6}));
}

TEST(ProcessorList, ReadsWhatTheKernelWrites) {
    EXPECT_EQ(parse_processor_list("0-3,8"), (Processors{0, 1, 2, 3, 8}));
    EXPECT_EQ(parse_processor_list("5"), (Processors{5}));
    EXPECT_EQ(parse_processor_list("1,3-4\n"), (Processors{1, 3, 4}));
    EXPECT_TRUE(parse_processor_list("").empty());
    EXPECT_TRUE(parse_processor_list("none").empty());
}

TEST(Machine, HasAProcessorForThisTest) { EXPECT_FALSE(read_machine(-1).allowed.empty()); }

}  // namespace
}  // namespace gatemark::trial
