#include "frame/address_field.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gatemark::frame {
namespace {

using test::varying_host;

/// Compares the fast computation with a translation of each host, and its share of the checksum
/// with the sum of the bytes.
void expect_equals_slow_form(const HostSet& hosts, net::Family family, const net::AddressMapping* mapping, std::uint32_t step = 1) {
    const auto result = AddressField::make(hosts, family, mapping, "field");
    ASSERT_EQ(error_of(result), nullptr) << error_of(result)->what;
    const auto& field = std::get<AddressField>(result);
    ASSERT_EQ(field.family(), family);
    for (std::uint32_t value = hosts.part.minimum; value <= hosts.part.maximum; value += step) {
        for (unsigned network = 0; network < hosts.networks; ++network) {
            const auto small = static_cast<std::uint16_t>(value);
            const auto net_number = static_cast<std::uint8_t>(network);
            const net::Address host = hosts.host(small, net_number);
            const net::Address slow = mapping == nullptr ? host : mapping->to(family, host).value();
            ASSERT_EQ(net::to_text(field.at(small, net_number)), net::to_text(slow)) << net::to_text(host);
            ASSERT_TRUE(field.matches(slow.bytes.data(), small, net_number));
            ASSERT_TRUE(field.contains(slow.bytes.data()));
            std::array<std::byte, 16> bytes = field.base().bytes;
            const Sum varying = field.write(bytes.data(), small, net_number);
            ASSERT_EQ(fold(sum_of(std::span{field.base().bytes}.first(field.bytes())) + varying),
                      fold(sum_of(std::span{bytes}.first(field.bytes()))));
            std::array<std::byte, 16> outside = field.base().bytes;
            ASSERT_EQ(fold(sum_of(std::span{field.base().bytes}.first(field.bytes())) +
                           field.write_outside(outside.data(), small, net_number, {})),
                      fold(sum_of(std::span{bytes}.first(field.bytes()))));
            ASSERT_EQ(outside, bytes);
            net::Address wrong = slow;
            wrong.bytes[value % field.bytes()] ^= std::byte{1};
            ASSERT_FALSE(field.matches(wrong.bytes.data(), small, net_number));
        }
    }
}

constexpr std::array<const char*, 6> prefixes{"2001:db8::/32",         "2001:db8:100::/40",     "2001:db8:122::/48",
                                              "2001:db8:122:300::/56", "2001:db8:122:344::/64", "2001:db8:122:344::/96"};

TEST(AddressField, Ipv4HostsAtEveryOffsetWithEveryPrefix) {
    for (const char* const prefix : prefixes) {
        const net::AddressMapping mapping = test::mapping_of(prefix);
        for (std::size_t offset = 0; offset <= 2; ++offset) {
            expect_equals_slow_form(varying_host("198.18.0.2", offset, ValueMode::pseudorandom, 0, 65535), net::Family::ipv6, &mapping, 7);
        }
        expect_equals_slow_form(test::fixed_host("198.18.0.2"), net::Family::ipv6, &mapping);
    }
}

TEST(AddressField, ContainsTheAddressesOfItsHostsAndNoOther) {
    const std::vector<HostSet> sets{test::fixed_host("198.18.0.2"),
                                    varying_host("198.18.0.0", 2, ValueMode::pseudorandom, 2, 254),
                                    varying_host("198.18.0.0", 1, ValueMode::increasing, 0x0102, 0x0203),
                                    varying_host("198.19.0.0", 2, ValueMode::pseudorandom, 2, 254, 256),
                                    varying_host("198.19.0.0", 2, ValueMode::pseudorandom, 2, 254, 7),
                                    varying_host("198.19.0.0", 0, ValueMode::pseudorandom, 0xc613, 0xc620, 256),
                                    varying_host("2001:2::", 14, ValueMode::pseudorandom, 2, 300, 100),
                                    varying_host("2001:2::", 14, ValueMode::pseudorandom, 2, 300),
                                    varying_host("2001:2::", 12, ValueMode::pseudorandom, 2, 300, 256)};
    std::mt19937_64 random{3};
    std::size_t contained = 0;
    for (const HostSet& hosts : sets) {
        const AddressField field = std::get<AddressField>(AddressField::make(hosts, hosts.address.family, nullptr, "field"));
        for (int round = 0; round < 20'000; ++round) {
            net::Address address = hosts.host(static_cast<std::uint16_t>(hosts.part.minimum + random() % hosts.part.count()), 0);
            for (std::uint64_t changes = random() % 3; changes > 0; --changes) {
                address.bytes[random() % field.bytes()] = static_cast<std::byte>(random());
            }
            if (address != hosts.address) {  // which is the Tester's, but maybe no host that sends
                ASSERT_EQ(field.contains(address.bytes.data()), hosts.contains(address)) << net::to_text(address);
                contained += hosts.contains(address) ? 1 : 0;
            }
        }
    }
    EXPECT_GT(contained, 40'000U);
}

TEST(AddressField, Ipv4HostsInManyNetworks) {
    for (const char* const prefix : prefixes) {
        const net::AddressMapping mapping = test::mapping_of(prefix);
        expect_equals_slow_form(varying_host("198.19.0.2", 2, ValueMode::pseudorandom, 2, 254, 256), net::Family::ipv6, &mapping);
        expect_equals_slow_form(varying_host("198.19.0.2", 0, ValueMode::pseudorandom, 0xc600, 0xc613, 256), net::Family::ipv6, &mapping);
        HostSet fixed = test::fixed_host("198.19.9.2");
        fixed.networks = 256;
        expect_equals_slow_form(fixed, net::Family::ipv6, &mapping);
    }
}

TEST(AddressField, Ipv6HostsAtEveryOffsetToIpv4) {
    for (const char* const prefix : prefixes) {
        const net::AddressMapping mapping = test::mapping_of(prefix);
        const net::Prefix parsed = *net::parse_prefix(prefix);
        const net::Address host = *mapping.to_ipv6(test::address_of("198.18.9.2"));
        for (std::size_t offset = parsed.length / 8; offset <= 14; ++offset) {
            expect_equals_slow_form(varying_host(net::to_text(host), offset, ValueMode::pseudorandom, 0, 999), net::Family::ipv4, &mapping);
        }
    }
}

TEST(AddressField, Ipv6HostsOutsideThePrefixAreRefused) {
    const net::AddressMapping mapping = test::mapping_of("2001:db8:122:344::/96");
    const auto result =
        AddressField::make(varying_host("2001:db8:122:344::", 10, ValueMode::pseudorandom, 0, 9), net::Family::ipv4, &mapping, "field");
    ASSERT_NE(error_of(result), nullptr);
    EXPECT_EQ(error_of(result)->where, "field");
    EXPECT_NE(error_of(AddressField::make(test::fixed_host("198.18.0.2"), net::Family::ipv6, nullptr, "field")), nullptr);
}

TEST(AddressField, OwnFamilyAtEveryOffset) {
    for (std::size_t offset = 0; offset <= 14; ++offset) {
        expect_equals_slow_form(varying_host("2001:2::2", offset, ValueMode::pseudorandom, 0, 65535), net::Family::ipv6, nullptr, 11);
        const bool overlaps_network = offset == 6;
        if (!overlaps_network) {
            expect_equals_slow_form(varying_host("2001:2::2", offset, ValueMode::decreasing, 0, 255, 256), net::Family::ipv6, nullptr);
        }
    }
    for (std::size_t offset = 0; offset <= 2; ++offset) {
        expect_equals_slow_form(varying_host("198.18.0.2", offset, ValueMode::increasing, 0, 65535), net::Family::ipv4, nullptr, 11);
    }
}

TEST(AddressField, OnePrefixForAllHostsNeedsNoTable) {
    const net::AddressMapping mapping = test::mapping_of("2001:2:0:6400::/96", {{"198.18.0.0/24", "2001:2::/120"}});
    expect_equals_slow_form(varying_host("198.18.0.2", 2, ValueMode::pseudorandom, 2, 254), net::Family::ipv6, &mapping);
    expect_equals_slow_form(varying_host("2001:2::2", 14, ValueMode::pseudorandom, 2, 254), net::Family::ipv4, &mapping);
    const net::AddressMapping prefix_of_16 = test::mapping_of("", {{"198.19.0.0/16", "2001:2:0:8000::/112"}});
    expect_equals_slow_form(varying_host("198.19.0.0", 2, ValueMode::pseudorandom, 0, 65535), net::Family::ipv6, &prefix_of_16, 13);
    expect_equals_slow_form(varying_host("198.19.0.0", 2, ValueMode::pseudorandom, 0, 255, 256), net::Family::ipv6, &prefix_of_16);
}

TEST(AddressField, OneMappingAHostIsTabled) {
    std::vector<std::pair<std::string, std::string>> mappings;
    for (unsigned host = 2; host <= 254; ++host) {
        const auto scattered = std::to_string(host * 37 % 251);
        mappings.emplace_back("198.18.0." + std::to_string(host) + "/32", "2001:2:" + scattered + "::" + scattered + "/128");
    }
    const net::AddressMapping mapping = test::mapping_of("", mappings);
    expect_equals_slow_form(varying_host("198.18.0.0", 2, ValueMode::pseudorandom, 2, 254), net::Family::ipv6, &mapping);
}

TEST(AddressField, APrefixThatSplitsAnByteIsTabled) {
    const net::AddressMapping shifted = test::mapping_of("", {{"198.18.0.0/16", "2001:2::/109"}});  // moves 16 bits up by three
    expect_equals_slow_form(varying_host("198.18.0.0", 2, ValueMode::pseudorandom, 30000, 40000), net::Family::ipv6, &shifted, 3);
    const net::AddressMapping halves =
        test::mapping_of("2001:2:0:6400::/96", {{"198.18.0.0/25", "2001:2::/121"}});  // the upper half embedded
    expect_equals_slow_form(varying_host("198.18.0.0", 2, ValueMode::pseudorandom, 2, 254), net::Family::ipv6, &halves);
}

TEST(AddressField, NetworksThatAreMappedDifferentlyAreRefused) {
    for (const unsigned network : {0U, 1U, 7U, 90U, 254U, 255U}) {
        const std::string ipv4 = "198.19." + std::to_string(network);
        for (const auto& [from, to] : {std::pair{ipv4 + ".0/24", "2001:2:0:1::/120"}, std::pair{ipv4 + ".77/32", "2001:2:0:1::77/128"}}) {
            const net::AddressMapping mapping = test::mapping_of("2001:2:0:6400::/96", {{from, to}});
            const auto result = AddressField::make(varying_host("198.19.0.0", 2, ValueMode::pseudorandom, 2, 254, 256), net::Family::ipv6,
                                                   &mapping, "field");
            EXPECT_NE(error_of(result), nullptr) << from;
        }
    }
}

TEST(AddressField, AHostWithoutRepresentationAnywhereInTheRangeIsRefused) {
    const net::AddressMapping mapping = test::mapping_of("", {{"198.18.0.0/25", "2001:2::/121"}, {"198.18.0.192/26", "2001:2::/122"}});
    EXPECT_NE(
        error_of(AddressField::make(varying_host("198.18.0.0", 2, ValueMode::pseudorandom, 2, 254), net::Family::ipv6, &mapping, "field")),
        nullptr);
}

}  // namespace
}  // namespace gatemark::frame
