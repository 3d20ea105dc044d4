#include "frame/arrival.hpp"

#include "base/bytes.hpp"
#include "net/headers.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace gatemark::frame {

namespace {

std::uint8_t byte_at(std::span<const std::byte> frame, std::size_t at) noexcept { return std::to_integer<std::uint8_t>(frame[at]); }

static_assert(net::icmp::header_bytes == net::udp::header_bytes, "one layout serves both");

/// For a UDP datagram or an echo message.
void classify_data(std::span<const std::byte> frame, std::uint32_t trial_id, Arrival& arrival) noexcept {
    arrival.payload = arrival.udp + net::udp::header_bytes;
    if (arrival.payload + signature::bytes > frame.size()) {
        return;
    }
    const std::uint32_t frame_trial_id = signature::trial_id(frame.data() + arrival.payload);
    if (frame_trial_id == trial_id) {
        arrival.kind = ArrivalKind::ours;
    } else if (signature::same_campaign(frame_trial_id, trial_id)) {
        arrival.kind = ArrivalKind::other_trial;
    }
}

/// Of a packet in a tunnel, notes in `outer` that another one is inside.
[[gnu::always_inline]] inline void classify_ipv4(std::span<const std::byte> frame, std::uint32_t trial_id, Arrival& arrival) noexcept {
    if (arrival.ip + net::ipv4::header_bytes > frame.size()) {
        return;
    }
    const std::size_t header = std::size_t{4} * (byte_at(frame, arrival.ip) & 0x0fU);
    const std::uint16_t fragment = load_big_endian<std::uint16_t>(frame.data() + arrival.ip + net::ipv4::fragment);
    if ((byte_at(frame, arrival.ip) >> 4) != 4 || header < net::ipv4::header_bytes ||
        arrival.ip + header + net::udp::header_bytes > frame.size()) {
        return;
    }
    if ((fragment & net::ipv4::fragment_offset_mask) != 0) {
        arrival.kind = ArrivalKind::fragment;
        return;
    }
    if ((fragment & net::ipv4::more_fragments) != 0) {
        arrival.fragmented = true;
    }
    arrival.udp = arrival.ip + header;
    const std::uint8_t protocol = byte_at(frame, arrival.ip + net::ipv4::protocol);
    if (protocol == net::protocol_udp) {
        classify_data(frame, trial_id, arrival);
    } else if (protocol == net::protocol_icmp) {
        arrival.is_icmp = true;
        arrival.icmp_type = byte_at(frame, arrival.udp);
        arrival.icmp_code = byte_at(frame, arrival.udp + 1);
        // RFC 792: destination unreachable, source quench, redirect, time exceeded, parameter
        // problem
        const bool error = arrival.icmp_type == 3 || arrival.icmp_type == 4 || arrival.icmp_type == 5 || arrival.icmp_type == 11 ||
                           arrival.icmp_type == 12;
        arrival.kind = error ? ArrivalKind::icmp_error : ArrivalKind::foreign;
    } else if (protocol == net::protocol_ipv6) {
        arrival.outer = arrival.ip;
    }
}

[[gnu::always_inline]] inline void classify_ipv6(std::span<const std::byte> frame, std::uint32_t trial_id, Arrival& arrival) noexcept {
    if (arrival.ip + net::ipv6::header_bytes + net::udp::header_bytes > frame.size() || (byte_at(frame, arrival.ip) >> 4) != 6) {
        return;
    }
    arrival.udp = arrival.ip + net::ipv6::header_bytes;
    std::uint8_t next = byte_at(frame, arrival.ip + net::ipv6::next_header);
    while (next == net::protocol_hop_by_hop || next == net::protocol_routing || next == net::protocol_destination_options ||
           next == net::protocol_fragment) {
        const std::uint8_t header = next;
        next = byte_at(frame, arrival.udp);
        if (header == net::protocol_hop_by_hop && next == net::protocol_icmpv6) {  // so do multicast listener reports start
            arrival.kind = ArrivalKind::neighbour;
            return;
        }
        if (header == net::protocol_fragment) {
            if ((load_big_endian<std::uint16_t>(frame.data() + arrival.udp + 2) & 0xfff8U) != 0) {
                arrival.kind = ArrivalKind::fragment;
                return;
            }
            arrival.fragmented = true;
        }
        const std::size_t units = header == net::protocol_fragment ? 0 : byte_at(frame, arrival.udp + 1);
        const std::size_t next_at = arrival.udp + net::ipv6::options_header_bytes * (1 + units);
        if (next_at + net::udp::header_bytes > frame.size()) {
            return;
        }
        arrival.udp = next_at;
    }
    if (next == net::protocol_udp) {
        classify_data(frame, trial_id, arrival);
    } else if (next == net::protocol_icmpv6) {
        arrival.is_icmp = true;
        arrival.icmp_type = byte_at(frame, arrival.udp + net::icmpv6::type);
        arrival.icmp_code = byte_at(frame, arrival.udp + net::icmpv6::code);
        const bool neighbour = arrival.icmp_type >= net::icmpv6::router_solicitation && arrival.icmp_type <= net::icmpv6::redirect;
        const bool error =
            arrival.icmp_type >= 1 && arrival.icmp_type <= 127;  // RFC 4443 section 2.1: error messages have the high bit clear
        arrival.asks_or_answers =
            arrival.icmp_type == net::icmpv6::neighbor_solicitation || arrival.icmp_type == net::icmpv6::neighbor_advertisement;
        arrival.kind = neighbour ? ArrivalKind::neighbour : error ? ArrivalKind::icmp_error : ArrivalKind::foreign;
    } else if (next == net::protocol_ipv4) {
        arrival.outer = arrival.ip;
    }
}

/// Goes on with the packet inside, if there is one. A neighbour speaks outside of tunnels.
void classify_inside(std::span<const std::byte> frame, std::uint32_t trial_id, Arrival& arrival) noexcept {
    if (!arrival.in_tunnel()) {
        return;
    }
    const std::size_t outer = std::exchange(arrival.ip, std::exchange(arrival.udp, 0));
    if (arrival.family == net::Family::ipv6) {
        arrival.family = net::Family::ipv4;
        classify_ipv4(frame, trial_id, arrival);
    } else {
        arrival.family = net::Family::ipv6;
        classify_ipv6(frame, trial_id, arrival);
    }
    arrival.outer = outer;
    if (arrival.kind == ArrivalKind::neighbour) {
        arrival.kind = ArrivalKind::foreign;
        arrival.asks_or_answers = false;
    }
}

Arrival classify_by_headers(std::span<const std::byte> frame, std::uint32_t trial_id) noexcept {
    Arrival arrival;
    if (frame.size() < net::ethernet::header_bytes + net::ethernet::vlan_tag_bytes) {
        return arrival;
    }
    std::uint16_t type = load_big_endian<std::uint16_t>(frame.data() + net::ethernet::type);
    arrival.ip = net::ethernet::header_bytes;
    if (type == net::ethernet::type_vlan) {
        arrival.vlan_id = static_cast<std::uint16_t>(load_big_endian<std::uint16_t>(frame.data() + net::ethernet::header_bytes) & 0x0fffU);
        type = load_big_endian<std::uint16_t>(frame.data() + net::ethernet::header_bytes + 2);
        arrival.ip += net::ethernet::vlan_tag_bytes;
    }
    if (type == net::ethernet::type_ipv4) {
        arrival.family = net::Family::ipv4;
        classify_ipv4(frame, trial_id, arrival);
    } else if (type == net::ethernet::type_ipv6) {
        arrival.family = net::Family::ipv6;
        classify_ipv6(frame, trial_id, arrival);
    } else if (type == net::ethernet::type_arp) {
        arrival.kind = ArrivalKind::neighbour;
        arrival.asks_or_answers = true;
    }
    return arrival;
}

/// Looks for the mark of a test frame of this trial anywhere in a frame whose headers lead to none.
/// By chance other octets look like one at a position with a probability of 2^-38.
void find_misplaced_mark(std::span<const std::byte> frame, std::uint32_t trial_id, Arrival& arrival) noexcept {
    std::array<std::byte, sizeof trial_id> wanted;
    store_big_endian(wanted.data(), trial_id);
    for (std::size_t at = net::ethernet::header_bytes; at + signature::bytes <= frame.size(); ++at) {
        const std::size_t last = frame.size() - signature::bytes + wanted.size();
        const void* const match = memmem(frame.data() + at, last - at, wanted.data(), wanted.size());
        if (match == nullptr) {
            return;
        }
        at = static_cast<std::size_t>(static_cast<const std::byte*>(match) - frame.data());
        if (signature::is_stream_id(signature::stream(frame.data() + at))) {
            arrival.kind = ArrivalKind::ours;
            arrival.misplaced = true;
            arrival.outer = 0;
            arrival.payload = at;
            return;
        }
    }
}

/// For a frame whose first headers lead to nothing known.
[[gnu::noinline]] void classify_further(std::span<const std::byte> frame, std::uint32_t trial_id, Arrival& arrival) noexcept {
    classify_inside(frame, trial_id, arrival);
    if (arrival.kind == ArrivalKind::foreign) {
        find_misplaced_mark(frame, trial_id, arrival);
    }
}

}  // namespace

Arrival classify(std::span<const std::byte> frame, std::uint32_t trial_id) noexcept {
    Arrival arrival = classify_by_headers(frame, trial_id);
    if (arrival.kind == ArrivalKind::foreign) {
        classify_further(frame, trial_id, arrival);
    }
    return arrival;
}

Arrival classify_echo(std::span<const std::byte> frame, std::uint32_t trial_id) noexcept {
    Arrival arrival = classify_by_headers(frame, trial_id);
    if (arrival.kind == ArrivalKind::foreign) {
        classify_inside(frame, trial_id, arrival);
    }
    if (arrival.is_icmp && arrival.kind == ArrivalKind::foreign) {
        classify_data(frame, trial_id, arrival);
    } else if (arrival.kind == ArrivalKind::ours) {
        arrival.misplaced = true;  // in a UDP datagram, which no frame of this trial is
    }
    if (arrival.kind == ArrivalKind::foreign) {
        find_misplaced_mark(frame, trial_id, arrival);
    }
    return arrival;
}

}  // namespace gatemark::frame
