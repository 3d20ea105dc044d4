#include "refdut/translate.hpp"

#include <algorithm>
#include <string>

namespace gatemark::refdut {

namespace {

constexpr std::uint64_t establishment_rate_max = 1'000'000'000, timeout_ns_max = std::uint64_t{24} * 3600 * 1'000'000'000;

std::string text(const net::Prefix& prefix) { return net::to_text(prefix.address) + "/" + std::to_string(prefix.length); }

void check_pref64(const TranslationConfig& config, Errors& errors) {
    if (!config.pref64) {
        return;
    }
    constexpr std::array<unsigned, 6> lengths{32, 40, 48, 56, 64, 96};
    const net::Prefix& prefix = *config.pref64;
    if (!uses_address_map(config.mode)) {
        errors.push_back({"mode " + std::string{name_of(config.mode)} + " embeds no addresses", "translation.prefix",
                          "leave it out, or set mode to siit, nat64 or nat46"});
    } else if (prefix.address.family != net::Family::ipv6 || std::find(lengths.begin(), lengths.end(), prefix.length) == lengths.end()) {
        errors.push_back({text(prefix) + " is not a translation prefix", "translation.prefix",
                          "an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits (RFC 6052 section 2.2)"});
    } else if (prefix.address.bytes[8] != std::byte{0}) {
        errors.push_back(
            {text(prefix) + " has bits set between 64 and 71", "translation.prefix", "they must be zero (RFC 6052 section 2.2)"});
    }
}

void check_eam(const TranslationConfig& config, Errors& errors) {
    for (std::size_t i = 0; i < config.eam.size(); ++i) {
        const EamEntry& entry = config.eam[i];
        const std::string where = "translation.eam[" + std::to_string(i) + "]";
        if (entry.ipv4.address.family != net::Family::ipv4 || entry.ipv6.address.family != net::Family::ipv6 || entry.ipv6.length == 0) {
            errors.push_back({text(entry.ipv4) + " and " + text(entry.ipv6) + " are not a mapping", where,
                              "ipv4 is an IPv4 prefix, ipv6 an IPv6 prefix of 1 bit or more"});
            continue;
        }
        if (32 - entry.ipv4.length > 128 - entry.ipv6.length) {
            errors.push_back({"the IPv4 suffix is longer than the IPv6 suffix", where,
                              "at most " + std::to_string(96 + entry.ipv4.length) + " bits of IPv6 prefix (RFC 7757 section 3.2)"});
        }
        for (std::size_t k = 0; k < i; ++k) {
            if (text(config.eam[k].ipv4) == text(entry.ipv4) || text(config.eam[k].ipv6) == text(entry.ipv6)) {
                errors.push_back({"has a prefix that translation.eam[" + std::to_string(k) + "] has", where, "map every prefix once"});
            }
        }
    }
    if (!config.eam.empty() && !uses_address_map(config.mode)) {
        errors.push_back({"mode " + std::string{name_of(config.mode)} + " maps no addresses", "translation.eam",
                          "leave it out, or set mode to siit, nat64 or nat46"});
    }
    if (uses_address_map(config.mode) && config.eam.empty() && !config.pref64) {
        errors.push_back({"is missing", "translation.prefix", "give a prefix, or address mappings in translation.eam"});
    }
}

void check_pool(const TranslationConfig& config, Errors& errors) {
    const auto& prefixes = config.pool.prefixes;
    if (!has_pool(config.mode)) {
        if (!prefixes.empty()) {
            errors.push_back(
                {"this mode has no pool", "translation.pool", "leave it out, or set mode to nat44, nat64, nat66, nat46 or aftr"});
        }
        return;
    }
    if (prefixes.empty()) {
        errors.push_back({"is missing", "translation.pool", "give the public addresses of the outside, such as [\"198.19.0.1/32\"]"});
    }
    const bool ipv6 = config.mode == Mode::nat66 || config.mode == Mode::nat46;
    std::uint64_t addresses = 0;
    for (std::size_t i = 0; i < prefixes.size(); ++i) {
        const std::string where = "translation.pool[" + std::to_string(i) + "]";
        if ((prefixes[i].address.family == net::Family::ipv6) != ipv6) {
            errors.push_back({text(prefixes[i]) + " is of the wrong family", where, ipv6 ? "the outside is IPv6" : "the outside is IPv4"});
        }
        for (std::size_t k = 0; k < i; ++k) {
            if (prefixes[k].contains(prefixes[i].address) || prefixes[i].contains(prefixes[k].address)) {
                errors.push_back({text(prefixes[i]) + " and " + text(prefixes[k]) + " overlap", where, "name every address once"});
            }
        }
        const auto bits = static_cast<unsigned>(8 * net::address_bytes(prefixes[i].address.family)) - prefixes[i].length;
        addresses += std::uint64_t{1} << std::min(bits, 32U);
    }
    if (addresses > PortPool::addresses_max) {
        errors.push_back(
            {"has more than " + std::to_string(PortPool::addresses_max) + " addresses", "translation.pool", "use longer prefixes"});
    }
    if (config.pool.port_min == 0 || config.pool.port_min > config.pool.port_max) {
        errors.push_back({"is not a range of ports", "translation.pool_ports", "write the lower port first, 1 to 65535"});
    }
}

/// RFC 5969 section 4.
void check_6rd(const MapRuleSpec& rule, Errors& errors) {
    constexpr unsigned delegated_bits_max = 64;
    const std::string where = "translation.domains[" + std::to_string(rule.number) + "]";
    if (rule.ea_bits == 0 || rule.ea_bits + rule.ipv4.length != 32) {
        errors.push_back({text(rule.ipv4) + " does not distinguish customers", where + ".ipv4", "an IPv4 prefix of 31 bits or less"});
    } else if (rule.end_user_bits() > delegated_bits_max) {
        errors.push_back({"a customer's prefix would have " + std::to_string(rule.end_user_bits()) + " bits", where + ".ipv6",
                          "at most " + std::to_string(delegated_bits_max - rule.ea_bits) + " bits with this IPv4 prefix"});
    }
}

void check_map(const TranslationConfig& config, Errors& errors) {
    const bool edge = is_edge(config.mode), translates = is_map_t(config.mode);
    if (!has_rules(config.mode)) {
        if (!config.domains.empty()) {
            errors.push_back({"this mode has no MAP rules", "translation.domains",
                              "leave it out, or set mode to map_t_br, map_t_ce, map_e_br, map_e_ce, lwaftr, lwb4 or sixrd_br"});
        }
    } else if (config.domains.empty()) {
        errors.push_back({"is missing", "translation.domains", "give at least one rule"});
    } else {
        for (Error& error : check_domains(config.domains, edge ? config.end_user_prefix : std::nullopt)) {
            errors.push_back(std::move(error));
        }
    }
    if (config.end_user_prefix.has_value() != edge) {
        errors.push_back({edge ? "is missing" : "only a customer edge has one", "translation.end_user_prefix",
                          edge ? "write the customer's IPv6 prefix" : "leave it out, or set mode to map_t_ce, map_e_ce or lwb4"});
    }
    for (const MapRuleSpec& rule : config.domains) {
        if (has_rules(config.mode) && rule.dmr.has_value() != translates) {
            errors.push_back({translates ? "is missing" : "a tunnel needs no prefix for what is outside",
                              "translation.domains[" + std::to_string(rule.number) + "].dmr",
                              translates ? "write an IPv6 prefix such as 64:ff9b::/96" : "leave it out, or set mode to map_t_br"});
        }
        if (config.mode == Mode::sixrd_br) {
            check_6rd(rule, errors);
        }
        if (rule.forwarding && config.mode != Mode::map_t_ce && config.mode != Mode::map_e_ce) {
            errors.push_back({"only a customer edge of MAP chooses rules to forward by",
                              "translation.domains[" + std::to_string(rule.number) + "].fmr",
                              "leave it out, or set mode to map_t_ce or map_e_ce"});
        }
    }
}

void check_end(const net::Address& end, net::Family family, const char* where, Errors& errors) {
    if (end.family != family || stays_on_link(end.bytes.data(), end.family)) {
        errors.push_back({net::to_text(end) + " is not an end of a tunnel", where,
                          family == net::Family::ipv6 ? "a global IPv6 address" : "a global IPv4 address"});
    }
}

void check_subscriber(const TranslationConfig& config, Errors& errors) {
    const auto& [relay, subscriber] = std::pair{config.tunnel.relay, config.tunnel.subscriber};
    if (subscriber.has_value() != (config.mode == Mode::b4)) {
        errors.push_back({subscriber ? "applies only to a B4" : "is missing", "tunnel.subscriber",
                          subscriber ? "leave it out, or set mode to b4" : "write the address of the gateway's own end"});
    } else if (subscriber) {
        check_end(*subscriber, tunnel_family(config.mode), "tunnel.subscriber", errors);
        if (relay == subscriber) {
            errors.push_back({net::to_text(*subscriber) + " is tunnel.relay, too", "tunnel.subscriber", "a tunnel has two ends"});
        }
    }
}

void check_tunnel(const TranslationConfig& config, Errors& errors) {
    const auto& relay = config.tunnel.relay;
    if (!has_tunnels(config.mode)) {
        if (relay || config.tunnel.subscriber) {
            errors.push_back({"this mode has no tunnels", "tunnel",
                              "leave it out, or set mode to map_e_br, lwaftr, sixrd_br, aftr, b4, map_e_ce or lwb4"});
        }
        return;
    }
    check_subscriber(config, errors);
    if (!relay) {
        errors.push_back({"is missing", "tunnel.relay", "write the address of the border relay's or AFTR's end of all tunnels"});
        return;
    }
    check_end(*relay, tunnel_family(config.mode), "tunnel.relay", errors);
    for (const MapRuleSpec& rule : config.domains) {
        if (rule.ipv6.contains(*relay)) {
            errors.push_back({net::to_text(*relay) + " is within the rule " + text(rule.ipv6), "tunnel.relay",
                              "choose an address that no customer has"});
        }
    }
    if (config.tunnel.hop_limit == 0) {
        errors.push_back({"0 is not a hop", "tunnel.hop_limit", "1 to 255"});
    }
}

}  // namespace

Errors check(const TranslationConfig& config) {
    Errors errors;
    check_map(config, errors);
    check_tunnel(config, errors);
    check_pref64(config, errors);
    check_eam(config, errors);
    check_pool(config, errors);
    if (config.hop_limit_decrement == 0) {
        errors.push_back({"0 is not a hop", "translation.hop_limit_decrement", "1 or more"});
    }
    if (config.lowest_ipv6_mtu < 1280) {
        errors.push_back({std::to_string(config.lowest_ipv6_mtu) + " octets is below the minimum MTU of IPv6",
                          "translation.lowest_ipv6_mtu", "1280 or more (RFC 8200 section 5)"});
    }
    return errors;
}

Errors check(const NatLimits& limits) {
    Errors errors;
    if (limits.capacity == 0 || limits.capacity > NatTable::capacity_max) {
        errors.push_back({std::to_string(limits.capacity) + " connections is not a table size", "table.size",
                          "1 to " + std::to_string(NatTable::capacity_max)});
    }
    if (limits.establishment_per_second > establishment_rate_max) {
        errors.push_back({"is above " + std::to_string(establishment_rate_max) + " connections/s", "table.establishment_rate",
                          "leave it out for no limit"});
    }
    if (limits.establishment_burst == 0 || limits.establishment_burst > establishment_rate_max) {
        errors.push_back({std::to_string(limits.establishment_burst) + " connections is not a burst", "table.establishment_burst",
                          "1 to " + std::to_string(establishment_rate_max)});
    }
    if (limits.timeout_ns > timeout_ns_max) {
        errors.push_back({"is longer than 24 hours", "table.udp_timeout", "\"24 h\" or less, or 0 for never"});
    }
    return errors;
}

}  // namespace gatemark::refdut
