#pragma once

#include "base/result.hpp"
#include "refdut/map_rule.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gatemark::refdut {

/// All problems of the rules of [translation]; `where` is a key of the gateway's file. A customer
/// edge has an `end_user_prefix`, which gives it its rule and its address.
[[nodiscard]] Errors check_domains(const std::vector<MapRuleSpec>& domains, const std::optional<net::Prefix>& end_user_prefix);

/// The rules of a border relay or customer edge. Looked through one after another, the longest
/// prefix first; nothing is kept of customers.
class MapDomains {
public:
    MapDomains() = default;
    /// `domains` have passed `check_domains`.
    explicit MapDomains(const std::vector<MapRuleSpec>& domains);

    /// The rule with the longest prefix of the address, or nullptr.
    [[nodiscard]] const MapRule* of_ipv6(const AddressBytes& address) const noexcept;
    [[nodiscard]] const MapRule* of_ipv4(const AddressBytes& address) const noexcept;
    /// That of the customer who has the port, where several rules have the address; nullptr if
    /// nobody has it.
    [[nodiscard]] const MapRule* of_endpoint(const AddressBytes& address, std::uint16_t port) const noexcept;
    /// Whether the address stands for one outside of any of the domains.
    [[nodiscard]] bool embeds(const AddressBytes& ipv6) const noexcept;

private:
    std::vector<MapRule> by_ipv4_, by_ipv6_;
    std::vector<EmbeddingPrefix> outside_;  ///< the DMR prefixes, each once
};

/// What an end-user prefix gives to a customer edge (RFC 7597 section 5.2). It has passed
/// `check_domains`.
struct MapEdge {
    MapRule rule;
    MapCustomer customer;
    AddressBytes address;  ///< the MAP address

    /// Whether an address is in the subnet of the MAP address, the first one of the end-user prefix
    /// (RFC 7597 section 6), where the customer edge has no other host.
    [[nodiscard]] bool is_beside(const AddressBytes& ipv6) const noexcept;
};
[[nodiscard]] MapEdge edge_of(const std::vector<MapRuleSpec>& domains, const net::Prefix& end_user_prefix);

}  // namespace gatemark::refdut
