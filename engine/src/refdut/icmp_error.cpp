#include "refdut/icmp_error.hpp"

#include "refdut/checksum.hpp"
#include "refdut/headers.hpp"

#include <algorithm>
#include <cstring>

namespace gatemark::refdut {

namespace {

constexpr std::uint8_t error_hop_limit = 64;
constexpr std::uint16_t prohibited_ipv4 = 3 << 8 | 13, unreachable_ipv6 = 1 << 8 | 3, source_policy_ipv6 = 1 << 8 | 5;

std::size_t write_ipv4(const Packet& refused, const View& view, const net::Address& source, std::byte* ip) noexcept {
    const std::size_t quoted = std::min(view.end(), view.upper + 8) - view.ip;
    std::byte* const icmp = ip + ipv4_bytes;
    store_big_endian(ip, std::uint16_t{0x4500});
    store_big_endian(ip + ipv4_at::total_length, static_cast<std::uint16_t>(ipv4_bytes + icmp_bytes + quoted));
    ip[ipv4_at::time_to_live] = static_cast<std::byte>(error_hop_limit);
    ip[ipv4_at::protocol] = static_cast<std::byte>(protocol_icmp);
    std::memcpy(ip + ipv4_at::source, source.bytes.data(), 4);
    std::memcpy(ip + ipv4_at::destination, refused.at(view.source()), 4);
    OnesSum header;
    header.add(ip, ipv4_bytes);
    store_big_endian(ip + ipv4_at::checksum, checksum_of(header));
    store_big_endian(icmp, prohibited_ipv4);
    std::memcpy(icmp + icmp_bytes, refused.at(view.ip), quoted);
    OnesSum sum;
    sum.add(icmp, icmp_bytes + quoted);
    store_big_endian(icmp + 2, checksum_of(sum));
    return ipv4_bytes + icmp_bytes + quoted;
}

std::size_t write_ipv6(const Packet& refused, const View& view, Drop why, const net::Address& source, std::byte* ip) noexcept {
    constexpr std::size_t quoted_max = 1280 - ipv6_bytes - icmp_bytes;
    const std::size_t quoted = std::min(view.ip_bytes, quoted_max);
    std::byte* const icmp = ip + ipv6_bytes;
    ip[0] = std::byte{0x60};
    store_big_endian(ip + ipv6_at::payload_length, static_cast<std::uint16_t>(icmp_bytes + quoted));
    ip[ipv6_at::next_header] = static_cast<std::byte>(protocol_icmpv6);
    ip[ipv6_at::hop_limit] = static_cast<std::byte>(error_hop_limit);
    std::memcpy(ip + ipv6_at::source, source.bytes.data(), 16);
    std::memcpy(ip + ipv6_at::destination, refused.at(view.source()), 16);
    store_big_endian(icmp, why == Drop::outside_port_set ? source_policy_ipv6 : unreachable_ipv6);
    std::memcpy(icmp + icmp_bytes, refused.at(view.ip), quoted);
    OnesSum sum;
    sum.add(ip + ipv6_at::source, 32);
    sum.add(static_cast<std::uint32_t>(icmp_bytes + quoted) + protocol_icmpv6);
    sum.add(icmp, icmp_bytes + quoted);
    store_big_endian(icmp + 2, checksum_of(sum));
    return ipv6_bytes + icmp_bytes + quoted;
}

}  // namespace

void write_refusal(const Packet& refused, Drop why, const net::Address& source, ErrorFrame& error) noexcept {
    View view;
    error.bytes = 0;
    if (read_headers(refused, view) != Drop::none || view.family != source.family) {
        return;
    }
    error.data.fill(std::byte{0});
    std::byte* const frame = error.data.data();
    std::memcpy(frame, refused.at(mac_bytes), mac_bytes);
    std::memcpy(frame + mac_bytes, refused.begin, mac_bytes);
    std::memcpy(frame + ethernet_type_at, refused.at(ethernet_type_at), view.ip - ethernet_type_at);
    const bool ipv4 = view.family == net::Family::ipv4;
    error.bytes =
        view.ip + (ipv4 ? write_ipv4(refused, view, source, frame + view.ip) : write_ipv6(refused, view, why, source, frame + view.ip));
}

}  // namespace gatemark::refdut
