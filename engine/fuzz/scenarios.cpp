#include "fuzz/scenarios.hpp"

#include "loop/neighbor_messages.hpp"

#include <stdexcept>

namespace gatemark::fuzz {

namespace {

using frame::Role;
using frame::signature::Direction, frame::signature::TrafficClass;
using test::Gateway;

constexpr std::uint64_t connection_count = 24;
constexpr std::size_t jumbo_octets = 9018;
enum class Frames : std::uint8_t { usual, special };

Scenario stateless(Gateway forward, Gateway reverse, Gateway background, std::size_t frame_octets, const test::Vlans& vlans = {}) {
    Scenario scenario;
    scenario.mix = {1, 2};
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        auto& streams = scenario.streams[static_cast<std::size_t>(direction)];
        const Gateway foreground = direction == Direction::forward ? forward : reverse;
        streams[0] = test::make_stream(test::request_for(foreground, frame_octets), vlans, TrafficClass::foreground, direction);
        streams[1] = test::make_stream(test::request_for(background, frame_octets), vlans, TrafficClass::background, direction);
    }
    return scenario;
}

/// The forward direction arrives here; the reverse one was sent here.
Scenario one_way(const frame::StreamRequest& request, Gateway reverse) {
    Scenario scenario;
    scenario.streams[0][0] = test::make_stream(request);
    scenario.streams[1][0] = test::make_stream(test::request_for(reverse), {}, TrafficClass::foreground, Direction::reverse);
    scenario.arrives_here[1] = false;
    return scenario;
}

/// Nothing is drawn: values in turn, one host to many networks, a tag of the frame's own length.
Scenario in_turn() {
    frame::StreamRequest request = test::request_for(Gateway::router44, 64);
    request.source_ports.mode = frame::ValueMode::increasing;
    request.destination_ports.mode = frame::ValueMode::decreasing;
    request.destination = test::varying_host("198.19.0.2", 2, frame::ValueMode::fixed, 2, 2, 256);
    request.source = test::fixed_host("198.18.0.2");
    request.marking.traffic_classes = {0xb8};
    request.dont_fragment = true;
    return one_way(request, Gateway::router66);
}

/// A translator that writes 0x0000 where 0xffff is due, and DF as RFC 6145 has it; an explicit
/// mapping makes its addresses a table.
Scenario known_faults() {
    frame::StreamRequest request = test::request_for(Gateway::siit64, 128);
    request.source = test::varying_host("2001:2::", 14, frame::ValueMode::pseudorandom, 2, 254);
    request.mapping = test::mapping_of(std::string{test::prefix_96} + "/96", {{"198.18.0.0/24", "2001:2::/120"}});
    request.zero_checksum_for_ones = true;
    request.dont_fragment_rule = frame::DontFragmentRule::rfc6145;
    return one_way(request, Gateway::siit46);
}

/// Without checksums, and a link-layer address for each host: a router in one direction, a
/// translator that must compute them in the other.
Scenario special() {
    Scenario scenario;
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        frame::StreamRequest request = test::request_for(direction == Direction::forward ? Gateway::router44 : Gateway::siit46, 100);
        request.without_checksum = true;
        scenario.streams[static_cast<std::size_t>(direction)][0] =
            test::make_stream(request, {}, TrafficClass::foreground, direction, test::seed);
    }
    return scenario;
}

/// Classes and labels of flows; extension headers, and one router that may label flows.
Scenario marks_and_extension_headers() {
    frame::StreamRequest request = test::request_for(Gateway::router66, 200);
    using enum frame::ExtensionHeader;
    request.extension_headers = {hop_by_hop, routing, destination_options, fragment};
    request.marking = {.traffic_classes = {0, 0x28, 0xb9}, .labels_flows = true};
    frame::StreamRequest unlabelled = test::request_for(Gateway::router66, 132);
    unlabelled.extension_headers = {routing, destination_options, fragment};
    unlabelled.marking = {.traffic_classes = {0x02}};
    Scenario scenario;
    scenario.streams[0][0] = test::make_stream(request);
    scenario.streams[1][0] = test::make_stream(unlabelled, {}, TrafficClass::foreground, Direction::reverse);
    return scenario;
}

/// Customer edges on one side, in three domains of different forms, each with its own prefix for
/// hosts outside; native IPv6 beside them.
Scenario customer_edges(frame::EdgeChoice choice) {
    frame::EdgesRequest edges{.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6),
                                          test::edge_domain("2001:db8:8000::/51", "198.51.100.0/24", 20, 0),
                                          test::edge_domain("2001:db8:a0::/44", "10.0.0.0/20", 8, 4)},
                              .count = 50,
                              .choice = choice};
    edges.domains[1].rule.dmr = *net::parse_prefix("64:ff9b::/96");
    edges.domains[2].weight = 2;
    Scenario scenario;
    scenario.mix = {1, 2};
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        auto& streams = scenario.streams[static_cast<std::size_t>(direction)];
        const auto ports = choice == frame::EdgeChoice::cycle ? frame::ValueMode::increasing : frame::ValueMode::pseudorandom;
        streams[0] = test::make_stream(test::edges_request(edges, direction, ports), {}, TrafficClass::foreground, direction);
        streams[1] = test::make_stream(test::request_for(Gateway::router66), {}, TrafficClass::background, direction);
    }
    return scenario;
}

/// One domain, whose edges are computed a burst at a time; without checksums from IPv4.
Scenario edges_of_one_domain() {
    const frame::EdgesRequest edges{.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)}, .count = 1000};
    Scenario scenario;
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        frame::StreamRequest request = test::edges_request(edges, direction);
        request.without_checksum = direction == Direction::reverse;
        request.dont_fragment_rule = frame::DontFragmentRule::rfc6145;
        request.zero_checksum_for_ones = true;
        scenario.streams[static_cast<std::size_t>(direction)][0] = test::make_stream(request, {}, TrafficClass::foreground, direction);
    }
    return scenario;
}

/// Through tunnels: customer edges, with a class for each flow, and hosts of 6rd.
Scenario tunnels_to_edges() {
    const frame::EdgesRequest edges{.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)}, .count = 1000};
    Scenario scenario;
    scenario.mix = {1, 2};
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        frame::StreamRequest request = test::map_e_request(edges, direction, 100);
        request.marking.traffic_classes = {0, 0xb8};
        auto& streams = scenario.streams[static_cast<std::size_t>(direction)];
        streams[0] = test::make_stream(request, {}, TrafficClass::foreground, direction);
        streams[1] = test::make_stream(test::request_for(Gateway::router66), {}, TrafficClass::background, direction);
    }
    return scenario;
}
Scenario tunnels_to_hosts() {
    Scenario scenario;
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        const bool forward = direction == Direction::forward;
        frame::StreamRequest request = test::request_for(Gateway::router66, forward ? 120 : 100);
        (forward ? request.source : request.destination) =
            test::varying_host("2001:db8:c612::1", 6, frame::ValueMode::pseudorandom, 2, 60000);
        (forward ? request.source_tunnel : request.destination_tunnel) =
            frame::TunnelRequest{.gateway = test::address_of("198.18.0.1"),
                                 .subscribers = test::varying_host("198.18.0.0", 2, frame::ValueMode::pseudorandom, 2, 60000)};
        scenario.streams[static_cast<std::size_t>(direction)][0] = test::make_stream(request, {}, TrafficClass::foreground, direction);
    }
    return scenario;
}

struct Nat {
    const char* inside;
    const char* outside;
    const char* pool;
    unsigned pool_bits;
};
constexpr std::array<Nat, 4> nats{{{"10.0.0.0", "198.19.0.0", "203.0.113.8", 30},
                                   {"2001:2::", "198.19.0.0", "203.0.113.8", 30},
                                   {"2001:2::", "2001:2:0:8000::", "2001:2:0:8000::9:8", 126},
                                   {"10.0.0.0", "64:ff9b::c613:0", "2001:2:0:8000::9:8", 126}}};

frame::HostSet hosts(const char* address, std::uint16_t maximum) {
    const bool ipv4 = test::address_of(address).family == net::Family::ipv4;
    return test::varying_host(address, ipv4 ? 2 : 14, frame::ValueMode::pseudorandom, 2, maximum);
}

/// 4 hosts x 3 source ports to 2 hosts x 2 ports: 48 four-tuples, of which half are connections.
frame::Stream stream_of(const Nat& nat, Role role, bool zero_checksum_for_ones, Frames frames) {
    const bool initiator = role == Role::initiator;
    const frame::ValueRange inner{frame::ValueMode::pseudorandom, 5000, 5002}, outer{frame::ValueMode::pseudorandom, 80, 81};
    frame::StreamRequest request;
    request.frame_octets = 128;
    request.source = initiator ? hosts(nat.inside, 5) : hosts(nat.outside, 3);
    request.destination = initiator ? hosts(nat.outside, 3) : hosts(nat.inside, 5);
    request.source_ports = initiator ? inner : outer;
    request.destination_ports = initiator ? outer : inner;
    request.zero_checksum_for_ones = zero_checksum_for_ones;
    if (request.source.address.family != request.destination.address.family) {
        request.mapping = test::mapping_of(std::string{test::prefix_96} + "/96");
        request.dont_fragment_rule = frame::DontFragmentRule::rfc7915;
        request.hop_limit_decrement = 3;
    }
    const enumerate::TupleRanges ranges{
        .source_ports = {5000, 3}, .destination_ports = {80, 2}, .source_hosts = {2, 4}, .destination_hosts = {2, 2}};
    request.connections = frame::ConnectionTraffic{.role = role,
                                                   .set = {ranges, enumerate::Order::pseudorandom, connection_count, test::seed},
                                                   .choice = enumerate::ConnectionChoice::Mode::pseudorandom};
    request.without_checksum = frames == Frames::special && request.source.address.family == net::Family::ipv4;
    return test::make_stream(request, {}, TrafficClass::foreground, initiator ? Direction::forward : Direction::reverse,
                             frames == Frames::special ? std::optional{test::seed} : std::nullopt);
}

Scenario stateful(const Nat& nat, state::Phase phase, Role arriving, Frames frames = Frames::usual) {
    const auto address = test::address_of(nat.pool);
    auto pool = net::AddressPool::make({{address, nat.pool_bits}}, "pool");
    Scenario scenario;
    scenario.streams[0][0] = stream_of(nat, Role::initiator, phase == state::Phase::use, frames);
    scenario.streams[1][0] = stream_of(nat, Role::responder, false, frames);
    scenario.arrives_here = {arriving == Role::initiator, arriving == Role::responder};
    scenario.pool = std::get<net::AddressPool>(std::move(pool));
    scenario.connections = connection_count;
    scenario.phase = phase;
    return scenario;
}

/// The gateway is a customer edge whose ports are 39,936 to 40,959.
Scenario gateway_edge(state::Phase phase, Role arriving) {
    const net::MapRule rule{.ipv6 = *net::parse_prefix("2001:db8:12:3400::/56"),
                            .ipv4 = *net::parse_prefix("192.0.2.18/32"),
                            .psid_offset = 0,
                            .psid_bits = 6,
                            .psid = 39,
                            .dmr = *net::parse_prefix("64:ff9b::/96")};
    auto edge = frame::GatewayEdge::make(rule, 0, "edge");
    Scenario scenario = stateful({"10.0.0.0", "64:ff9b::c613:0", "2001:db8:12:3400:0:c000:212:27", 128}, phase, arriving);
    scenario.edge = std::get<frame::GatewayEdge>(std::move(edge));
    return scenario;
}

/// Subscribers of an AFTR share one address, or two of which no byte is that of the subscriber.
Scenario subscribers_share(const frame::HostSet& shared, state::Phase phase, Role arriving) {
    const frame::HostSet subscribers = test::varying_host("2001:db8:0:1::", 14, frame::ValueMode::pseudorandom, 2, 5);
    Scenario scenario = stateful(nats[0], phase, arriving);
    for (const auto& [role, direction] : {std::pair{Role::initiator, Direction::forward}, {Role::responder, Direction::reverse}}) {
        scenario.streams[static_cast<std::size_t>(direction)][0] = test::make_stream(
            test::aftr_request(role, subscribers, shared, connection_count, enumerate::ConnectionChoice::Mode::pseudorandom), {},
            TrafficClass::foreground, direction);
    }
    return scenario;
}

std::vector<Scenario> all() {
    std::vector<Scenario> list;
    list.push_back(stateless(Gateway::router44, Gateway::router66, Gateway::router66, 84));
    list.push_back(stateless(Gateway::siit64, Gateway::siit46, Gateway::router66, 120, {.sent = 200, .received = 100}));
    list.push_back(stateless(Gateway::siit46, Gateway::siit64, Gateway::router44, 1300));
    list.push_back(in_turn());
    list.push_back(known_faults());
    for (const Nat& nat : nats) {
        list.push_back(stateful(nat, state::Phase::establish, Role::initiator));
        list.push_back(stateful(nat, state::Phase::use, Role::initiator));
        list.push_back(stateful(nat, state::Phase::use, Role::responder));
    }
    list.push_back(special());
    list.push_back(stateful(nats[0], state::Phase::establish, Role::initiator, Frames::special));
    list.push_back(stateful(nats[0], state::Phase::use, Role::responder, Frames::special));
    list.push_back(customer_edges(frame::EdgeChoice::cycle));
    list.push_back(customer_edges(frame::EdgeChoice::pseudorandom));
    list.push_back(edges_of_one_domain());
    list.push_back(gateway_edge(state::Phase::establish, Role::initiator));
    list.push_back(gateway_edge(state::Phase::use, Role::initiator));
    list.push_back(stateless(Gateway::siit46, Gateway::router66, Gateway::router44, jumbo_octets));
    list.push_back(marks_and_extension_headers());
    list.push_back(tunnels_to_edges());
    list.push_back(tunnels_to_hosts());
    list.push_back(subscribers_share(test::fixed_host("10.0.0.1"), state::Phase::establish, Role::initiator));
    list.push_back(subscribers_share(test::fixed_host("10.0.0.1"), state::Phase::use, Role::responder));
    list.push_back(subscribers_share(hosts("10.0.0.0", 3), state::Phase::use, Role::initiator));
    list.push_back(subscribers_share(hosts("10.0.0.0", 3), state::Phase::use, Role::responder));
    return list;
}

}  // namespace

const std::vector<Scenario>& scenarios() {
    static const std::vector<Scenario> list = all();
    return list;
}

test::Bytes neighbor_message(bool is_question, net::Family family) {
    const loop::NeighborLink link{.own_mac = *net::parse_mac("02:00:00:00:00:02"), .vlan_id = std::nullopt};
    const net::Address target = test::address_of(family == net::Family::ipv4 ? "198.18.0.1" : "2001:2::1");
    const loop::NeighborFrame message =
        is_question ? loop::write_question(link, target, target) : loop::write_answer(link, {target, target, link.own_mac});
    return {message.data.begin(), message.data.begin() + static_cast<std::ptrdiff_t>(message.bytes)};
}

}  // namespace gatemark::fuzz
