#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

/// The CPUs of this machine, and which of them the workers get.
namespace gatemark::trial {

/// One hardware thread.
struct Cpu {
    unsigned number = 0;
    unsigned core = 0;   ///< lowest number among the hardware threads of its core
    int numa_node = -1;  ///< -1 if unknown
    bool allowed = true;
    bool isolated = false;  ///< kept free of other work by the kernel (isolcpus)
};

/// Every CPU that we can pin a thread to, in ascending order. An isolated one need not be
/// `allowed`: the kernel leaves it out of the set that a process starts with.
struct Machine {
    std::vector<Cpu> cpus;

    [[nodiscard]] const Cpu* find(unsigned number) const noexcept;
    /// Numbers of the CPUs that unpinned threads of this process run on.
    [[nodiscard]] std::vector<unsigned> allowed() const;
};

/// The CPUs that poll the queues of each port: the same for both, or none in common where the ports
/// are on different NUMA nodes.
struct PortCpus {
    std::vector<unsigned> left, right;

    [[nodiscard]] bool apart() const noexcept { return left != right; }
    [[nodiscard]] std::vector<unsigned> all() const;
};

/// NUMA nodes of the left and the right port; -1 if unknown.
using PortNodes = std::array<int, 2>;

/// Chooses at most `most` CPUs, at least one for each port. If there are isolated CPUs, only those;
/// else all but the lowest, which is left to the control thread and the rest of the system (a
/// machine with a single CPU shares it). Only one hardware thread of each core, because two that
/// poll without pause would get half of the core each. The core of the control thread is chosen
/// last. Of these, the CPUs near the ports; if the ports are on different nodes that both have
/// CPUs, each port has its own.
[[nodiscard]] PortCpus choose_cpus(const Machine& machine, PortNodes nodes, std::size_t most);

/// Gives each port the named CPUs of its node if both nodes have some and none is on a third node;
/// else both ports share all of them.
[[nodiscard]] PortCpus share_out(const Machine& machine, PortNodes nodes, const std::vector<unsigned>& named);

/// Reads the machine as it is.
[[nodiscard]] Machine read_machine();

/// Reads a kernel list such as "0-3,8". Of an invalid list, returns what precedes the error.
[[nodiscard]] std::vector<unsigned> parse_cpu_list(const std::string& text);

}  // namespace gatemark::trial
