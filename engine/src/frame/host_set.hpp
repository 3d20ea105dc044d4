#pragma once

#include "frame/value_sequence.hpp"
#include "net/address.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace gatemark::frame {

/// The hosts that the Tester emulates on one side in one family: one address whose two bytes at
/// `offset` take the values of `part`. As a destination they may be in up to 256 networks, numbered
/// from 0 (RFC 2544 section 12: third byte of IPv4, bits 56 to 63 of IPv6).
struct HostSet {
    net::Address address{};
    std::size_t offset = 0;
    ValueRange part{};
    std::uint16_t networks = 1;  ///< 1: the address stands as it is

    [[nodiscard]] bool many_networks() const noexcept { return networks != 1; }
    [[nodiscard]] bool varies() const noexcept { return part.mode != ValueMode::fixed; }
    [[nodiscard]] std::size_t network_byte() const noexcept { return address.family == net::Family::ipv4 ? 2 : 7; }
    /// The host with these values. With IPv4 and offset 2 the network shares a byte with the part,
    /// whose upper byte is then zero.
    [[nodiscard]] net::Address host(std::uint16_t value, std::uint8_t network) const noexcept {
        net::Address result = address;
        if (varies()) {
            result.bytes[offset] = static_cast<std::byte>(value >> 8);
            result.bytes[offset + 1] = static_cast<std::byte>(value & 0xff);
        }
        if (many_networks()) {
            const bool shared = varies() && (network_byte() == offset || network_byte() == offset + 1);
            result.bytes[network_byte()] = (shared ? result.bytes[network_byte()] : std::byte{0}) | static_cast<std::byte>(network);
        }
        return result;
    }
    /// Whether `other` is one of these hosts, for which ARP and neighbour discovery are answered.
    [[nodiscard]] bool contains(const net::Address& other) const noexcept {
        if (other.family != address.family) {
            return false;
        }
        if (other == address) {
            return true;  // the base address belongs to the Tester itself: it is the source of neighbour requests
        }
        const auto value = varies() ? static_cast<std::uint16_t>((std::to_integer<unsigned>(other.bytes[offset]) << 8) |
                                                                 std::to_integer<unsigned>(other.bytes[offset + 1]))
                                    : std::uint16_t{0};
        const bool network_shares = many_networks() && varies() && (network_byte() == offset || network_byte() == offset + 1);
        const auto host_value = network_shares ? static_cast<std::uint16_t>(value & (network_byte() == offset ? 0x00ff : 0xff00)) : value;
        if (varies() && (host_value < part.minimum || host_value > part.maximum)) {
            return false;
        }
        const auto network = many_networks() ? std::to_integer<std::uint8_t>(other.bytes[network_byte()]) : std::uint8_t{0};
        return network < networks && host(host_value, network) == other;
    }
    /// A number below 2^25 that no other host of this set has, nor one of the same side's set in
    /// the other family: the family, the byte of the networks and the two bytes at `offset`. It
    /// follows from the address alone, however many networks a stream sends to.
    [[nodiscard]] std::uint32_t number_of(const net::Address& host) const noexcept {
        const auto byte = [&](std::size_t at) { return std::to_integer<std::uint32_t>(host.bytes[at]); };
        return (host.family == net::Family::ipv6 ? 1U << 24 : 0U) | byte(network_byte()) << 16 | byte(offset) << 8 | byte(offset + 1);
    }
    /// The values of the two bytes in `other`, if it is one of these hosts; with one network only.
    [[nodiscard]] std::optional<std::uint16_t> value_of(const net::Address& other) const noexcept {
        const auto value = varies() ? static_cast<std::uint16_t>((std::to_integer<unsigned>(other.bytes[offset]) << 8) |
                                                                 std::to_integer<unsigned>(other.bytes[offset + 1]))
                                    : part.minimum;
        return value >= part.minimum && value <= part.maximum && host(value, 0) == other ? std::optional{value} : std::nullopt;
    }
    friend bool operator==(const HostSet&, const HostSet&) = default;
};

}  // namespace gatemark::frame
