#pragma once

#include "net/address.hpp"
#include "refdut/headers.hpp"
#include "refdut/nat_table.hpp"
#include "refdut/packet.hpp"
#include "refdut/translate.hpp"

#include <cstring>
#include <vector>

namespace gatemark::refdut {

/// Whether a frame is a test frame: UDP or an echo message over IPv4 or IPv6, in a mode that has
/// tunnels also in one, whose destination is neither the gateway itself (the addresses of a NAT's
/// pool are its users') nor multicast, broadcast or link-local. Reads only a few bytes; the
/// translator checks whether the frame is valid.
class TestFrames {
public:
    TestFrames(std::vector<net::Address> assigned, const NatTable* table, Mode mode)
        : assigned_{std::move(assigned)},
          table_{table},
          in_ipv4_{has_tunnels(mode) && tunnel_family(mode) == net::Family::ipv4},
          in_ipv6_{has_tunnels(mode) && !in_ipv4_} {}

    [[nodiscard]] bool has(const Packet& packet) const noexcept {
        std::size_t ip = ethernet_bytes;
        if (packet.bytes < ip + vlan_bytes) {
            return false;
        }
        std::uint16_t type = load_big_endian<std::uint16_t>(packet.at(ethernet_type_at));
        if (type == type_vlan) {
            type = load_big_endian<std::uint16_t>(packet.at(ethernet_type_at + vlan_bytes));
            ip += vlan_bytes;
        }
        return type == type_ipv4 ? has_ipv4(packet, ip) : type == type_ipv6 && has_ipv6(packet, ip);
    }

private:
    [[nodiscard]] bool has_ipv4(const Packet& packet, std::size_t ip) const noexcept {
        if (packet.bytes < ip + ipv4_bytes) {
            return false;
        }
        if (in_ipv4_ && packet.at(ip)[ipv4_at::protocol] == std::byte{protocol_ipv6}) {
            return has_ipv6(packet, ip + ipv4_bytes);
        }
        const std::byte* const to = packet.at(ip + ipv4_at::destination);
        const std::size_t header = std::size_t{4} * (std::to_integer<std::size_t>(packet.at(ip)[0]) & 0x0fU);
        return (packet.at(ip)[ipv4_at::protocol] == std::byte{protocol_udp} ||
                is_echo(packet, packet.at(ip)[ipv4_at::protocol], ip + header, net::Family::ipv4)) &&
               to[0] < std::byte{224} && !is_gateway(to, net::Family::ipv4);
    }
    [[nodiscard]] bool has_ipv6(const Packet& packet, std::size_t ip) const noexcept {
        if (packet.bytes < ip + ipv6_bytes) {
            return false;
        }
        const std::byte next_header = packet.at(ip)[ipv6_at::next_header];
        if (in_ipv6_ && next_header == std::byte{protocol_ipv4}) {
            return has_ipv4(packet, ip + ipv6_bytes);
        }
        const std::byte* const to = packet.at(ip + ipv6_at::destination);
        const bool local = to[0] == std::byte{0xff} || (to[0] == std::byte{0xfe} && (to[1] & std::byte{0xc0}) == std::byte{0x80});
        return (next_header == std::byte{protocol_udp} || is_echo(packet, next_header, ip + ipv6_bytes, net::Family::ipv6)) && !local &&
               !is_gateway(to, net::Family::ipv6);
    }
    [[nodiscard]] static bool is_echo(const Packet& packet, std::byte protocol, std::size_t at, net::Family family) noexcept {
        return protocol == std::byte{family == net::Family::ipv4 ? protocol_icmp : protocol_icmpv6} && at < packet.bytes &&
               (*packet.at(at) == std::byte{type_of(EchoMessage::request, family)} ||
                *packet.at(at) == std::byte{type_of(EchoMessage::reply, family)});
    }
    [[nodiscard]] bool is_gateway(const std::byte* address, net::Family family) const noexcept {
        for (const net::Address& assigned : assigned_) {
            if (assigned.family == family && std::memcmp(assigned.bytes.data(), address, net::address_bytes(family)) == 0) {
                return table_ == nullptr || !table_->in_pool(assigned.bytes);
            }
        }
        return false;
    }

    std::vector<net::Address> assigned_;
    const NatTable* table_;
    bool in_ipv4_, in_ipv6_;  ///< what tunnels are made of
};

}  // namespace gatemark::refdut
