#pragma once

#include "base/wide.hpp"
#include "net/address.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace gatemark::refdut {

/// An IPv6 address as a number; the first byte is the most significant.
using Ipv6Number = Wide;
using Ipv4Number = std::uint32_t;

[[nodiscard]] Ipv6Number load_ipv6(const std::byte* bytes) noexcept;
void store_ipv6(std::byte* bytes, Ipv6Number number) noexcept;

/// Multicast, broadcast, unspecified, loopback and link-local addresses stay on their link (RFC
/// 1812 section 5.3.7, RFC 4291 section 2.5.6).
[[nodiscard]] bool stays_on_link(const std::byte* address, net::Family family) noexcept;

/// One explicit address mapping (RFC 7757 section 3.1): the bits after both prefixes are the same.
struct EamEntry {
    net::Prefix ipv4, ipv6;
};

/// IPv4 addresses embedded in an IPv6 prefix (RFC 6052 section 2.2): 32, 40, 48, 56, 64 or 96 bits,
/// byte 8 of the address is zero.
class EmbeddingPrefix {
public:
    /// `prefix` is an IPv6 prefix of one of these lengths.
    explicit EmbeddingPrefix(const net::Prefix& prefix) noexcept;

    [[nodiscard]] Ipv6Number embed(Ipv4Number ipv4) const noexcept;
    /// None if the address does not have this prefix. Byte 8 and the suffix are ignored.
    [[nodiscard]] std::optional<Ipv4Number> extract(Ipv6Number ipv6) const noexcept;

private:
    Ipv6Number prefix_;
    unsigned length_;
};

/// How addresses of one family are represented in the other: by the explicit mapping with the
/// longest prefix, else embedded.
class AddressMap {
public:
    AddressMap() = default;
    AddressMap(const std::optional<net::Prefix>& pref64, const std::vector<EamEntry>& eam);

    [[nodiscard]] std::optional<Ipv6Number> to_ipv6(Ipv4Number ipv4) const noexcept;
    [[nodiscard]] std::optional<Ipv4Number> to_ipv4(Ipv6Number ipv6) const noexcept;
    /// Whether the address represents an IPv4 address by its prefix alone, so that no IPv6 host can
    /// have it.
    [[nodiscard]] bool only_embedded(Ipv6Number ipv6) const noexcept;

private:
    struct Entry {
        Ipv4Number ipv4, ipv4_mask;
        Ipv6Number ipv6, ipv6_mask;
        unsigned suffix_bits, shift;  ///< the IPv4 suffix has `suffix_bits` bits and is `shift` bits above the end of the IPv6 address
    };
    [[nodiscard]] const Entry* entry_of(Ipv6Number ipv6) const noexcept;

    std::vector<Entry> by_ipv4_, by_ipv6_;  ///< longest prefix of that family first
    std::optional<EmbeddingPrefix> embedding_;
};

}  // namespace gatemark::refdut
