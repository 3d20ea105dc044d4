#pragma once

#include "base/enum_set.hpp"
#include "frame/arrival.hpp"
#include "frame/stream.hpp"

#include <cstdint>

namespace gatemark::frame {

/// Why a test frame is not what a correct gateway would have made of it. Each reason has a counter;
/// a frame may have several reasons.
enum class Fault : std::uint8_t {
    destination_mac,
    source_mac,
    encapsulated,
    headers,
    family,
    fragment,
    length,
    vlan,
    ipv4_header,
    ipv4_header_checksum,
    identification,
    source_address,
    destination_address,
    source_port,
    destination_port,
    hop_limit,
    traffic_class,
    dont_fragment,
    flow_label,
    extension_headers,
    udp_length,
    udp_checksum,
    payload,
    index,
    mark,
    wrong_port,
    untranslated_source,
    mapping_changed,
    wrong_owner,
    unknown_connection,
    other_edge_port,
    other_edge_address,
    interface_identifier,
    outside_rule,
    tunnel_missing,
    tunnel_left,
    tunnel_header,
    tunnel_option,
    tunnel_traffic_class,
    tunnel_source,
    tunnel_destination,
    other_subscriber,
    outside_port_set,
    icmp_type,
    identifier,
    sequence,
    icmp_checksum,
    wrong_client,
    wrong_slot,
};
constexpr std::size_t fault_count = count_of<Fault>;
constexpr auto first_echo_fault = static_cast<std::size_t>(Fault::icmp_type);  ///< from here on: those that only echo messages have
constexpr auto fault_names = names_of<Fault>;

using Faults = EnumSet<Fault>;

/// Compares every field of a received test frame with what a correct gateway makes of the frame
/// that was sent (RFC 7915 sections 4 and 5, RFC 1812 section 5.2.1 for routers). The gateway may
/// send from any link-layer address but ours, a group's or zero, and must send to that of the host
/// which the frame goes to. A fault in a customer edge's address or port has a second reason, which
/// says what became of it; so has one of a subscriber's address in the outer header of a tunnel, if
/// it is that of another subscriber. Nothing more is said of a frame that came out in a tunnel and
/// should not, or should and did not. `values` are those of the frame's number in its class. The
/// source of an Initiator's frame is left out: only the state table knows it
/// (state/connection_keeper.hpp).
[[nodiscard]] Faults verify(std::span<const std::byte> frame, const Arrival& arrival, const Stream& stream,
                            const FrameValues& values) noexcept;

/// Whether the time stamp of a frame with these faults is as the Tester wrote it: the checksum says
/// so, or nothing is known against it (a frame may be sent without a checksum).
[[nodiscard]] constexpr bool time_stamp_is_intact(const Faults& faults) noexcept {
    return !faults.has(Fault::udp_checksum) && !faults.has(Fault::udp_length) && !faults.has(Fault::length) &&
           !faults.has(Fault::icmp_checksum);
}

/// Whether a frame is a UDP datagram from a host of the stream to a host of it. Nobody but the
/// Tester has these addresses, so it is the Tester's whatever its mark says. Behind a stateful
/// gateway the source is the gateway's own as well, and the datagram must have the stream's length.
[[nodiscard]] bool goes_between_hosts(std::span<const std::byte> frame, const Arrival& arrival, const Stream& stream) noexcept;

/// Whether a frame that passed `verify` has UDP checksum 0x0000 where 0xffff is correct, as its
/// stream's translator is known to write.
[[nodiscard]] bool has_zero_checksum(std::span<const std::byte> frame, const Arrival& arrival) noexcept;

}  // namespace gatemark::frame
