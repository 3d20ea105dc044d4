#include "refdut/address.hpp"

#include "base/bytes.hpp"
#include "refdut/packets.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gatemark::refdut {
namespace {

Ipv6Number ipv6(const std::string& text) { return load_ipv6(test::address_of(text).bytes.data()); }
Ipv4Number ipv4(const std::string& text) { return load_big_endian<std::uint32_t>(test::address_of(text).bytes.data()); }
std::string text(std::optional<Ipv6Number> number) {
    if (!number) {
        return "none";
    }
    net::Address address{.family = net::Family::ipv6, .bytes = {}};
    store_ipv6(address.bytes.data(), *number);
    return net::to_text(address);
}

TEST(RefdutEmbedding, GivesTheExamplesOfRfc6052) {
    const std::pair<const char*, const char*> examples[]{
        {"2001:db8::/32", "2001:db8:c000:221::"},
        {"2001:db8:100::/40", "2001:db8:1c0:2:21::"},
        {"2001:db8:122::/48", "2001:db8:122:c000:2:2100::"},
        {"2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"},
        {"2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"},
        {"2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"},
        {"64:ff9b::/96", "64:ff9b::192.0.2.33"},
    };
    for (const auto& [prefix, address] : examples) {
        const EmbeddingPrefix embedding{prefix_of(prefix)};
        EXPECT_EQ(text(embedding.embed(ipv4("192.0.2.33"))), net::to_text(test::address_of(address))) << prefix;
        EXPECT_EQ(embedding.extract(ipv6(address)), ipv4("192.0.2.33")) << prefix;
        EXPECT_EQ(embedding.extract(ipv6("2002::1")), std::nullopt) << prefix;
    }
}

TEST(RefdutEmbedding, PutsEachByteWhereTheTableOfRfc6052SaysAndTakesItBack) {
    const std::pair<unsigned, std::array<std::size_t, 4>> table[]{{32, {4, 5, 6, 7}},   {40, {5, 6, 7, 9}},    {48, {6, 7, 9, 10}},
                                                                  {56, {7, 9, 10, 11}}, {64, {9, 10, 11, 12}}, {96, {12, 13, 14, 15}}};
    std::mt19937 random{1};
    for (const auto& [length, places] : table) {
        const EmbeddingPrefix embedding{prefix_of("2000::/" + std::to_string(length))};
        for (int i = 0; i < 1000; ++i) {
            const auto value = static_cast<Ipv4Number>(random());
            net::Address expected = test::address_of("2000::");
            for (std::size_t byte = 0; byte < 4; ++byte) {
                expected.bytes[places[byte]] = static_cast<std::byte>(value >> (24 - 8 * byte));
            }
            ASSERT_EQ(text(embedding.embed(value)), net::to_text(expected)) << length;
            expected.bytes[8] = std::byte{0xff};  // this byte and the following ones are ignored
            ASSERT_EQ(embedding.extract(load_ipv6(expected.bytes.data())), length == 96 ? std::nullopt : std::optional{value});
        }
    }
}

TEST(RefdutAddressMap, GivesTheExamplesOfRfc7757) {
    const AddressMap map{prefix_of("64:ff9b::/96"),
                         {eam_of("192.0.2.1/32", "2001:db8:aaaa::/128"), eam_of("192.0.2.2/32", "2001:db8:bbbb::b/128"),
                          eam_of("192.0.2.16/28", "2001:db8:cccc::/124"), eam_of("192.0.2.128/26", "2001:db8:dddd::/64"),
                          eam_of("192.0.2.192/29", "2001:db8:eeee:8::/62"), eam_of("192.0.2.224/31", "64:ff9b::/127")}};
    const std::pair<const char*, const char*> examples[]{
        {"192.0.2.1", "2001:db8:aaaa::"},          {"192.0.2.2", "2001:db8:bbbb::b"},
        {"192.0.2.24", "2001:db8:cccc::8"},        {"192.0.2.31", "2001:db8:cccc::f"},
        {"192.0.2.152", "2001:db8:dddd:0:6000::"}, {"192.0.2.183", "2001:db8:dddd:0:dc00::"},
        {"192.0.2.195", "2001:db8:eeee:9:8000::"}, {"192.0.2.225", "64:ff9b::1"},
        {"192.0.2.248", "64:ff9b::c000:2f8"},
    };
    for (const auto& [four, six] : examples) {
        EXPECT_EQ(text(map.to_ipv6(ipv4(four))), net::to_text(test::address_of(six))) << four;
        EXPECT_EQ(map.to_ipv4(ipv6(six)), ipv4(four)) << six;
    }
    // An IPv6 suffix that is longer than the IPv4 suffix is cut.
    EXPECT_EQ(map.to_ipv4(ipv6("2001:db8:dddd:0:6000::1")), ipv4("192.0.2.152"));
    EXPECT_TRUE(map.only_embedded(ipv6("64:ff9b::c000:2f8")));
    EXPECT_FALSE(map.only_embedded(ipv6("64:ff9b::1")));
    EXPECT_EQ(map.to_ipv4(ipv6("2001:db8:ffff::1")), std::nullopt);
}

TEST(RefdutAddressMap, TheLongestPrefixOfTheFamilyWins) {
    const AddressMap map{std::nullopt, {eam_of("10.0.0.0/8", "2001:db8::/32"), eam_of("10.1.0.0/16", "2001:db9::/112")}};
    EXPECT_EQ(text(map.to_ipv6(ipv4("10.1.2.3"))), "2001:db9::203");
    EXPECT_EQ(text(map.to_ipv6(ipv4("10.2.2.3"))), "2001:db8:202:300::");
    EXPECT_EQ(map.to_ipv6(ipv4("11.0.0.1")), std::nullopt);
}

}  // namespace
}  // namespace gatemark::refdut
