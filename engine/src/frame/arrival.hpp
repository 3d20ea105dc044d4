#pragma once

#include "frame/signature.hpp"
#include "net/address.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace gatemark::frame {

enum class ArrivalKind : std::uint8_t {
    ours,         ///< a test frame of this trial, perhaps damaged
    other_trial,  ///< a test frame of this campaign, but of another trial
    neighbour,    ///< ARP or neighbour discovery
    icmp_error,   ///< an ICMP or ICMPv6 error message
    fragment,     ///< a later fragment of something: it carries no signature
    foreign,      ///< anything else
};

/// What a received frame is, judged by its bytes alone. Every offset lies within the frame.
struct Arrival {
    ArrivalKind kind = ArrivalKind::foreign;
    net::Family family = net::Family::ipv4;
    bool fragmented = false;
    std::uint8_t icmp_type = 0, icmp_code = 0;
    std::optional<std::uint16_t> vlan_id;
    std::size_t ip = 0, udp = 0, payload = 0;
};

/// Classifies a frame of arbitrary bytes. `trial_id` is that of the current trial.
[[nodiscard]] Arrival classify(std::span<const std::byte> frame, std::uint32_t trial_id) noexcept;

}  // namespace gatemark::frame
