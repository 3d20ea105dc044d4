#include "net/address_mapping.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

namespace gatemark::net {
namespace {

using test::address_of;
using test::mapping_of;

std::string text_or_none(const std::optional<Address>& address) { return address ? to_text(*address) : "none"; }

struct Embedding {
    const char *prefix, *ipv6;
};

TEST(AddressMapping, EmbedsAsRfc6052Section24Shows) {
    const Embedding examples[] = {{"2001:db8::/32", "2001:db8:c000:221::"},
                                  {"2001:db8:100::/40", "2001:db8:1c0:2:21::"},
                                  {"2001:db8:122::/48", "2001:db8:122:c000:2:2100::"},
                                  {"2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"},
                                  {"2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"},
                                  {"2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"},
                                  {"64:ff9b::/96", "64:ff9b::192.0.2.33"}};
    for (const auto& [prefix, ipv6] : examples) {
        const AddressMapping mapping = mapping_of(prefix);
        EXPECT_EQ(text_or_none(mapping.to_ipv6(address_of("192.0.2.33"))), to_text(address_of(ipv6))) << prefix;
        EXPECT_EQ(text_or_none(mapping.to_ipv4(address_of(ipv6))), "192.0.2.33") << prefix;
        if (std::string{prefix}.ends_with("/96") == false) {
            EXPECT_EQ(mapping.to_ipv6(address_of("255.255.255.255"))->bytes[8], std::byte{0}) << prefix;  // bits 64 to 71
        }
        EXPECT_FALSE(mapping.to_ipv4(address_of("2001:dead::1")));
    }
}

TEST(AddressMapping, IgnoresSuffixBitsBehindTheEmbeddedAddress) {
    EXPECT_EQ(text_or_none(mapping_of("2001:db8::/32").to_ipv4(address_of("2001:db8:c000:221:0:dead::1"))), "192.0.2.33");
}

TEST(AddressMapping, FollowsTheExamplesOfRfc7757) {
    const AddressMapping mapping = mapping_of("64:ff9b::/96", {{"192.0.2.1/32", "2001:db8:aaaa::/128"},
                                                               {"192.0.2.2/32", "2001:db8:bbbb::b/128"},
                                                               {"192.0.2.16/28", "2001:db8:cccc::/124"},
                                                               {"192.0.2.128/26", "2001:db8:dddd::/64"},
                                                               {"192.0.2.192/29", "2001:db8:eeee:8::/62"},
                                                               {"192.0.2.224/31", "64:ff9b::/127"}});
    const std::pair<const char*, const char*> examples[] = {
        {"192.0.2.1", "2001:db8:aaaa::"},          {"192.0.2.2", "2001:db8:bbbb::b"},
        {"192.0.2.16", "2001:db8:cccc::"},         {"192.0.2.24", "2001:db8:cccc::8"},
        {"192.0.2.31", "2001:db8:cccc::f"},        {"192.0.2.128", "2001:db8:dddd::"},
        {"192.0.2.152", "2001:db8:dddd:0:6000::"}, {"192.0.2.183", "2001:db8:dddd:0:dc00::"},
        {"192.0.2.195", "2001:db8:eeee:9:8000::"}, {"192.0.2.225", "64:ff9b::1"},
        {"192.0.2.248", "64:ff9b::c000:2f8"}};
    for (const auto& [ipv4, ipv6] : examples) {
        EXPECT_EQ(text_or_none(mapping.to_ipv6(address_of(ipv4))), to_text(address_of(ipv6))) << ipv4;
        EXPECT_EQ(text_or_none(mapping.to_ipv4(address_of(ipv6))), ipv4) << ipv6;
    }
}

TEST(AddressMapping, TheLongestPrefixWins) {
    const AddressMapping mapping = mapping_of(
        "", {{"198.18.0.0/16", "2001:2:0:1::/64"}, {"198.18.7.0/24", "2001:2:0:2::/120"}, {"198.18.7.9/32", "2001:2:0:3::9/128"}});
    EXPECT_EQ(text_or_none(mapping.to_ipv6(address_of("198.18.7.9"))), "2001:2:0:3::9");
    EXPECT_EQ(text_or_none(mapping.to_ipv6(address_of("198.18.7.8"))), "2001:2:0:2::8");
    EXPECT_EQ(text_or_none(mapping.to_ipv6(address_of("198.18.6.9"))), "2001:2:0:1:609::");
    EXPECT_EQ(text_or_none(mapping.to_ipv6(address_of("198.19.6.9"))), "none");
    EXPECT_EQ(text_or_none(mapping.to_ipv4(address_of("2001:2:0:2::1:8"))), "none");
}

TEST(AddressMapping, ToItsOwnFamilyAnAddressStays) {
    const AddressMapping mapping = mapping_of("64:ff9b::/96");
    EXPECT_EQ(mapping.to(Family::ipv4, address_of("192.0.2.1")), address_of("192.0.2.1"));
    EXPECT_EQ(mapping.to(Family::ipv6, address_of("192.0.2.1")), address_of("64:ff9b::192.0.2.1"));
    EXPECT_EQ(mapping.to(Family::ipv4, address_of("64:ff9b::192.0.2.1")), address_of("192.0.2.1"));
}

TEST(AddressMapping, RefusesWhatTheRfcsForbid) {
    const auto refuses = [](const char* prefix, const char* ipv4, const char* ipv6) {
        std::vector<ExplicitMapping> mappings;
        if (ipv4 != nullptr) {
            mappings.push_back({*parse_prefix(ipv4), *parse_prefix(ipv6)});
        }
        return error_of(AddressMapping::make(prefix == nullptr ? std::nullopt : parse_prefix(prefix), mappings)) != nullptr;
    };
    EXPECT_TRUE(refuses("2001:db8::/33", nullptr, nullptr));
    EXPECT_TRUE(refuses("2001:db8::/128", nullptr, nullptr));
    EXPECT_TRUE(refuses("192.0.2.0/32", nullptr, nullptr));
    EXPECT_TRUE(refuses("2001:db8:0:0:100::/96", nullptr, nullptr));  // bits 64 to 71
    EXPECT_FALSE(refuses("2001:db8:0:0:1::/96", nullptr, nullptr));
    EXPECT_TRUE(refuses(nullptr, "192.0.2.0/24", "2001:db8::/121"));  // RFC 7757 section 3.1: the IPv4 suffix has no room
    EXPECT_TRUE(refuses(nullptr, "2001:db8::/32", "2001:db8::/32"));
    EXPECT_TRUE(refuses(nullptr, "192.0.2.0/24", "192.0.2.0/24"));
    EXPECT_FALSE(refuses(nullptr, "192.0.2.0/24", "2001:db8::/120"));
}

}  // namespace
}  // namespace gatemark::net
