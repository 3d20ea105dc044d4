#pragma once

#include "net/address.hpp"
#include "refdut/packet.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace gatemark::refdut {

/// One side of the gateway as seen from its link.
struct NeighbourConfig {
    net::MacAddress own_mac{};
    std::optional<std::uint16_t> vlan_id;
    std::optional<net::Address> ipv4, ipv6;
    std::optional<net::MacAddress> peer_mac;  ///< if given, nothing is learned
};

/// An ARP or neighbour discovery message as it is in a buffer, padded to the Ethernet minimum,
/// without FCS.
struct NeighbourFrame {
    static constexpr std::size_t bytes_max = 90;
    std::size_t bytes = 0;
    std::array<std::byte, bytes_max> data{};

    [[nodiscard]] std::span<const std::byte> span() const noexcept { return std::span{data}.first(bytes); }
};

/// ARP (RFC 826) and neighbour discovery (RFC 4861) of one side. Each side has a single peer, so
/// one link-layer address is learned for the whole side, from any ARP message, solicitation or
/// advertisement of another node.
class Neighbours {
public:
    explicit Neighbours(const NeighbourConfig& config) noexcept;

    struct Taken {
        bool consumed = false;  ///< it was ARP or ICMPv6 neighbour or router discovery, which is not forwarded
        bool answer = false;    ///< `answer_frame` must be sent on the same side
        NeighbourFrame answer_frame;
    };
    /// Reads any frame that arrived on this side. Cheap for frames that are not neighbour messages.
    void take(std::span<const std::byte> frame, Taken& taken) noexcept;

    [[nodiscard]] const std::optional<net::MacAddress>& peer() const noexcept { return peer_; }
    void forget() noexcept { peer_ = config_.peer_mac; }
    /// Asks for `target` from this side's address of the same family, which must be configured;
    /// else `bytes` is 0.
    [[nodiscard]] NeighbourFrame question(const net::Address& target) const noexcept;
    /// Writes the Ethernet addresses of a frame that leaves on this side. False if the peer is not
    /// known yet.
    [[nodiscard]] bool address(Packet& packet) const noexcept;

    [[nodiscard]] const NeighbourConfig& config() const noexcept { return config_; }

private:
    void learn(const net::MacAddress& mac) noexcept;
    void take_arp(std::span<const std::byte> arp, Taken& taken) noexcept;
    void take_icmpv6(std::span<const std::byte> packet, Taken& taken) noexcept;

    NeighbourConfig config_;
    std::optional<net::MacAddress> peer_;
};

}  // namespace gatemark::refdut
