#include "net/map_domain.hpp"

#include "net/address_mapping.hpp"

namespace gatemark::net {

namespace {

/// What the numbers of bits of a rule have to do with each other; both prefixes are of the right
/// families.
void check_bits(const MapRule& rule, const std::string& where, Errors& errors) {
    const auto bits = [](unsigned count) { return std::to_string(count) + (count == 1 ? " bit" : " bits"); };
    if (rule.ea_bits > MapDomain::ea_bits_max) {
        errors.push_back({"an EA of " + bits(rule.ea_bits), where + ".ea_bits", "choose 0 to 48 (RFC 7597 section 5.2)"});
    }
    if (rule.ipv4.length + rule.ea_bits > 48) {
        errors.push_back({"an IPv4 prefix of " + bits(rule.ipv4.length) + " and an EA of " + bits(rule.ea_bits) +
                              " are longer than an address and a port",
                          where + ".ea_bits", "their sum is at most 48"});
    }
    if (rule.in_identifier && rule.ipv6.length != 64) {
        errors.push_back({"an IPv6 prefix of " + bits(rule.ipv6.length) + " leaves no interface identifier of 64", where + ".ipv6",
                          "give one of 64 bits, or send in_identifier false"});
    } else if (!rule.in_identifier && rule.ipv6.length + rule.ea_bits > 128) {
        errors.push_back(
            {"an IPv6 prefix of " + bits(rule.ipv6.length) + " and an EA of " + bits(rule.ea_bits) + " are longer than an address",
             where + ".ea_bits", "their sum is at most 128"});
    }
    if (rule.psid_offset > 15) {
        errors.push_back({"a PSID offset of " + bits(rule.psid_offset), where + ".psid_offset", "choose 0 to 15"});
    }
    const unsigned embedded = rule.ipv4.length + rule.ea_bits > 32 ? rule.ipv4.length + rule.ea_bits - 32 : 0;
    const unsigned psid_bits = rule.ea_bits == 0 ? rule.psid_bits.value_or(0) : embedded;
    if (rule.psid_offset <= 15 && rule.psid_offset + psid_bits > 16) {
        errors.push_back({"a PSID offset of " + bits(rule.psid_offset) + " and a PSID of " + bits(psid_bits) + " are longer than a port",
                          where + ".psid_offset", "their sum is at most 16"});
    }
}

/// The PSID that a rule without EA bits may have.
void check_psid(const MapRule& rule, const std::string& where, Errors& errors) {
    const unsigned bits = rule.psid_bits.value_or(0);
    if (rule.ea_bits != 0 && (rule.psid_bits || rule.psid)) {
        errors.push_back({"a PSID is given together with the EA bits, from which it follows", where + ".psid", "send null, or ea_bits 0"});
        return;
    }
    if (rule.psid.has_value() != (bits != 0)) {
        errors.push_back({"a PSID and its length belong together", where + ".psid", "send both, or neither"});
        return;
    }
    if (rule.psid && bits <= 16 && *rule.psid >> bits != 0) {
        errors.push_back({"PSID " + std::to_string(*rule.psid) + " is longer than psid_bits", where + ".psid", "choose a smaller one"});
    }
    if (bits != 0 && rule.ipv4.length != 32) {
        errors.push_back({"only a whole IPv4 address is shared by ports", where + ".psid_bits", "give an IPv4 prefix of 32 bits"});
    }
}

MapDomain::Parameters parameters_of(const MapRule& rule) {
    return {.ipv6 = wide_of(rule.ipv6.address),
            .ipv6_bits = rule.ipv6.length,
            .ipv4 = word_of(rule.ipv4.address),
            .ipv4_bits = rule.ipv4.length,
            .ea_bits = rule.ea_bits,
            .psid_offset = rule.psid_offset,
            .psid_bits = rule.psid_bits.value_or(0),
            .psid = rule.psid.value_or(0),
            .in_identifier = rule.in_identifier};
}

}  // namespace

Errors problems_of(const MapRule& rule, const std::string& where) {
    Errors errors;
    if (rule.ipv6.address.family != Family::ipv6) {
        errors.push_back({"the rule's IPv6 prefix is none", where + ".ipv6", "give one such as 2001:db8::/40"});
    }
    if (rule.ipv4.address.family != Family::ipv4) {
        errors.push_back({"the rule's IPv4 prefix is none", where + ".ipv4", "give one such as 192.0.2.0/24"});
    }
    if (rule.dmr) {
        const auto dmr = AddressMapping::make(rule.dmr, {});
        if (const Error* error = error_of(dmr)) {
            errors.push_back({error->what, where + ".dmr", error->fix});
        }
    }
    if (errors.empty() || (rule.ipv6.address.family == Family::ipv6 && rule.ipv4.address.family == Family::ipv4)) {
        check_bits(rule, where, errors);
        check_psid(rule, where, errors);
    }
    return errors;
}

MapDomain::MapDomain(const MapRule& rule) : MapDomain{parameters_of(rule)} {}

Wide wide_of(const Address& ipv6) noexcept { return load_wide(ipv6.bytes.data()); }

std::uint32_t word_of(const Address& ipv4) noexcept { return load_big_endian<std::uint32_t>(ipv4.bytes.data()); }

Address ipv6_of(Wide number) noexcept {
    Address address{.family = Family::ipv6, .bytes = {}};
    store_big_endian(address.bytes.data(), static_cast<std::uint64_t>(number >> 64));
    store_big_endian(address.bytes.data() + 8, static_cast<std::uint64_t>(number));
    return address;
}

Address ipv4_of(std::uint32_t number) noexcept {
    Address address;
    store_big_endian(address.bytes.data(), number);
    return address;
}

}  // namespace gatemark::net
