#include "trial/layout.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace gatemark::trial {

namespace {

std::string read_line(const std::string& path) {
    std::ifstream file{path};
    std::string line;
    std::getline(file, line);
    return line;
}

std::vector<unsigned> intersection(const std::vector<unsigned>& a, const std::vector<unsigned>& b) {
    std::vector<unsigned> both;
    std::copy_if(a.begin(), a.end(), std::back_inserter(both),
                 [&](unsigned processor) { return std::find(b.begin(), b.end(), processor) != b.end(); });
    return both;
}

}  // namespace

std::string TaskPlace::text() const {
    const Direction sent = side == Side::left ? Direction::forward : Direction::reverse;
    const Direction received = side == Side::left ? Direction::reverse : Direction::forward;
    return std::string{kind == TaskKind::send ? "send " : "receive "} + name_of(kind == TaskKind::send ? sent : received) + " " +
           std::to_string(queue);
}

std::vector<WorkerLayout> lay_out(unsigned left_queues, unsigned right_queues, const std::vector<unsigned>& processors) {
    std::vector<TaskPlace> tasks;
    for (unsigned queue = 0; queue < std::max(left_queues, right_queues); ++queue) {
        for (const auto& [side, queues] : {std::pair{Side::left, left_queues}, std::pair{Side::right, right_queues}}) {
            if (queue < queues) {
                tasks.push_back({side, TaskKind::send, queue});
                tasks.push_back({side, TaskKind::receive, queue});
            }
        }
    }
    const std::size_t workers = std::min(processors.size(), tasks.size());
    std::vector<WorkerLayout> layout(workers);
    if (workers == 0) {
        return layout;
    }
    for (std::size_t i = 0; i < workers; ++i) {
        layout[i].processor = processors[i];
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        layout[i * workers / tasks.size()].tasks.push_back(tasks[i]);
    }
    return layout;
}

std::vector<unsigned> choose_processors(const Machine& machine, std::size_t tasks_max) {
    const auto near = [&](const std::vector<unsigned>& processors) {
        const auto close = intersection(processors, machine.near_port);
        return close.empty() ? processors : close;
    };
    std::vector<unsigned> chosen = near(machine.isolated);
    if (chosen.empty()) {
        chosen = near(machine.allowed);
        if (chosen.size() > 1 && chosen.size() == machine.allowed.size()) {
            chosen.erase(chosen.begin());
        }
    }
    chosen.resize(std::min(chosen.size(), tasks_max));
    return chosen;
}

Machine read_machine(int numa_node) {
    Machine machine;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (unsigned processor = 0; processor < CPU_SETSIZE; ++processor) {
            if (CPU_ISSET(processor, &set)) {
                machine.allowed.push_back(processor);
            }
        }
    }
    machine.isolated = parse_processor_list(read_line("/sys/devices/system/cpu/isolated"));
    if (numa_node >= 0) {
        machine.near_port = parse_processor_list(read_line("/sys/devices/system/node/node" + std::to_string(numa_node) + "/cpulist"));
    }
    return machine;
}

std::vector<unsigned> parse_processor_list(const std::string& text) {
    std::vector<unsigned> processors;
    std::istringstream stream{text};
    for (std::string part; std::getline(stream, part, ',');) {
        unsigned first = 0, last = 0;
        char dash = 0;
        std::istringstream range{part};
        if (!(range >> first)) {
            break;
        }
        last = range >> dash >> last ? last : first;
        for (unsigned processor = first; processor <= last; ++processor) {
            processors.push_back(processor);
        }
    }
    return processors;
}

}  // namespace gatemark::trial
