#include "frame/echo_verification.hpp"

#include "frame/gateway_edge.hpp"
#include "frame/header_checks.hpp"

#include <algorithm>
#include <cstring>

namespace gatemark::frame {

namespace {

void check_link_of(std::span<const std::byte> frame, const Echo& echo, EchoKind kind, const FrameValues& values, Faults& faults) noexcept {
    const std::byte* const port_mac = expected_of(echo, kind).frame_template.frame.data() + net::ethernet::destination;
    const auto host_mac = kind == EchoKind::reply         ? echo.stream().host_source_mac(values)
                          : echo.stream().has_host_macs() ? std::optional{echo.stream().expected_destination_mac(values)}
                                                          : std::nullopt;
    check_link(frame.data(), host_mac ? host_mac->data() : port_mac, faults);
    faults.add_if(host_mac && std::memcmp(frame.data() + net::ethernet::source, port_mac, net::mac_bytes) == 0, Fault::source_mac);
}

/// Whether the address at `field` is that of another client, in the clients' own family; it is not
/// that of the client itself.
bool is_other_client(const std::byte* field, const Echo& echo, const EchoPlace& place) noexcept {
    if (const EdgeTraffic* const edges = echo.edges()) {
        return edges->edges().contains(net::load_wide(field));
    }
    if (echo.stream().subscriber_hosts() != nullptr) {
        return false;  // all have the same addresses: the tunnel tells them apart
    }
    const HostSet& clients = echo.clients();
    net::Address address{.family = clients.address.family, .bytes = {}};
    std::copy_n(field, net::address_bytes(address.family), address.bytes.begin());
    const auto value = clients.value_of(address);
    const std::uint64_t client = value ? *value - std::uint64_t{clients.part.minimum} : echo.numbers().shape().clients;
    return client < echo.numbers().shape().clients && client != place.client;
}

/// Whether an identifier is one that another slot of the client has: nearby, because identifiers
/// come again after 65,536 destinations, or when all ports of a set have been used.
bool is_of_other_slot(std::uint16_t identifier, const Echo& echo, const EchoPlace& place, const FrameValues& values) noexcept {
    const EchoShape& shape = echo.numbers().shape();
    const EdgeTraffic* const edges = echo.edges();
    const std::optional<std::uint64_t> number =
        edges == nullptr ? std::optional<std::uint64_t>{identifier} : edges->place_of_port(values.edge(), identifier);
    const std::uint64_t identifiers = edges == nullptr ? 0x1'0000 : edges->port_count(values.edge());
    const std::uint64_t destination = place.destination - place.destination % identifiers + number.value_or(0);
    return number && destination < shape.destinations && destination % shape.window != place.slot;
}

/// Whether an identifier belongs to the port set of another customer edge.
bool is_of_other_edge(std::uint16_t identifier, const Echo& echo, const FrameValues& values) noexcept {
    if (echo.edges() == nullptr) {
        return false;
    }
    const net::MapDomain& map = echo.edges()->edges().domain_of(values.edge()).map;
    const auto psid = map.restricts_ports() ? map.psid_of_port(identifier) : std::nullopt;
    return psid && *psid != map.psid_of(values.edge().ea());
}

/// Adds the second reason of a wrong address at `field`, which should be a customer edge's (RFC
/// 7597 sections 5 and 6).
void note_edge_address(const std::byte* field, net::Family family, const Echo& echo, const FrameValues& values, Fault wrong,
                       Faults& faults) noexcept {
    if (faults.has(wrong) && echo.edges() != nullptr) {
        faults.add(fault_of_edge_address(field, family, echo.edges()->edges().domain_of(values.edge()).map, values.edge().ea(), wrong));
    }
}

void check_addresses(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo, EchoKind kind, const EchoPlace& place,
                     const FrameValues& values, Faults& faults) noexcept {
    const FrameTemplate& expected = expected_of(echo, kind).frame_template;
    const std::byte *const source = frame.data() + arrival.source_address(), *const destination =
                                                                                 frame.data() + arrival.destination_address();
    if (kind == EchoKind::reply) {
        faults.add_if(!expected.source.matches(source, values.destination_host, values.network, values.edge()), Fault::source_address);
        if (!expected.destination.matches(destination, values.source_host, 0, values.edge())) {
            faults.add(Fault::destination_address);
            faults.add_if(is_other_client(destination, echo, place), Fault::wrong_client);
        }
        note_edge_address(destination, arrival.family, echo, values, Fault::destination_address, faults);
        return;
    }
    faults.add_if(!expected.destination.matches(destination, values.destination_host, values.network, values.edge()),
                  Fault::destination_address);
    if (echo.pool() == nullptr) {
        faults.add_if(!expected.source.matches(source, values.source_host, 0, values.edge()), Fault::source_address);
        note_edge_address(source, arrival.family, echo, values, Fault::source_address, faults);
        return;
    }
    const FrameTemplate& sent = echo.sent_request().frame_template;
    if (!echo.stream().as_sent() && sent.layout.family == arrival.family && sent.source.matches(source, values.source_host, 0)) {
        faults.add(Fault::untranslated_source);
    } else {
        const bool is_public = echo.pool()->number_of(source).has_value();
        faults.add_if(!is_public, Fault::source_address);
        if (const GatewayEdge* const edge = echo.gateway_edge(); edge != nullptr && !is_public) {
            faults.add(edge->fault_of_address(source, arrival.family));
        }
    }
}

/// Of a frame that should be in no tunnel, but is.
Fault fault_of_tunnel(const Echo& echo, EchoKind kind) noexcept {
    const Layout& came_in = (kind == EchoKind::request ? echo.sent_request() : echo.sent_reply()).frame_template.layout;
    return came_in.in_tunnel() ? Fault::tunnel_left : Fault::encapsulated;
}

void check_message(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo, EchoKind kind, const EchoPlace& place,
                   const FrameValues& values, Faults& faults) noexcept {
    const EchoFrame& expected = expected_of(echo, kind);
    const std::byte* const message = frame.data() + arrival.udp;
    faults.add_if(arrival.icmp_type != expected.type || arrival.icmp_code != 0, Fault::icmp_type);
    const auto identifier = load_big_endian<std::uint16_t>(message + net::icmp::identifier);
    if (identifier != echo.identifier_of(place, values) && (kind == EchoKind::reply || echo.pool() == nullptr)) {
        faults.add(Fault::identifier);
        faults.add_if(is_of_other_slot(identifier, echo, place, values), Fault::wrong_slot);
        faults.add_if(is_of_other_edge(identifier, echo, values), Fault::other_edge_port);
    }
    const GatewayEdge* const edge = kind == EchoKind::request ? echo.gateway_edge() : nullptr;
    if (edge != nullptr && !edge->has_identifier(identifier)) {
        faults.add(Fault::identifier);
        faults.add(Fault::outside_port_set);
    }
    faults.add_if(load_big_endian<std::uint16_t>(message + net::icmp::sequence) != place.sequence(), Fault::sequence);
    const FrameTemplate& frame_template = expected.frame_template;
    const Layout& layout = frame_template.layout;
    const std::size_t bytes = layout.udp_bytes(), end = arrival.udp + bytes;
    if (end > frame.size()) {
        faults.add(Fault::length);
        return;
    }
    Sum sum = sum_of(frame.subspan(arrival.udp, bytes));
    if (arrival.family == net::Family::ipv6) {
        sum += sum_of(frame.subspan(arrival.source_address(), 32)) + swap_bytes(static_cast<std::uint16_t>(bytes)) +
               swap_bytes(std::uint16_t{net::protocol_icmpv6});
    }
    faults.add_if(fold(sum) != 0xffff && !faults.has(Fault::length), Fault::icmp_checksum);  // of another length it covers other octets
    const std::size_t rest = layout.end - layout.payload - signature::bytes;
    faults.add_if(std::memcmp(frame.data() + arrival.payload + signature::bytes,
                              frame_template.frame.data() + layout.payload + signature::bytes, rest) != 0,
                  Fault::payload);
}

}  // namespace

Faults verify_echo(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo, EchoKind kind,
                   const EchoPlace& place) noexcept {
    const EchoFrame& expected = expected_of(echo, kind);
    const Layout& layout = expected.frame_template.layout;
    const FrameValues values = echo.values_of(place);
    Faults faults;
    check_link_of(frame, echo, kind, values, faults);
    if (arrival.misplaced) {
        faults.add(arrival.payload > layout.payload ? Fault::encapsulated : Fault::headers);
        return faults;
    }
    if (arrival.in_tunnel() != layout.in_tunnel()) {
        faults.add(arrival.in_tunnel() ? fault_of_tunnel(echo, kind) : Fault::tunnel_missing);
        return faults;
    }
    if (arrival.in_tunnel()) {
        const FrameValues ends = kind == EchoKind::reply ? turned_round(values) : values;
        const ExpectedOuter outer{expected.frame_template, echo.stream().expected_mark(values).traffic_class, kind == EchoKind::request};
        check_outer(frame, arrival, echo.stream(), outer, ends, faults);
    }
    faults.add_if(arrival.vlan_id != (kind == EchoKind::request ? echo.stream().expected_vlan() : echo.client_vlan()), Fault::vlan);
    if (arrival.family != layout.family) {
        faults.add(Fault::family);
        faults.add_if(arrival.fragmented, Fault::fragment);
    } else {
        check_extension_headers(frame.data() + arrival.ip, arrival, expected.frame_template, false, faults);
        const Mark mark = echo.stream().expected_mark(values);
        check_ip(frame.data() + arrival.ip, arrival,
                 {.layout = layout,
                  .hop_limit = expected.hop_limit,
                  .mark = mark,
                  .may_be_labelled = echo.stream().may_be_labelled(mark),
                  .dont_fragment = expected.dont_fragment,
                  .identification_kept = echo.stream().identification_kept()},
                 faults);
        check_addresses(frame, arrival, echo, kind, place, values, faults);
    }
    check_message(frame, arrival, echo, kind, place, values, faults);
    return faults;
}

std::optional<PublicSource> public_source(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo) noexcept {
    if (arrival.misplaced || echo.pool() == nullptr || arrival.family != echo.pool()->family()) {
        return std::nullopt;
    }
    const auto address = echo.pool()->number_of(frame.data() + arrival.source_address());
    return address
               ? std::optional{PublicSource{
                     .address = *address, .identifier = load_big_endian<std::uint16_t>(frame.data() + arrival.udp + net::icmp::identifier)}}
               : std::nullopt;
}

bool came_back(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo, EchoKind kind) noexcept {
    const EchoFrame& sent = kind == EchoKind::reply ? echo.sent_request() : echo.sent_reply();
    return !arrival.misplaced && arrival.family == sent.frame_template.layout.family && arrival.icmp_type == sent.type &&
           sent.frame_template.source.contains(frame.data() + arrival.source_address());
}

bool goes_between_echo_hosts(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo, EchoKind kind) noexcept {
    const EchoFrame& expected = expected_of(echo, kind);
    const FrameTemplate& frame_template = expected.frame_template;
    if (!arrival.is_icmp || arrival.misplaced || arrival.family != frame_template.layout.family || arrival.icmp_type != expected.type) {
        return false;
    }
    const std::byte *const source = frame.data() + arrival.source_address(), *const destination =
                                                                                 frame.data() + arrival.destination_address();
    const bool is_from_us = kind == EchoKind::request && echo.pool() != nullptr ? echo.pool()->number_of(source).has_value()
                                                                                : frame_template.source.contains(source);
    return is_from_us && frame_template.destination.contains(destination);
}

}  // namespace gatemark::frame
