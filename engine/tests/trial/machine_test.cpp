#include "trial/machine.hpp"

#include "trial/machines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace gatemark::trial {
namespace {

using test::machine_of;
using Cpus = std::vector<unsigned>;

struct Choice {
    const char* name;
    Machine machine;
    PortNodes nodes;
    std::size_t most;
    Cpus left, right;
};

const std::vector<Choice> choices{
    {"one CPU is shared", machine_of(1), {-1, -1}, 8, {0}, {0}},
    {"two: the lowest is left to the control thread", machine_of(2), {-1, -1}, 8, {1}, {1}},
    {"four", machine_of(4), {-1, -1}, 8, {1, 2, 3}, {1, 2, 3}},
    {"four, and a port that has work for two", machine_of(4), {0, 0}, 2, {1, 2}, {1, 2}},
    {"eight", machine_of(8), {-1, -1}, 8, {1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7}},
    {"sixteen", machine_of(16), {-1, -1}, 8, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 8}},
    {"forty on two nodes, both ports on the second", machine_of(40, 2), {1, 1}, 4, {20, 21, 22, 23}, {20, 21, 22, 23}},
    {"forty, ports on a node each", machine_of(40, 2), {0, 1}, 8, {1, 2, 3, 4}, {20, 21, 22, 23}},
    {"forty, ports on a node each, the other way round", machine_of(40, 2), {1, 0}, 8, {20, 21, 22, 23}, {1, 2, 3, 4}},
    {"a virtual port goes where the other one is", machine_of(8, 2), {-1, 1}, 8, {4, 5, 6, 7}, {4, 5, 6, 7}},
    {"a node without a CPU for us", machine_of(4), {7, 7}, 8, {1, 2, 3}, {1, 2, 3}},
    {"one of two nodes without", machine_of(4), {0, 7}, 8, {1, 2, 3}, {1, 2, 3}},
    {"one core with two threads", machine_of(1, 1, 2), {-1, -1}, 8, {1}, {1}},
    {"two cores with two threads: one of each, the control thread's core last", machine_of(2, 1, 2), {-1, -1}, 8, {1, 2}, {1, 2}},
    {"eight cores with two threads", machine_of(8, 1, 2), {0, 0}, 8, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 8}},
    {"eight cores with two threads on two nodes", machine_of(8, 2, 2), {0, 1}, 8, {1, 2, 3, 8}, {4, 5, 6, 7}},
    {"isolated ones and no others", machine_of(8, 1, 1, {2, 3, 6}), {-1, -1}, 8, {2, 3, 6}, {2, 3, 6}},
    {"the only isolated one", machine_of(8, 1, 1, {5}), {0, 0}, 8, {5}, {5}},
    {"isolated ones near the ports", machine_of(8, 2, 1, {2, 3, 6, 7}), {1, 1}, 8, {6, 7}, {6, 7}},
    {"isolated ones of both nodes", machine_of(8, 2, 1, {2, 3, 6, 7}), {0, 1}, 8, {2, 3}, {6, 7}},
    {"isolated ones that are far", machine_of(8, 2, 1, {2, 3}), {1, 1}, 8, {2, 3}, {2, 3}},
    {"isolated threads of one core", machine_of(4, 1, 2, {1, 2, 5, 6}), {0, 0}, 8, {1, 2}, {1, 2}},
};

TEST(ChooseCpus, ChoosesAsExpectedOnEachMachine) {
    for (const Choice& choice : choices) {
        const PortCpus picked = choose_cpus(choice.machine, choice.nodes, choice.most);
        EXPECT_EQ(picked.left, choice.left) << choice.name;
        EXPECT_EQ(picked.right, choice.right) << choice.name;
    }
}

TEST(ChooseCpus, NeverTwoThreadsOfACoreAndNeverMoreThanAsked) {
    for (const unsigned cores : {1U, 2U, 4U, 8U, 16U, 40U}) {
        for (const unsigned nodes : {1U, 2U}) {
            for (const unsigned threads : {1U, 2U}) {
                for (const PortNodes& of_ports : {PortNodes{-1, -1}, PortNodes{0, 0}, PortNodes{0, 1}, PortNodes{1, 0}, PortNodes{1, -1}}) {
                    for (std::size_t most = 2; most <= 80; most += 3) {
                        const Machine machine = machine_of(cores, nodes, threads);
                        const PortCpus picked = choose_cpus(machine, of_ports, most);
                        const Cpus all = picked.all();
                        ASSERT_FALSE(picked.left.empty() || picked.right.empty());
                        EXPECT_LE(all.size(), most);
                        std::set<unsigned> used;
                        for (const unsigned number : all) {
                            EXPECT_TRUE(used.insert(machine.find(number)->core).second);
                        }
                        const bool control_has_one = std::ranges::find(all, 0U) == all.end();
                        EXPECT_TRUE(control_has_one || cores * threads == 1);
                    }
                }
            }
        }
    }
}

TEST(ChooseCpus, WithoutAnyThereIsNone) { EXPECT_TRUE(choose_cpus({}, {-1, -1}, 4).left.empty()); }

TEST(ShareOut, NamedOnesAreSplitWhereEachPortHasSome) {
    const Machine machine = machine_of(8, 2);
    EXPECT_EQ(share_out(machine, {0, 1}, {6, 1, 2, 7}).left, (Cpus{1, 2}));
    EXPECT_EQ(share_out(machine, {0, 1}, {6, 1, 2, 7}).right, (Cpus{6, 7}));
    for (const PortNodes& nodes : {PortNodes{0, 0}, PortNodes{-1, -1}, PortNodes{0, -1}, PortNodes{0, 2}}) {
        EXPECT_EQ(share_out(machine, nodes, {6, 1}).left, (Cpus{6, 1}));
        EXPECT_FALSE(share_out(machine, nodes, {6, 1}).apart());
    }
    EXPECT_EQ(share_out(machine, {0, 1}, {1, 2}).right, (Cpus{1, 2})) << "none is near the right port";
    const Machine four_nodes = machine_of(8, 4);
    EXPECT_EQ(share_out(four_nodes, {0, 1}, {0, 2, 7}).left, (Cpus{0, 2, 7})) << "one is on a third node";
}

TEST(CpuList, ReadsWhatTheKernelWrites) {
    EXPECT_EQ(parse_cpu_list("0-3,8"), (Cpus{0, 1, 2, 3, 8}));
    EXPECT_EQ(parse_cpu_list("5"), (Cpus{5}));
    EXPECT_EQ(parse_cpu_list("1,3-4\n"), (Cpus{1, 3, 4}));
    EXPECT_TRUE(parse_cpu_list("").empty());
    EXPECT_TRUE(parse_cpu_list("none").empty());
}

TEST(Machine, HasACpuForThisTest) { EXPECT_FALSE(read_machine().allowed().empty()); }

}  // namespace
}  // namespace gatemark::trial
