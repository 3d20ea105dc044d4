#pragma once

#include "refdut/map_domains.hpp"
#include "refdut/packets.hpp"

#include <array>
#include <string>

/// Rules with a customer each, from the examples of RFC 7597 appendix A and 7599 appendix A and
/// from a program that knows nothing of this one.
namespace gatemark::refdut {

inline constexpr const char* test_dmr = "64:ff9b::/96";

inline MapRuleSpec rule_of(const std::string& ipv6, const std::string& ipv4, unsigned ea_bits, unsigned psid_offset,
                           const std::string& dmr = test_dmr) {
    MapRuleSpec rule;
    rule.ipv6 = prefix_of(ipv6);
    rule.ipv4 = prefix_of(ipv4);
    rule.dmr = prefix_of(dmr);
    rule.ea_bits = ea_bits;
    rule.psid_offset = psid_offset;
    return rule;
}

inline AddressBytes bytes_of(const std::string& address) { return test::address_of(address).bytes; }
inline std::string text_of(const AddressBytes& ipv6) { return net::to_text(net::Address{.family = net::Family::ipv6, .bytes = ipv6}); }

struct MapVector {
    const char *ipv6, *ipv4;
    unsigned ea_bits, psid_offset, psid_bits;  ///< psid_bits: of a rule without EA bits
    const char* customer;
    std::uint16_t psid;
    const char* address;
    std::uint32_t first_low, first_high, last_low, last_high, ports;

    [[nodiscard]] MapRuleSpec rule() const {
        MapRuleSpec rule = rule_of(ipv6, ipv4, ea_bits, psid_offset);
        rule.psid_bits = psid_bits;
        rule.psid = ea_bits == 0 ? psid : std::uint16_t{0};
        return rule;
    }
};

inline constexpr std::array<MapVector, 16> map_vectors{{
    {"2001:db8::/40", "192.0.2.0/24", 16, 6, 0, "192.0.2.18", 0x34, "2001:db8:12:3400:0:c000:212:34", 1232, 1235, 64720, 64723, 252},
    {"2001:db8::/40", "192.0.2.0/24", 16, 6, 0, "192.0.2.0", 0, "2001:db8::c000:200:0", 1024, 1027, 64512, 64515, 252},
    {"2001:db8::/40", "192.0.2.0/24", 16, 6, 0, "192.0.2.255", 0xff, "2001:db8:ff:ff00:0:c000:2ff:ff", 2044, 2047, 65532, 65535, 252},
    {"2001:db8:8000::/50", "192.0.2.0/24", 14, 0, 0, "192.0.2.200", 10, "2001:db8:8000:320a:0:c000:2c8:a", 10240, 11263, 10240, 11263,
     1024},
    {"2001:db8:ce::/51", "192.0.2.0/24", 13, 0, 0, "192.0.2.192", 21, "2001:db8:ce:1815:0:c000:2c0:15", 43008, 45055, 43008, 45055, 2048},
    {"2001:db8:ce::/51", "192.0.2.0/24", 13, 6, 0, "192.0.2.192", 21, "2001:db8:ce:1815:0:c000:2c0:15", 1696, 1727, 65184, 65215, 2016},
    {"2001:db8:ce::/51", "192.0.2.0/24", 20, 0, 0, "192.0.2.200", 10, "2001:db8:ce:1900:1400:c000:2c8:a", 160, 175, 160, 175, 16},
    {"2001:db8:ce::/51", "192.0.2.0/24", 20, 0, 0, "192.0.2.255", 4095, "2001:db8:ce:1fff:fe00:c000:2ff:fff", 65520, 65535, 65520, 65535,
     16},
    {"2001:db8::/32", "10.0.0.0/8", 32, 6, 0, "10.18.52.86", 0xab, "2001:db8:1234:56ab:0:a12:3456:ab", 1708, 1711, 65196, 65199, 252},
    {"2001:db8::/32", "203.0.113.77/32", 12, 4, 0, "203.0.113.77", 0xabc, "2001:db8:abc0::cb00:714d:abc", 6844, 6844, 64188, 64188, 15},
    {"2001:db8::/36", "192.0.2.0/24", 16, 2, 0, "192.0.2.9", 0x81, "2001:db8:98:1000:0:c000:209:81", 24640, 24703, 57408, 57471, 192},
    {"2001:db8:a0::/44", "198.18.0.0/16", 20, 4, 0, "198.18.1.2", 0xf, "2001:db8:a0:102f:0:c612:102:f", 7936, 8191, 65280, 65535, 3840},
    {"2001:db8:1::/48", "0.0.0.0/0", 48, 0, 0, "198.51.100.7", 0xbeef, "2001:db8:1:c633:6407:beef:6407:beef", 48879, 48879, 48879, 48879,
     1},
    {"2001:db8::/32", "198.51.100.0/24", 6, 6, 0, "198.51.100.20", 0, "2001:db8:1400::c633:6414:0", 0, 65535, 0, 65535, 65536},
    {"2001:db8:12:3400::/56", "192.0.2.18/32", 0, 6, 8, "192.0.2.18", 0x34, "2001:db8:12:3400:0:c000:212:34", 1232, 1235, 64720, 64723,
     252},
    {"2001:db8:12:3400::/56", "192.0.2.18/32", 0, 6, 0, "192.0.2.18", 0, "2001:db8:12:3400:0:c000:212:0", 0, 65535, 0, 65535, 65536},
}};

}  // namespace gatemark::refdut
