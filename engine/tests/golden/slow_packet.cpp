#include "golden/slow_packet.hpp"

#include <algorithm>
#include <stdexcept>

namespace gatemark::test {

namespace {

Bytes bytes_of(const net::Address& address) {
    return {address.bytes.begin(), address.bytes.begin() + (address.family == net::Family::ipv4 ? 4 : 16)};
}

std::uint16_t read_16(std::span<const std::byte> bytes, std::size_t at) {
    return static_cast<std::uint16_t>(256 * std::to_integer<unsigned>(bytes[at]) + std::to_integer<unsigned>(bytes[at + 1]));
}

net::Address read_address(net::Family family, std::span<const std::byte> bytes, std::size_t at) {
    net::Address address{.family = family, .bytes = {}};
    for (std::size_t i = 0; i < (family == net::Family::ipv4 ? 4U : 16U); ++i) {
        address.bytes[i] = bytes[at + i];
    }
    return address;
}

/// The UDP datagram with its checksum (RFC 768; RFC 8200 section 8.1).
Bytes write_udp(const SlowPacket& packet) {
    const auto true_length = static_cast<std::uint16_t>(8 + packet.payload.size());
    Bytes udp;
    append_16(udp, packet.source_port);
    append_16(udp, packet.destination_port);
    append_16(udp, packet.wrong_udp_length.value_or(true_length));
    append_16(udp, 0);
    append(udp, packet.payload);
    Bytes summed = bytes_of(packet.source);
    append(summed, bytes_of(packet.destination));
    append_16(summed, true_length);
    append_16(summed, 17);
    append(summed, udp);
    std::uint16_t checksum = slow_checksum(summed);
    if (checksum == 0) {
        checksum = 0xffff;
    }
    checksum = packet.udp_checksum_absent ? std::uint16_t{0} : static_cast<std::uint16_t>(checksum ^ packet.udp_checksum_xor);
    udp[6] = static_cast<std::byte>(checksum / 256);
    udp[7] = static_cast<std::byte>(checksum % 256);
    return udp;
}

/// The echo message with its checksum: ICMP over the message alone (RFC 792), ICMPv6 over the
/// pseudo-header of RFC 8200 section 8.1 as well (RFC 4443 section 2.3).
Bytes write_echo(const SlowPacket& packet) {
    Bytes message{static_cast<std::byte>(packet.echo->type), static_cast<std::byte>(packet.echo->code), {}, {}};
    append_16(message, packet.echo->identifier);
    append_16(message, packet.echo->sequence);
    append(message, packet.payload);
    Bytes summed;
    if (!packet.is_ipv4()) {
        append(summed, bytes_of(packet.source));
        append(summed, bytes_of(packet.destination));
        append_16(summed, static_cast<std::uint16_t>(message.size()));
        append_16(summed, 58);
    }
    append(summed, message);
    const auto checksum = static_cast<std::uint16_t>(slow_checksum(summed) ^ packet.echo->checksum_xor);
    message[2] = static_cast<std::byte>(checksum / 256);
    message[3] = static_cast<std::byte>(checksum % 256);
    return message;
}

std::byte protocol_of(const SlowPacket& packet) { return !packet.echo ? std::byte{17} : packet.is_ipv4() ? std::byte{1} : std::byte{58}; }

Bytes write_ipv4(const SlowPacket& packet, const Bytes& udp) {
    const std::size_t header_bytes = 20 + packet.options.size();
    Bytes header;
    header.push_back(static_cast<std::byte>(0x40 + header_bytes / 4));
    header.push_back(static_cast<std::byte>(packet.traffic_class));
    append_16(header, packet.wrong_ip_length.value_or(static_cast<std::uint16_t>(header_bytes + udp.size())));
    append_16(header, packet.identification);
    append_16(header, static_cast<std::uint16_t>((packet.reserved_bit ? 0x8000 : 0) + (packet.dont_fragment ? 0x4000 : 0) +
                                                 (packet.more_fragments ? 0x2000 : 0)));
    header.push_back(static_cast<std::byte>(packet.hop_limit));
    header.push_back(protocol_of(packet));
    append_16(header, 0);
    append(header, bytes_of(packet.source));
    append(header, bytes_of(packet.destination));
    append(header, packet.options);
    const auto checksum = static_cast<std::uint16_t>(slow_checksum(header) ^ packet.header_checksum_xor);
    header[10] = static_cast<std::byte>(checksum / 256);
    header[11] = static_cast<std::byte>(checksum % 256);
    return header;
}

Bytes write_ipv6(const SlowPacket& packet, const Bytes& udp) {
    const std::size_t payload_bytes = udp.size() + (packet.fragment_header ? 8 : 0);
    Bytes header;
    append_16(header, static_cast<std::uint16_t>(0x6000 + packet.traffic_class * 16 + packet.flow_label / 65536));
    append_16(header, static_cast<std::uint16_t>(packet.flow_label % 65536));
    append_16(header, packet.wrong_ip_length.value_or(static_cast<std::uint16_t>(payload_bytes)));
    header.push_back(packet.fragment_header ? std::byte{44} : protocol_of(packet));
    header.push_back(static_cast<std::byte>(packet.hop_limit));
    append(header, bytes_of(packet.source));
    append(header, bytes_of(packet.destination));
    if (packet.fragment_header) {
        header.push_back(protocol_of(packet));
        append(header, from_hex("00 0000 00001234"));
    }
    return header;
}

}  // namespace

Bytes write_packet(const SlowPacket& packet) {
    Bytes frame{packet.link_destination.begin(), packet.link_destination.end()};
    append(frame, packet.link_source);
    if (packet.vlan) {
        append_16(frame, 0x8100);
        append_16(frame, *packet.vlan);
    }
    append_16(frame, packet.is_ipv4() ? 0x0800 : 0x86dd);
    const Bytes udp = packet.echo ? write_echo(packet) : write_udp(packet);
    append(frame, packet.is_ipv4() ? write_ipv4(packet, udp) : write_ipv6(packet, udp));
    append(frame, udp);
    return frame;
}

SlowPacket read_packet(std::span<const std::byte> frame) {
    SlowPacket packet;
    std::copy_n(frame.begin(), 6, packet.link_destination.begin());
    std::copy_n(frame.begin() + 6, 6, packet.link_source.begin());
    std::size_t at = 12;
    if (read_16(frame, at) == 0x8100) {
        packet.vlan = read_16(frame, at + 2);
        at += 4;
    }
    const bool ipv4 = read_16(frame, at) == 0x0800;
    const std::size_t ip_bytes = ipv4 ? read_16(frame, at + 4) : 40U + read_16(frame, at + 6);
    const auto ip = frame.subspan(at + 2, ip_bytes);  // whatever is behind it is no part of the packet
    if (ipv4) {
        packet.traffic_class = std::to_integer<std::uint8_t>(ip[1]);
        packet.identification = read_16(ip, 4);
        packet.dont_fragment = (read_16(ip, 6) & 0x4000) != 0;
        packet.hop_limit = std::to_integer<std::uint8_t>(ip[8]);
        packet.source = read_address(net::Family::ipv4, ip, 12);
        packet.destination = read_address(net::Family::ipv4, ip, 16);
    } else {
        packet.traffic_class = static_cast<std::uint8_t>(read_16(ip, 0) / 16 % 256);
        packet.flow_label = 65536U * (read_16(ip, 0) % 16U) + read_16(ip, 2);
        packet.hop_limit = std::to_integer<std::uint8_t>(ip[7]);
        packet.source = read_address(net::Family::ipv6, ip, 8);
        packet.destination = read_address(net::Family::ipv6, ip, 24);
    }
    const auto udp = ip.subspan(ipv4 ? 20 : 40);
    if (std::to_integer<unsigned>(ip[ipv4 ? 9 : 6]) == (ipv4 ? 1U : 58U)) {
        packet.echo = {.type = std::to_integer<std::uint8_t>(udp[0]),
                       .code = std::to_integer<std::uint8_t>(udp[1]),
                       .identifier = read_16(udp, 4),
                       .sequence = read_16(udp, 6)};
        packet.payload.assign(udp.begin() + 8, udp.end());
        return packet;
    }
    packet.source_port = read_16(udp, 0);
    packet.destination_port = read_16(udp, 2);
    packet.payload.assign(udp.begin() + 8, udp.end());
    return packet;
}

SlowPacket routed(SlowPacket packet, unsigned decrement) {
    packet.hop_limit = static_cast<std::uint8_t>(packet.hop_limit - decrement);
    return packet;
}

SlowPacket translated(const SlowPacket& packet, unsigned decrement, const AddressFunction& address, std::uint16_t identification) {
    SlowPacket result;
    result.link_destination = packet.link_destination;
    result.link_source = packet.link_source;
    result.source = address(packet.source);
    result.destination = address(packet.destination);
    result.hop_limit = static_cast<std::uint8_t>(packet.hop_limit - decrement);
    result.traffic_class = packet.traffic_class;
    result.source_port = packet.source_port;
    result.destination_port = packet.destination_port;
    result.payload = packet.payload;
    if (packet.echo) {  // RFC 7915 sections 4.2 and 5.2
        result.echo = packet.echo;
        const bool is_request = packet.echo->type == (packet.is_ipv4() ? 8 : 128);
        result.echo->type = result.is_ipv4() ? (is_request ? 8 : 0) : (is_request ? 128 : 129);
    }
    if (result.is_ipv4()) {
        result.identification = identification;
        result.dont_fragment = 20 + 8 + result.payload.size() > 1260;
    }
    return result;
}

net::Address address_of(const std::string& text) {
    const auto address = net::parse_address(text);
    if (!address) {
        throw std::invalid_argument{text};
    }
    return *address;
}

AddressFunction embedding_96(const std::string& prefix) {
    return [base = address_of(prefix)](const net::Address& address) {
        net::Address result;
        if (address.family == net::Family::ipv4) {
            result = base;
            std::copy_n(address.bytes.begin(), 4, result.bytes.begin() + 12);
        } else {
            result.family = net::Family::ipv4;
            std::copy_n(address.bytes.begin() + 12, 4, result.bytes.begin());
        }
        return result;
    };
}

}  // namespace gatemark::test
