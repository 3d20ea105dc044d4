#include "refdut/neighbours.hpp"

#include "refdut/checksum.hpp"
#include "refdut/headers.hpp"

#include <algorithm>
#include <cstring>

namespace gatemark::refdut {

namespace {

constexpr std::uint16_t arp_request = 1, arp_reply = 2;
constexpr std::size_t arp_bytes = 28;
constexpr std::uint8_t router_solicitation = 133, solicitation = 135, advertisement = 136, redirect = 137;
constexpr std::uint8_t option_source = 1, option_target = 2, hop_limit_on_link = 255;
constexpr std::size_t target_at = 8, options_at = 24, message_bytes = 32;  // with one option for a link-layer address

namespace arp_at {
constexpr std::size_t operation = 6, sender_mac = 8, sender = 14, target_mac = 18, target = 24;
}

net::MacAddress mac_at(const std::byte* bytes) noexcept {
    net::MacAddress mac;
    std::memcpy(mac.data(), bytes, mac.size());
    return mac;
}

bool is_host_mac(const net::MacAddress& mac) noexcept { return (mac[0] & std::byte{1}) == std::byte{0} && mac != net::MacAddress{}; }

bool equals(const std::optional<net::Address>& address, const std::byte* bytes) noexcept {
    return address && std::memcmp(address->bytes.data(), bytes, net::address_bytes(address->family)) == 0;
}

/// Writes the Ethernet header and returns its length; every byte after it is zero.
std::size_t start(NeighbourFrame& frame, const NeighbourConfig& config, const net::MacAddress& to, std::uint16_t type) noexcept {
    frame.data.fill(std::byte{0});
    std::memcpy(frame.data.data(), to.data(), mac_bytes);
    std::memcpy(frame.data.data() + mac_bytes, config.own_mac.data(), mac_bytes);
    std::size_t at = ethernet_type_at;
    if (config.vlan_id) {
        store_big_endian(frame.data.data() + at, type_vlan);
        store_big_endian(frame.data.data() + at + 2, *config.vlan_id);
        at += vlan_bytes;
    }
    store_big_endian(frame.data.data() + at, type);
    return at + 2;
}

NeighbourFrame write_arp(const NeighbourConfig& config, std::uint16_t operation, const net::MacAddress& to,
                         const net::MacAddress& target_mac, const std::byte* target) noexcept {
    NeighbourFrame frame;
    const std::size_t at = start(frame, config, to, type_arp);
    std::byte* const arp = frame.data.data() + at;
    store_big_endian(arp, std::uint64_t{0x0001'0800'0604'0000} | operation);  // Ethernet, IPv4, their address lengths
    std::memcpy(arp + arp_at::sender_mac, config.own_mac.data(), mac_bytes);
    std::memcpy(arp + arp_at::sender, config.ipv4->bytes.data(), 4);
    std::memcpy(arp + arp_at::target_mac, target_mac.data(), mac_bytes);
    std::memcpy(arp + arp_at::target, target, 4);
    frame.bytes = std::max(at + arp_bytes, frame_bytes_min + (config.vlan_id ? vlan_bytes : 0));
    return frame;
}

/// A solicitation or advertisement for `target` from this side's address; `kind` and `flags` are
/// the first byte and those of the flags.
NeighbourFrame write_discovery(const NeighbourConfig& config, std::uint8_t kind, std::uint8_t flags, std::uint8_t option,
                               const net::MacAddress& to_mac, const std::byte* to, const std::byte* target) noexcept {
    NeighbourFrame frame;
    const std::size_t at = start(frame, config, to_mac, type_ipv6);
    std::byte* const ip = frame.data.data() + at;
    std::byte* const message = ip + ipv6_bytes;
    ip[0] = std::byte{0x60};
    store_big_endian(ip + ipv6_at::payload_length, static_cast<std::uint16_t>(message_bytes));
    ip[ipv6_at::next_header] = static_cast<std::byte>(protocol_icmpv6);
    ip[ipv6_at::hop_limit] = static_cast<std::byte>(hop_limit_on_link);
    std::memcpy(ip + ipv6_at::source, config.ipv6->bytes.data(), 16);
    std::memcpy(ip + ipv6_at::destination, to, 16);
    message[0] = static_cast<std::byte>(kind);
    message[4] = static_cast<std::byte>(flags);
    std::memcpy(message + target_at, target, 16);
    message[options_at] = static_cast<std::byte>(option);
    message[options_at + 1] = std::byte{1};  // in units of 8 bytes
    std::memcpy(message + options_at + 2, config.own_mac.data(), mac_bytes);
    OnesSum sum;
    sum.add(ip + ipv6_at::source, 32);
    sum.add(static_cast<std::uint32_t>(message_bytes) + protocol_icmpv6);
    sum.add(message, message_bytes);
    store_big_endian(message + 2, checksum_of(sum));
    frame.bytes = at + ipv6_bytes + message_bytes;
    return frame;
}

/// The link-layer address option of this type, if the options are valid (RFC 4861 section 4.6).
std::optional<net::MacAddress> mac_option(std::span<const std::byte> options, std::uint8_t type) noexcept {
    std::optional<net::MacAddress> mac;
    while (options.size() >= 2) {
        const std::size_t bytes = 8 * std::to_integer<std::size_t>(options[1]);
        if (bytes == 0 || bytes > options.size()) {
            return std::nullopt;
        }
        if (std::to_integer<std::uint8_t>(options[0]) == type) {
            mac = mac_at(options.data() + 2);
        }
        options = options.subspan(bytes);
    }
    return mac;
}

}  // namespace

Neighbours::Neighbours(const NeighbourConfig& config) noexcept : config_{config}, peer_{config.peer_mac} {}

void Neighbours::learn(const net::MacAddress& mac) noexcept {
    if (!config_.peer_mac && is_host_mac(mac) && mac != config_.own_mac) {
        peer_ = mac;
    }
}

void Neighbours::take(std::span<const std::byte> frame, Taken& taken) noexcept {
    taken.consumed = false;
    taken.answer = false;
    if (frame.size() < ethernet_bytes) {
        return;
    }
    std::size_t at = ethernet_bytes;
    auto type = load_big_endian<std::uint16_t>(frame.data() + ethernet_type_at);
    if (type == type_vlan && frame.size() >= ethernet_bytes + vlan_bytes) {
        at += vlan_bytes;
        type = load_big_endian<std::uint16_t>(frame.data() + at - 2);
    }
    if (type == type_arp) {
        taken.consumed = true;
        take_arp(frame.subspan(at), taken);
    } else if (type == type_ipv6 && frame.size() >= at + ipv6_bytes + options_at &&
               std::to_integer<std::uint8_t>(frame[at + ipv6_at::next_header]) == protocol_icmpv6) {
        take_icmpv6(frame.subspan(at), taken);
    }
}

void Neighbours::take_arp(std::span<const std::byte> arp, Taken& taken) noexcept {
    if (arp.size() < arp_bytes || load_big_endian<std::uint32_t>(arp.data()) != 0x0001'0800 ||
        load_big_endian<std::uint16_t>(arp.data() + 4) != 0x0604) {
        return;
    }
    const auto operation = load_big_endian<std::uint16_t>(arp.data() + arp_at::operation);
    const net::MacAddress sender = mac_at(arp.data() + arp_at::sender_mac);
    if ((operation != arp_request && operation != arp_reply) || !is_host_mac(sender) || equals(config_.ipv4, arp.data() + arp_at::sender)) {
        return;
    }
    learn(sender);
    if (operation == arp_request && equals(config_.ipv4, arp.data() + arp_at::target)) {
        taken.answer_frame = write_arp(config_, arp_reply, sender, sender, arp.data() + arp_at::sender);
        taken.answer = true;
    }
}

void Neighbours::take_icmpv6(std::span<const std::byte> packet, Taken& taken) noexcept {
    const std::byte* const ip = packet.data();
    const std::size_t bytes = load_big_endian<std::uint16_t>(ip + ipv6_at::payload_length);
    const auto kind = std::to_integer<std::uint8_t>(ip[ipv6_bytes]);
    taken.consumed = kind >= router_solicitation && kind <= redirect;
    if ((kind != solicitation && kind != advertisement) || bytes < options_at || ipv6_bytes + bytes > packet.size() ||
        ip[ipv6_bytes + 1] != std::byte{0} || std::to_integer<std::uint8_t>(ip[ipv6_at::hop_limit]) != hop_limit_on_link) {
        return;  // RFC 4861 section 7.1
    }
    const auto message = packet.subspan(ipv6_bytes, bytes);
    OnesSum sum;
    sum.add(ip + ipv6_at::source, 32);
    sum.add(static_cast<std::uint32_t>(bytes) + protocol_icmpv6);
    sum.add(message.data(), bytes);
    if (sum.folded() != 0xffff || equals(config_.ipv6, ip + ipv6_at::source)) {
        return;
    }
    if (kind == advertisement) {
        if (const auto mac = mac_option(message.subspan(options_at), option_target);
            mac && !equals(config_.ipv6, message.data() + target_at)) {
            learn(*mac);
        }
        return;
    }
    static constexpr std::array<std::byte, 16> unspecified{};
    const bool probe = std::memcmp(ip + ipv6_at::source, unspecified.data(), 16) == 0;
    const auto mac = mac_option(message.subspan(options_at), option_source);
    if (probe && mac) {
        return;  // RFC 4861 section 7.1.1: a node without an address does not announce where it is
    }
    if (mac) {
        learn(*mac);
    }
    if (!equals(config_.ipv6, message.data() + target_at)) {
        return;
    }
    constexpr std::uint8_t from_router = 0x80, solicited = 0x40, overrides = 0x20;
    if (probe) {  // duplicate address detection: the answer goes to all nodes (RFC 4861 section 7.2.4)
        constexpr std::array<std::byte, 16> all_nodes{std::byte{0xff}, std::byte{2}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                                                      std::byte{1}};
        constexpr net::MacAddress all_nodes_mac{std::byte{0x33}, std::byte{0x33}, {}, {}, {}, std::byte{1}};
        taken.answer_frame = write_discovery(config_, advertisement, from_router | overrides, option_target, all_nodes_mac,
                                             all_nodes.data(), config_.ipv6->bytes.data());
        taken.answer = true;
    } else if (const auto to = mac ? mac : peer_) {
        taken.answer_frame = write_discovery(config_, advertisement, from_router | solicited | overrides, option_target, *to,
                                             ip + ipv6_at::source, config_.ipv6->bytes.data());
        taken.answer = true;
    }
}

NeighbourFrame Neighbours::question(const net::Address& target) const noexcept {
    if (!(target.family == net::Family::ipv4 ? config_.ipv4 : config_.ipv6)) {
        return {};
    }
    if (target.family == net::Family::ipv4) {
        net::MacAddress broadcast;
        broadcast.fill(std::byte{0xff});
        return write_arp(config_, arp_request, broadcast, {}, target.bytes.data());
    }
    // The solicited-node multicast address (RFC 4291 section 2.7.1) and its link-layer address (RFC
    // 2464 section 7).
    std::array<std::byte, 16> group{std::byte{0xff}, std::byte{2}};
    group[11] = std::byte{1};
    group[12] = std::byte{0xff};
    std::copy(target.bytes.begin() + 13, target.bytes.end(), group.begin() + 13);
    const net::MacAddress mac{std::byte{0x33}, std::byte{0x33}, group[12], group[13], group[14], group[15]};
    return write_discovery(config_, solicitation, 0, option_source, mac, group.data(), target.bytes.data());
}

bool Neighbours::address(Packet& packet) const noexcept {
    if (!peer_ || packet.bytes < ethernet_bytes) {
        return false;
    }
    std::memcpy(packet.begin, peer_->data(), mac_bytes);
    std::memcpy(packet.begin + mac_bytes, config_.own_mac.data(), mac_bytes);
    return true;
}

}  // namespace gatemark::refdut
