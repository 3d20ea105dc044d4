#pragma once

#include "net/address.hpp"
#include "refdut/packet.hpp"

#include <array>
#include <cstddef>

namespace gatemark::refdut {

constexpr std::size_t error_frame_bytes_max = 1280 + 18;

/// An ICMP error as it is in a buffer, without FCS.
struct ErrorFrame {
    std::size_t bytes = 0;
    std::array<std::byte, error_frame_bytes_max> data{};
};

/// Tells the sender of a frame that was refused (Notes::error_wanted): destination unreachable,
/// IPv4 code 13 (RFC 1812 section 5.2.7.1), IPv6 code 3 (RFC 6146 section 3.5.1), but code 5 if the
/// source does not have its port (`why` is outside_port_set; RFC 7597 section 8.1). `source` is the
/// gateway's address, of the frame's family, on the side that the frame came from. The error leaves
/// there, with the frame's Ethernet addresses swapped and its VLAN tag. `bytes` is 0 if the frame
/// is not an IP packet of that family.
void write_refusal(const Packet& refused, Drop why, const net::Address& source, ErrorFrame& error) noexcept;

}  // namespace gatemark::refdut
