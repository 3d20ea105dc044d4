#pragma once

#include "frame/signature.hpp"
#include "net/address.hpp"
#include "net/headers.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace gatemark::frame {

enum class ArrivalKind : std::uint8_t {
    ours,         ///< it carries the mark of a test frame of this trial, and may be damaged or misplaced
    other_trial,  ///< a test frame of this campaign, but of another trial
    neighbour,    ///< ARP, neighbour or router discovery, a multicast listener report
    icmp_error,   ///< an ICMP or ICMPv6 error message
    fragment,     ///< a later fragment of something: it carries no signature
    foreign,      ///< anything else
};

/// What a received frame is, judged by its bytes alone. Every offset lies within the frame.
struct Arrival {
    ArrivalKind kind = ArrivalKind::foreign;
    net::Family family = net::Family::ipv4;
    bool fragmented = false;
    bool misplaced = false;        ///< ours, but no headers of UDP in IP lead to the mark; `ip` and `udp` say nothing
    bool is_icmp = false;          ///< of its family; `udp` is then where the message begins
    bool asks_or_answers = false;  ///< a neighbour's message that may be about a link-layer address
    std::uint8_t icmp_type = 0, icmp_code = 0;
    std::optional<std::uint16_t> vlan_id;
    std::size_t outer = 0;  ///< in a tunnel, where the outer header is; `family`, `ip` and all that follows are of the packet inside
    std::size_t ip = 0, udp = 0;
    std::size_t payload = 0;  ///< of a UDP datagram, or where a misplaced mark is; else 0

    [[nodiscard]] bool in_tunnel() const noexcept { return outer != 0; }
    [[nodiscard]] std::size_t source_address() const noexcept { return ip + net::source_in(family); }
    [[nodiscard]] std::size_t destination_address() const noexcept { return ip + net::destination_in(family); }
};

/// Classifies a frame of arbitrary bytes, one tunnel (IPv4 in IPv6, IPv6 in IPv4) included.
/// `trial_id` is that of the current trial.
[[nodiscard]] Arrival classify(std::span<const std::byte> frame, std::uint32_t trial_id) noexcept;

/// The same in an echo trial, whose frames are echo messages: the mark is at the beginning of their
/// data. Whatever else carries it is misplaced.
[[nodiscard]] Arrival classify_echo(std::span<const std::byte> frame, std::uint32_t trial_id) noexcept;

}  // namespace gatemark::frame
