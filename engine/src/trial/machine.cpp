#include "trial/machine.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace gatemark::trial {

namespace {

using Numbers = std::vector<unsigned>;

std::string read_line(const std::string& path) {
    std::ifstream file{path};
    std::string line;
    std::getline(file, line);
    return line;
}

bool holds(const Numbers& list, unsigned number) { return std::ranges::find(list, number) != list.end(); }

/// One hardware thread of each core, best first.
std::vector<Cpu> candidates_of(const Machine& machine) {
    const bool isolated = std::ranges::any_of(machine.cpus, &Cpu::isolated);
    std::vector<Cpu> usable;
    std::ranges::copy_if(machine.cpus, std::back_inserter(usable), isolated ? &Cpu::isolated : &Cpu::allowed);
    std::optional<unsigned> control_core;
    if (!isolated && usable.size() > 1) {
        control_core = usable.front().core;
        usable.erase(usable.begin());
    }
    std::vector<Cpu> chosen;
    for (const Cpu& cpu : usable) {
        if (std::ranges::find(chosen, cpu.core, &Cpu::core) == chosen.end()) {
            chosen.push_back(cpu);
        }
    }
    std::stable_partition(chosen.begin(), chosen.end(), [&](const Cpu& cpu) { return cpu.core != control_core; });
    return chosen;
}

Numbers numbers_on(const std::vector<Cpu>& cpus, int node) {
    Numbers numbers;
    for (const Cpu& cpu : cpus) {
        if (cpu.numa_node == node) {
            numbers.push_back(cpu.number);
        }
    }
    return numbers;
}

Numbers numbers_of(const std::vector<Cpu>& cpus) {
    Numbers numbers;
    for (const Cpu& cpu : cpus) {
        numbers.push_back(cpu.number);
    }
    return numbers;
}

/// Whether the kernel lets us pin a thread there; a container may forbid isolated CPUs.
bool may_be_pinned_to(unsigned cpu, const cpu_set_t& now) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    const bool may = sched_setaffinity(0, sizeof only, &only) == 0;
    sched_setaffinity(0, sizeof now, &now);
    return may;
}

}  // namespace

const Cpu* Machine::find(unsigned number) const noexcept {
    const auto match = std::ranges::find(cpus, number, &Cpu::number);
    return match == cpus.end() ? nullptr : &*match;
}

std::vector<unsigned> Machine::allowed() const {
    Numbers numbers;
    for (const Cpu& cpu : cpus) {
        if (cpu.allowed) {
            numbers.push_back(cpu.number);
        }
    }
    return numbers;
}

std::vector<unsigned> PortCpus::all() const {
    Numbers both = left;
    std::ranges::copy_if(right, std::back_inserter(both), [&](unsigned number) { return !holds(left, number); });
    return both;
}

PortCpus choose_cpus(const Machine& machine, PortNodes nodes, std::size_t most) {
    const std::vector<Cpu> candidates = candidates_of(machine);
    const auto first = [](Numbers numbers, std::size_t count) {
        numbers.resize(std::min(numbers.size(), count));
        return numbers;
    };
    const Numbers near_left = nodes[0] < 0 ? Numbers{} : numbers_on(candidates, nodes[0]);
    const Numbers near_right = nodes[1] < 0 ? Numbers{} : numbers_on(candidates, nodes[1]);
    if (nodes[0] != nodes[1] && !near_left.empty() && !near_right.empty()) {
        const std::size_t each = std::max<std::size_t>(1, most / 2);
        return {first(near_left, each), first(near_right, each)};
    }
    Numbers shared = near_left.empty() ? near_right : near_left;
    if (shared.empty()) {
        shared = numbers_of(candidates);
    }
    shared = first(std::move(shared), most);
    return {shared, shared};
}

PortCpus share_out(const Machine& machine, PortNodes nodes, const std::vector<unsigned>& named) {
    PortCpus groups;
    for (const unsigned number : named) {
        const Cpu* const cpu = machine.find(number);
        const int node = cpu == nullptr ? -1 : cpu->numa_node;
        if (node == nodes[0]) {
            groups.left.push_back(number);
        } else if (node == nodes[1]) {
            groups.right.push_back(number);
        }
    }
    const bool known = nodes[0] >= 0 && nodes[1] >= 0 && nodes[0] != nodes[1];
    const bool all_placed = groups.left.size() + groups.right.size() == named.size();
    if (known && all_placed && !groups.left.empty() && !groups.right.empty()) {
        return groups;
    }
    return {named, named};
}

Machine read_machine() {
    const std::string folder = "/sys/devices/system/";
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    const Numbers isolated = parse_cpu_list(read_line(folder + "cpu/isolated"));
    Machine machine;
    for (unsigned number = 0; number < CPU_SETSIZE; ++number) {
        Cpu cpu{.number = number, .core = number};
        cpu.allowed = CPU_ISSET(number, &allowed);
        cpu.isolated = holds(isolated, number) && may_be_pinned_to(number, allowed);
        if (cpu.allowed || cpu.isolated) {
            const std::string path = folder + "cpu/cpu" + std::to_string(number) + "/topology/thread_siblings_list";
            const Numbers siblings = parse_cpu_list(read_line(path));
            cpu.core = siblings.empty() ? number : siblings.front();
            machine.cpus.push_back(cpu);
        }
    }
    for (const unsigned node : parse_cpu_list(read_line(folder + "node/online"))) {
        for (const unsigned number : parse_cpu_list(read_line(folder + "node/node" + std::to_string(node) + "/cpulist"))) {
            if (const auto match = std::ranges::find(machine.cpus, number, &Cpu::number); match != machine.cpus.end()) {
                match->numa_node = static_cast<int>(node);
            }
        }
    }
    return machine;
}

std::vector<unsigned> parse_cpu_list(const std::string& text) {
    Numbers cpus;
    std::istringstream stream{text};
    for (std::string part; std::getline(stream, part, ',');) {
        unsigned first = 0, last = 0;
        char dash = 0;
        std::istringstream range{part};
        if (!(range >> first)) {
            break;
        }
        last = range >> dash >> last ? last : first;
        for (unsigned cpu = first; cpu <= last; ++cpu) {
            cpus.push_back(cpu);
        }
    }
    return cpus;
}

}  // namespace gatemark::trial
