#include "net/address.hpp"

#include <arpa/inet.h>

#include <charconv>
#include <cstdio>

namespace gatemark::net {

bool bit_of(const Address& address, unsigned index) noexcept {
    return ((std::to_integer<unsigned>(address.bytes[index / 8]) >> (7 - index % 8)) & 1U) != 0;
}

void set_bit(Address& address, unsigned index, bool value) noexcept {
    const auto mask = static_cast<std::byte>(1U << (7 - index % 8));
    address.bytes[index / 8] = value ? (address.bytes[index / 8] | mask) : (address.bytes[index / 8] & ~mask);
}

bool Prefix::contains(const Address& other) const noexcept {
    if (other.family != address.family) {
        return false;
    }
    for (unsigned i = 0; i < length; ++i) {
        if (bit_of(address, i) != bit_of(other, i)) {
            return false;
        }
    }
    return true;
}

std::optional<Address> parse_address(const std::string& text) {
    Address address;
    if (text.find('\0') != std::string::npos) {
        return std::nullopt;  // inet_pton would stop there and accept what precedes it
    }
    if (inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) {
        address.family = Family::ipv4;
        return address;
    }
    if (inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) {
        address.family = Family::ipv6;
        return address;
    }
    return std::nullopt;
}

std::optional<Prefix> parse_prefix(const std::string& text) {
    const auto slash = text.find('/');
    if (slash == std::string::npos) {
        return std::nullopt;
    }
    const auto address = parse_address(text.substr(0, slash));
    unsigned length = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, status] = std::from_chars(text.data() + slash + 1, end, length);
    if (!address || status != std::errc{} || stop != end || length > 8 * address_bytes(address->family)) {
        return std::nullopt;
    }
    for (unsigned i = length; i < 8 * address_bytes(address->family); ++i) {
        if (bit_of(*address, i)) {
            return std::nullopt;
        }
    }
    return Prefix{*address, length};
}

std::optional<MacAddress> parse_mac(const std::string& text) {
    MacAddress mac{};
    if (text.size() != 17) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < mac.size(); ++i) {
        unsigned byte = 0;
        const char* const start = text.data() + 3 * i;
        const auto [stop, status] = std::from_chars(start, start + 2, byte, 16);
        if (status != std::errc{} || stop != start + 2 || (i < 5 && text[3 * i + 2] != ':')) {
            return std::nullopt;
        }
        mac[i] = static_cast<std::byte>(byte);
    }
    return mac;
}

std::string to_text(const Address& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(address.family == Family::ipv4 ? AF_INET : AF_INET6, address.bytes.data(), text.data(), text.size());
    return text.data();
}

std::string to_text(const MacAddress& mac) {
    std::array<char, 18> text{};
    std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", std::to_integer<unsigned>(mac[0]),
                  std::to_integer<unsigned>(mac[1]), std::to_integer<unsigned>(mac[2]), std::to_integer<unsigned>(mac[3]),
                  std::to_integer<unsigned>(mac[4]), std::to_integer<unsigned>(mac[5]));
    return text.data();
}

}  // namespace gatemark::net
