#include "net/map_domain.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace gatemark::net {
namespace {

using test::address_of;

MapRule rule_of(const std::string& ipv6, const std::string& ipv4, unsigned ea_bits, unsigned psid_offset) {
    return {.ipv6 = parse_prefix(ipv6).value(),
            .ipv4 = parse_prefix(ipv4).value(),
            .ea_bits = ea_bits,
            .psid_offset = psid_offset,
            .dmr = parse_prefix("2001:db8:ffff::/64").value()};
}

/// An edge of a rule, with its address and the ports that it may use: the first range, the last,
/// and how many.
struct Edge {
    MapRule rule;
    const char* ipv4;
    std::uint16_t psid;
    const char* address;
    std::array<std::uint16_t, 2> first_range, last_range;
    std::uint32_t ports;
};

MapRule with_psid(MapRule rule, unsigned bits, std::uint16_t psid) {
    rule.psid_bits = bits;
    rule.psid = psid;
    return rule;
}

/// Computed by another program; those of RFC 7597 appendix A and RFC 7599 appendix A among them.
std::vector<Edge> edges() {
    const MapRule usual = rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6), whole = rule_of("2001:db8:ce::/51", "192.0.2.0/24", 13, 0),
                  longer = rule_of("2001:db8:ce::/51", "192.0.2.0/24", 20, 0),
                  none = rule_of("2001:db8:12:3400::/56", "192.0.2.18/32", 0, 6);
    return {
        {usual, "192.0.2.18", 0x34, "2001:db8:12:3400:0:c000:212:34", {1232, 1235}, {64720, 64723}, 252},
        {usual, "192.0.2.0", 0, "2001:db8::c000:200:0", {1024, 1027}, {64512, 64515}, 252},
        {usual, "192.0.2.255", 0xff, "2001:db8:ff:ff00:0:c000:2ff:ff", {2044, 2047}, {65532, 65535}, 252},
        {rule_of("2001:db8:8000::/50", "192.0.2.0/24", 14, 0),
         "192.0.2.200",
         10,
         "2001:db8:8000:320a:0:c000:2c8:a",
         {10240, 11263},
         {10240, 11263},
         1024},
        {whole, "192.0.2.192", 21, "2001:db8:ce:1815:0:c000:2c0:15", {43008, 45055}, {43008, 45055}, 2048},
        {rule_of("2001:db8:ce::/51", "192.0.2.0/24", 13, 6),
         "192.0.2.192",
         21,
         "2001:db8:ce:1815:0:c000:2c0:15",
         {1696, 1727},
         {65184, 65215},
         2016},
        {longer, "192.0.2.200", 10, "2001:db8:ce:1900:1400:c000:2c8:a", {160, 175}, {160, 175}, 16},
        {longer, "192.0.2.255", 4095, "2001:db8:ce:1fff:fe00:c000:2ff:fff", {65520, 65535}, {65520, 65535}, 16},
        {rule_of("2001:db8::/32", "10.0.0.0/8", 32, 6),
         "10.18.52.86",
         0xab,
         "2001:db8:1234:56ab:0:a12:3456:ab",
         {1708, 1711},
         {65196, 65199},
         252},
        {rule_of("2001:db8::/32", "203.0.113.77/32", 12, 4),
         "203.0.113.77",
         0xabc,
         "2001:db8:abc0::cb00:714d:abc",
         {6844, 6844},
         {64188, 64188},
         15},
        {rule_of("2001:db8::/36", "192.0.2.0/24", 16, 2),
         "192.0.2.9",
         0x81,
         "2001:db8:98:1000:0:c000:209:81",
         {24640, 24703},
         {57408, 57471},
         192},
        {rule_of("2001:db8:a0::/44", "198.18.0.0/16", 20, 4),
         "198.18.1.2",
         0xf,
         "2001:db8:a0:102f:0:c612:102:f",
         {7936, 8191},
         {65280, 65535},
         3840},
        {rule_of("2001:db8:1::/48", "0.0.0.0/0", 48, 0),
         "198.51.100.7",
         0xbeef,
         "2001:db8:1:c633:6407:beef:6407:beef",
         {48879, 48879},
         {48879, 48879},
         1},
        {rule_of("2001:db8::/32", "198.51.100.0/24", 6, 6),
         "198.51.100.20",
         0,
         "2001:db8:1400::c633:6414:0",
         {1024, 2047},
         {64512, 65535},
         64512},
        {with_psid(none, 8, 0x34), "192.0.2.18", 0x34, "2001:db8:12:3400:0:c000:212:34", {1232, 1235}, {64720, 64723}, 252},
        {none, "192.0.2.18", 0, "2001:db8:12:3400:0:c000:212:0", {1024, 2047}, {64512, 65535}, 64512},
    };
}

/// The EA value of an edge, from its address and PSID.
std::uint64_t ea_of(const MapRule& rule, const MapDomain& domain, const Edge& edge) {
    const std::uint32_t suffix = word_of(address_of(edge.ipv4)) - word_of(rule.ipv4.address);
    return rule.ea_bits == 0 ? 0
                             : std::uint64_t{suffix >> (32 - rule.ipv4.length - domain.suffix_bits())} << domain.ea_psid_bits() | edge.psid;
}

TEST(MapDomain, GivesTheAddressesAndPortsOfKnownEdges) {
    for (const Edge& edge : edges()) {
        EXPECT_EQ(problems_of(edge.rule, "rule"), Errors{}) << edge.address;
        const MapDomain domain{edge.rule};
        const std::uint64_t ea = ea_of(edge.rule, domain, edge);
        EXPECT_EQ(to_text(ipv6_of(domain.address_of(ea))), to_text(address_of(edge.address)));
        EXPECT_EQ(to_text(ipv4_of(domain.ipv4_of(ea))), edge.ipv4);
        EXPECT_EQ(domain.psid_of(ea), edge.psid) << edge.address;
        EXPECT_EQ(domain.owner_of(wide_of(address_of(edge.address))), ea) << edge.address;
        EXPECT_EQ(domain.restricts_ports(), edge.psid != 0 || domain.psid_bits() != 0);
        EXPECT_EQ(domain.ports(), edge.ports) << edge.address;
        EXPECT_EQ(domain.port(edge.psid, 0), edge.first_range[0]) << edge.address;
        EXPECT_EQ(domain.port(edge.psid, edge.first_range[1] - edge.first_range[0]), edge.first_range[1]) << edge.address;
        EXPECT_EQ(domain.port(edge.psid, edge.ports - 1), edge.last_range[1]) << edge.address;
        EXPECT_EQ(domain.port(edge.psid, edge.ports - 1 - (edge.last_range[1] - edge.last_range[0])), edge.last_range[0]) << edge.address;
    }
}

/// With the default PSID offset, RFC 7597 section 5.1; outside addresses as in RFC 7599 section 5.1
/// by RFC 6052.
TEST(MapDomain, RepresentsOutsideAddressesUnderTheDefaultMappingRule) {
    EXPECT_EQ(to_text(*test::mapping_of("2001:db8:ffff::/64").to_ipv6(address_of("10.2.3.4"))), "2001:db8:ffff:0:a:203:400:0");
}

struct Sharing {
    unsigned offset, psid_bits;
    std::uint32_t shared;
};

/// RFC 7597 section 5.1: the sets of all PSIDs are disjoint, and together they are all ports from
/// 2^(16 - offset) on.
TEST(MapDomain, DividesThePortsAmongAllPsids) {
    for (const Sharing& sharing : {Sharing{6, 8, 64512}, {4, 6, 61440}, {0, 6, 65536}, {2, 8, 49152}, {4, 12, 61440}, {6, 5, 64512}}) {
        const MapDomain domain{rule_of("2001:db8::/32", "192.0.2.1/32", sharing.psid_bits, sharing.offset)};
        std::vector<int> owner(65536, -1);
        std::uint32_t shared = 0;
        for (unsigned psid = 0; psid < 1U << sharing.psid_bits; ++psid) {
            std::uint32_t previous = 0;
            for (std::uint32_t i = 0; i < domain.ports(); ++i) {
                const std::uint16_t port = domain.port(static_cast<std::uint16_t>(psid), i);
                ASSERT_EQ(owner[port], -1) << port;
                ASSERT_TRUE(i == 0 || port > previous) << "in ascending order";
                previous = port;
                owner[port] = static_cast<int>(psid);
                ++shared;
            }
        }
        EXPECT_EQ(shared, sharing.shared);
        for (std::uint32_t port = 0; port < 65536; ++port) {
            const auto psid = domain.psid_of_port(static_cast<std::uint16_t>(port));
            ASSERT_EQ(psid ? static_cast<int>(*psid) : -1, owner[port]) << port;
            ASSERT_EQ(psid.has_value(), sharing.offset == 0 || port >= 1U << (16 - sharing.offset)) << port;
        }
    }
}

/// An address as a list of bits, filled from the left as RFC 7597 figures 3 and 8 show it.
Address slow_address(const MapRule& rule, std::uint64_t ea, std::uint32_t ipv4, std::uint16_t psid) {
    Address address = rule.ipv6.address;
    const auto put = [&](unsigned at, unsigned bits, std::uint64_t value) {
        for (unsigned i = 0; i < bits; ++i) {
            set_bit(address, at + i, ((value >> (bits - 1 - i)) & 1) != 0);
        }
    };
    const Address prefix = address;
    put(80, 32, ipv4);
    put(112, 16, psid);
    for (unsigned i = 0; i < rule.ipv6.length; ++i) {
        set_bit(address, i, bit_of(prefix, i));
    }
    put(rule.ipv6.length, rule.in_identifier ? 0 : rule.ea_bits, ea);
    return address;
}

MapRule random_rule(std::mt19937_64& random) {
    const auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
    MapRule rule = rule_of("2001:db8::/32", "0.0.0.0/0", 0, 0);
    rule.ipv4.length = below(33);
    const unsigned most = std::min(48 - rule.ipv4.length, 48U);
    rule.ea_bits = below(most + 1);
    rule.in_identifier = below(4) == 0;
    rule.ipv6.length = rule.in_identifier ? 64 : 20 + below(std::min(64U, 128 - rule.ea_bits) - 19);
    const unsigned psid_bits = rule.ipv4.length + rule.ea_bits > 32 ? rule.ipv4.length + rule.ea_bits - 32 : 0;
    rule.psid_offset = below(std::min(15U, 16 - psid_bits) + 1);
    for (unsigned i = 0; i < 128; ++i) {
        set_bit(rule.ipv6.address, i, i < rule.ipv6.length && random() % 2 == 0);
    }
    for (unsigned i = 0; i < 32; ++i) {
        set_bit(rule.ipv4.address, i, i < rule.ipv4.length && random() % 2 == 0);
    }
    return rule;
}

TEST(MapDomain, AgreesWithTheFiguresBitByBitForRulesDrawnAtRandom) {
    std::mt19937_64 random{5};
    for (int round = 0; round < 2000; ++round) {
        const MapRule rule = random_rule(random);
        ASSERT_EQ(problems_of(rule, "rule"), Errors{}) << round;
        const MapDomain domain{rule};
        std::set<std::pair<std::uint32_t, std::uint16_t>> endpoints;
        std::set<std::uint64_t> values;
        for (int i = 0; i < 40; ++i) {
            const std::uint64_t ea = i == 0 ? 0 : i == 1 ? domain.ea_values() - 1 : random() % domain.ea_values();
            values.insert(ea);
            const std::uint32_t ipv4 = domain.ipv4_of(ea);
            const std::uint16_t psid = domain.psid_of(ea);
            endpoints.insert({ipv4, psid});
            ASSERT_TRUE(rule.ipv4.contains(ipv4_of(ipv4)) && domain.contains_ipv4(ipv4)) << round;
            const Address slow = slow_address(rule, ea, ipv4, psid);
            ASSERT_EQ(to_text(ipv6_of(domain.address_of(ea))), to_text(slow)) << round;
            ASSERT_TRUE(rule.ipv6.contains(slow) && domain.contains_ipv6(wide_of(slow))) << round;
            ASSERT_EQ(domain.owner_of(wide_of(slow)), ea) << round;
            Address other = slow;
            const auto flipped = static_cast<unsigned>(random() % 128);
            set_bit(other, flipped, !bit_of(other, flipped));
            ASSERT_EQ(domain.contains_ipv6(wide_of(other)), rule.ipv6.contains(other)) << round;
            ASSERT_NE(domain.owner_of(wide_of(other)), std::optional{ea}) << round;
        }
        EXPECT_EQ(endpoints.size(), values.size()) << "no two edges share address and PSID";
    }
}

TEST(MapDomain, NamesEveryProblemOfARuleAtOnce) {
    MapRule rule = rule_of("2001:db8::/96", "192.0.2.0/24", 49, 16);
    rule.dmr = parse_prefix("2001:db8::/63").value();
    rule.psid = 3;
    std::vector<std::string> places;
    for (const Error& error : problems_of(rule, "domains[3]")) {
        places.push_back(error.where);
        EXPECT_FALSE(error.fix.empty());
    }
    EXPECT_EQ(places, (std::vector<std::string>{"domains[3].dmr", "domains[3].ea_bits", "domains[3].ea_bits", "domains[3].ea_bits",
                                                "domains[3].psid_offset", "domains[3].psid"}));
    const auto place_of_only = [](const MapRule& wrong) {
        const Errors errors = problems_of(wrong, "");
        return errors.size() == 1 ? errors[0].where : std::to_string(errors.size()) + " problems";
    };
    rule = rule_of("2001:db8::/40", "192.0.2.0/24", 16, 9);
    EXPECT_EQ(place_of_only(rule), ".psid_offset") << "8 bits are the PSID's";
    rule = rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6);
    rule.dmr = {address_of("2001:db8:0:0:100::"), 96};
    EXPECT_EQ(place_of_only(rule), ".dmr") << "RFC 6052 section 2.2: bits 64 to 71";
    rule.dmr = rule_of("::/0", "0.0.0.0/0", 0, 0).dmr;
    rule.ipv6 = parse_prefix("192.0.2.0/24").value();
    EXPECT_EQ(place_of_only(rule), ".ipv6");
    rule = rule_of("2001:db8::/40", "192.0.2.18/32", 0, 6);
    for (const auto& [bits, psid] :
         std::vector<std::pair<std::optional<unsigned>, std::optional<std::uint16_t>>>{{std::nullopt, 1}, {8, std::nullopt}, {4, 16}}) {
        rule.psid_bits = bits;
        rule.psid = psid;
        EXPECT_EQ(place_of_only(rule), ".psid");
    }
    rule = with_psid(rule_of("2001:db8::/40", "192.0.2.16/31", 0, 6), 8, 3);
    EXPECT_EQ(place_of_only(rule), ".psid_bits");
    rule = rule_of("2001:db8::/40", "192.0.2.0/24", 14, 0);
    rule.in_identifier = true;
    EXPECT_EQ(place_of_only(rule), ".ipv6") << "the EA bits are in an interface identifier of 64 bits";
}

}  // namespace
}  // namespace gatemark::net
