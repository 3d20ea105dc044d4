#pragma once

#include "frame/host_set.hpp"
#include "net/headers.hpp"

#include <cstdint>
#include <optional>

namespace gatemark::frame {

/// The congestion field of an outer header, the last two bits of its traffic class: that of the
/// packet inside or *not capable* (normal and compatibility mode of RFC 6040 section 4.1), or that
/// of the packet, but *capable* where that has experienced congestion (full functionality of RFC
/// 3168 section 9.1.1, as Linux has it).
enum class OuterCongestion : std::uint8_t { normal, compatibility, full_functionality };

namespace congestion {
constexpr std::uint8_t mask = 3, capable = 2, experienced = 3;
}

/// An end of a stream is reached through a tunnel: there each packet is inside another one, IPv4 in
/// IPv6 (RFC 2473) or IPv6 in IPv4 (RFC 4213 section 3). The outer addresses are those of the
/// subscriber that the packet belongs to, and of the gateway; of a gateway that is a subscriber
/// itself, those of the one relay behind which the whole end is, and its own. They enter no
/// checksum of the packet inside.
struct TunnelRequest {
    net::Address gateway{};  ///< its end of every tunnel, of the outer family
    /// Numbered as the end's hosts, of connections each with all, or a single one before all hosts;
    /// absent: the end's edges.
    std::optional<HostSet> subscribers{};
    std::uint8_t hop_limit = 64;                       ///< in the outer header, as sent
    std::optional<std::uint8_t> expected_hop_limit{};  ///< as it must arrive; absent: any
    std::optional<std::uint8_t> traffic_class{};       ///< in the outer header; absent: that of the packet inside (RFC 2473 section 6.4)
    std::optional<OuterCongestion> congestion{};       ///< absent: as the rest of that traffic class

    /// Whether all packets have the same outer addresses.
    [[nodiscard]] bool is_single() const noexcept { return subscribers && !subscribers->varies(); }
    /// The traffic class in the outer header of a packet with the class `inside`.
    [[nodiscard]] constexpr std::uint8_t outer_class(std::uint8_t inside) const noexcept {
        const std::uint8_t whole = traffic_class.value_or(inside);
        if (!congestion) {
            return whole;
        }
        const auto rest = static_cast<std::uint8_t>(whole & ~congestion::mask),
                   field = static_cast<std::uint8_t>(inside & congestion::mask);
        switch (*congestion) {
            case OuterCongestion::normal: return rest | field;
            case OuterCongestion::compatibility: return rest;
            default: return rest | (field == congestion::experienced ? congestion::capable : field);
        }
    }
};

/// What the outer header says of a packet of this family inside.
[[nodiscard]] constexpr std::uint8_t protocol_of_inner(net::Family inner) noexcept {
    return inner == net::Family::ipv4 ? net::protocol_ipv4 : net::protocol_ipv6;
}

}  // namespace gatemark::frame
