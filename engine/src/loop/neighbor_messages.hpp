#pragma once

#include "net/address.hpp"
#include "net/host_macs.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

/// ARP (RFC 826) and neighbour discovery (RFC 4861) messages: read from untrusted bytes, written
/// complete.
namespace gatemark::loop {

/// A node asks for the link-layer address of `target`.
struct NeighborQuestion {
    net::Address target, asker;  ///< the asker is :: in duplicate address detection
    net::MacAddress asker_mac{};
};
/// A node announces the link-layer address of `owner`.
struct NeighborFact {
    net::Address owner;
    net::MacAddress mac{};
};
struct NeighborMessage {
    std::optional<NeighborQuestion> question;
    std::optional<NeighborFact> fact;
};

/// What a frame asks or announces; both are absent if it is damaged or no neighbour message.
[[nodiscard]] NeighborMessage read_neighbor_message(std::span<const std::byte> frame) noexcept;

constexpr std::size_t neighbor_frame_bytes_max = 90;

/// A frame as it is in a buffer (without FCS).
struct NeighborFrame {
    std::size_t bytes = 0;
    std::array<std::byte, neighbor_frame_bytes_max> data{};
};

struct NeighborLink {
    net::MacAddress own_mac{};
    std::optional<std::uint16_t> vlan_id;
    std::optional<net::HostMacs> host_macs{};  ///< if absent, every emulated host has `own_mac`
};

/// The length in a buffer of a frame with a message of this family.
[[nodiscard]] constexpr std::size_t neighbor_frame_bytes(net::Family family, bool with_vlan) noexcept {
    return (family == net::Family::ipv4 ? std::size_t{60} : std::size_t{86}) + (with_vlan ? 4 : 0);
}

/// An ARP request or neighbour solicitation for `target`, sent from `source`. It also tells the
/// target where `source` is (the learning frame of RFC 2544 appendix C.2.4.1).
[[nodiscard]] NeighborFrame write_question(const NeighborLink& link, const net::Address& target, const net::Address& source) noexcept;
/// The ARP reply or solicited neighbour advertisement that answers `question`.
[[nodiscard]] NeighborFrame write_answer(const NeighborLink& link, const NeighborQuestion& question) noexcept;

}  // namespace gatemark::loop
