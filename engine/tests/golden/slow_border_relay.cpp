#include "golden/slow_border_relay.hpp"

#include <bitset>

namespace gatemark::test {

namespace {

std::string bits_of(const net::Address& address) {
    std::string bits;
    for (std::size_t i = 0; i < net::address_bytes(address.family); ++i) {
        bits += std::bitset<8>{std::to_integer<unsigned>(address.bytes[i])}.to_string();
    }
    return bits;
}
std::string bits_of(const net::Prefix& prefix) { return bits_of(prefix.address).substr(0, prefix.length); }
std::string bits_of(std::uint16_t word) { return std::bitset<16>{word}.to_string(); }

std::string padded(std::string bits, std::size_t size) {
    bits.resize(size, '0');
    return bits;
}

net::Address address_from(const std::string& bits) {
    net::Address address{.family = bits.size() == 32 ? net::Family::ipv4 : net::Family::ipv6, .bytes = {}};
    for (std::size_t i = 0; i < bits.size() / 8; ++i) {
        address.bytes[i] = static_cast<std::byte>(std::bitset<8>{bits.substr(8 * i, 8)}.to_ulong());
    }
    return address;
}

/// RFC 6052 section 2.2: the four octets follow the prefix, and octet 8 is skipped.
net::Address embedded(const net::Prefix& dmr, const net::Address& ipv4) {
    std::string bits = bits_of(dmr) + bits_of(ipv4);
    if (dmr.length <= 64) {
        bits.insert(64, "00000000");
    }
    return address_from(padded(bits, 128));
}

std::optional<net::Address> extracted(const net::Prefix& dmr, const net::Address& ipv6) {
    std::string bits = bits_of(ipv6);
    if (!bits.starts_with(bits_of(dmr))) {
        return std::nullopt;
    }
    if (dmr.length <= 64) {
        bits.erase(64, 8);
    }
    const net::Address ipv4 = address_from(bits.substr(dmr.length, 32));
    return embedded(dmr, ipv4) == ipv6 ? std::optional{ipv4} : std::nullopt;
}

std::string psid_of(const SlowRule& rule, const std::string& ea) {
    if (rule.ea_bits == 0) {
        return bits_of(rule.psid).substr(16 - rule.psid_bits);
    }
    return rule.ipv4.length + ea.size() > 32 ? ea.substr(32 - rule.ipv4.length) : "";
}

/// RFC 7597 section 5.1.
bool has_port(const SlowRule& rule, const std::string& psid, std::uint16_t port) {
    const std::string bits = bits_of(port);
    const bool nobody = rule.psid_offset != 0 && bits.substr(0, rule.psid_offset).find('1') == std::string::npos;
    return psid.empty() || (!nobody && bits.substr(rule.psid_offset, psid.size()) == psid);
}

struct SlowEdge {
    net::Address ipv6, ipv4;
};

/// RFC 7597 sections 5.2 and 6.
SlowEdge edge_of(const SlowRule& rule, const std::string& ea) {
    const std::string psid = psid_of(rule, ea), ipv4 = padded(bits_of(rule.ipv4) + ea.substr(0, 32 - rule.ipv4.length), 32);
    const std::string user = bits_of(rule.ipv6) + ea;
    std::string whole = padded("", 64) + padded("", 16) + ipv4 + padded("", 16 - psid.size()) + psid;
    whole.replace(0, user.size(), user);
    return {address_from(whole), address_from(ipv4)};
}

/// An echo message has its identifier in the place of the customer edge's port (RFC 7599 section
/// 9).
std::uint16_t port_of(const SlowPacket& packet, std::uint16_t port) { return packet.echo ? packet.echo->identifier : port; }

}  // namespace

std::optional<SlowPacket> SlowBorderRelay::forwarded(const SlowPacket& packet, unsigned decrement) const {
    return packet.is_ipv4() ? to_ipv6(packet, decrement) : to_ipv4(packet, decrement);
}

std::optional<SlowPacket> SlowBorderRelay::to_ipv4(const SlowPacket& packet, unsigned decrement) const {
    const SlowRule* longest = nullptr;
    for (const SlowRule& rule : rules_) {
        if (rule.ipv6.contains(packet.source) && (longest == nullptr || rule.ipv6.length > longest->ipv6.length)) {
            longest = &rule;
        }
    }
    if (longest == nullptr) {
        return std::nullopt;
    }
    const std::string ea = bits_of(packet.source).substr(longest->ipv6.length, longest->ea_bits);
    const SlowEdge edge = edge_of(*longest, ea);
    const auto outside = extracted(longest->dmr, packet.destination);
    if (edge.ipv6 != packet.source || !has_port(*longest, psid_of(*longest, ea), port_of(packet, packet.source_port)) || !outside) {
        return std::nullopt;
    }
    return translated(
        packet, decrement, [&](const net::Address& address) { return address == packet.source ? edge.ipv4 : *outside; }, 0xbeef);
}

std::optional<SlowPacket> SlowBorderRelay::to_ipv6(const SlowPacket& packet, unsigned decrement) const {
    const SlowRule* longest = nullptr;
    const std::uint16_t port = port_of(packet, packet.destination_port);
    std::string ea_of_longest;
    for (const SlowRule& rule : rules_) {
        if (!rule.ipv4.contains(packet.destination) || (longest != nullptr && rule.ipv4.length < longest->ipv4.length)) {
            continue;
        }
        const unsigned shared = rule.ipv4.length + rule.ea_bits > 32 ? rule.ipv4.length + rule.ea_bits - 32 : 0;
        const std::string suffix = bits_of(packet.destination).substr(rule.ipv4.length, rule.ea_bits - shared);
        const std::string ea = suffix + bits_of(port).substr(rule.psid_offset, shared);
        if (has_port(rule, psid_of(rule, ea), port)) {
            longest = &rule;
            ea_of_longest = ea;
        }
    }
    if (longest == nullptr) {
        return std::nullopt;
    }
    const SlowEdge edge = edge_of(*longest, ea_of_longest);
    return translated(packet, decrement, [&](const net::Address& address) {
        return address == packet.destination ? edge.ipv6 : embedded(longest->dmr, address);
    });
}

}  // namespace gatemark::test
