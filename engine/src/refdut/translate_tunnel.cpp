#include "refdut/translate.hpp"

/// Gateways whose inside has IPv4 in IPv6 (RFC 2473) where their outside has IPv4.
namespace gatemark::refdut {

namespace {

/// By whom a packet is sent follows from its port only in UDP datagrams and echo messages.
bool has_ports(const View& view) noexcept { return (view.udp || view.echo != EchoMessage::none) && !view.source_route; }

}  // namespace

bool Translator::is_relay(const Packet& packet, const View& view) const noexcept {
    const auto& relay = config_.tunnel.relay;
    return relay && relay->family == view.family && address_at(packet, view.destination(), view.family) == relay->bytes;
}

OuterHeader Translator::outer_header(const Packet& packet, const View& inner, const AddressBytes& destination) const noexcept {
    return {.source = config_.tunnel.relay->bytes,
            .destination = destination,
            .hop_limit = config_.tunnel.hop_limit,
            .traffic_class = config_.tunnel.traffic_class.value_or(traffic_class_of(packet, inner))};
}

Drop Translator::end_tunnel(Packet& packet, const View& outer, Notes& notes) noexcept {
    if (!outer.carries_packet()) {  // fragments, extension headers, or nothing for a customer
        return Drop::unsupported;
    }
    View inner;
    if (const Drop drop = read_carried(packet, outer, inner); drop != Drop::none) {
        return drop;
    }
    notes.udp = inner.udp;
    notes.echo = inner.echo;
    if (stays_on_link(packet, inner) || is_own(packet, inner)) {
        return Drop::not_for_us;
    }
    if (hop_limit_of(packet, inner) <= config_.hop_limit_decrement) {
        return Drop::hop_limit;
    }
    if (!has_ports(inner)) {
        return Drop::unsupported;
    }
    const Endpoints ends = endpoints_of(packet, inner);
    notes.outer = outer_header_of(packet, outer);
    if (const Drop drop = check_softwire(notes.outer.source, inner, ends, notes); drop != Drop::none) {
        return drop;
    }
    notes.tunnel = Tunnel::left;
    if (rules_.of_ipv4(ends.destination) == nullptr) {
        lower_hop_limit(packet, inner, config_.hop_limit_decrement);
        decapsulate(packet, outer, inner);
        return Drop::none;
    }
    AddressBytes end;  // of another customer
    if (const Drop drop = find_softwire(inner, ends, end, notes); drop != Drop::none) {
        return drop;
    }
    lower_hop_limit(packet, inner, config_.hop_limit_decrement);
    notes.tunnel = Tunnel::entered;
    notes.hairpinned = true;
    notes.outer = outer_header(packet, inner, end);
    write_outer_header(packet, outer, notes.outer);
    return Drop::none;
}

Drop Translator::pass_tunnels(Side from, Packet& packet, const View& view, Notes& notes) noexcept {
    if (view.family == config_.tunnel.relay->family) {  // background, but no tunnel to anybody else
        return view.protocol == protocol_ipv4 ? Drop::no_mapping : route(packet, view);
    }
    return from == config_.inside ? Drop::no_mapping : enter_tunnel(packet, view, notes);
}

Drop Translator::enter_tunnel(Packet& packet, const View& view, Notes& notes) noexcept {
    if (!has_ports(view)) {
        return Drop::unsupported;
    }
    AddressBytes end;
    if (const Drop drop = find_softwire(view, endpoints_of(packet, view), end, notes); drop != Drop::none) {
        return drop;
    }
    notes.outer = outer_header(packet, view, end);
    lower_hop_limit(packet, view, config_.hop_limit_decrement);
    if (!encapsulate(packet, view, notes.outer)) {
        return Drop::unsupported;
    }
    notes.tunnel = Tunnel::entered;
    return Drop::none;
}

}  // namespace gatemark::refdut
