#pragma once

#include "golden/bytes.hpp"
#include "net/address.hpp"

#include <functional>
#include <optional>

/// A UDP or echo packet in a frame as plain values, written and read field by field, and what a
/// correct gateway makes of it. Independent of the engine: the two share only the address type, so
/// this can judge the engine's fast code.
namespace gatemark::test {

/// An ICMP echo message in the place of the UDP header, of the packet's family.
struct SlowEcho {
    std::uint8_t type = 0, code = 0;
    std::uint16_t identifier = 0, sequence = 0, checksum_xor = 0;
};

struct SlowPacket {
    net::MacAddress link_destination{}, link_source{};
    std::optional<std::uint16_t> vlan;
    net::Address source, destination;  ///< both of one family
    std::uint8_t hop_limit = 10, traffic_class = 0;
    std::uint32_t flow_label = 0;      ///< IPv6
    std::uint16_t identification = 0;  ///< IPv4, like all fields up to `options`
    bool dont_fragment = false, more_fragments = false, reserved_bit = false;
    Bytes options;                 ///< a multiple of four bytes
    bool fragment_header = false;  ///< IPv6: an atomic fragment (RFC 6946)
    std::uint16_t source_port = 0, destination_port = 0;
    Bytes payload;
    std::optional<std::uint16_t> wrong_ip_length, wrong_udp_length;  ///< instead of the true ones
    std::uint16_t header_checksum_xor = 0, udp_checksum_xor = 0;     ///< damage
    bool udp_checksum_absent = false;
    std::optional<SlowEcho> echo;  ///< `payload` is then its data

    [[nodiscard]] bool is_ipv4() const { return source.family == net::Family::ipv4; }
};

/// The frame without FCS.
[[nodiscard]] Bytes write_packet(const SlowPacket& packet);
/// Reads a frame that write_packet wrote from a packet without options, fragment header or damage.
[[nodiscard]] SlowPacket read_packet(std::span<const std::byte> frame);

using AddressFunction = std::function<net::Address(const net::Address&)>;

/// As a router forwards it (RFC 1812 section 5.2.1, RFC 8200 section 3): hop limit less
/// `decrement`, all else kept.
[[nodiscard]] SlowPacket routed(SlowPacket packet, unsigned decrement);
/// As a stateless translator forwards it (RFC 7915 sections 4.1 and 5.1). The identification of an
/// IPv4 result is `identification`.
[[nodiscard]] SlowPacket translated(const SlowPacket& packet, unsigned decrement, const AddressFunction& address,
                                    std::uint16_t identification = 0);

[[nodiscard]] net::Address address_of(const std::string& text);
/// RFC 6052 with a prefix of 96 bits: the IPv4 address is the last four bytes.
[[nodiscard]] AddressFunction embedding_96(const std::string& prefix);

}  // namespace gatemark::test
