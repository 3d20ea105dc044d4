#pragma once

#include "base/names.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

/// The reference gateway. Its packet functions are written independently of the Tester's (frame/,
/// net/address_mapping), from the RFCs alone, so that a mistake in one of them shows: the two
/// programs disagree.
namespace gatemark::refdut {

enum class Side : std::uint8_t { left, right };

[[nodiscard]] constexpr Side other(Side side) noexcept { return side == Side::left ? Side::right : Side::left; }

/// An Ethernet frame in a buffer, without FCS, with one VLAN tag at most. Translation may move
/// `begin` and changes `bytes`; headroom and tailroom are the free bytes of the buffer before and
/// after the frame.
struct Packet {
    std::byte* begin = nullptr;
    std::size_t bytes = 0, headroom = 0, tailroom = 0;

    [[nodiscard]] std::byte* at(std::size_t offset) const noexcept { return begin + offset; }
};

/// Why a frame is not forwarded.
enum class Drop : std::uint8_t {
    none,                 ///< it is forwarded
    not_ip,               ///< neither IPv4 nor IPv6, or in two VLAN tags
    truncated,            ///< a length that cannot be
    bad_header_checksum,  ///< a wrong checksum of the IPv4 header
    hop_limit,            ///< it would not survive the decrement
    no_mapping,           ///< an address without a counterpart in the other family; a tunnel to another relay
    no_state,             ///< from outside, to no connection
    table_full,           ///< a new connection that found no place
    rate_limited,         ///< a new connection that came faster than the establishment rate
    pool_exhausted,       ///< a new connection that found no public port
    not_for_us,           ///< to the gateway itself, multicast, broadcast, link-local
    /// where addresses or ports are translated: fragments, anything but UDP and echo messages, what
    /// would become too long; to the relay: no packet right behind the header
    unsupported,
    /// MAP, 6rd: an address of no rule: from inside the source, from outside the destination; to a
    /// customer edge the source
    no_rule,
    /// MAP: a rule has its prefix, but it is not the MAP address of the customer; of a tunnel: it
    /// does not belong to the packet's source
    not_map_address,
    outside_port_set,  ///< MAP: a port that the customer does not have; from outside, that no customer has
};
constexpr std::size_t drop_count = count_of<Drop>;
constexpr auto drop_names = names_of<Drop>;

/// The VLAN id of the frame's tag.
[[nodiscard]] std::optional<std::uint16_t> vlan_of(const Packet& packet) noexcept;
/// Adds, changes or removes the VLAN tag; priority bits are kept. Changes nothing and returns false
/// if the buffer has no room.
[[nodiscard]] bool set_vlan(Packet& packet, std::optional<std::uint16_t> vlan_id) noexcept;

/// Makes the frame longer at its front by `bytes`, moving the first `keep` bytes there (the link
/// header); what lies between is undefined. Uses the headroom, else moves the rest into the
/// tailroom. Changes nothing and returns false if there is no room.
[[nodiscard]] bool open_gap(Packet& packet, std::size_t keep, std::size_t bytes) noexcept;
/// Removes `bytes` bytes after the first `keep` bytes.
void close_gap(Packet& packet, std::size_t keep, std::size_t bytes) noexcept;

}  // namespace gatemark::refdut
