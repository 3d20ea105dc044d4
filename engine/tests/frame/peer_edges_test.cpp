#include "frame/peer_edges.hpp"

#include "frame/streams.hpp"
#include "golden/slow_border_relay.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace gatemark::frame {
namespace {

/// RFC 7597 appendix A, example 1.
net::MapRule rule_of_peers() { return test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6).rule; }

PeerEdges peers_of(const PeersRequest& request, const HostSet& hosts) {
    return std::get<PeerEdges>(PeerEdges::make(request, hosts, "peers"));
}

Wide number_of(const char* ipv6) { return net::wide_of(test::address_of(ipv6)); }

TEST(PeerEdges, HaveTheAddressesOfTheStandard) {
    const PeerEdges peers = peers_of({.rule = rule_of_peers(), .psid = 0x34}, test::fixed_host("192.0.2.18"));
    EXPECT_EQ(peers.ea_of(0), 0x1234U);
    EXPECT_EQ(net::to_text(net::ipv6_of(peers.address_of(0))), "2001:db8:12:3400:0:c000:212:34");
    EXPECT_EQ(peers.map(), net::MapDomain{rule_of_peers()});
    EXPECT_TRUE(peers.contains(number_of("2001:db8:12:3400:0:c000:212:34")));
    for (const char* const of_another : {"2001:db8:12:3500:0:c000:212:35", "2001:db8:13:3400:0:c000:213:34", "2001:db8::c000:200:0"}) {
        EXPECT_FALSE(peers.contains(number_of(of_another))) << of_another;
        EXPECT_TRUE(peers.is_of_any(number_of(of_another))) << of_another;
    }
    for (const char* const nobodys : {"2001:db8:12:3400:0:c000:212:35", "2001:db8:12:3401:0:c000:212:34", "2001:db8:12:3400::1",
                                      "2001:db9:12:3400:0:c000:212:34", "2001:db8:112:3400:0:c000:212:34", "64:ff9b::c000:212"}) {
        EXPECT_FALSE(peers.contains(number_of(nobodys))) << nobodys;
        EXPECT_FALSE(peers.is_of_any(number_of(nobodys))) << nobodys;
    }
}

TEST(PeerEdges, MayHaveAnAddressEachAndNoPsid) {
    net::MapRule rule = rule_of_peers();
    rule.ea_bits = 8;
    const PeerEdges peers =
        peers_of({.rule = rule, .psid = 0}, test::varying_host("192.0.2.1", 2, ValueMode::pseudorandom, 0x0201, 0x02fe));
    EXPECT_EQ(peers.ea_of(0x0212), 0x12U);
    EXPECT_EQ(net::to_text(net::ipv6_of(peers.address_of(0x0212))), "2001:db8:12::c000:212:0");
    EXPECT_TRUE(peers.contains(number_of("2001:db8:12::c000:212:0")));
    EXPECT_FALSE(peers.contains(number_of("2001:db8:ff::c000:2ff:0")));
    EXPECT_TRUE(peers.is_of_any(number_of("2001:db8:ff::c000:2ff:0")));
}

/// A rule, a PSID and hosts inside the rule, and a port that the PSID has.
struct RandomPeers {
    PeersRequest request;
    HostSet hosts;
    std::uint16_t port = 0;
};

RandomPeers random_peers(std::mt19937_64& random) {
    const auto ipv4_bits = static_cast<unsigned>(16 + random() % 15), psid_bits = static_cast<unsigned>(random() % 9),
               offset = static_cast<unsigned>(random() % 8);
    RandomPeers result{.request = {.rule = test::edge_domain("2001:db8::/32", "10.0.0.0/8", 32 - ipv4_bits + psid_bits, offset).rule},
                       .hosts = {}};
    net::MapRule& rule = result.request.rule;
    rule.ipv6.length = static_cast<unsigned>(32 + random() % 40);
    const std::uint32_t suffixes = 1U << (32 - ipv4_bits),
                        network = (0x0a00'0000 | static_cast<std::uint32_t>(random() >> 40)) & ~(suffixes - 1);
    rule.ipv4 = {.address = net::ipv4_of(network), .length = ipv4_bits};
    result.request.psid = static_cast<std::uint16_t>(random() % (1U << psid_bits));
    const auto first = static_cast<std::uint32_t>(random() % suffixes),
               last = first + static_cast<std::uint32_t>(random() % (suffixes - first));
    result.hosts = {
        .address = net::ipv4_of(network + first),
        .offset = 2,
        .part = {ValueMode::pseudorandom, static_cast<std::uint16_t>(network + first), static_cast<std::uint16_t>(network + last)},
        .networks = 1};
    const unsigned port_bits = 16 - offset - psid_bits;
    result.port = static_cast<std::uint16_t>((offset == 0 ? 0U : 1U << (16 - offset)) | unsigned{result.request.psid} << port_bits | 1U);
    return result;
}

TEST(PeerEdges, HaveTheAddressesThatABorderRelayWouldSendTo) {
    std::mt19937_64 random{5};
    for (int round = 0; round < 200; ++round) {
        const auto peer = random_peers(random);
        const frame::HostSet& hosts = peer.hosts;
        const net::MapRule& rule = peer.request.rule;
        const test::SlowBorderRelay relay{
            {{.ipv6 = rule.ipv6, .ipv4 = rule.ipv4, .ea_bits = rule.ea_bits, .psid_offset = rule.psid_offset, .dmr = *rule.dmr}}};
        const PeerEdges peers = peers_of(peer.request, hosts);
        const AddressField field = peers.field();
        const auto address_by_relay = [&](std::uint32_t value) {
            test::SlowPacket packet;
            packet.source = test::address_of("198.51.100.1");
            packet.destination = hosts.host(static_cast<std::uint16_t>(value), 0);
            packet.destination_port = peer.port;
            return net::wide_of(relay.forwarded(packet, 1).value().destination);
        };
        const std::uint32_t minimum = hosts.part.minimum, maximum = hosts.part.maximum, step = 1 + hosts.part.count() / 64;
        for (std::uint32_t value = minimum; value <= maximum; value += step) {
            const auto host = static_cast<std::uint16_t>(value);
            const Wide address = address_by_relay(value);
            ASSERT_EQ(peers.address_of(host), address) << round;
            ASSERT_EQ(peers.map().ipv4_of(peers.ea_of(host)), net::word_of(hosts.host(host, 0))) << round;
            ASSERT_EQ(peers.map().psid_of(peers.ea_of(host)), peer.request.psid) << round;
            ASSERT_EQ(field.at(host, 0), net::ipv6_of(address)) << round;
            ASSERT_TRUE(peers.contains(address) && peers.is_of_any(address) && field.contains(net::ipv6_of(address).bytes.data())) << round;
            for (unsigned bit = 0; bit < 128; ++bit) {  // a single one apart, no two MAP addresses differ
                const Wide other = address ^ Wide{1} << bit;
                ASSERT_FALSE(peers.contains(other) || peers.is_of_any(other)) << round << ", bit " << bit;
            }
        }
        const std::uint32_t suffixes = 1U << (32 - rule.ipv4.length), network = minimum & ~(suffixes - 1);
        for (const std::uint32_t value : {network, network + suffixes - 1}) {
            const Wide address = address_by_relay(value);
            ASSERT_EQ(peers.contains(address), value >= minimum && value <= maximum) << round;
            ASSERT_TRUE(peers.is_of_any(address)) << round;
        }
    }
}

TEST(PeerEdges, NameEveryProblem) {
    using Places = std::vector<std::string>;
    const auto places = [](auto&& change) {
        PeersRequest request{.rule = rule_of_peers(), .psid = 0x51};
        HostSet hosts = test::varying_host("192.0.2.0", 2, ValueMode::pseudorandom, 0x0213, 0x0217);
        change(request, hosts);
        Places result;
        const auto peers = PeerEdges::make(request, hosts, "peers");
        if (const auto* errors = std::get_if<Errors>(&peers)) {
            for (const Error& error : *errors) {
                EXPECT_FALSE(error.what.empty() || error.fix.empty());
                result.push_back(error.where);
            }
        }
        return result;
    };
    using Request = PeersRequest;
    EXPECT_EQ(places([](Request&, HostSet&) {}), Places{});
    EXPECT_EQ(places([](Request& request, HostSet&) { request.rule.ea_bits = 25; }).front(), "peers.rule.ea_bits");
    EXPECT_EQ(places([](Request& request, HostSet&) { request.rule.psid_offset = 9; }), Places{"peers.rule.psid_offset"});
    EXPECT_EQ(places([](Request& request, HostSet& hosts) {  // a rule of a single edge
                  request = {.rule = test::edge_domain("2001:db8:12:3400::/56", "192.0.2.18/32", 0, 6).rule, .psid = 0};
                  hosts = test::fixed_host("192.0.2.18");
              }),
              Places{"peers.rule.ea_bits"});
    EXPECT_EQ(places([](Request& request, HostSet&) {  // of edges with 16 addresses each
                  request.rule.ea_bits = 4;
                  request.psid = 0;
              }),
              Places{"peers.rule.ea_bits"});
    EXPECT_EQ(places([](Request& request, HostSet&) { request.psid = 0xff; }), Places{});
    EXPECT_EQ(places([](Request& request, HostSet&) { request.psid = 0x100; }), Places{"peers.psid"});
    EXPECT_EQ(places([](Request& request, HostSet&) { request.rule.ea_bits = 8; }), Places{"peers.psid"});
    EXPECT_EQ(places([](Request&, HostSet& hosts) { hosts.part.minimum = 0x01ff; }), Places{"peers.rule.ipv4"});
    EXPECT_EQ(places([](Request&, HostSet& hosts) { hosts.part.maximum = 0x0300; }), Places{"peers.rule.ipv4"});
    EXPECT_EQ(places([](Request&, HostSet& hosts) { hosts = test::fixed_host("192.0.3.19"); }), Places{"peers.rule.ipv4"});
    EXPECT_EQ(places([](Request&, HostSet& hosts) { hosts = test::fixed_host("2001:db8::1"); }), Places{"peers.rule.ipv4"});
    EXPECT_EQ(places([](Request&, HostSet& hosts) { hosts.networks = 2; }), Places{"peers.rule.ipv4"});
    EXPECT_EQ(places([](Request& request, HostSet& hosts) {
                  request.rule.ea_bits = 4;
                  hosts.networks = 2;
              }),
              (Places{"peers.rule.ea_bits", "peers.psid", "peers.rule.ipv4"}));
}

}  // namespace
}  // namespace gatemark::frame
