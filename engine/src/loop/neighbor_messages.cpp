#include "loop/neighbor_messages.hpp"

#include "base/bytes.hpp"
#include "base/checksum.hpp"
#include "net/headers.hpp"

#include <algorithm>
#include <cstring>

namespace gatemark::loop {

namespace {

namespace arp = net::arp;
namespace icmpv6 = net::icmpv6;

constexpr std::uint8_t neighbor_hop_limit = 255;  // RFC 4861 section 7.1: any other value means that a router forwarded it

net::MacAddress mac_at(const std::byte* from) noexcept {
    net::MacAddress mac;
    std::copy_n(from, mac.size(), mac.begin());
    return mac;
}

net::Address address_at(net::Family family, const std::byte* from) noexcept {
    net::Address address{.family = family, .bytes = {}};
    std::copy_n(from, net::address_bytes(family), address.bytes.begin());
    return address;
}

NeighborMessage read_arp(std::span<const std::byte> message) noexcept {
    if (message.size() < arp::bytes || (load_big_endian<std::uint64_t>(message.data()) & ~std::uint64_t{0xffff}) != arp::fixed_part) {
        return {};
    }
    const auto operation = load_big_endian<std::uint16_t>(message.data() + arp::operation);
    const net::MacAddress sender_mac = mac_at(message.data() + arp::sender_mac);
    const net::Address sender = address_at(net::Family::ipv4, message.data() + arp::sender_address);
    NeighborMessage result;
    if (operation == arp::request) {
        result.question = NeighborQuestion{address_at(net::Family::ipv4, message.data() + arp::target_address), sender, sender_mac};
    }
    if (operation == arp::request || operation == arp::reply) {
        result.fact = NeighborFact{sender, sender_mac};
    }
    return result;
}

std::size_t option_bytes(std::span<const std::byte> message, std::size_t at) noexcept {
    return std::size_t{8} * std::to_integer<std::size_t>(message[at + 1]);
}

/// Whether the options that start at `message[icmpv6::option]` fill the message. A length of zero
/// makes the whole message invalid (RFC 4861 section 4.6).
bool options_are_whole(std::span<const std::byte> message) noexcept {
    std::size_t at = icmpv6::option;
    while (at + 8 <= message.size() && option_bytes(message, at) != 0) {
        at += option_bytes(message, at);
    }
    return at == message.size();
}

/// The link-layer address in the options, which `options_are_whole` has checked.
std::optional<net::MacAddress> link_layer_option(std::span<const std::byte> message, std::uint8_t wanted) noexcept {
    for (std::size_t at = icmpv6::option; at + 8 <= message.size();) {
        const std::size_t bytes = option_bytes(message, at);
        if (std::to_integer<std::uint8_t>(message[at]) == wanted && bytes == 8) {
            return mac_at(message.data() + at + 2);
        }
        at += bytes;
    }
    return std::nullopt;
}

NeighborMessage read_ipv6(std::span<const std::byte> frame, std::size_t ip) noexcept {
    if (frame.size() < ip + net::ipv6::header_bytes + icmpv6::option) {
        return {};
    }
    const std::byte* const header = frame.data() + ip;
    const std::size_t payload = load_big_endian<std::uint16_t>(header + net::ipv6::payload_length);
    if (std::to_integer<std::uint8_t>(header[net::ipv6::next_header]) != net::protocol_icmpv6 ||
        std::to_integer<std::uint8_t>(header[net::ipv6::hop_limit]) != neighbor_hop_limit || payload < icmpv6::option ||
        ip + net::ipv6::header_bytes + payload > frame.size()) {
        return {};
    }
    const auto message = frame.subspan(ip + net::ipv6::header_bytes, payload);
    const Sum sum = sum_of({header + net::ipv6::source, 32}) + sum_of(message) + swap_bytes(static_cast<std::uint16_t>(payload)) +
                    swap_bytes(std::uint16_t{net::protocol_icmpv6});
    if (fold(sum) != 0xffff || message[icmpv6::code] != std::byte{0} || !options_are_whole(message)) {
        return {};
    }
    const net::Address target = address_at(net::Family::ipv6, message.data() + icmpv6::target);
    NeighborMessage result;
    const auto type = std::to_integer<std::uint8_t>(message[icmpv6::type]);
    if (type == icmpv6::neighbor_solicitation) {
        const auto source_mac = link_layer_option(message, icmpv6::source_link_layer_address);
        result.question = NeighborQuestion{target, address_at(net::Family::ipv6, header + net::ipv6::source),
                                           source_mac.value_or(mac_at(frame.data() + net::ethernet::source))};
    } else if (type == icmpv6::neighbor_advertisement) {
        const auto mac = link_layer_option(message, icmpv6::target_link_layer_address);
        result.fact = NeighborFact{target, mac.value_or(mac_at(frame.data() + net::ethernet::source))};
    }
    return result;
}

/// Writes the Ethernet header and returns what follows it.
std::byte* write_link(NeighborFrame& frame, const NeighborLink& link, const net::MacAddress& destination, net::Family family) noexcept {
    frame.bytes = neighbor_frame_bytes(family, link.vlan_id.has_value());
    std::copy(destination.begin(), destination.end(), frame.data.begin());
    std::copy(link.own_mac.begin(), link.own_mac.end(), frame.data.begin() + net::ethernet::source);
    std::byte* type = frame.data.data() + net::ethernet::type;
    if (link.vlan_id) {
        store_big_endian(type, net::ethernet::type_vlan);
        store_big_endian(type + 2, *link.vlan_id);
        type += net::ethernet::vlan_tag_bytes;
    }
    store_big_endian(type, family == net::Family::ipv4 ? net::ethernet::type_arp : net::ethernet::type_ipv6);
    return type + 2;
}

void write_arp(std::byte* message, std::uint16_t operation, const net::MacAddress& sender_mac, const net::Address& sender,
               const net::MacAddress& target_mac, const net::Address& target) noexcept {
    store_big_endian(message, arp::fixed_part | operation);
    std::copy(sender_mac.begin(), sender_mac.end(), message + arp::sender_mac);
    std::copy_n(sender.bytes.begin(), 4, message + arp::sender_address);
    std::copy(target_mac.begin(), target_mac.end(), message + arp::target_mac);
    std::copy_n(target.bytes.begin(), 4, message + arp::target_address);
}

struct DiscoveryFields {
    std::uint8_t type, flags, option;
    net::Address source, destination, target;
};

void write_discovery(std::byte* ip, const DiscoveryFields& fields, const net::MacAddress& mac) noexcept {
    store_big_endian(ip, std::uint32_t{6} << 28);
    store_big_endian(ip + net::ipv6::payload_length, static_cast<std::uint16_t>(icmpv6::neighbor_bytes));
    ip[net::ipv6::next_header] = static_cast<std::byte>(net::protocol_icmpv6);
    ip[net::ipv6::hop_limit] = static_cast<std::byte>(neighbor_hop_limit);
    std::copy(fields.source.bytes.begin(), fields.source.bytes.end(), ip + net::ipv6::source);
    std::copy(fields.destination.bytes.begin(), fields.destination.bytes.end(), ip + net::ipv6::destination);
    std::byte* const message = ip + net::ipv6::header_bytes;
    message[icmpv6::type] = static_cast<std::byte>(fields.type);
    message[icmpv6::flags] = static_cast<std::byte>(fields.flags);
    std::copy(fields.target.bytes.begin(), fields.target.bytes.end(), message + icmpv6::target);
    message[icmpv6::option] = static_cast<std::byte>(fields.option);
    message[icmpv6::option + 1] = std::byte{1};
    std::copy(mac.begin(), mac.end(), message + icmpv6::option + 2);
    const Sum sum = sum_of({ip + net::ipv6::source, 32 + icmpv6::neighbor_bytes}) +
                    swap_bytes(static_cast<std::uint16_t>(icmpv6::neighbor_bytes)) + swap_bytes(std::uint16_t{net::protocol_icmpv6});
    store_raw(message + icmpv6::checksum, header_checksum(sum));
}

bool is_unspecified(const net::Address& address) noexcept { return address.bytes == net::Address{}.bytes; }

}  // namespace

NeighborMessage read_neighbor_message(std::span<const std::byte> frame) noexcept {
    if (frame.size() < net::ethernet::header_bytes + net::ethernet::vlan_tag_bytes) {
        return {};
    }
    std::size_t start = net::ethernet::header_bytes;
    auto type = load_big_endian<std::uint16_t>(frame.data() + net::ethernet::type);
    if (type == net::ethernet::type_vlan) {
        type = load_big_endian<std::uint16_t>(frame.data() + start + 2);
        start += net::ethernet::vlan_tag_bytes;
    }
    if (type == net::ethernet::type_arp) {
        return read_arp(frame.subspan(start));
    }
    return type == net::ethernet::type_ipv6 ? read_ipv6(frame, start) : NeighborMessage{};
}

NeighborFrame write_question(const NeighborLink& link, const net::Address& target, const net::Address& source) noexcept {
    NeighborFrame frame;
    if (target.family == net::Family::ipv4) {
        net::MacAddress broadcast;
        broadcast.fill(std::byte{0xff});
        write_arp(write_link(frame, link, broadcast, target.family), arp::request, link.own_mac, source, net::MacAddress{}, target);
        return frame;
    }
    // The solicited-node group ff02::1:ffXX:XXXX and its link-layer address (RFC 4291 section
    // 2.7.1, RFC 2464 section 7).
    net::Address group{.family = net::Family::ipv6, .bytes = {}};
    constexpr std::array<std::uint8_t, 13> group_prefix{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xff};
    std::transform(group_prefix.begin(), group_prefix.end(), group.bytes.begin(),
                   [](std::uint8_t byte) { return static_cast<std::byte>(byte); });
    std::copy_n(target.bytes.begin() + 13, 3, group.bytes.begin() + 13);
    const net::MacAddress group_mac{std::byte{0x33},  std::byte{0x33},  std::byte{0xff},
                                    target.bytes[13], target.bytes[14], target.bytes[15]};
    write_discovery(write_link(frame, link, group_mac, target.family),
                    {icmpv6::neighbor_solicitation, 0, icmpv6::source_link_layer_address, source, group, target}, link.own_mac);
    return frame;
}

NeighborFrame write_answer(const NeighborLink& link, const NeighborQuestion& question) noexcept {
    NeighborFrame frame;
    if (question.target.family == net::Family::ipv4) {
        write_arp(write_link(frame, link, question.asker_mac, net::Family::ipv4), arp::reply, link.own_mac, question.target,
                  question.asker_mac, question.asker);
        return frame;
    }
    constexpr std::uint8_t solicited = 0x40, override_entry = 0x20;
    const bool probe = is_unspecified(question.asker);  // RFC 4861 section 7.2.4: the answer then goes to all nodes, unsolicited
    net::Address destination = question.asker;
    net::MacAddress destination_mac = question.asker_mac;
    if (probe) {
        destination.bytes = {std::byte{0xff}, std::byte{0x02}};
        destination.bytes[15] = std::byte{1};
        destination_mac = {std::byte{0x33}, std::byte{0x33}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1}};
    }
    write_discovery(write_link(frame, link, destination_mac, net::Family::ipv6),
                    {icmpv6::neighbor_advertisement, static_cast<std::uint8_t>(override_entry | (probe ? 0 : solicited)),
                     icmpv6::target_link_layer_address, question.target, destination, question.target},
                    link.own_mac);
    return frame;
}

}  // namespace gatemark::loop
