#pragma once

#include "base/result.hpp"
#include "net/address.hpp"

#include <optional>
#include <vector>

namespace gatemark::net {

/// One explicit address mapping of RFC 7757 section 3.1: the suffix bits below both prefixes are
/// the same.
struct ExplicitMapping {
    Prefix ipv4, ipv6;
};

/// How a stateless translator represents addresses of one family in the other: by the explicit
/// address mapping with the longest prefix (RFC 7757 section 3.3), else as IPv4-embedded IPv6
/// addresses (RFC 6052 section 2.2).
class AddressMapping {
public:
    /// Checks that the prefix has 32, 40, 48, 56, 64 or 96 bits and a zero byte 8, and that no
    /// mapping has an IPv4 suffix longer than its IPv6 suffix.
    [[nodiscard]] static Result<AddressMapping> make(std::optional<Prefix> embedding, std::vector<ExplicitMapping> explicit_mappings);

    /// None if the address has no representation in the other family.
    [[nodiscard]] std::optional<Address> to_ipv6(const Address& ipv4) const;
    [[nodiscard]] std::optional<Address> to_ipv4(const Address& ipv6) const;
    [[nodiscard]] std::optional<Address> to(Family family, const Address& address) const;
    /// Whether no address has a representation.
    [[nodiscard]] bool is_empty() const noexcept { return !embedding_ && by_ipv4_.empty(); }
    [[nodiscard]] bool has_explicit_mappings() const noexcept { return !by_ipv4_.empty(); }

private:
    AddressMapping() = default;
    std::optional<Prefix> embedding_;
    std::vector<ExplicitMapping> by_ipv4_, by_ipv6_;  ///< each with the longest prefix of its family first
};

}  // namespace gatemark::net
