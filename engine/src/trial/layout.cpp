#include "trial/layout.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace gatemark::trial {

namespace {

std::string counted(std::size_t count, const std::string& noun) { return std::to_string(count) + " " + noun + (count == 1 ? "" : "s"); }

std::string listed(const std::vector<unsigned>& numbers) {
    std::string text;
    for (const unsigned number : numbers) {
        text += (text.empty() ? "" : ", ") + std::to_string(number);
    }
    return text;
}

struct QueueChoice {
    unsigned queues = 1;
    std::string why;
};

QueueChoice choose_queues(const std::optional<unsigned>& asked, const io::PortOffer& offer, std::size_t workers) {
    if (asked) {
        return {*asked, "as asked for"};
    }
    if (!offer.spreads) {
        return {1, offer.remark};
    }
    const auto queues = static_cast<unsigned>(std::clamp<std::size_t>(workers, 1, offer.queues_max));
    const std::string why = queues < workers ? "all that its driver has"
                            : queues == 1    ? "for its one worker"
                                             : "one for each of its workers";
    return {queues, why + (offer.remark.empty() ? "" : "; " + offer.remark)};
}

/// Joined ports have the same number of queues: the one requested for either, else what both
/// support.
void join(std::array<QueueChoice, 2>& choices, const LayoutRequest& request) {
    const bool left_follows = !request.queues[0] && (request.queues[1] || choices[1].queues < choices[0].queues);
    const bool right_follows = !request.queues[1] && (request.queues[0] || choices[0].queues < choices[1].queues);
    if (left_follows) {
        choices[0] = {choices[1].queues, "as many as the port it is joined to"};
    } else if (right_follows) {
        choices[1] = {choices[0].queues, "as many as the port it is joined to"};
    }
}

/// How many workers can have something to do. A port that spreads frames gets that many queues, any
/// other port the number it has.
std::size_t workers_max(const LayoutRequest& request, const std::array<io::PortOffer, 2>& offers) {
    std::size_t tasks = 0;
    for (std::size_t i = 0; i < 2; ++i) {
        if (!request.queues[i] && offers[i].spreads) {
            return automatic_workers_max;
        }
        tasks += std::size_t{2} * request.queues[i].value_or(1);
    }
    return tasks;
}

void explain_cpus(Layout& layout, const LayoutRequest& request, const Machine& machine, const PortCpus& cpus, PortNodes nodes) {
    const std::vector<unsigned> all = cpus.all();
    const auto any = [&](auto member) { return std::ranges::any_of(machine.cpus, member); };
    const bool isolated = any(&Cpu::isolated);
    std::vector<std::string>& why = layout.why;
    if (!request.cores.empty()) {
        why.push_back("only CPUs that were named are used: " + listed(request.cores));
    } else {
        why.push_back(isolated ? "only isolated CPUs are used, because there are some"
                               : "no CPU is isolated: other work may stop a worker");
        if (any([&](const Cpu& p) { return p.core != p.number; })) {
            why.emplace_back("one hardware thread of each core is used: two that poll would get half of it each");
        }
    }
    if (cpus.apart()) {
        why.push_back("the ports are on NUMA nodes " + std::to_string(nodes[0]) + " and " + std::to_string(nodes[1]) +
                      ": each port has workers on its own node");
    }
    for (const unsigned number : all) {
        const Cpu* const cpu = machine.find(number);
        const auto sharing = std::ranges::find_if(all, [&](unsigned other) {
            const Cpu* const second = machine.find(other);
            return other > number && cpu != nullptr && second != nullptr && second->core == cpu->core;
        });
        if (sharing != all.end()) {
            why.push_back("CPUs " + std::to_string(number) + " and " + std::to_string(*sharing) +
                          " are hardware threads of one core: each has half of it");
        }
        const bool near = cpu == nullptr || cpu->numa_node < 0 ||
                          std::ranges::any_of(nodes, [&](int node) { return node < 0 || node == cpu->numa_node; });
        if (!near) {
            why.push_back("CPU " + std::to_string(number) + " is not on the NUMA node of a port: its memory is far");
        }
    }
    if (!leaves_one(layout.workers, machine)) {
        why.emplace_back("no CPU is left for the control thread: the workers share theirs with everything else");
    }
    if (request.cores.size() > layout.workers.size()) {
        why.push_back("only " + counted(layout.workers.size(), "worker") + " of " + std::to_string(request.cores.size()) +
                      " have a task: more would need more queues");
    }
}

}  // namespace

std::string TaskPlace::text() const {
    const Direction sent = side == Side::left ? Direction::forward : Direction::reverse;
    const Direction received = side == Side::left ? Direction::reverse : Direction::forward;
    return std::string{kind == TaskKind::send ? "send " : "receive "} + name_of(kind == TaskKind::send ? sent : received) + " " +
           std::to_string(queue);
}

std::vector<WorkerLayout> lay_out(unsigned left_queues, unsigned right_queues, const PortCpus& cpus) {
    std::vector<WorkerLayout> workers;
    for (const unsigned cpu : cpus.all()) {
        workers.push_back({cpu, {}});
    }
    // Forward frames are sent on the left and received on the right. The tasks of that direction
    // come first, then those of the other, and they are dealt out like cards. Any run of cards is
    // dealt evenly, and so is each direction, each kind of task, and all of them together.
    std::array<std::size_t, 2> dealt{};
    for (const auto& [side, kind] : {std::pair{Side::left, TaskKind::send}, std::pair{Side::right, TaskKind::receive},
                                     std::pair{Side::left, TaskKind::receive}, std::pair{Side::right, TaskKind::send}}) {
        const std::vector<unsigned>& group = side == Side::left ? cpus.left : cpus.right;
        std::size_t& next = dealt[cpus.apart() && side == Side::right ? 1 : 0];
        for (unsigned queue = 0; !group.empty() && queue < (side == Side::left ? left_queues : right_queues); ++queue) {
            const unsigned cpu = group[next++ % group.size()];
            std::ranges::find(workers, cpu, &WorkerLayout::cpu)->tasks.push_back({side, kind, queue});
        }
    }
    std::erase_if(workers, [](const WorkerLayout& worker) { return worker.tasks.empty(); });
    for (WorkerLayout& worker : workers) {  // senders and receivers in turn, so that no sender waits for all receivers
        std::ranges::sort(worker.tasks, {}, [](const TaskPlace& place) { return std::tuple{place.queue, place.side, place.kind}; });
    }
    return workers;
}

bool leaves_one(const std::vector<WorkerLayout>& workers, const Machine& machine) {
    return std::ranges::any_of(machine.allowed(),
                               [&](unsigned cpu) { return std::ranges::find(workers, cpu, &WorkerLayout::cpu) == workers.end(); });
}

std::variant<Layout, Errors> decide_layout(const LayoutRequest& request, const std::array<io::PortOffer, 2>& offers,
                                           const Machine& machine) {
    Errors errors;
    for (std::size_t i = 0; i < request.cores.size(); ++i) {
        const std::string cpu = "CPU " + std::to_string(request.cores[i]);
        if (machine.find(request.cores[i]) == nullptr) {
            errors.push_back({cpu + " is not available", "cores", "choose among those that `gatemark doctor` lists, or leave cores out"});
        }
        if (std::find(request.cores.begin(), request.cores.begin() + static_cast<std::ptrdiff_t>(i), request.cores[i]) !=
            request.cores.begin() + static_cast<std::ptrdiff_t>(i)) {
            errors.push_back({cpu + " is named twice", "cores", "name each once"});
        }
    }
    const PortNodes nodes{offers[0].numa_node, offers[1].numa_node};
    const PortCpus cpus =
        request.cores.empty() ? choose_cpus(machine, nodes, workers_max(request, offers)) : share_out(machine, nodes, request.cores);
    if (cpus.left.empty()) {
        errors.push_back({"no CPU was found for the workers", "cores", "name one"});
    }
    if (!errors.empty()) {
        return errors;
    }
    std::array<QueueChoice, 2> choices{choose_queues(request.queues[0], offers[0], cpus.left.size()),
                                       choose_queues(request.queues[1], offers[1], cpus.right.size())};
    if (offers[0].joined && offers[1].joined) {
        join(choices, request);
    }
    Layout layout{.queues = {choices[0].queues, choices[1].queues}, .workers = {}, .why = {}};
    layout.workers = lay_out(layout.queues[0], layout.queues[1], cpus);
    for (const Side side : {Side::left, Side::right}) {
        const QueueChoice& choice = choices[static_cast<std::size_t>(side)];
        layout.why.push_back(std::string{name_of(side)} + " port: " + counted(choice.queues, "queue") + ", " + choice.why);
        if (!offers[static_cast<std::size_t>(side)].counts_misses) {
            layout.why.push_back(
                std::string{name_of(side)} +
                " port: the driver does not count frames that find its ring full: they look as if the gateway had lost them");
        }
    }
    if (layout.queues[0] > 1 || layout.queues[1] > 1) {
        layout.why.emplace_back(
            "the order of frames that leave by or arrive on different queues is unknown: reordering is counted within each pair of "
            "queues");
    }
    explain_cpus(layout, request, machine, cpus, nodes);
    return layout;
}

}  // namespace gatemark::trial
