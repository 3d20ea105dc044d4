#include "frame/host_set.hpp"
#include "frame/answered_hosts.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gatemark::frame {
namespace {

using test::address_of;

/// Compares `contains` with the list of all hosts, and tests other addresses close to them.
void expect_contains_exactly_its_hosts(const HostSet& hosts) {
    std::set<std::string> texts;
    for (std::uint32_t value = hosts.part.minimum; value <= hosts.part.maximum; ++value) {
        for (unsigned network = 0; network < hosts.networks; ++network) {
            const net::Address host = hosts.host(static_cast<std::uint16_t>(value), static_cast<std::uint8_t>(network));
            ASSERT_TRUE(hosts.contains(host)) << net::to_text(host);
            texts.insert(net::to_text(host));
        }
    }
    const std::size_t hosts_count = (hosts.varies() ? hosts.part.count() : 1) * hosts.networks;
    EXPECT_EQ(texts.size(), hosts_count);
    const std::size_t bytes = net::address_bytes(hosts.address.family);
    for (const std::uint16_t value : {hosts.part.minimum, hosts.part.maximum}) {
        for (std::size_t byte = 0; byte < bytes; ++byte) {
            for (unsigned changed = 0; changed < 256; ++changed) {
                net::Address other = hosts.host(value, static_cast<std::uint8_t>(hosts.networks / 2));
                other.bytes[byte] = static_cast<std::byte>(changed);
                const bool is_host = texts.contains(net::to_text(other)) || other == hosts.address;
                ASSERT_EQ(hosts.contains(other), is_host) << net::to_text(other);
            }
        }
    }
}

TEST(HostSet, ContainsExactlyItsHosts) {
    using test::fixed_host, test::varying_host;
    expect_contains_exactly_its_hosts(fixed_host("198.18.0.2"));
    expect_contains_exactly_its_hosts(fixed_host("2001:2::2"));
    expect_contains_exactly_its_hosts(varying_host("198.18.0.2", 2, ValueMode::pseudorandom, 2, 254));
    expect_contains_exactly_its_hosts(varying_host("198.18.0.2", 2, ValueMode::increasing, 300, 1300));
    expect_contains_exactly_its_hosts(varying_host("198.18.0.2", 1, ValueMode::decreasing, 0x1200, 0x1300));
    expect_contains_exactly_its_hosts(varying_host("2001:2::2", 14, ValueMode::pseudorandom, 2, 700));
    expect_contains_exactly_its_hosts(varying_host("2001:2::2", 9, ValueMode::pseudorandom, 0, 500));
}

TEST(HostSet, ContainsExactlyItsHostsInAllNetworks) {
    using test::varying_host;
    HostSet fixed = test::fixed_host("198.19.5.2");
    fixed.networks = 256;
    expect_contains_exactly_its_hosts(fixed);
    for (const std::uint16_t networks : std::initializer_list<std::uint16_t>{2, 7, 255, 256}) {
        expect_contains_exactly_its_hosts(varying_host("198.19.0.2", 2, ValueMode::pseudorandom, 2, 254, networks));
        expect_contains_exactly_its_hosts(varying_host("2001:2:0:8000::2", 14, ValueMode::pseudorandom, 2, 9, networks));
    }
    expect_contains_exactly_its_hosts(varying_host("2001:2:0:8000::2", 14, ValueMode::pseudorandom, 2, 99, 256));
    expect_contains_exactly_its_hosts(varying_host("2001:2:0:8000::2", 7, ValueMode::pseudorandom, 2, 99, 256));
}

TEST(HostSet, PlacesValueAndNetwork) {
    EXPECT_EQ(test::varying_host("198.19.0.0", 2, ValueMode::increasing, 0, 65535).host(0x0506, 0), address_of("198.19.5.6"));
    EXPECT_EQ(test::varying_host("198.19.0.0", 2, ValueMode::increasing, 2, 254, 256).host(9, 77), address_of("198.19.77.9"));
    EXPECT_EQ(test::varying_host("2001:2:0:8000::", 14, ValueMode::increasing, 2, 254, 256).host(9, 0xcd), address_of("2001:2:0:80cd::9"));
    EXPECT_EQ(test::fixed_host("198.19.3.4").host(0, 9), address_of("198.19.3.4"));
}

TEST(AnsweredHosts, AreNumberedAsTheyAreTaught) {
    const AnsweredHosts hosts{test::varying_host("198.19.0.0", 2, ValueMode::increasing, 2, 4, 2)};
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < hosts.count(); ++i) {
        texts.push_back(net::to_text(hosts.at(i)));
        EXPECT_TRUE(hosts.contains(hosts.at(i)));
    }
    EXPECT_EQ(texts, (std::vector<std::string>{"198.19.0.2", "198.19.0.3", "198.19.0.4", "198.19.1.2", "198.19.1.3", "198.19.1.4"}));
    EXPECT_EQ(hosts.family(), net::Family::ipv4);
}

TEST(HostSet, ContainsNoHostOfTheOtherFamily) { EXPECT_FALSE(test::fixed_host("198.18.0.2").contains(address_of("c612:2::"))); }

}  // namespace
}  // namespace gatemark::frame
