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
    not_ip,               ///< neither IPv4 nor IPv6 (or two VLAN tags)
    truncated,            ///< a length field has an impossible value
    bad_header_checksum,  ///< IPv4 header checksum
    hop_limit,            ///< it does not survive the decrement
    no_mapping,           ///< an address has no representation in the other family, or nothing is known of this destination
    no_state,             ///< from outside, and the table has no such connection
    table_full,           ///< the table is full, and its overflow behaviour is refuse or drop
    rate_limited,         ///< more new connections than the establishment rate allows
    pool_exhausted,       ///< no free port in the pool
    not_for_us,           ///< to the gateway itself, or multicast, broadcast, link-local
    unsupported,          ///< fragments, protocols other than UDP, source routes: through a translator only
    no_rule,              ///< MAP-T: an address that no rule has
    not_map_address,      ///< MAP-T: a rule has its prefix, but it is not the MAP address of a customer
    outside_port_set,     ///< MAP-T: a port that the customer does not have, or nobody
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
