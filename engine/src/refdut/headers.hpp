#pragma once

#include "base/bytes.hpp"
#include "net/address.hpp"
#include "refdut/packet.hpp"

#include <cstddef>
#include <cstdint>

/// Header layouts (RFC 791, 8200, 768, IEEE 802.1Q) and a reader that trusts no length field.
namespace gatemark::refdut {

constexpr std::size_t mac_bytes = 6, ethernet_bytes = 14, vlan_bytes = 4, ethernet_type_at = 12;
constexpr std::size_t frame_bytes_min = 60;  ///< without FCS
constexpr std::uint16_t type_ipv4 = 0x0800, type_arp = 0x0806, type_vlan = 0x8100, type_ipv6 = 0x86dd;
constexpr std::uint8_t protocol_icmp = 1, protocol_ipv4 = 4, protocol_udp = 17, protocol_ipv6 = 41, protocol_fragment = 44,
                       protocol_icmpv6 = 58, protocol_destination_options = 60;

namespace ipv4_at {
constexpr std::size_t traffic_class = 1, total_length = 2, identification = 4, flags = 6, time_to_live = 8, protocol = 9, checksum = 10,
                      source = 12, destination = 16;
}
constexpr std::size_t ipv4_bytes = 20;
constexpr std::uint16_t flag_reserved = 0x8000, flag_dont_fragment = 0x4000, flag_more_fragments = 0x2000, fragment_offset_bits = 0x1fff;

namespace ipv6_at {
constexpr std::size_t payload_length = 4, next_header = 6, hop_limit = 7, source = 8, destination = 24;
}
constexpr std::size_t ipv6_bytes = 40;

namespace udp_at {
constexpr std::size_t source = 0, destination = 2, length = 4, checksum = 6;
}
constexpr std::size_t udp_bytes = 8;

namespace icmp_at {  // RFC 792, RFC 4443: both families alike
constexpr std::size_t type = 0, checksum = 2, identifier = 4, sequence = 6;
}
constexpr std::size_t icmp_bytes = 8;

/// A whole echo message (RFC 792; RFC 4443 sections 4.1 and 4.2).
enum class EchoMessage : std::uint8_t { none, request, reply };
/// The type of an echo message in this family.
[[nodiscard]] constexpr std::uint8_t type_of(EchoMessage message, net::Family family) noexcept {
    return family == net::Family::ipv4 ? (message == EchoMessage::request ? 8 : 0) : (message == EchoMessage::request ? 128 : 129);
}

/// The offsets of the parts of a frame. All lie within the frame.
struct View {
    net::Family family = net::Family::ipv4;
    std::size_t ip = 0;         ///< offset of the IP header
    std::size_t ip_bytes = 0;   ///< of the IP packet, according to its header; Ethernet padding may follow
    std::size_t upper = 0;      ///< offset of what follows the IP header, options and extension headers
    std::uint8_t protocol = 0;  ///< of what follows
    bool fragment = false;      ///< any fragment, also the first
    bool source_route = false;  ///< an unexpired source route, or routing header with segments left
    bool udp = false;           ///< a whole UDP datagram: header present, its length fits
    EchoMessage echo = EchoMessage::none;

    [[nodiscard]] std::size_t end() const noexcept { return ip + ip_bytes; }
    [[nodiscard]] std::size_t source() const noexcept { return ip + (family == net::Family::ipv4 ? ipv4_at::source : ipv6_at::source); }
    [[nodiscard]] std::size_t destination() const noexcept {
        return ip + (family == net::Family::ipv4 ? ipv4_at::destination : ipv6_at::destination);
    }
    [[nodiscard]] std::size_t address_bytes() const noexcept { return net::address_bytes(family); }
    /// Whether right behind its header it has a packet of the other family (RFC 2473 section 3, RFC
    /// 4213 section 3.1).
    [[nodiscard]] bool carries_packet() const noexcept {
        return family == net::Family::ipv6 ? protocol == protocol_ipv4 && upper == ip + ipv6_bytes
                                           : protocol == protocol_ipv6 && upper == ip + ipv4_bytes && !fragment;
    }
};

/// Reads a frame of arbitrary bytes. Returns Drop::none, not_ip, truncated or bad_header_checksum;
/// `view` is complete only with none.
[[nodiscard]] Drop read_headers(const Packet& packet, View& view) noexcept;
/// Reads the packet that `outer` carries, in the same way. It must be as long as `outer` says;
/// Ethernet padding belongs to neither.
[[nodiscard]] Drop read_carried(const Packet& packet, const View& outer, View& inner) noexcept;
/// Whether source or destination stays on its link (address.hpp).
[[nodiscard]] bool stays_on_link(const Packet& packet, const View& view) noexcept;

}  // namespace gatemark::refdut
