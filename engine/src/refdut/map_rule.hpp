#pragma once

#include "net/address.hpp"
#include "refdut/address.hpp"
#include "refdut/port_set.hpp"
#include "refdut/rewrite.hpp"

#include <cstdint>
#include <optional>

namespace gatemark::refdut {

/// One rule of a MAP domain (RFC 7597 section 5).
struct MapRuleSpec {
    net::Prefix ipv6, ipv4;
    std::optional<net::Prefix> dmr;  ///< MAP-T: stands for what is outside the domain (Default Mapping Rule, RFC 7599 section 5.1)
    unsigned ea_bits = 0;
    unsigned psid_offset = 6;
    unsigned psid_bits = 0;  ///< of a rule without EA bits; else they follow from the prefixes
    std::uint16_t psid = 0;  ///< the same
    /// An lwAFTR's: the EA bits are the number of a softwire, and in its address nowhere but in the
    /// interface identifier (RFC 7596 section 5.1).
    bool in_identifier = false;
    bool forwarding = false;  ///< a customer edge sends to other customers by it (F flag, RFC 7598 section 4.1)
    std::size_t number = 0;   ///< in the file, for messages

    /// How many bits of the IPv4 address, and of the PSID, the EA bits hold.
    [[nodiscard]] unsigned suffix_bits() const noexcept { return ea_bits + ipv4.length > 32 ? 32 - ipv4.length : ea_bits; }
    [[nodiscard]] unsigned embedded_psid_bits() const noexcept { return ea_bits - suffix_bits(); }
    [[nodiscard]] unsigned end_user_bits() const noexcept { return ipv6.length + ea_bits; }
};

/// Whom a rule gives a MAP address. The IPv4 address takes the first four bytes; the host bits of a
/// customer who has a whole prefix are zero.
struct MapCustomer {
    AddressBytes ipv4{};
    std::uint16_t psid = 0;
    friend bool operator==(const MapCustomer&, const MapCustomer&) = default;
};

/// A rule at work. Addresses are strings of bits here, copied bit by bit from where RFC 7597 has
/// them: no number is wide enough for n + o bits to matter.
class MapRule {
public:
    /// `spec` has passed `check` (map_domains.hpp).
    explicit MapRule(const MapRuleSpec& spec) noexcept;

    [[nodiscard]] const MapRuleSpec& spec() const noexcept { return spec_; }
    /// Whether the address has the rule's prefix.
    [[nodiscard]] bool has_ipv6(const AddressBytes& address) const noexcept;
    [[nodiscard]] bool has_ipv4(const AddressBytes& address) const noexcept;

    /// Whose end-user prefix an IPv6 address has that has the rule's prefix. What follows is not
    /// looked at: compare it with the customer's MAP address.
    [[nodiscard]] MapCustomer customer_of(const AddressBytes& ipv6) const noexcept;
    /// Who has this port of an IPv4 address that has the rule's prefix; if it is nobody's, the
    /// customer does not have it (`has_port`). The host bits of the customer's address are zero.
    [[nodiscard]] MapCustomer customer_at(const AddressBytes& ipv4, std::uint16_t port) const noexcept;
    [[nodiscard]] bool has_port(const MapCustomer& customer, std::uint16_t port) const noexcept { return ports_of(customer).has(port); }
    [[nodiscard]] PortSet ports_of(const MapCustomer& customer) const noexcept { return {spec_.psid_offset, psid_bits_, customer.psid}; }
    /// RFC 7597 section 6.
    [[nodiscard]] AddressBytes address_of(const MapCustomer& customer) const noexcept;
    /// A customer who differs in the lowest EA bit; with `other_ipv4` in the lowest that is of the
    /// IPv4 address. None if there is none.
    [[nodiscard]] std::optional<MapCustomer> neighbour_of(MapCustomer customer, bool other_ipv4) const noexcept;

    /// MAP-T: an IPv4 address outside the domain as the domain sees it, and back.
    [[nodiscard]] AddressBytes embedded(const AddressBytes& ipv4) const noexcept;
    [[nodiscard]] std::optional<AddressBytes> extracted(const AddressBytes& ipv6) const noexcept;

private:
    MapRuleSpec spec_;
    unsigned suffix_bits_, psid_bits_;
    unsigned suffix_at_, psid_at_;  ///< where the EA bits are in an IPv6 address
    std::optional<EmbeddingPrefix> dmr_;
};

}  // namespace gatemark::refdut
