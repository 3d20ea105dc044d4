#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gatemark::net {

enum class Family : std::uint8_t { ipv4, ipv6 };

[[nodiscard]] constexpr Family other_family(Family family) noexcept { return family == Family::ipv4 ? Family::ipv6 : Family::ipv4; }
[[nodiscard]] constexpr std::size_t address_bytes(Family family) noexcept { return family == Family::ipv4 ? 4 : 16; }

/// An IPv4 or IPv6 address in network order; an IPv4 address takes the first four bytes, the rest
/// is zero.
struct Address {
    Family family = Family::ipv4;
    std::array<std::byte, 16> bytes{};

    friend bool operator==(const Address&, const Address&) = default;
};

struct Prefix {
    Address address;
    unsigned length = 0;  ///< bits

    [[nodiscard]] bool contains(const Address& other) const noexcept;
    friend bool operator==(const Prefix&, const Prefix&) = default;
};

constexpr std::size_t mac_bytes = 6;
using MacAddress = std::array<std::byte, mac_bytes>;
constexpr std::byte group_bit{0x01};  ///< of the first byte of a MAC address: it is that of many hosts

[[nodiscard]] std::optional<Address> parse_address(const std::string& text);
/// Takes "2001:db8::/32"; the bits below the length must be zero.
[[nodiscard]] std::optional<Prefix> parse_prefix(const std::string& text);
[[nodiscard]] std::optional<MacAddress> parse_mac(const std::string& text);
[[nodiscard]] std::string to_text(const Address& address);
[[nodiscard]] std::string to_text(const MacAddress& mac);

[[nodiscard]] bool bit_of(const Address& address, unsigned index) noexcept;
void set_bit(Address& address, unsigned index, bool value) noexcept;

}  // namespace gatemark::net
