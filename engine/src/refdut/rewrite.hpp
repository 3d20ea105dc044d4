#pragma once

#include "refdut/headers.hpp"
#include "refdut/packet.hpp"

#include <array>
#include <cstdint>

namespace gatemark::refdut {

using AddressBytes = std::array<std::byte, 16>;  ///< as in net::Address: IPv4 takes the first four

/// The new addresses and ports of a UDP packet. Of an echo message the identifier is a port (RFC
/// 6146 section 3.5.3): the source's in a request, the destination's in a reply, and the other one
/// is 0.
struct Endpoints {
    AddressBytes source{}, destination{};
    std::uint16_t source_port = 0, destination_port = 0;
};

[[nodiscard]] AddressBytes address_at(const Packet& packet, std::size_t offset, net::Family family) noexcept;
[[nodiscard]] Endpoints endpoints_of(const Packet& packet, const View& view) noexcept;
[[nodiscard]] std::uint8_t hop_limit_of(const Packet& packet, const View& view) noexcept;

/// Lowers TTL or hop limit, which must be larger than `by`.
void lower_hop_limit(Packet& packet, const View& view, std::uint8_t by) noexcept;
/// Writes addresses and ports of a UDP packet or echo message that keeps its family. A UDP checksum
/// of zero (none) stays zero (RFC 3022 section 4.1).
void write_endpoints(Packet& packet, const View& view, const Endpoints& to) noexcept;

/// Whether the buffer has room for the packet as IPv6.
[[nodiscard]] bool has_room_for_ipv6(const Packet& packet, const View& view) noexcept;
/// Turns a UDP packet in IPv4 into IPv6 (RFC 7915 section 4.1): traffic class copied, flow label 0,
/// no options, Ethernet padding removed. A UDP checksum of zero is replaced by a computed one.
/// There must be room.
void make_ipv6(Packet& packet, const View& view, const Endpoints& to, std::uint8_t hop_limit) noexcept;

struct Ipv4Fields {
    std::uint8_t hop_limit = 0;
    std::uint16_t identification = 0;
    bool dont_fragment = false;
};
/// Turns a UDP packet or echo message in IPv6 into IPv4 (RFC 7915 section 5.1), padded to the
/// Ethernet minimum.
void make_ipv4(Packet& packet, const View& view, const Endpoints& to, const Ipv4Fields& fields) noexcept;

/// What is before a packet in a tunnel; the flow label is 0.
struct OuterHeader {
    AddressBytes source{}, destination{};
    std::uint8_t hop_limit = 0, traffic_class = 0;
    std::uint16_t identification = 0;  ///< IPv4, like the next one
    bool dont_fragment = false;
};
/// Puts the packet into one of the other family (RFC 2473 section 3.1, RFC 4213 section 3.5),
/// without Ethernet padding.
/// Changes nothing and returns false if the buffer has no room.
[[nodiscard]] bool encapsulate(Packet& packet, const View& inner, const OuterHeader& header) noexcept;
/// Writes another header, of the same length, before the packet that `outer` carries.
void write_outer_header(Packet& packet, const View& outer, const OuterHeader& header) noexcept;
/// Takes off what is before the packet that `outer` carries, and pads to the Ethernet minimum.
void decapsulate(Packet& packet, const View& outer, const View& inner) noexcept;
[[nodiscard]] OuterHeader outer_header_of(const Packet& packet, const View& outer) noexcept;
[[nodiscard]] std::uint8_t traffic_class_of(const Packet& packet, const View& view) noexcept;

}  // namespace gatemark::refdut
