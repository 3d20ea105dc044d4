#include "refdut/map_rule.hpp"

#include "refdut/map_domains.hpp"
#include "refdut/map_vectors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace gatemark::refdut::map_rules {
namespace {

std::vector<std::uint32_t> ports_of(const PortSet& ports) {
    std::vector<std::uint32_t> list;
    for (std::uint32_t port = 0; port < 65536; ++port) {
        if (ports.has(static_cast<std::uint16_t>(port))) {
            list.push_back(port);
        }
    }
    return list;
}

TEST(RefdutMapRule, GivesEveryCustomerOfTheVectorsItsAddressAndPorts) {
    for (const MapVector& vector : map_vectors) {
        EXPECT_EQ(check_domains({vector.rule()}, std::nullopt), Errors{}) << vector.address;
        const MapRule rule{vector.rule()};
        const MapCustomer customer{.ipv4 = bytes_of(vector.customer), .psid = vector.psid};
        const AddressBytes address = bytes_of(vector.address);
        EXPECT_EQ(text_of(rule.address_of(customer)), net::to_text(test::address_of(vector.address)));
        EXPECT_EQ(rule.customer_of(address), customer) << vector.address;
        EXPECT_TRUE(rule.has_ipv6(address) && rule.has_ipv4(customer.ipv4));
        const auto ports = ports_of(rule.ports_of(customer));
        ASSERT_EQ(ports.size(), vector.ports) << vector.address;
        EXPECT_EQ(rule.ports_of(customer).size(), vector.ports);
        EXPECT_TRUE(ports.front() == vector.first_low && ports.back() == vector.last_high) << vector.address;
        for (const auto& [low, high] : {std::pair{vector.first_low, vector.first_high}, std::pair{vector.last_low, vector.last_high}}) {
            EXPECT_TRUE(low == 0 || !rule.has_port(customer, static_cast<std::uint16_t>(low - 1))) << low;
            EXPECT_TRUE(high == 65535 || !rule.has_port(customer, static_cast<std::uint16_t>(high + 1))) << high;
            for (std::uint32_t port = low; port <= high; ++port) {
                EXPECT_EQ(rule.customer_at(customer.ipv4, static_cast<std::uint16_t>(port)), customer) << port;
                EXPECT_TRUE(rule.has_port(customer, static_cast<std::uint16_t>(port))) << port;
            }
        }
    }
}

TEST(RefdutMapRule, EmbedsWhatIsOutside) {
    const MapRule rule{rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6, "2001:db8:ffff::/64")};
    EXPECT_EQ(text_of(rule.embedded(bytes_of("10.2.3.4"))), net::to_text(test::address_of("2001:db8:ffff:0:a:203:400:0")));
    EXPECT_EQ(rule.extracted(bytes_of("2001:db8:ffff:0:a:203:400:0")), bytes_of("10.2.3.4"));
    EXPECT_EQ(rule.extracted(bytes_of("2001:db8:fffe:0:a:203:400:0")), std::nullopt);
}

TEST(RefdutPortSet, EveryPortBelongsToOnePsidOrToNobody) {
    struct Case {
        unsigned offset, psid_bits;
        std::uint32_t ports;
    };
    for (const auto& [offset, psid_bits, ports] : {Case{6, 8, 64512}, Case{4, 6, 61440}, Case{0, 6, 65536}, Case{2, 8, 49152},
                                                   Case{4, 12, 61440}, Case{6, 5, 64512}, Case{0, 16, 65536}, Case{15, 1, 65534}}) {
        std::vector<unsigned> owners(65536);
        std::vector<std::uint16_t> lowest_ports(1U << psid_bits);
        for (std::uint32_t port = 65536; port-- > 0;) {
            const auto psid = PortSet{offset, psid_bits, 0}.psid_at(static_cast<std::uint16_t>(port));
            if (PortSet{offset, psid_bits, psid}.has(static_cast<std::uint16_t>(port))) {
                lowest_ports[psid] = static_cast<std::uint16_t>(port);
            }
        }
        for (std::uint32_t psid = 0; psid < 1U << psid_bits; ++psid) {
            const PortSet set{offset, psid_bits, static_cast<std::uint16_t>(psid)};
            const std::uint16_t lowest = lowest_ports[psid];
            std::uint16_t port = lowest;
            for (std::uint32_t i = 0; i < set.size(); ++i, port = set.after(port)) {
                ASSERT_TRUE(set.has(port)) << psid << ' ' << port;
                ++owners[port];
                const std::uint16_t elsewhere = set.elsewhere(port);
                const PortSet other{offset, psid_bits, set.psid_at(elsewhere)};
                ASSERT_TRUE(!set.has(elsewhere) && other.has(elsewhere)) << psid << ' ' << port;
            }
            ASSERT_EQ(port, lowest) << "after the highest comes the lowest";
        }
        EXPECT_LE(std::ranges::max(owners), 1U);
        EXPECT_EQ(static_cast<std::uint32_t>(std::ranges::count(owners, 1U)), ports) << offset << ' ' << psid_bits;
        const auto lowest = static_cast<std::uint32_t>(std::ranges::find(owners, 1U) - owners.begin());
        EXPECT_EQ(lowest, offset == 0 ? 0U : 65536U >> offset);
    }
}

TEST(RefdutPortSet, OfAWholeAddressHasAllPorts) {
    const PortSet all{6, 0, 0};
    EXPECT_EQ(ports_of(all).size(), 65536U);
    EXPECT_TRUE(all.after(7) == 8 && all.after(65535) == 0 && all.elsewhere(7) == 7);
}

/// A rule of any shape, and a customer of it.
MapRuleSpec random_rule(std::mt19937& engine) {
    const auto random = [&] { return static_cast<unsigned>(engine()); };
    MapRuleSpec rule;
    for (;;) {
        rule = rule_of("::/0", "0.0.0.0/0", random() % 49, random() % 16);
        rule.ipv4.length = random() % 33;
        rule.ipv6.length = 8 + random() % 121;
        rule.ipv6.address.bytes[0] = std::byte{0x20};
        rule.ipv6.address.bytes[rule.ipv6.length / 8 - 1] |= std::byte{0x40};
        rule.ipv4.address.bytes[0] = static_cast<std::byte>(rule.ipv4.length >= 8 ? random() : 0);
        if (check_domains({rule}, std::nullopt).empty()) {
            return rule;
        }
    }
}

TEST(RefdutMapRule, AddressesOfRandomRulesLeadBackToTheirCustomers) {
    std::mt19937 random{7};
    for (int round = 0; round < 2000; ++round) {
        const MapRuleSpec spec = random_rule(random);
        const MapRule rule{spec};
        std::set<std::string> addresses;
        std::set<std::pair<AddressBytes, std::uint16_t>> customers;
        for (int i = 0; i < 20; ++i) {
            AddressBytes host = bytes_of("0.0.0.0");
            for (std::size_t byte = 0; byte < 4; ++byte) {
                host[byte] = static_cast<std::byte>(random());
            }
            for (unsigned bit = 0; bit < spec.ipv4.length; ++bit) {  // the rule's prefix
                const auto mask = static_cast<std::byte>(0x80U >> bit % 8);
                host[bit / 8] = (host[bit / 8] & ~mask) | (spec.ipv4.address.bytes[bit / 8] & mask);
            }
            const auto port = static_cast<std::uint16_t>(random());
            const MapCustomer customer = rule.customer_at(host, port);
            const AddressBytes address = rule.address_of(customer);
            ASSERT_TRUE(rule.has_ipv6(address) && rule.has_ipv4(customer.ipv4));
            ASSERT_EQ(rule.customer_of(address), customer) << text_of(address);
            addresses.insert(text_of(address));
            customers.insert({customer.ipv4, customer.psid});
            for (const bool other_ipv4 : {false, true}) {
                const auto neighbour = rule.neighbour_of(customer, other_ipv4);
                if (neighbour) {
                    ASSERT_FALSE(*neighbour == customer);
                    ASSERT_EQ(rule.customer_of(rule.address_of(*neighbour)), *neighbour);
                }
                ASSERT_EQ(neighbour.has_value(), other_ipv4 ? spec.suffix_bits() > 0 : spec.ea_bits > 0);
            }
        }
        ASSERT_EQ(addresses.size(), customers.size());
    }
}

TEST(RefdutMapDomains, TheLongestPrefixOfTheFamilyWins) {
    const MapDomains domains{{rule_of("2001:db8::/32", "192.0.2.0/24", 16, 6), rule_of("2001:db8:8000::/40", "192.0.2.128/25", 15, 6)}};
    EXPECT_EQ(domains.of_ipv6(bytes_of("2001:db8:7000::1"))->spec().ipv6.length, 32U);
    EXPECT_EQ(domains.of_ipv6(bytes_of("2001:db8:8000::1"))->spec().ipv6.length, 40U);
    EXPECT_EQ(domains.of_ipv6(bytes_of("2001:db9::1")), nullptr);
    EXPECT_EQ(domains.of_ipv4(bytes_of("192.0.2.127"))->spec().ipv4.length, 24U);
    EXPECT_EQ(domains.of_ipv4(bytes_of("192.0.2.128"))->spec().ipv4.length, 25U);
    EXPECT_EQ(domains.of_ipv4(bytes_of("192.0.3.1")), nullptr);
    EXPECT_EQ(domains.of_endpoint(bytes_of("192.0.2.200"), 1023), nullptr) << "a port of nobody";
    EXPECT_TRUE(domains.embeds(bytes_of("64:ff9b::1")));
    EXPECT_FALSE(domains.embeds(bytes_of("64:ff9c::1")));
}

TEST(RefdutMapDomains, RulesOfOnePsidEachShareAnAddress) {
    std::vector<MapRuleSpec> rules;
    for (unsigned psid = 0; psid < 4; ++psid) {
        rules.push_back(rule_of("2001:db8:0:" + std::to_string(psid) + "::/64", "192.0.2.1/32", 0, 4));
        rules.back().psid_bits = 2;
        rules.back().psid = static_cast<std::uint16_t>(psid);
    }
    EXPECT_EQ(check_domains(rules, std::nullopt), Errors{});
    const MapDomains domains{rules};
    for (unsigned psid = 0; psid < 4; ++psid) {  // M is 2^(16 - 4 - 2)
        const auto port = static_cast<std::uint16_t>(4096 + 1024 * psid);
        const MapRule* const rule = domains.of_endpoint(bytes_of("192.0.2.1"), port);
        ASSERT_NE(rule, nullptr);
        EXPECT_EQ(rule->spec().psid, psid);
    }
    EXPECT_EQ(domains.of_endpoint(bytes_of("192.0.2.1"), 4095), nullptr);
}

TEST(RefdutMapDomains, AnEndUserPrefixSaysWhoTheCustomerIs) {
    for (const MapVector& vector : map_vectors) {
        net::Prefix prefix{.address = test::address_of(vector.address), .length = vector.rule().end_user_bits()};
        for (unsigned bit = prefix.length; bit < 128; ++bit) {
            net::set_bit(prefix.address, bit, false);
        }
        EXPECT_EQ(check_domains({vector.rule()}, prefix), Errors{}) << vector.address;
        const MapEdge edge = edge_of({vector.rule()}, prefix);
        EXPECT_EQ(text_of(edge.address), net::to_text(test::address_of(vector.address)));
        EXPECT_EQ(edge.customer, (MapCustomer{.ipv4 = bytes_of(vector.customer), .psid = vector.psid}));
    }
}

std::vector<std::string> places(std::vector<MapRuleSpec> rules, const char* end_user_prefix = nullptr) {
    std::vector<std::string> list;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        rules[i].number = i;
    }
    for (const Error& error : check_domains(rules, end_user_prefix == nullptr ? std::nullopt : std::optional{prefix_of(end_user_prefix)})) {
        EXPECT_FALSE(error.what.empty() || error.fix.empty()) << error.where;
        list.push_back(error.where.substr(std::string{"translation."}.size()));
    }
    return list;
}

TEST(RefdutMapDomains, NamesAllThatIsWrongAtOnce) {
    using Places = std::vector<std::string>;
    MapRuleSpec rule = rule_of("192.0.2.0/24", "2001:db8::/40", 8, 0, "192.0.2.0/24");
    EXPECT_EQ(places({rule}), (Places{"domains[0].ipv4", "domains[0].ipv6", "domains[0].dmr", "domains[0].dmr"}));
    EXPECT_EQ(places({rule_of("2001:db8::/120", "192.0.2.0/24", 40, 15, "2001:db9::/63")}),
              (Places{"domains[0].ea_bits", "domains[0].ea_bits", "domains[0].dmr"}));
    EXPECT_EQ(places({rule_of("2001:db8::/40", "192.0.2.0/24", 24, 15)}), (Places{"domains[0].psid_offset"}));
    rule = rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6, "2001:db8::/32");
    rule.psid_bits = 8;
    rule.psid = 7;
    EXPECT_EQ(places({rule}), (Places{"domains[0].psid_bits", "domains[0].psid", "domains[0].dmr"}));
    rule = rule_of("2001:db8::/56", "192.0.2.0/24", 0, 6);
    rule.psid_bits = 4;
    rule.psid = 16;
    EXPECT_EQ(places({rule}), (Places{"domains[0].psid_bits", "domains[0].psid"}));
    rule = rule_of("2001:db8::/56", "192.0.2.1/32", 0, 6);
    EXPECT_EQ(places({rule, rule_of("2001:db8::/56", "192.0.2.1/32", 8, 6, "64:ff9b::/64")}),
              (Places{"domains[1].ipv6", "domains[1].ipv4", "domains[1].dmr"}));
    EXPECT_EQ(places({rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6, "64:ff9b:1:0:ff00::/96")}), (Places{"domains[0].dmr"}));
    const MapRuleSpec good = rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6);
    EXPECT_EQ(places({good}, "2001:db8:12:3400::/56"), Places{});
    EXPECT_EQ(places({good}, "2001:db8:12:3400::/57"), (Places{"end_user_prefix"}));
    EXPECT_EQ(places({good}, "2001:db9::/56"), (Places{"end_user_prefix"}));
    EXPECT_EQ(places({good, rule_of("2001:db9::/40", "198.51.100.0/24", 16, 6)}, "2001:db8:12:3400::/56"), (Places{"domains[1]"}));
}

}  // namespace
}  // namespace gatemark::refdut::map_rules
