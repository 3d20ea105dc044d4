#pragma once

#include "trial/machine.hpp"

/// Machines to choose CPUs from.
namespace gatemark::test {

/// Numbered as Linux does on most machines: the first hardware threads of all cores, then the
/// second ones; cores in order of their nodes.
[[nodiscard]] inline trial::Machine machine_of(unsigned cores, unsigned nodes = 1, unsigned threads_per_core = 1,
                                               const std::vector<unsigned>& isolated = {}) {
    trial::Machine machine;
    for (unsigned number = 0; number < cores * threads_per_core; ++number) {
        const unsigned core = number % cores;
        machine.cpus.push_back({.number = number, .core = core, .numa_node = static_cast<int>(core * nodes / cores)});
    }
    for (const unsigned number : isolated) {
        machine.cpus[number].isolated = true;
        machine.cpus[number].allowed = false;
    }
    return machine;
}

}  // namespace gatemark::test
