#include "refdut/rewrite.hpp"

#include "refdut/checksum.hpp"

#include <algorithm>
#include <cstring>

namespace gatemark::refdut {

namespace {

std::uint32_t ports_word(const Endpoints& endpoints) noexcept {
    return static_cast<std::uint32_t>(endpoints.source_port) << 16 | endpoints.destination_port;
}

/// Writes the new ports and updates the checksum for them and the new addresses. Length and
/// protocol contribute the same to the pseudo-headers of both families, so they do not change the
/// sum.
void write_udp(Packet& packet, const View& view, net::Family to_family, const Endpoints& to) noexcept {
    std::byte* const udp = packet.at(view.upper);
    const std::size_t old_bytes = view.address_bytes(), new_bytes = net::address_bytes(to_family);
    const auto checksum = load_big_endian<std::uint16_t>(udp + udp_at::checksum);
    if (checksum != 0) {
        OnesSum change;
        change.take_away(packet.at(view.source()), 2 * old_bytes);  // the destination follows
        change.take_away(load_big_endian<std::uint32_t>(udp + udp_at::source));
        change.add(to.source.data(), new_bytes);
        change.add(to.destination.data(), new_bytes);
        change.add(ports_word(to));
        store_big_endian(udp + udp_at::checksum, as_udp(updated(checksum, change)));
    }
    store_big_endian(udp + udp_at::source, ports_word(to));
    if (checksum == 0 && to_family == net::Family::ipv6 && view.family == net::Family::ipv4) {
        const auto length = load_big_endian<std::uint16_t>(udp + udp_at::length);
        OnesSum sum;
        sum.add(to.source.data(), new_bytes);
        sum.add(to.destination.data(), new_bytes);
        sum.add(std::uint32_t{length} + protocol_udp);
        sum.add(udp, length);
        store_big_endian(udp + udp_at::checksum, as_udp(checksum_of(sum)));
    }
}

/// Writes the new identifier, and the type of the other family, and updates the checksum. Only that
/// of ICMPv6 covers a pseudo-header (RFC 4443 section 2.3, RFC 7915 sections 4.2 and 5.2).
void write_echo(Packet& packet, const View& view, net::Family to_family, const Endpoints& to) noexcept {
    std::byte* const message = packet.at(view.upper);
    const std::size_t length = view.end() - view.upper;
    OnesSum change;
    if (view.family == net::Family::ipv6) {
        change.take_away(packet.at(view.source()), 32);
        change.take_away(static_cast<std::uint32_t>(length));
        change.take_away(std::uint32_t{protocol_icmpv6});
    }
    if (to_family == net::Family::ipv6) {
        change.add(to.source.data(), 16);
        change.add(to.destination.data(), 16);
        change.add(static_cast<std::uint32_t>(length));
        change.add(std::uint32_t{protocol_icmpv6});
    }
    change.take_away(load_big_endian<std::uint16_t>(message + icmp_at::type));
    change.take_away(load_big_endian<std::uint16_t>(message + icmp_at::identifier));
    message[icmp_at::type] = std::byte{type_of(view.echo, to_family)};
    store_big_endian(message + icmp_at::identifier, view.echo == EchoMessage::request ? to.source_port : to.destination_port);
    change.add(load_big_endian<std::uint16_t>(message + icmp_at::type));
    change.add(load_big_endian<std::uint16_t>(message + icmp_at::identifier));
    std::byte* const checksum = message + icmp_at::checksum;
    store_big_endian(checksum, updated(load_big_endian<std::uint16_t>(checksum), change));
}

void write_upper(Packet& packet, const View& view, net::Family to_family, const Endpoints& to) noexcept {
    view.echo == EchoMessage::none ? write_udp(packet, view, to_family, to) : write_echo(packet, view, to_family, to);
}

std::byte protocol_of(const View& view, net::Family family) noexcept {
    return std::byte{view.echo == EchoMessage::none ? protocol_udp : family == net::Family::ipv4 ? protocol_icmp : protocol_icmpv6};
}

void cut_padding(Packet& packet, const View& view) noexcept {
    packet.tailroom += packet.bytes - view.end();
    packet.bytes = view.end();
}

void pad_to_minimum(Packet& packet) noexcept {
    const std::size_t padding = packet.bytes < frame_bytes_min ? frame_bytes_min - packet.bytes : 0;
    if (padding <= packet.tailroom) {
        std::memset(packet.at(packet.bytes), 0, padding);
        packet.bytes += padding;
        packet.tailroom -= padding;
    }
}

void write_outer_ipv6(std::byte* ip, std::size_t carried_bytes, const OuterHeader& header) noexcept {
    store_big_endian(ip, std::uint32_t{6} << 28 | std::uint32_t{header.traffic_class} << 20);
    store_big_endian(ip + ipv6_at::payload_length, static_cast<std::uint16_t>(carried_bytes));
    ip[ipv6_at::next_header] = std::byte{protocol_ipv4};
    ip[ipv6_at::hop_limit] = static_cast<std::byte>(header.hop_limit);
    std::memcpy(ip + ipv6_at::source, header.source.data(), header.source.size());
    std::memcpy(ip + ipv6_at::destination, header.destination.data(), header.destination.size());
}

void write_ipv4(std::byte* ip, std::size_t bytes, std::uint8_t traffic_class, std::byte protocol, const Ipv4Fields& fields,
                const AddressBytes& source, const AddressBytes& destination) noexcept {
    ip[0] = std::byte{0x45};
    ip[ipv4_at::traffic_class] = static_cast<std::byte>(traffic_class);
    store_big_endian(ip + ipv4_at::total_length, static_cast<std::uint16_t>(bytes));
    store_big_endian(ip + ipv4_at::identification, fields.identification);
    store_big_endian(ip + ipv4_at::flags, fields.dont_fragment ? flag_dont_fragment : std::uint16_t{0});
    ip[ipv4_at::time_to_live] = static_cast<std::byte>(fields.hop_limit);
    ip[ipv4_at::protocol] = protocol;
    store_big_endian(ip + ipv4_at::checksum, std::uint16_t{0});
    std::memcpy(ip + ipv4_at::source, source.data(), 4);
    std::memcpy(ip + ipv4_at::destination, destination.data(), 4);
    OnesSum sum;
    sum.add(ip, ipv4_bytes);
    store_big_endian(ip + ipv4_at::checksum, checksum_of(sum));
}

void write_outer_ipv4(std::byte* ip, std::size_t carried_bytes, const OuterHeader& header) noexcept {
    write_ipv4(ip, ipv4_bytes + carried_bytes, header.traffic_class, std::byte{protocol_ipv6},
               {.hop_limit = header.hop_limit, .identification = header.identification, .dont_fragment = header.dont_fragment},
               header.source, header.destination);
}

}  // namespace

AddressBytes address_at(const Packet& packet, std::size_t offset, net::Family family) noexcept {
    AddressBytes address{};
    std::memcpy(address.data(), packet.at(offset), net::address_bytes(family));
    return address;
}

Endpoints endpoints_of(const Packet& packet, const View& view) noexcept {
    if (view.echo != EchoMessage::none) {
        const auto identifier = load_big_endian<std::uint16_t>(packet.at(view.upper + icmp_at::identifier));
        const bool is_request = view.echo == EchoMessage::request;
        return {.source = address_at(packet, view.source(), view.family),
                .destination = address_at(packet, view.destination(), view.family),
                .source_port = is_request ? identifier : std::uint16_t{0},
                .destination_port = is_request ? std::uint16_t{0} : identifier};
    }
    return {.source = address_at(packet, view.source(), view.family),
            .destination = address_at(packet, view.destination(), view.family),
            .source_port = load_big_endian<std::uint16_t>(packet.at(view.upper + udp_at::source)),
            .destination_port = load_big_endian<std::uint16_t>(packet.at(view.upper + udp_at::destination))};
}

std::uint8_t hop_limit_of(const Packet& packet, const View& view) noexcept {
    const std::size_t at = view.ip + (view.family == net::Family::ipv4 ? ipv4_at::time_to_live : ipv6_at::hop_limit);
    return std::to_integer<std::uint8_t>(*packet.at(at));
}

std::uint8_t traffic_class_of(const Packet& packet, const View& view) noexcept {
    const auto word = load_big_endian<std::uint16_t>(packet.at(view.ip));
    return static_cast<std::uint8_t>(view.family == net::Family::ipv4 ? word : word >> 4);
}

void lower_hop_limit(Packet& packet, const View& view, std::uint8_t by) noexcept {
    const auto hop_limit = static_cast<std::byte>(hop_limit_of(packet, view) - by);
    if (view.family == net::Family::ipv6) {
        *packet.at(view.ip + ipv6_at::hop_limit) = hop_limit;
        return;
    }
    std::byte* const word = packet.at(view.ip + ipv4_at::time_to_live);
    std::byte* const checksum = packet.at(view.ip + ipv4_at::checksum);
    OnesSum change;
    change.take_away(load_big_endian<std::uint16_t>(word));
    *word = hop_limit;
    change.add(load_big_endian<std::uint16_t>(word));
    store_big_endian(checksum, updated(load_big_endian<std::uint16_t>(checksum), change));
}

void write_endpoints(Packet& packet, const View& view, const Endpoints& to) noexcept {
    write_upper(packet, view, view.family, to);
    const std::size_t bytes = view.address_bytes();
    if (view.family == net::Family::ipv4) {
        std::byte* const checksum = packet.at(view.ip + ipv4_at::checksum);
        OnesSum change;
        change.take_away(packet.at(view.source()), 2 * bytes);
        change.add(to.source.data(), bytes);
        change.add(to.destination.data(), bytes);
        store_big_endian(checksum, updated(load_big_endian<std::uint16_t>(checksum), change));
    }
    std::memcpy(packet.at(view.source()), to.source.data(), bytes);
    std::memcpy(packet.at(view.destination()), to.destination.data(), bytes);
}

bool has_room_for_ipv6(const Packet& packet, const View& view) noexcept {
    const std::size_t header = view.upper - view.ip, growth = header < ipv6_bytes ? ipv6_bytes - header : 0;
    return std::max(packet.headroom, packet.tailroom) >= growth;
}

void make_ipv6(Packet& packet, const View& view, const Endpoints& to, std::uint8_t hop_limit) noexcept {
    const std::uint32_t traffic_class = traffic_class_of(packet, view);
    const std::size_t header = view.upper - view.ip;
    write_upper(packet, view, net::Family::ipv6, to);
    cut_padding(packet, view);
    if (header > ipv6_bytes) {
        close_gap(packet, view.ip, header - ipv6_bytes);
    } else if (!open_gap(packet, view.ip, ipv6_bytes - header)) {
        return;  // cannot happen: there is room
    }
    std::byte* const ip = packet.at(view.ip);
    store_big_endian(ip - 2, type_ipv6);
    store_big_endian(ip, std::uint32_t{6} << 28 | traffic_class << 20);
    store_big_endian(ip + ipv6_at::payload_length, static_cast<std::uint16_t>(view.end() - view.upper));
    ip[ipv6_at::next_header] = protocol_of(view, net::Family::ipv6);
    ip[ipv6_at::hop_limit] = static_cast<std::byte>(hop_limit);
    std::memcpy(ip + ipv6_at::source, to.source.data(), 16);
    std::memcpy(ip + ipv6_at::destination, to.destination.data(), 16);
}

void make_ipv4(Packet& packet, const View& view, const Endpoints& to, const Ipv4Fields& fields) noexcept {
    const std::uint8_t traffic_class = traffic_class_of(packet, view);
    write_upper(packet, view, net::Family::ipv4, to);
    cut_padding(packet, view);
    close_gap(packet, view.ip, view.upper - view.ip - ipv4_bytes);
    std::byte* const ip = packet.at(view.ip);
    store_big_endian(ip - 2, type_ipv4);
    write_ipv4(ip, ipv4_bytes + view.end() - view.upper, traffic_class, protocol_of(view, net::Family::ipv4), fields, to.source,
               to.destination);
    pad_to_minimum(packet);
}

bool encapsulate(Packet& packet, const View& inner, const OuterHeader& header) noexcept {
    const bool to_ipv6 = inner.family == net::Family::ipv4;
    const std::size_t growth = to_ipv6 ? ipv6_bytes : ipv4_bytes;
    if (std::max(packet.headroom, packet.tailroom) < growth) {
        return false;
    }
    cut_padding(packet, inner);
    if (!open_gap(packet, inner.ip, growth)) {
        return false;  // cannot happen: there is room
    }
    store_big_endian(packet.at(inner.ip - 2), to_ipv6 ? type_ipv6 : type_ipv4);
    to_ipv6 ? write_outer_ipv6(packet.at(inner.ip), inner.ip_bytes, header) : write_outer_ipv4(packet.at(inner.ip), inner.ip_bytes, header);
    return true;
}

void write_outer_header(Packet& packet, const View& outer, const OuterHeader& header) noexcept {
    const std::size_t carried_bytes = outer.end() - outer.upper;
    outer.family == net::Family::ipv6 ? write_outer_ipv6(packet.at(outer.ip), carried_bytes, header)
                                      : write_outer_ipv4(packet.at(outer.ip), carried_bytes, header);
}

void decapsulate(Packet& packet, const View& outer, const View& inner) noexcept {
    cut_padding(packet, inner);
    close_gap(packet, outer.ip, inner.ip - outer.ip);
    store_big_endian(packet.at(outer.ip - 2), inner.family == net::Family::ipv4 ? type_ipv4 : type_ipv6);
    pad_to_minimum(packet);
}

OuterHeader outer_header_of(const Packet& packet, const View& outer) noexcept {
    OuterHeader header{.source = address_at(packet, outer.source(), outer.family),
                       .destination = address_at(packet, outer.destination(), outer.family),
                       .hop_limit = hop_limit_of(packet, outer),
                       .traffic_class = traffic_class_of(packet, outer)};
    if (outer.family == net::Family::ipv4) {
        header.identification = load_big_endian<std::uint16_t>(packet.at(outer.ip + ipv4_at::identification));
        header.dont_fragment = (load_big_endian<std::uint16_t>(packet.at(outer.ip + ipv4_at::flags)) & flag_dont_fragment) != 0;
    }
    return header;
}

}  // namespace gatemark::refdut
