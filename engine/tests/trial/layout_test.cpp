#include "trial/layout.hpp"

#include "trial/machines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace gatemark::trial {
namespace {

using test::machine_of;
using Cpus = std::vector<unsigned>;
using Texts = std::vector<std::vector<std::string>>;

Cpus cpus(unsigned count) {
    Cpus numbers(count);
    std::ranges::generate(numbers, [next = 1U]() mutable { return next++; });
    return numbers;
}

Texts texts_of(const std::vector<WorkerLayout>& layout) {
    Texts texts;
    for (const WorkerLayout& worker : layout) {
        auto& tasks = texts.emplace_back();
        for (const TaskPlace& task : worker.tasks) {
            tasks.push_back(task.text());
        }
    }
    return texts;
}

Texts dealt(unsigned left, unsigned right, unsigned count) { return texts_of(lay_out(left, right, {cpus(count), cpus(count)})); }

/// Largest difference between two of `group` in how many tasks they have that `counts` takes.
template <class Counts>
std::size_t unevenness(const std::vector<WorkerLayout>& layout, const Cpus& group, Counts&& counts) {
    std::size_t least = SIZE_MAX, most = 0;
    for (const unsigned cpu : group) {
        const auto worker = std::ranges::find(layout, cpu, &WorkerLayout::cpu);
        const auto tasks = worker == layout.end() ? 0 : static_cast<std::size_t>(std::ranges::count_if(worker->tasks, counts));
        least = std::min(least, tasks);
        most = std::max(most, tasks);
    }
    return most - least;
}

TEST(Layout, OneCpuPollsAllSendersAndReceiversInTurn) {
    EXPECT_EQ(dealt(1, 1, 1), (Texts{{"send forward 0", "receive reverse 0", "send reverse 0", "receive forward 0"}}));
    EXPECT_EQ(lay_out(1, 1, {{3}, {3}})[0].cpu, 3U);
}

TEST(Layout, TwoCpusHaveAPortEachSoOneSendsAndOneReceives) {
    EXPECT_EQ(dealt(1, 1, 2), (Texts{{"send forward 0", "receive reverse 0"}, {"send reverse 0", "receive forward 0"}}));
}

TEST(Layout, FourCpusHaveATaskEachAndMoreStayIdle) {
    const Texts each{{"send forward 0"}, {"receive forward 0"}, {"receive reverse 0"}, {"send reverse 0"}};
    EXPECT_EQ(dealt(1, 1, 4), each);
    EXPECT_EQ(dealt(1, 1, 6), each);
}

TEST(Layout, WithAQueueForEachCpuEachHasOneQueueOfBothPorts) {
    for (unsigned count = 1; count <= 16; ++count) {
        for (const WorkerLayout& worker : lay_out(count, count, {cpus(count), cpus(count)})) {
            EXPECT_EQ(worker.tasks.size(), 4U);
            EXPECT_TRUE(std::ranges::all_of(worker.tasks, [&](const TaskPlace& task) { return task.queue == worker.cpu - 1; }));
        }
    }
}

TEST(Layout, PortsOnNodesOfTheirOwnArePolledThere) {
    const auto layout = lay_out(2, 3, {{1, 2}, {5, 6, 7}});
    EXPECT_EQ(texts_of(layout), (Texts{{"send forward 0", "receive reverse 0"},
                                       {"send forward 1", "receive reverse 1"},
                                       {"send reverse 0", "receive forward 0"},
                                       {"send reverse 1", "receive forward 1"},
                                       {"send reverse 2", "receive forward 2"}}));
}

TEST(Layout, EveryTaskHasOnePlaceAndTheWorkIsEvenInEveryDirection) {
    const auto is = [](Side side, TaskKind kind) { return [=](const TaskPlace& task) { return task.side == side && task.kind == kind; }; };
    const auto forward = [](const TaskPlace& task) { return (task.side == Side::left) == (task.kind == TaskKind::send); };
    for (unsigned left = 1; left <= 5; ++left) {
        for (unsigned right = 1; right <= 5; ++right) {
            for (unsigned count = 1; count <= 24; ++count) {
                const Cpus group = cpus(count);
                const auto layout = lay_out(left, right, {group, group});
                std::vector<std::string> all;
                for (const auto& tasks : texts_of(layout)) {
                    EXPECT_FALSE(tasks.empty());
                    all.insert(all.end(), tasks.begin(), tasks.end());
                }
                EXPECT_EQ(all.size(), 2 * (left + right));
                std::ranges::sort(all);
                EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
                EXPECT_LE(unevenness(layout, group, [](const TaskPlace&) { return true; }), 1U);
                EXPECT_LE(unevenness(layout, group, forward), 1U);
                EXPECT_LE(unevenness(layout, group, std::not_fn(forward)), 1U);
                for (const Side side : {Side::left, Side::right}) {
                    for (const TaskKind kind : {TaskKind::send, TaskKind::receive}) {
                        EXPECT_LE(unevenness(layout, group, is(side, kind)), 1U);
                    }
                }
            }
        }
    }
}

TEST(Layout, WithoutCpusThereIsNone) { EXPECT_TRUE(lay_out(1, 1, {}).empty()); }

TEST(LeavesOne, LooksAtCpusThatTheControlThreadMayUse) {
    const Machine two = machine_of(2);
    EXPECT_TRUE(leaves_one(lay_out(1, 1, {{1}, {1}}), two));
    EXPECT_FALSE(leaves_one(lay_out(1, 1, {{0, 1}, {0, 1}}), two));
    const Machine isolated = machine_of(4, 1, 1, {1, 2, 3});
    EXPECT_TRUE(leaves_one(lay_out(1, 1, {{1, 2, 3}, {1, 2, 3}}), isolated));
}

const io::PortOffer spreading{.spreads = true, .remark = {}};
const io::PortOffer ring{.spreads = true, .queues_max = 16, .joined = true, .remark = {}};
const io::PortOffer single{.remark = "it has one"};

struct Decision {
    const char* name;
    io::PortOffer left, right;
    LayoutRequest request;
    Machine machine;
    std::array<unsigned, 2> queues;
    std::size_t workers;
};

io::PortOffer on_node(io::PortOffer offer, int node) {
    offer.numa_node = node;
    return offer;
}

using Queues = std::array<std::optional<unsigned>, 2>;
constexpr Queues chosen{};

LayoutRequest asking(const Queues& queues, const Cpus& cores = {}) { return {.ports = {}, .queues = queues, .cores = cores}; }

const std::vector<Decision> decisions{
    {"a worker, a queue", spreading, spreading, asking(chosen), machine_of(2), {1, 1}, 1},
    {"as many queues as workers", spreading, spreading, asking(chosen), machine_of(6), {5, 5}, 5},
    {"no more workers than a line needs", spreading, spreading, asking(chosen), machine_of(40), {8, 8}, 8},
    {"named workers are all used", spreading, spreading, asking(chosen, cpus(16)), machine_of(40), {16, 16}, 16},
    {"a figure of the user wins", spreading, spreading, asking(Queues{2, 3}), machine_of(40), {2, 3}, 10},
    {"one side asked, the other chosen", spreading, spreading, asking(Queues{2, std::nullopt}), machine_of(40), {2, 8}, 8},
    {"one queue where frames are not spread", single, single, asking(chosen), machine_of(40), {1, 1}, 4},
    {"unless more are asked for", single, single, asking(Queues{4, 4}, Cpus{3, 4}), machine_of(8), {4, 4}, 2},
    {"a driver's limit", spreading, ring, asking(chosen, cpus(20)), machine_of(40), {20, 16}, 20},
    {"rings have the same number", ring, ring, asking(Queues{3, std::nullopt}), machine_of(8), {3, 3}, 7},
    {"rings, asked on the right", ring, ring, asking(Queues{std::nullopt, 2}), machine_of(8), {2, 2}, 7},
    {"rings and their driver", ring, ring, asking(chosen, cpus(20)), machine_of(40), {16, 16}, 20},
    {"a node each", on_node(spreading, 0), on_node(spreading, 1), asking(chosen), machine_of(40, 2), {4, 4}, 8},
    {"a node each, one small", on_node(spreading, 0), on_node(spreading, 1), asking(chosen, Cpus{1, 2, 20}), machine_of(40, 2), {2, 1}, 3},
};

TEST(DecideLayout, DecidesAsExpectedForEachRequest) {
    for (const Decision& decision : decisions) {
        const auto decided = decide_layout(decision.request, {decision.left, decision.right}, decision.machine);
        ASSERT_TRUE(std::holds_alternative<Layout>(decided)) << decision.name;
        const Layout& layout = std::get<Layout>(decided);
        EXPECT_EQ(layout.queues, decision.queues) << decision.name;
        EXPECT_EQ(layout.workers.size(), decision.workers) << decision.name;
        EXPECT_GE(layout.why.size(), 3U) << decision.name;
    }
}

TEST(DecideLayout, SaysWhyAndWhatItCosts) {
    const auto why_of = [](const LayoutRequest& request, const std::array<io::PortOffer, 2>& offers, const Machine& machine) {
        const auto decided = decide_layout(request, offers, machine);
        std::string text;
        for (const std::string& sentence : std::get<Layout>(decided).why) {
            text += sentence + "\n";
        }
        return text;
    };
    const auto has = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
    const std::string two_queues = why_of(asking(chosen, Cpus{1, 5}), {spreading, spreading}, machine_of(4, 1, 2));
    EXPECT_TRUE(has(two_queues, "left port: 2 queues, one for each of its workers")) << two_queues;
    EXPECT_TRUE(has(two_queues, "only CPUs that were named are used: 1, 5")) << two_queues;
    EXPECT_TRUE(has(two_queues, "1 and 5 are hardware threads of one core")) << two_queues;
    EXPECT_TRUE(has(two_queues, "reordering is counted within each pair of queues")) << two_queues;
    const std::string far = why_of(asking(chosen, Cpus{6}), {on_node(single, 0), on_node(single, 0)}, machine_of(8, 2));
    EXPECT_TRUE(has(far, "left port: 1 queue, it has one")) << far;
    EXPECT_TRUE(has(far, "CPU 6 is not on the NUMA node of a port")) << far;
    EXPECT_FALSE(has(far, "reordering")) << far;
    EXPECT_TRUE(has(why_of(asking(chosen, Cpus{0, 1}), {single, single}, machine_of(2)), "no CPU is left for the control thread"));
    EXPECT_TRUE(has(why_of(asking(chosen, cpus(6)), {single, single}, machine_of(8)), "only 4 workers of 6 have a task"));
    EXPECT_TRUE(has(why_of(asking(chosen), {single, single}, machine_of(8, 1, 1, {3})), "only isolated CPUs are used"));
    EXPECT_TRUE(has(why_of(asking(chosen), {on_node(single, 0), on_node(single, 1)}, machine_of(8, 2)), "NUMA nodes 0 and 1"));
    const io::PortOffer silent{.remark = {}, .counts_misses = false};
    const std::string uncounted = why_of(asking(chosen), {single, silent}, machine_of(8));
    EXPECT_TRUE(has(uncounted, "right port: the driver does not count frames that find its ring full")) << uncounted;
    EXPECT_FALSE(has(uncounted, "left port: the driver")) << uncounted;
}

TEST(DecideLayout, RefusesCpusThatCannotBeUsed) {
    const auto refused = decide_layout(asking(chosen, Cpus{1, 9, 1}), {single, single}, machine_of(4));
    ASSERT_TRUE(std::holds_alternative<Errors>(refused));
    ASSERT_EQ(std::get<Errors>(refused).size(), 2U);
    EXPECT_EQ(std::get<Errors>(refused)[0].what, "CPU 9 is not available");
    EXPECT_EQ(std::get<Errors>(refused)[1].what, "CPU 1 is named twice");
    EXPECT_TRUE(std::holds_alternative<Errors>(decide_layout(asking(chosen), {single, single}, {})));
}

}  // namespace
}  // namespace gatemark::trial
