#pragma once

#include "base/result.hpp"
#include "net/address.hpp"

#include <optional>
#include <vector>

namespace gatemark::net {

/// One explicit address mapping of RFC 7757 section 3.1: the suffix bits below both prefixes are the same.
struct ExplicitMapping {
    Prefix ipv4, ipv6;
};

/// How a stateless translator represents addresses of one family in the other: explicit address mappings first, the longest prefix
/// winning (RFC 7757 section 3.3), else the IPv4-embedded form of RFC 6052 section 2.2.
class AddressMapping {
public:
    /// Checks prefix length (32, 40, 48, 56, 64 or 96), byte 8 of the prefix being zero, and that no mapping's IPv4 suffix is longer than
    /// its IPv6 suffix.
    [[nodiscard]] static Result<AddressMapping> make(std::optional<Prefix> embedding, std::vector<ExplicitMapping> explicit_mappings);

    /// None if the address has no representation in the other family.
    [[nodiscard]] std::optional<Address> to_ipv6(const Address& ipv4) const;
    [[nodiscard]] std::optional<Address> to_ipv4(const Address& ipv6) const;
    [[nodiscard]] std::optional<Address> to(Family family, const Address& address) const;
    [[nodiscard]] bool has_explicit_mappings() const noexcept { return !by_ipv4_.empty(); }

private:
    AddressMapping() = default;
    std::optional<Prefix> embedding_;
    std::vector<ExplicitMapping> by_ipv4_, by_ipv6_;  ///< each with the longest prefix of its family first
};

}  // namespace gatemark::net
