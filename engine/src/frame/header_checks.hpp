#pragma once

#include "frame/stream.hpp"
#include "frame/tunnel.hpp"
#include "frame/verification.hpp"

#include <cstring>

/// Comparisons that any test frame goes through, whatever is in its packet. For arbitrary bytes
/// that `classify` found to be headers.
namespace gatemark::frame {

/// What a correct gateway makes of the IP header, but for the addresses.
struct ExpectedIp {
    const Layout& layout;
    std::uint8_t hop_limit;
    Mark mark;
    bool may_be_labelled;  ///< IPv6: by a router, because its source has not labelled it
    DontFragment dont_fragment;
    bool identification_kept;  ///< of IPv4
};

/// Whether a packet that was sent with traffic class `sent` came out with *congestion experienced*.
/// A gateway may write that if the field says that the sender's transport understands it, and only
/// then (RFC 3168 section 5).
[[nodiscard]] constexpr bool reports_congestion(std::uint8_t sent, std::uint8_t arrived) noexcept {
    const unsigned field = sent & congestion::mask;
    return (field == 1 || field == 2) && arrived == (sent | congestion::experienced);
}

/// Whether the outer header's traffic class is right for a packet that was sent with the class
/// `sent` and came out with `inside`: a router may mark congestion before the tunnel, in it or
/// both, and the entry of the tunnel sees the mark that was made before.
[[nodiscard]] constexpr bool is_class_of_tunnel(const TunnelRequest& tunnel, std::uint8_t sent, std::uint8_t inside,
                                                std::uint8_t outside) noexcept {
    const auto fits = [&](std::uint8_t due) { return outside == due || reports_congestion(due, outside); };
    return fits(tunnel.outer_class(sent)) || (reports_congestion(sent, inside) && fits(tunnel.outer_class(inside)));
}

/// Whether an outer header came with *congestion experienced*, which is not due.
[[nodiscard]] inline bool has_experienced_congestion(const std::byte* outer, const FrameTemplate& expected, std::uint8_t due) noexcept {
    const auto field_of = [](std::uint8_t traffic_class) { return traffic_class & congestion::mask; };
    return field_of(mark_of(outer, expected.layout.outer_family()).traffic_class) == congestion::experienced &&
           field_of(due) != congestion::experienced;
}

/// Whether octets are behind a frame that should be `expected`. None of them pads it to the
/// Ethernet minimum, which the smallest test frame has.
[[nodiscard]] inline bool has_trailer(std::span<const std::byte> frame, const FrameTemplate& expected) noexcept {
    static_assert(net::ethernet::header_bytes + net::ipv4::header_bytes + net::udp::header_bytes + signature::bytes ==
                  net::ethernet::frame_bytes_min - net::ethernet::fcs_bytes);
    return frame.size() > expected.frame.size();
}

/// Of a packet without a fault, whose tunnel should have the traffic class `outside`, if there is
/// one.
[[nodiscard]] inline Remarks remarks_of(std::span<const std::byte> frame, const Arrival& arrival, const FrameTemplate& expected,
                                        const Mark& mark, std::uint8_t outside) noexcept {
    const Mark arrived = mark_of(frame.data() + arrival.ip, arrival.family);
    Remarks remarks;
    remarks.add_if(reports_congestion(mark.traffic_class, arrived.traffic_class), Remark::congestion_experienced);
    remarks.add_if(arrival.in_tunnel() && has_experienced_congestion(frame.data() + arrival.outer, expected, outside),
                   Remark::congestion_outside);
    remarks.add_if(arrived.flow_label != mark.flow_label, Remark::flow_label_set);
    remarks.add_if(has_trailer(frame, expected), Remark::with_trailer);
    return remarks;
}

inline void check_mark(const Mark& arrived, const ExpectedIp& expected, Faults& faults) noexcept {
    const std::uint8_t sent = expected.mark.traffic_class;
    faults.add_if(arrived.traffic_class != sent && !reports_congestion(sent, arrived.traffic_class), Fault::traffic_class);
    faults.add_if(arrived.flow_label != expected.mark.flow_label && !expected.may_be_labelled, Fault::flow_label);
}

inline void check_link(const std::byte* frame, const std::byte* own_mac, Faults& faults) noexcept {
    const std::byte* const source = frame + net::ethernet::source;
    faults.add_if(std::memcmp(frame + net::ethernet::destination, own_mac, net::mac_bytes) != 0, Fault::destination_mac);
    constexpr net::MacAddress nobody{};
    faults.add_if((source[0] & net::group_bit) != std::byte{0} || std::memcmp(source, nobody.data(), nobody.size()) == 0 ||
                      std::memcmp(source, own_mac, net::mac_bytes) == 0,
                  Fault::source_mac);
}

inline void check_ipv4(const std::byte* ip, const Arrival& arrival, const ExpectedIp& expected, Faults& faults) noexcept {
    const auto byte_of = [&](std::size_t at) { return std::to_integer<std::uint8_t>(ip[at]); };
    faults.add_if(byte_of(net::ipv4::version) != 0x45, Fault::ipv4_header);
    faults.add_if(fold(sum_of({ip, arrival.udp - arrival.ip})) != 0xffff, Fault::ipv4_header_checksum);
    check_mark(mark_of(ip, net::Family::ipv4), expected, faults);
    faults.add_if(load_big_endian<std::uint16_t>(ip + net::ipv4::total_length) != expected.layout.ip_bytes(), Fault::length);
    faults.add_if(expected.identification_kept && load_raw<std::uint16_t>(ip + net::ipv4::identification) != 0, Fault::identification);
    const std::uint16_t fragment = load_big_endian<std::uint16_t>(ip + net::ipv4::fragment);
    faults.add_if(((fragment & net::ipv4::dont_fragment) != 0) != (expected.dont_fragment == DontFragment::set), Fault::dont_fragment);
    faults.add_if((fragment & 0x8000U) != 0, Fault::ipv4_header);  // the reserved bit
    faults.add_if(byte_of(net::ipv4::time_to_live) != expected.hop_limit, Fault::hop_limit);
}

inline void check_ipv6(const std::byte* ip, const Arrival& arrival, const ExpectedIp& expected, Faults& faults) noexcept {
    const std::size_t extension_bytes = arrival.udp - arrival.ip - net::ipv6::header_bytes;
    check_mark(mark_of(ip, net::Family::ipv6), expected, faults);
    faults.add_if(load_big_endian<std::uint16_t>(ip + net::ipv6::payload_length) != extension_bytes + expected.layout.udp_bytes(),
                  Fault::length);
    faults.add_if(std::to_integer<std::uint8_t>(ip[net::ipv6::hop_limit]) != expected.hop_limit, Fault::hop_limit);
}

/// Of a frame of the expected family: what is between the headers of IP and of the upper layer must
/// be what is in the template. `has_fragment_header`: of IPv6, as it was sent, and of no fragment.
inline void check_extension_headers(const std::byte* ip, const Arrival& arrival, const FrameTemplate& expected, bool has_fragment_header,
                                    Faults& faults) noexcept {
    if (arrival.fragmented && !has_fragment_header) {
        faults.add(Fault::fragment);
        return;
    }
    const Layout& layout = expected.layout;
    if (layout.family == net::Family::ipv4) {  // options are a fault of the header
        return;
    }
    const std::byte* const due = expected.frame.data() + layout.ip;
    const bool is_right = arrival.udp - arrival.ip == layout.udp - layout.ip && ip[net::ipv6::next_header] == due[net::ipv6::next_header] &&
                          std::memcmp(ip + net::ipv6::header_bytes, due + net::ipv6::header_bytes, layout.extension_bytes()) == 0;
    faults.add_if(!is_right, Fault::extension_headers);
}

/// What a correct gateway makes of the header of a tunnel, but for the hop limit.
struct ExpectedOuter {
    const FrameTemplate& due;
    std::uint8_t traffic_class;  ///< of the packet inside, as it was sent
    bool from_subscriber;

    [[nodiscard]] static ExpectedOuter of(const Stream& stream, const FrameValues& values) noexcept {
        return {stream.expected(), stream.expected_mark(values).traffic_class, stream.comes_from_subscribers()};
    }
};

/// Of a frame that is in a tunnel, as it should be (RFC 2473 section 3, section 6.4).
inline void check_outer(std::span<const std::byte> frame, const Arrival& arrival, const Stream& stream, const ExpectedOuter& expected,
                        const FrameValues& values, Faults& faults) noexcept {
    const FrameTemplate& due = expected.due;
    const Layout& layout = due.layout;
    const net::Family family = layout.outer_family();
    const std::byte* const outer = frame.data() + arrival.outer;
    const std::size_t bytes = arrival.ip - arrival.outer, inner_bytes = layout.end - layout.udp + (arrival.udp - arrival.ip);
    const auto byte_of = [&](std::size_t at) { return std::to_integer<std::uint8_t>(outer[at]); };
    bool is_right = true;
    if (family == net::Family::ipv6) {
        faults.add_if(bytes != net::ipv6::header_bytes, Fault::tunnel_option);
        is_right = load_big_endian<std::uint16_t>(outer + net::ipv6::payload_length) == bytes - net::ipv6::header_bytes + inner_bytes;
    } else {
        faults.add_if(bytes != net::ipv4::header_bytes, Fault::tunnel_option);
        is_right = load_big_endian<std::uint16_t>(outer + net::ipv4::total_length) == bytes + inner_bytes &&
                   (load_big_endian<std::uint16_t>(outer + net::ipv4::fragment) & 0x8000U) == 0 && fold(sum_of({outer, bytes})) == 0xffff;
    }
    if (const auto hop_limit = stream.expected_tunnel_hop_limit()) {
        is_right = is_right && byte_of(family == net::Family::ipv4 ? net::ipv4::time_to_live : net::ipv6::hop_limit) == *hop_limit;
    }
    faults.add_if(!is_right, Fault::tunnel_header);
    faults.add_if(
        !is_class_of_tunnel(stream.tunnel(), expected.traffic_class, mark_of(frame.data() + arrival.ip, arrival.family).traffic_class,
                            mark_of(outer, family).traffic_class),
        Fault::tunnel_traffic_class);
    const std::byte* const source = outer + (layout.outer_source_address() - layout.outer);
    const std::byte* const destination = outer + (layout.outer_destination_address() - layout.outer);
    const bool source_is_right = due.outer_source.matches(source, values.source_host, 0, values.edge());
    const bool destination_is_right = due.outer_destination.matches(destination, values.destination_host, values.network, values.edge());
    faults.add_if(!source_is_right, Fault::tunnel_source);
    faults.add_if(!destination_is_right, Fault::tunnel_destination);
    const bool subscriber_is_right = expected.from_subscriber ? source_is_right : destination_is_right;
    faults.add_if(!subscriber_is_right && stream.is_of_any_subscriber(expected.from_subscriber ? source : destination,
                                                                      expected.from_subscriber ? due.outer_source : due.outer_destination),
                  Fault::other_subscriber);
}

/// Of a header of the expected family.
inline void check_ip(const std::byte* ip, const Arrival& arrival, const ExpectedIp& expected, Faults& faults) noexcept {
    if (expected.layout.family == net::Family::ipv4) {
        check_ipv4(ip, arrival, expected, faults);
    } else {
        check_ipv6(ip, arrival, expected, faults);
    }
}

}  // namespace gatemark::frame
