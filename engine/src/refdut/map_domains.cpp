#include "refdut/map_domains.hpp"

#include <algorithm>
#include <array>

namespace gatemark::refdut {

namespace {

std::string text(const net::Prefix& prefix) { return net::to_text(prefix.address) + "/" + std::to_string(prefix.length); }
std::string place(const MapRuleSpec& rule) { return "translation.domains[" + std::to_string(rule.number) + "]"; }

bool overlap(const net::Prefix& a, const net::Prefix& b) { return a.contains(b.address) || b.contains(a.address); }
bool same(const net::Prefix& a, const net::Prefix& b) { return a.address == b.address && a.length == b.length; }

/// RFC 7599 section 5.1, RFC 6052 section 2.2.
void check_dmr(const net::Prefix& dmr, const std::string& where, Errors& errors) {
    constexpr std::array<unsigned, 6> lengths{32, 40, 48, 56, 64, 96};
    if (dmr.address.family != net::Family::ipv6 || std::ranges::find(lengths, dmr.length) == lengths.end()) {
        errors.push_back({text(dmr) + " embeds no IPv4 addresses", where + ".dmr", "an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits"});
    } else if (dmr.address.bytes[8] != std::byte{0}) {
        errors.push_back({text(dmr) + " has bits set between 64 and 71", where + ".dmr", "they must be zero (RFC 6052 section 2.2)"});
    }
}

/// RFC 7597 section 5, RFC 7598 section 4.
void check_rule(const MapRuleSpec& rule, const std::string& where, Errors& errors) {
    constexpr unsigned ea_bits_max = 48, psid_bits_max = 16, port_bits = 16;
    if (rule.ipv4.address.family != net::Family::ipv4) {
        errors.push_back({text(rule.ipv4) + " is not an IPv4 prefix", where + ".ipv4", "write 192.0.2.0/24"});
    }
    if (rule.ipv6.address.family != net::Family::ipv6) {
        errors.push_back({text(rule.ipv6) + " is not an IPv6 prefix", where + ".ipv6", "write 2001:db8::/40"});
    }
    if (rule.ipv4.address.family != net::Family::ipv4 || rule.ipv6.address.family != net::Family::ipv6) {
        return;
    }
    if (rule.ea_bits > ea_bits_max || rule.embedded_psid_bits() > psid_bits_max) {
        errors.push_back({std::to_string(rule.ea_bits) + " EA bits are more than the IPv4 suffix and a PSID of 16 bits", where + ".ea_bits",
                          "at most " + std::to_string(ea_bits_max - rule.ipv4.length) + " with this IPv4 prefix"});
    }
    if (rule.in_identifier && rule.ipv6.length != 64) {
        errors.push_back({text(rule.ipv6) + " leaves no interface identifier of 64 bits", where + ".ipv6", "an IPv6 prefix of 64 bits"});
    } else if (!rule.in_identifier && rule.end_user_bits() > 128) {
        errors.push_back({"the end-user prefix would have " + std::to_string(rule.end_user_bits()) + " bits", where + ".ea_bits",
                          "at most " + std::to_string(128 - rule.ipv6.length) + " with this IPv6 prefix"});
    }
    if (rule.psid_bits > psid_bits_max) {
        errors.push_back({std::to_string(rule.psid_bits) + " bits are not a valid PSID length", where + ".psid_bits", "0 to 16"});
    }
    const unsigned psid_bits = rule.ea_bits == 0 ? rule.psid_bits : rule.embedded_psid_bits();
    if (psid_bits <= psid_bits_max && (rule.psid_offset > 15 || rule.psid_offset + psid_bits > port_bits)) {
        errors.push_back({"offset and PSID have " + std::to_string(rule.psid_offset + psid_bits) + " bits, a port has 16",
                          where + ".psid_offset", "0 to " + std::to_string(psid_bits < 16 ? std::min(16 - psid_bits, 15U) : 0)});
    }
    if (rule.ea_bits > 0 && rule.psid_bits > 0) {
        errors.push_back({"the PSID is in the EA bits", where + ".psid_bits", "leave it out, or set ea_bits = 0"});
    } else if (rule.psid_bits > 0 && rule.ipv4.length < 32) {
        errors.push_back(
            {"only customers of one address share its ports", where + ".psid_bits", "leave it out, or write an IPv4 prefix of 32 bits"});
    }
    if (rule.psid != 0 && (rule.ea_bits > 0 || rule.psid_bits > psid_bits_max || rule.psid >> rule.psid_bits != 0)) {
        errors.push_back({std::to_string(rule.psid) + " is not a PSID of " + std::to_string(rule.psid_bits) + " bits", where + ".psid",
                          "give psid_bits of a rule without EA bits, and a PSID below 2 to its power"});
    }
}

/// Of a rule and one before it.
void check_pair(const MapRuleSpec& first, const MapRuleSpec& second, Errors& errors) {
    const bool other_dmr = first.dmr && second.dmr && !same(*first.dmr, *second.dmr);
    if (!same(first.ipv6, second.ipv6) && !same(first.ipv4, second.ipv4) && !other_dmr) {
        return;  // most pairs: a file may have thousands of rules
    }
    const std::string where = place(second), before = place(first);
    if (same(first.ipv6, second.ipv6)) {
        errors.push_back({text(second.ipv6) + " is that of " + before + " as well", where + ".ipv6", "write every rule once"});
    }
    if (same(first.ipv4, second.ipv4)) {
        const bool told_apart = first.ea_bits == 0 && second.ea_bits == 0 && first.psid_bits > 0 && first.psid_bits == second.psid_bits &&
                                first.psid_offset == second.psid_offset && first.psid != second.psid;
        if (!told_apart) {
            errors.push_back({text(second.ipv4) + " is that of " + before + " as well", where + ".ipv4",
                              "only rules without EA bits share an address, with the same psid_offset and psid_bits and another psid"});
        }
    }
    if (other_dmr && overlap(*first.dmr, *second.dmr)) {
        errors.push_back({text(*second.dmr) + " and that of " + before + " overlap", where + ".dmr", "write the same prefix, or another"});
    }
}

/// The prefix of what is outside must be no customer's.
void check_against_rules(const MapRuleSpec& rule, const std::vector<MapRuleSpec>& domains, Errors& errors) {
    for (const MapRuleSpec& other : domains) {
        if (overlap(*rule.dmr, other.ipv6)) {
            errors.push_back(
                {text(*rule.dmr) + " overlaps the rule " + text(other.ipv6), place(rule) + ".dmr", "choose a prefix that no customer has"});
        }
    }
}

/// The rule of the customer who has the prefix: the longest that contains it.
const MapRuleSpec* basic_rule(const std::vector<MapRuleSpec>& domains, const net::Prefix& end_user_prefix) {
    const MapRuleSpec* basic = nullptr;
    for (const MapRuleSpec& rule : domains) {
        if (rule.ipv6.length <= end_user_prefix.length && rule.ipv6.contains(end_user_prefix.address) &&
            (basic == nullptr || basic->ipv6.length < rule.ipv6.length)) {
            basic = &rule;
        }
    }
    return basic;
}

void check_edge(const std::vector<MapRuleSpec>& domains, const net::Prefix& end_user_prefix, Errors& errors) {
    const MapRuleSpec* const basic = basic_rule(domains, end_user_prefix);
    if (basic == nullptr) {
        errors.push_back({text(end_user_prefix) + " is within no rule's IPv6 prefix", "translation.end_user_prefix",
                          "write the prefix of a customer of one of translation.domains"});
        return;
    }
    if (basic->in_identifier) {
        if (!errors.empty()) {
            return;  // nothing follows from a rule that has a problem
        }
        if (end_user_prefix.length != 128 || edge_of(domains, end_user_prefix).address != end_user_prefix.address.bytes) {
            errors.push_back({text(end_user_prefix) + " is not the address of an lwB4", "translation.end_user_prefix",
                              "the prefix of 64 bits, 16 zero bits, the IPv4 address and the PSID, with /128"});
        }
    } else if (end_user_prefix.length != basic->end_user_bits()) {
        errors.push_back({text(end_user_prefix) + " is not the prefix of a customer", "translation.end_user_prefix",
                          "the rule's IPv6 prefix and the EA bits together have " + std::to_string(basic->end_user_bits()) + " bits"});
    }
    for (std::size_t i = 0; i < domains.size(); ++i) {
        if (&domains[i] != basic && !domains[i].forwarding) {
            errors.push_back(
                {"is neither the customer's rule nor one to forward by", place(domains[i]), "set fmr = true, or leave it out"});
        }
    }
}

}  // namespace

Errors check_domains(const std::vector<MapRuleSpec>& domains, const std::optional<net::Prefix>& end_user_prefix) {
    Errors errors;
    for (std::size_t i = 0; i < domains.size(); ++i) {
        check_rule(domains[i], place(domains[i]), errors);
        bool first_with_dmr = domains[i].dmr.has_value();
        if (first_with_dmr) {
            check_dmr(*domains[i].dmr, place(domains[i]), errors);
        }
        for (std::size_t k = 0; k < i; ++k) {
            check_pair(domains[k], domains[i], errors);
            first_with_dmr = first_with_dmr && !(domains[k].dmr && same(*domains[k].dmr, *domains[i].dmr));
        }
        if (first_with_dmr) {
            check_against_rules(domains[i], domains, errors);
        }
    }
    if (end_user_prefix) {
        check_edge(domains, *end_user_prefix, errors);
    }
    return errors;
}

MapDomains::MapDomains(const std::vector<MapRuleSpec>& domains) {
    std::vector<net::Prefix> dmrs;
    for (const MapRuleSpec& spec : domains) {
        by_ipv4_.emplace_back(spec);
        if (spec.dmr && std::ranges::none_of(dmrs, [&](const net::Prefix& dmr) { return same(dmr, *spec.dmr); })) {
            dmrs.push_back(*spec.dmr);
            outside_.emplace_back(*spec.dmr);
        }
    }
    by_ipv6_ = by_ipv4_;
    std::ranges::stable_sort(by_ipv4_, [](const MapRule& a, const MapRule& b) { return a.spec().ipv4.length > b.spec().ipv4.length; });
    std::ranges::stable_sort(by_ipv6_, [](const MapRule& a, const MapRule& b) { return a.spec().ipv6.length > b.spec().ipv6.length; });
}

const MapRule* MapDomains::of_ipv6(const AddressBytes& address) const noexcept {
    const auto match = std::ranges::find_if(by_ipv6_, [&](const MapRule& rule) { return rule.has_ipv6(address); });
    return match == by_ipv6_.end() ? nullptr : &*match;
}

const MapRule* MapDomains::of_ipv4(const AddressBytes& address) const noexcept {
    const auto match = std::ranges::find_if(by_ipv4_, [&](const MapRule& rule) { return rule.has_ipv4(address); });
    return match == by_ipv4_.end() ? nullptr : &*match;
}

const MapRule* MapDomains::of_endpoint(const AddressBytes& address, std::uint16_t port) const noexcept {
    const MapRule* const longest = of_ipv4(address);
    if (longest == nullptr) {
        return nullptr;
    }
    // Rules of a PSID each share an address, so they have prefixes of the same length.
    const MapRule* const end = by_ipv4_.data() + by_ipv4_.size();
    for (const MapRule* rule = longest; rule != end && rule->spec().ipv4.length == longest->spec().ipv4.length; ++rule) {
        if (rule->has_ipv4(address) && rule->has_port(rule->customer_at(address, port), port)) {
            return rule;
        }
    }
    return nullptr;
}

bool MapDomains::embeds(const AddressBytes& ipv6) const noexcept {
    const Ipv6Number address = load_ipv6(ipv6.data());
    return std::ranges::any_of(outside_, [&](const EmbeddingPrefix& prefix) { return prefix.extract(address).has_value(); });
}

bool MapEdge::is_beside(const AddressBytes& ipv6) const noexcept {
    constexpr unsigned subnet_bits = 64;
    net::Prefix subnet{.address = {.family = net::Family::ipv6, .bytes = address},
                       .length = std::max(subnet_bits, rule.spec().end_user_bits())};
    return subnet.contains({.family = net::Family::ipv6, .bytes = ipv6});
}

MapEdge edge_of(const std::vector<MapRuleSpec>& domains, const net::Prefix& end_user_prefix) {
    const MapRule rule{*basic_rule(domains, end_user_prefix)};
    const MapCustomer customer = rule.customer_of(end_user_prefix.address.bytes);
    return {.rule = rule, .customer = customer, .address = rule.address_of(customer)};
}

}  // namespace gatemark::refdut
