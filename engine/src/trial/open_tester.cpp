#include "base/available_memory.hpp"
#include "trial/tester_parts.hpp"

#include <sched.h>

#include <algorithm>

namespace gatemark::trial {

namespace {

const SideRequest& side_of(const OpenRequest& request, Side side) { return side == Side::left ? request.left : request.right; }

std::optional<io::PortOptions> port_options(const OpenRequest& request, Side side, Errors& errors) {
    const SideRequest& wanted = side_of(request, side);
    const std::string where = name_of(side);
    auto name = io::parse_port_name(wanted.port);
    if (const Error* error = error_of(name)) {
        errors.push_back({error->what, where + ".port", error->fix});
        return std::nullopt;
    }
    if (wanted.ring_frames < 16 || wanted.ring_frames > 65536) {
        errors.push_back({"a ring of " + std::to_string(wanted.ring_frames) + " frames", where + ".ring_frames", "choose 16 to 65536"});
    }
    if (wanted.mtu < 576 || wanted.mtu > 9500) {
        errors.push_back({"an MTU of " + std::to_string(wanted.mtu), where + ".mtu", "choose 576 to 9500"});
    }
    return io::PortOptions{
        .side = where, .name = std::get<io::PortName>(std::move(name)), .ring_frames = wanted.ring_frames, .mtu = wanted.mtu};
}

using Ports = std::vector<io::DpdkPort>;

Ports open_ports(const io::PortOptions& left, const io::PortOptions& right, Errors& errors) {
    Ports ports;
    const bool left_ring = left.name.kind == io::PortKind::ring, right_ring = right.name.kind == io::PortKind::ring;
    if (left_ring != right_ring) {
        errors.push_back({"one port is a ring, the other is not", left_ring ? "right.port" : "left.port",
                          "rings come in pairs: make both sides `ring`"});
        return ports;
    }
    if (left_ring) {
        auto pair = io::open_ring_pair(left, right);
        if (const Error* error = error_of(pair)) {
            errors.push_back(*error);
        } else {
            auto& opened = std::get<std::pair<io::DpdkPort, io::DpdkPort>>(pair);
            ports.push_back(std::move(opened.first));
            ports.push_back(std::move(opened.second));
        }
        return ports;
    }
    for (const io::PortOptions* options : {&left, &right}) {
        auto port = io::open_port(*options);
        if (const Error* error = error_of(port)) {
            errors.push_back(*error);
        } else {
            ports.push_back(std::get<io::DpdkPort>(std::move(port)));
        }
    }
    return ports;
}

/// All hosts that a side answers for.
std::vector<frame::AnsweredHosts> answered_hosts(const OpenRequest& request, Side side, Errors& errors) {
    const SideRequest& wanted = side_of(request, side);
    std::vector<frame::AnsweredHosts> hosts(wanted.answer_for.begin(), wanted.answer_for.end());
    const std::string where = std::string{name_of(side)} + ".answer_for";
    for (const frame::EdgesRequest& edges_request : wanted.answer_for_edges) {
        auto edges = frame::CustomerEdges::make(edges_request, request.seed, where);
        if (const auto* problems = std::get_if<Errors>(&edges)) {
            errors.insert(errors.end(), problems->begin(), problems->end());
        } else {
            hosts.emplace_back(std::make_shared<const frame::CustomerEdges>(std::get<frame::CustomerEdges>(std::move(edges))));
        }
    }
    if (!wanted.answer_for_edges.empty() && wanted.random_host_macs) {
        errors.push_back({"customer edges have the link-layer address of the port", where, "send host_macs fixed"});
    }
    return hosts;
}

/// Pools, queues and the neighbour responder of one side; `other_port` is the other one's address.
void equip(TesterSide& side, const SideRequest& request, std::vector<frame::AnsweredHosts> hosts, const net::HostMacs& host_macs,
           const net::MacAddress& other_port, Errors& errors) {
    side.link = {.own_mac = side.port.facts().mac,
                 .vlan_id = request.vlan_id,
                 .host_macs = request.random_host_macs ? std::optional{host_macs} : std::nullopt};
    side.gateway_mac = request.gateway_mac;
    side.teach_hosts = request.teach_hosts;
    std::vector<loop::NeighborMailbox*> mailboxes;
    for (unsigned queue = 0; queue < side.port.options().queues; ++queue) {
        QueuePair& pair = side.queues.emplace_back();
        for (std::size_t slot = 0; slot < slot_count; ++slot) {
            auto pool =
                io::FramePool::create(side.port, std::string{side.port.options().side} + std::to_string(queue) + "-" + std::to_string(slot),
                                      slot < slot_arp ? io::frame_bytes_max(request.mtu) : loop::neighbor_frame_bytes_max);
            if (const Error* error = error_of(pool)) {
                errors.push_back(*error);
                return;
            }
            pair.pools.push_back(std::get<io::FramePool>(std::move(pool)));
        }
        const bool with_vlan = request.vlan_id.has_value();
        pair.pools[slot_arp].set_template(std::vector<std::byte>(loop::neighbor_frame_bytes(net::Family::ipv4, with_vlan)));
        pair.pools[slot_discovery].set_template(std::vector<std::byte>(loop::neighbor_frame_bytes(net::Family::ipv6, with_vlan)));
        pair.transmit = std::make_unique<io::TransmitQueue>(side.port, queue, pair.pools);
        pair.receive = std::make_unique<io::ReceiveQueue>(side.port, queue);
        pair.mailbox = std::make_unique<loop::NeighborMailbox>();
        pair.idle_receiver = std::make_unique<IdleReceiver>(
            loop::ReceiverPlan{.trial_id = 0, .directions = {}, .kept_frames_max = 0, .sources = {.gateway = {}, .other_port = other_port}},
            *pair.receive, *pair.mailbox);
        mailboxes.push_back(pair.mailbox.get());
    }
    side.responder = std::make_unique<Responder>(side.link, std::move(hosts), *side.queues[0].transmit, std::move(mailboxes),
                                                 Responder::Slots{.arp = slot_arp, .discovery = slot_discovery});
}

/// Refuses ports whose buffers do not fit into memory, where they will not be in huge pages.
std::optional<Error> check_buffers(std::size_t memory_mib, bool huge_pages_allowed) {
    const std::size_t huge_mib = huge_pages_allowed ? io::free_huge_pages_mib() : 0;
    if (huge_mib >= memory_mib) {
        return std::nullopt;
    }
    return check_memory(std::uint64_t{memory_mib} << 20, "the buffers of the ports", "memory",
                        "free memory or raise that limit; reserve huge pages, of which " + std::to_string(huge_mib) +
                            " MiB may be used; or choose fewer queues, smaller rings or a smaller MTU");
}

void start_workers(TesterParts& parts, Precedence precedence, Errors& errors) {
    for (const WorkerLayout& worker : parts.layout.workers) {
        TaskList& list = parts.idle_lists.emplace_back();
        for (const TaskPlace& place : worker.tasks) {
            TesterSide& side = parts.side(place.side);
            if (place.kind == TaskKind::receive) {
                list.tasks.push_back(side.queues[place.queue].idle_receiver.get());
            } else if (place.queue == 0) {
                list.tasks.push_back(side.responder.get());
            }
        }
    }
    for (std::size_t i = 0; i < parts.layout.workers.size(); ++i) {
        const unsigned cpu = parts.layout.workers[i].cpu;
        parts.workers.push_back(std::make_unique<Worker>(cpu, precedence, parts.idle_lists[i]));
        if (!parts.workers.back()->pinned()) {
            errors.push_back(
                {"a worker could not be pinned to CPU " + std::to_string(cpu), "cores", "choose a CPU that this process may use"});
        }
    }
}

/// Keeps this thread, and the threads that DPDK and trials start from now on, on the CPUs that are
/// left. A thread that wakes up on the CPU of a real-time worker waits a second for 50 ms of it
/// (Linux 6.18), and delays the end of the trial.
void leave_to_workers(const std::vector<WorkerLayout>& workers, const Machine& machine) {
    cpu_set_t left;
    CPU_ZERO(&left);
    for (const unsigned cpu : machine.allowed()) {
        if (std::ranges::find(workers, cpu, &WorkerLayout::cpu) == workers.end()) {
            CPU_SET(cpu, &left);
        }
    }
    if (CPU_COUNT(&left) != 0) {
        (void)sched_setaffinity(0, sizeof left, &left);
    }
}

}  // namespace

std::variant<Layout, Errors> preview_layout(const LayoutRequest& request, const Machine& machine) {
    Errors errors;
    std::array<io::PortOffer, 2> offers;
    for (const Side side : {Side::left, Side::right}) {
        const auto i = static_cast<std::size_t>(side);
        const auto name = io::parse_port_name(request.ports[i]);
        if (const Error* error = error_of(name)) {
            errors.push_back({error->what, std::string{name_of(side)} + ".port", error->fix});
        } else {
            offers[i] = io::offer_of(std::get<io::PortName>(name));
        }
    }
    if (!errors.empty()) {
        return errors;
    }
    return decide_layout(request, offers, machine);
}

std::variant<std::unique_ptr<Tester>, Errors> Tester::open(const OpenRequest& request, const Machine& machine,
                                                           std::uint64_t ticks_per_second) {
    Errors errors;
    auto left = port_options(request, Side::left, errors), right = port_options(request, Side::right, errors);
    std::array hosts{answered_hosts(request, Side::left, errors), answered_hosts(request, Side::right, errors)};
    if (!errors.empty()) {
        return errors;
    }
    const LayoutRequest layout_request{
        .ports = {request.left.port, request.right.port}, .queues = {request.left.queues, request.right.queues}, .cores = request.cores};
    std::array<io::PortOffer, 2> offers{io::offer_of(left->name), io::offer_of(right->name)};
    auto decided = decide_layout(layout_request, offers, machine);
    if (auto* problems = std::get_if<Errors>(&decided)) {
        return std::move(*problems);
    }
    const auto take_queues = [&] {
        left->queues = std::get<Layout>(decided).queues[0];
        right->queues = std::get<Layout>(decided).queues[1];
    };
    take_queues();
    leave_to_workers(std::get<Layout>(decided).workers, machine);
    const std::size_t memory_mib = io::memory_needed_mib(
        {*left, *right}, {.largest = slot_arp, .small = slot_count - slot_arp, .small_bytes = loop::neighbor_frame_bytes_max});
    if (auto error = check_buffers(memory_mib, request.huge_pages_allowed)) {
        return Errors{std::move(*error)};
    }
    auto environment = io::DpdkEnvironment::start({.pci_addresses = io::pci_addresses({left->name, right->name}),
                                                   .huge_pages_allowed = request.huge_pages_allowed,
                                                   .memory_mib = memory_mib});
    if (const Error* error = error_of(environment)) {
        return Errors{*error};
    }
    // The drivers may offer less than expected but never more, so the memory requested is enough.
    offers = {io::with_driver_limits(left->name, offers[0]), io::with_driver_limits(right->name, offers[1])};
    decided = decide_layout(layout_request, offers, machine);
    take_queues();
    auto parts = std::make_unique<TesterParts>(std::get<io::DpdkEnvironment>(std::move(environment)), ticks_per_second);
    parts->layout = std::get<Layout>(std::move(decided));
    Ports ports = open_ports(*left, *right, errors);
    if (!errors.empty()) {
        return errors;
    }
    const std::array macs{ports[0].facts().mac, ports[1].facts().mac};
    for (std::size_t i = 0; i < 2; ++i) {
        parts->sides[i] = std::make_unique<TesterSide>(std::move(ports[i]));
        const auto side = static_cast<Side>(i);
        equip(*parts->sides[i], side_of(request, side), std::move(hosts[i]), host_macs_of(side, request.seed), macs[1 - i], errors);
    }
    if (errors.empty()) {
        const Precedence precedence = leaves_one(parts->layout.workers, machine) ? Precedence::alone : Precedence::shared;
        if (precedence == Precedence::shared) {  // else the thread that ends a phase wakes up after the workers that wait for it
            prefer_this_thread(precedence);
        }
        start_workers(*parts, precedence, errors);
    }
    if (!errors.empty()) {
        return errors;
    }
    return std::unique_ptr<Tester>{new Tester{std::move(parts)}};
}

}  // namespace gatemark::trial
