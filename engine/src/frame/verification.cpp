#include "frame/verification.hpp"

#include "frame/gateway_edge.hpp"
#include "frame/header_checks.hpp"
#include "net/headers.hpp"

#include <cstring>

namespace gatemark::frame {

namespace {

/// `check_link` where each host has an address of its own; the port has one beside.
[[gnu::noinline]] void verify_link_of_host(const std::byte* frame, const Stream& stream, const FrameValues& values,
                                           const std::byte* port_mac, Faults& faults) noexcept {
    const net::MacAddress host_mac = stream.expected_destination_mac(values);
    check_link(frame, host_mac.data(), faults);
    faults.add_if(std::memcmp(frame + net::ethernet::source, port_mac, net::mac_bytes) == 0, Fault::source_mac);
}

/// Adds the second reason of wrong addresses and ports of customer edges (RFC 7597 sections 5 and
/// 6).
[[gnu::noinline]] void verify_edge(const std::byte* ip, const std::byte* udp, const Stream& stream, const FrameValues& values,
                                   Faults& faults) noexcept {
    const bool from_edge = stream.comes_from_edges();
    const Fault wrong_address = from_edge ? Fault::source_address : Fault::destination_address;
    const Fault wrong_port = from_edge ? Fault::source_port : Fault::destination_port;
    const Layout& layout = stream.expected().layout;
    const net::MapDomain& map = stream.edges()->edges().domain_of(values.edge()).map;
    if (faults.has(wrong_address)) {
        const std::size_t at = (from_edge ? layout.source_address() : layout.destination_address()) - layout.ip;
        faults.add(fault_of_edge_address(ip + at, layout.family, map, values.edge().ea(), wrong_address));
    }
    if (faults.has(wrong_port) && map.restricts_ports()) {
        const auto port = load_big_endian<std::uint16_t>(udp + (from_edge ? net::udp::source_port : net::udp::destination_port));
        const auto psid = map.psid_of_port(port);
        faults.add_if(psid && *psid != map.psid_of(values.edge().ea()), Fault::other_edge_port);
    }
}

/// The same of other customer edges outside, which the gateway reaches by translation.
[[gnu::noinline]] void verify_peer(const std::byte* ip, const Stream& stream, const FrameValues& values, Faults& faults) noexcept {
    const Layout& layout = stream.expected().layout;
    if (layout.family == net::Family::ipv6 && faults.has(Fault::destination_address)) {
        faults.add(fault_of_edge_address(ip + (layout.destination_address() - layout.ip), layout.family, stream.peers()->map(),
                                         stream.peers()->ea_of(values.destination_host), Fault::destination_address));
    }
}

/// Whether headers lead to a packet and, if it should be in a tunnel, through one.
[[gnu::noinline]] bool verify_tunnel(std::span<const std::byte> frame, const Arrival& arrival, const Stream& stream,
                                     const FrameValues& values, Faults& faults) noexcept {
    const Layout& layout = stream.expected().layout;
    if (arrival.misplaced) {
        faults.add(arrival.payload > layout.payload ? Fault::encapsulated : Fault::headers);
    } else if (arrival.in_tunnel() != layout.in_tunnel()) {
        faults.add(!arrival.in_tunnel()               ? Fault::tunnel_missing
                   : stream.sent().layout.in_tunnel() ? Fault::tunnel_left
                                                      : Fault::encapsulated);
    } else {
        check_outer(frame, arrival, stream, ExpectedOuter::of(stream, values), values, faults);
        return true;
    }
    return false;
}

/// The checksum over what actually arrived. Zero means that there is no checksum. It must stay so
/// from IPv4 to IPv4 where none was sent; where one was sent, or is to be computed, zero passes
/// only from a translator that is known to write zero for a checksum of all ones, that is, when
/// everything else sums to zero. If a NAT follows that translator, or what gives a customer edge
/// its shared address, the packet with that checksum is between the two, where the Tester cannot
/// see it, so any zero checksum passes.
bool udp_checksum_is_valid(std::span<const std::byte> frame, const Arrival& arrival, std::size_t udp_bytes, const Stream& stream) noexcept {
    if (stream.expects_no_checksum()) {
        return has_zero_checksum(frame, arrival);
    }
    if (has_zero_checksum(frame, arrival)) {
        if (!stream.zero_checksum_for_ones()) {
            return false;
        }
        if (stream.changes_after_translation() && !stream.sent_without_checksum()) {
            return true;
        }
    }
    const Sum sum = sum_of(frame.subspan(arrival.source_address(), 2 * net::address_bytes(arrival.family))) +
                    sum_of(frame.subspan(arrival.udp, udp_bytes)) + swap_bytes(static_cast<std::uint16_t>(udp_bytes)) +
                    swap_bytes(std::uint16_t{net::protocol_udp});
    return fold(sum) == 0xffff;
}

}  // namespace

bool has_zero_checksum(std::span<const std::byte> frame, const Arrival& arrival) noexcept {
    return load_raw<std::uint16_t>(frame.data() + arrival.udp + net::udp::checksum) == 0;
}

Faults verify(std::span<const std::byte> frame, const Arrival& arrival, const Stream& stream, const FrameValues& values) noexcept {
    const FrameTemplate& frame_template = stream.expected();
    const Layout& layout = frame_template.layout;
    Faults faults;
    const std::byte* const port_mac = frame_template.frame.data() + net::ethernet::destination;
    if (stream.has_host_macs()) [[unlikely]] {
        verify_link_of_host(frame.data(), stream, values, port_mac, faults);
    } else {
        check_link(frame.data(), port_mac, faults);
    }
    if ((arrival.misplaced || arrival.in_tunnel() || layout.in_tunnel()) && !verify_tunnel(frame, arrival, stream, values, faults)) {
        return faults;
    }
    faults.add_if(arrival.vlan_id != stream.expected_vlan(), Fault::vlan);
    const std::byte* const ip = frame.data() + arrival.ip;
    if (arrival.family != layout.family) {
        faults.add(Fault::family);
        faults.add_if(arrival.fragmented, Fault::fragment);
    } else {
        const Mark mark = stream.expected_mark(values);
        check_ip(ip, arrival,
                 {.layout = layout,
                  .hop_limit = stream.expected_hop_limit(),
                  .mark = mark,
                  .may_be_labelled = stream.may_be_labelled(mark),
                  .dont_fragment = stream.expected_dont_fragment(),
                  .identification_kept = stream.identification_kept()},
                 faults);
        check_extension_headers(ip, arrival, frame_template, stream.has_fragment_header(), faults);
        if (stream.role() != Role::initiator) {
            faults.add_if(!frame_template.source.matches(ip + (layout.source_address() - layout.ip), values.source_host, 0, values.edge()),
                          Fault::source_address);
        }
        faults.add_if(!frame_template.destination.matches(ip + (layout.destination_address() - layout.ip), values.destination_host,
                                                          values.network, values.edge()),
                      Fault::destination_address);
    }
    const std::byte* const udp = frame.data() + arrival.udp;
    if (stream.role() != Role::initiator) {
        faults.add_if(load_big_endian<std::uint16_t>(udp + net::udp::source_port) != values.source_port, Fault::source_port);
    }
    faults.add_if(load_big_endian<std::uint16_t>(udp + net::udp::destination_port) != values.destination_port, Fault::destination_port);
    if (stream.has_rule() && !faults.none()) {
        verify_edge(ip, udp, stream, values, faults);
    }
    if (stream.peers() != nullptr && !faults.none()) [[unlikely]] {
        verify_peer(ip, stream, values, faults);
    }
    const std::size_t udp_bytes = layout.udp_bytes();
    const bool length_fits = load_big_endian<std::uint16_t>(udp + net::udp::length) == udp_bytes;
    faults.add_if(!length_fits, Fault::udp_length);
    if (arrival.udp + udp_bytes > frame.size()) {
        faults.add(Fault::length);
        return faults;
    }
    faults.add_if(length_fits && !udp_checksum_is_valid(frame, arrival, udp_bytes, stream), Fault::udp_checksum);
    const std::size_t rest = layout.end - layout.payload - signature::bytes;
    faults.add_if(std::memcmp(frame.data() + arrival.payload + signature::bytes,
                              frame_template.frame.data() + layout.payload + signature::bytes, rest) != 0,
                  Fault::payload);
    return faults;
}

bool goes_between_hosts(std::span<const std::byte> frame, const Arrival& arrival, const Stream& stream) noexcept {
    const FrameTemplate& frame_template = stream.expected();
    const Layout& layout = frame_template.layout;
    if (arrival.payload == 0 || arrival.misplaced || arrival.family != layout.family || arrival.in_tunnel() != layout.in_tunnel()) {
        return false;
    }
    const std::byte* const ip = frame.data() + arrival.ip;
    const bool from_host = stream.role() == Role::initiator
                               ? load_big_endian<std::uint16_t>(frame.data() + arrival.udp + net::udp::length) == layout.udp_bytes()
                               : frame_template.source.contains(ip + (layout.source_address() - layout.ip));
    return from_host && frame_template.destination.contains(ip + (layout.destination_address() - layout.ip));
}

}  // namespace gatemark::frame
