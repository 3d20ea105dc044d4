#include "refdut/headers.hpp"

#include "refdut/address.hpp"
#include "refdut/checksum.hpp"

namespace gatemark::refdut {

namespace {

std::uint8_t byte(const Packet& packet, std::size_t at) noexcept { return std::to_integer<std::uint8_t>(packet.begin[at]); }

/// Looks for a loose or strict source route that is not used up (RFC 791 section 3.1, RFC 7915
/// section 4.1).
bool has_source_route(const Packet& packet, std::size_t at, std::size_t end) noexcept {
    constexpr std::uint8_t end_of_options = 0, no_operation = 1, loose = 131, strict = 137;
    while (at < end && byte(packet, at) != end_of_options) {
        const std::uint8_t kind = byte(packet, at);
        if (kind == no_operation) {
            ++at;
            continue;
        }
        const std::size_t length = at + 1 < end ? byte(packet, at + 1) : 0;
        if (length < 2 || at + length > end) {
            return false;
        }
        if ((kind == loose || kind == strict) && length >= 3 && byte(packet, at + 2) <= length) {
            return true;
        }
        at += length;
    }
    return false;
}

void read_udp(const Packet& packet, View& view) noexcept {
    if (view.protocol != protocol_udp || view.fragment || view.upper + udp_bytes > view.end()) {
        return;
    }
    const std::size_t length = load_big_endian<std::uint16_t>(packet.at(view.upper + udp_at::length));
    view.udp = length >= udp_bytes && view.upper + length <= view.end();
}

void read_echo(const Packet& packet, View& view) noexcept {
    const std::uint8_t protocol = view.family == net::Family::ipv4 ? protocol_icmp : protocol_icmpv6;
    if (view.protocol != protocol || view.fragment || view.upper + icmp_bytes > view.end() || byte(packet, view.upper + 1) != 0) {
        return;
    }
    for (const EchoMessage message : {EchoMessage::request, EchoMessage::reply}) {
        if (byte(packet, view.upper) == type_of(message, view.family)) {
            view.echo = message;
        }
    }
}

Drop read_ipv4(const Packet& packet, View& view) noexcept {
    if (view.ip + ipv4_bytes > packet.bytes) {
        return Drop::truncated;
    }
    if (byte(packet, view.ip) >> 4 != 4) {
        return Drop::not_ip;
    }
    const std::size_t header = std::size_t{4} * (byte(packet, view.ip) & 0x0fU);
    view.ip_bytes = load_big_endian<std::uint16_t>(packet.at(view.ip + ipv4_at::total_length));
    if (header < ipv4_bytes || view.ip_bytes < header || view.end() > packet.bytes) {
        return Drop::truncated;
    }
    OnesSum sum;
    sum.add(packet.at(view.ip), header);
    if (sum.folded() != 0xffff) {
        return Drop::bad_header_checksum;
    }
    const auto flags = load_big_endian<std::uint16_t>(packet.at(view.ip + ipv4_at::flags));
    view.upper = view.ip + header;
    view.protocol = byte(packet, view.ip + ipv4_at::protocol);
    view.fragment = (flags & (flag_more_fragments | fragment_offset_bits)) != 0;
    view.source_route = header > ipv4_bytes && has_source_route(packet, view.ip + ipv4_bytes, view.upper);
    read_udp(packet, view);
    read_echo(packet, view);
    return Drop::none;
}

/// Steps over the headers that a translator ignores (RFC 7915 section 5.1) up to the fragment
/// header or the upper-layer protocol.
Drop skip_extension_headers(const Packet& packet, View& view) noexcept {
    constexpr std::uint8_t hop_by_hop = 0, routing = 43, destination_options = 60;
    while (view.protocol == hop_by_hop || view.protocol == routing || view.protocol == destination_options) {
        if (view.upper + 8 > view.end()) {
            return Drop::truncated;
        }
        view.source_route = view.source_route || (view.protocol == routing && byte(packet, view.upper + 3) != 0);
        view.protocol = byte(packet, view.upper);
        view.upper += 8 * (std::size_t{byte(packet, view.upper + 1)} + 1);
        if (view.upper > view.end()) {
            return Drop::truncated;
        }
    }
    view.fragment = view.protocol == protocol_fragment;
    return Drop::none;
}

Drop read_ipv6(const Packet& packet, View& view) noexcept {
    if (view.ip + ipv6_bytes > packet.bytes) {
        return Drop::truncated;
    }
    if (byte(packet, view.ip) >> 4 != 6) {
        return Drop::not_ip;
    }
    view.ip_bytes = ipv6_bytes + load_big_endian<std::uint16_t>(packet.at(view.ip + ipv6_at::payload_length));
    if (view.end() > packet.bytes) {
        return Drop::truncated;
    }
    view.upper = view.ip + ipv6_bytes;
    view.protocol = byte(packet, view.ip + ipv6_at::next_header);
    const Drop drop = skip_extension_headers(packet, view);
    if (drop == Drop::none) {
        read_udp(packet, view);
        read_echo(packet, view);
    }
    return drop;
}

}  // namespace

Drop read_headers(const Packet& packet, View& view) noexcept {
    view = {};
    if (packet.bytes < ethernet_bytes) {
        return Drop::truncated;
    }
    view.ip = ethernet_bytes;
    auto type = load_big_endian<std::uint16_t>(packet.at(ethernet_type_at));
    if (type == type_vlan) {
        if (packet.bytes < ethernet_bytes + vlan_bytes) {
            return Drop::truncated;
        }
        view.ip += vlan_bytes;
        type = load_big_endian<std::uint16_t>(packet.at(ethernet_type_at + vlan_bytes));
    }
    if (type == type_ipv4) {
        view.family = net::Family::ipv4;
        return read_ipv4(packet, view);
    }
    if (type == type_ipv6) {
        view.family = net::Family::ipv6;
        return read_ipv6(packet, view);
    }
    return Drop::not_ip;
}

Drop read_carried(const Packet& packet, const View& outer, View& inner) noexcept {
    Packet tunnel = packet;
    tunnel.bytes = outer.end();
    inner = {.family = outer.family == net::Family::ipv6 ? net::Family::ipv4 : net::Family::ipv6, .ip = outer.upper};
    const Drop drop = outer.family == net::Family::ipv6 ? read_ipv4(tunnel, inner) : read_ipv6(tunnel, inner);
    return drop == Drop::none && inner.end() != outer.end() ? Drop::truncated : drop;
}

bool stays_on_link(const Packet& packet, const View& view) noexcept {
    return stays_on_link(packet.at(view.destination()), view.family) || stays_on_link(packet.at(view.source()), view.family);
}

}  // namespace gatemark::refdut
