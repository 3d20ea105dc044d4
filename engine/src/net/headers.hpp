#pragma once

#include "net/address.hpp"

#include <cstddef>
#include <cstdint>

/// Offsets and values of the headers that gatemark writes and reads, in bytes from the start of
/// each header.
namespace gatemark::net {

namespace ethernet {
constexpr std::size_t destination = 0, source = 6, type = 12, header_bytes = 14, vlan_tag_bytes = 4, fcs_bytes = 4, frame_bytes_min = 64;
constexpr std::uint16_t type_ipv4 = 0x0800, type_arp = 0x0806, type_vlan = 0x8100, type_ipv6 = 0x86dd;
}  // namespace ethernet

namespace ipv4 {  // RFC 791
constexpr std::size_t version = 0, traffic_class = 1, total_length = 2, identification = 4, fragment = 6, time_to_live = 8, protocol = 9,
                      checksum = 10, source = 12, destination = 16, header_bytes = 20;
constexpr std::uint16_t dont_fragment = 0x4000, more_fragments = 0x2000, fragment_offset_mask = 0x1fff;
}  // namespace ipv4

namespace ipv6 {  // RFC 8200
constexpr std::size_t version = 0, payload_length = 4, next_header = 6, hop_limit = 7, source = 8, destination = 24, header_bytes = 40,
                      address_bytes = 16, options_header_bytes = 8, routing_header_bytes = 24;
constexpr std::uint32_t flow_label_max = 0xf'ffff;
}  // namespace ipv6

namespace udp {  // RFC 768
constexpr std::size_t source_port = 0, destination_port = 2, length = 4, checksum = 6, header_bytes = 8;
}  // namespace udp

namespace icmp {  // RFC 792; ICMPv6 has the same fields (RFC 4443 sections 4.1 and 4.2)
constexpr std::size_t type = 0, code = 1, checksum = 2, identifier = 4, sequence = 6, header_bytes = 8;
constexpr std::uint8_t echo_reply = 0, echo_request = 8;
}  // namespace icmp

namespace arp {  // RFC 826, for Ethernet and IPv4
constexpr std::size_t operation = 6, sender_mac = 8, sender_address = 14, target_mac = 18, target_address = 24, bytes = 28;
constexpr std::uint64_t fixed_part = 0x0001'0800'0604'0000;  // hardware type, protocol type, lengths; the operation follows
constexpr std::uint16_t request = 1, reply = 2;
}  // namespace arp

namespace icmpv6 {  // RFC 4443, RFC 4861
constexpr std::size_t type = 0, code = 1, checksum = 2, flags = 4, target = 8, option = 24, neighbor_bytes = 32;
constexpr std::uint8_t echo_request = 128, echo_reply = 129;
constexpr std::uint8_t router_solicitation = 133, neighbor_solicitation = 135, neighbor_advertisement = 136, redirect = 137;
constexpr std::uint8_t source_link_layer_address = 1, target_link_layer_address = 2;
}  // namespace icmpv6

constexpr std::uint8_t protocol_icmp = 1, protocol_ipv4 = 4, protocol_udp = 17, protocol_ipv6 = 41, protocol_fragment = 44,
                       protocol_icmpv6 = 58, protocol_hop_by_hop = 0, protocol_routing = 43, protocol_destination_options = 60;

/// Of the header without options or extension headers.
[[nodiscard]] constexpr std::size_t header_bytes_of(Family family) noexcept {
    return family == Family::ipv4 ? ipv4::header_bytes : ipv6::header_bytes;
}
/// Offsets of the addresses in the header.
[[nodiscard]] constexpr std::size_t source_in(Family family) noexcept { return family == Family::ipv4 ? ipv4::source : ipv6::source; }
[[nodiscard]] constexpr std::size_t destination_in(Family family) noexcept {
    return family == Family::ipv4 ? ipv4::destination : ipv6::destination;
}

}  // namespace gatemark::net
