#include "refdut/packet_gateway.hpp"
#include "refdut/tunnel_packets.hpp"

#include <gtest/gtest.h>

#include <set>

/// Customer edges of MAP-E and lightweight 4over6: a NAT44 with the ports of a set, and a tunnel.
namespace gatemark::refdut::tunnel_edge {
namespace {

using test::Bytes, test::SlowPacket, test::address_of;
using Result = PacketGateway::Result;

constexpr const char *relay = "2001:db8:ffff::1", *host = "10.0.0.1", *server = "198.51.100.1", *shared = "192.0.2.18";

struct Edge {
    Mode mode;
    const char *rule, *prefix, *address;
    unsigned psid_offset;
    std::uint16_t a_port;  ///< of its set
    std::size_t port_count;
};
// 192.0.2.18 and PSID 0x34 (RFC 7597 appendix A, example 1), and the same softwire.
constexpr Edge map_e{Mode::map_e_ce, "2001:db8::/40", "2001:db8:12:3400::/56", "2001:db8:12:3400:0:c000:212:34", 6, 1232, 252};
constexpr Edge softwire{Mode::lwb4, "2001:db8:1:2::/64", "2001:db8:1:2:0:c000:212:34/128", "2001:db8:1:2:0:c000:212:34", 0, 0x3400, 256};

TranslationConfig config_of(const Edge& edge) {
    TranslationConfig config;
    config.mode = edge.mode;
    MapRuleSpec rule;
    rule.ipv6 = prefix_of(edge.rule);
    rule.ipv4 = prefix_of("192.0.2.0/24");
    rule.ea_bits = 16;
    rule.psid_offset = edge.psid_offset;
    rule.in_identifier = edge.mode == Mode::lwb4;
    config.domains = {rule};
    config.end_user_prefix = prefix_of(edge.prefix);
    config.tunnel.relay = address_of(relay);
    return config;
}
Bytes in_tunnel(const char* source, const char* destination, const SlowPacket& inner) {
    return SlowTunnel{.source = address_of(source), .destination = address_of(destination)}.around(test::write_packet(inner));
}
/// Of the packet in a tunnel.
std::uint16_t source_port_in(const Result& sent) { return load_big_endian<std::uint16_t>(sent.frame.data() + 14 + 40 + 20); }

class RefdutTunnelEdge : public testing::TestWithParam<Edge> {
protected:
    Result up(std::uint16_t port) { return gateway_.pass(Side::left, udp_packet(host, server, port, 80)); }
    Result down(std::uint16_t port, const char* from = relay, const char* to = shared) {
        return gateway_.pass(Side::right, in_tunnel(from, GetParam().address, udp_packet(server, to, 80, port)));
    }

    PacketGateway gateway_{config_of(GetParam())};
};

TEST_P(RefdutTunnelEdge, SendsFromItsPortsThroughItsTunnelAndGetsTheAnswers) {
    const Result sent = up(5000);
    ASSERT_EQ(name_of(sent.drop), "none");
    SlowPacket inside = test::routed(udp_packet(host, server, 5000, 80), 1);
    inside.source = address_of(shared);
    inside.source_port = source_port_in(sent);
    EXPECT_EQ(test::to_hex(sent.frame), test::to_hex(in_tunnel(GetParam().address, relay, inside)));
    EXPECT_TRUE(sent.notes.tunnel == Tunnel::entered && sent.notes.treatment == Treatment::outward && sent.notes.new_connection);
    const Result answer = down(source_port_in(sent));
    ASSERT_EQ(name_of(answer.drop), "none");
    EXPECT_EQ(test::to_hex(answer.frame), test::to_hex(test::write_packet(test::routed(udp_packet(server, host, 80, 5000), 1))));
    EXPECT_TRUE(answer.notes.tunnel == Tunnel::left && answer.notes.treatment == Treatment::inward);
}

TEST_P(RefdutTunnelEdge, HasAsManyConnectionsAsPorts) {
    std::set<std::uint16_t> sources;
    for (std::size_t i = 0; i < GetParam().port_count; ++i) {
        const Result result = up(static_cast<std::uint16_t>(5000 + i));
        ASSERT_EQ(name_of(result.drop), "none") << i;
        sources.insert(source_port_in(result));
    }
    EXPECT_EQ(sources.size(), GetParam().port_count);
    EXPECT_EQ(name_of(up(4999).drop), "pool_exhausted");
}

TEST_P(RefdutTunnelEdge, TakesOnlyAnswersOfItsRelay) {
    EXPECT_EQ(name_of(down(GetParam().a_port).drop), "no_state");
    const std::uint16_t port = source_port_in(up(5000));
    EXPECT_EQ(name_of(down(port, "2001:db8:ffff::2").drop), "no_mapping");
    EXPECT_EQ(name_of(down(port, relay, "192.0.2.19").drop), "no_mapping");
    EXPECT_EQ(name_of(down(7).drop), "outside_port_set");
    EXPECT_EQ(name_of(gateway_.pass(Side::right, udp_packet(server, shared, 80, port)).drop), "no_mapping") << "in no tunnel";
    EXPECT_EQ(name_of(down(port).drop), "none");
}

TEST_P(RefdutTunnelEdge, DamagesWhatLeavesInItsTunnel) {
    const Bytes sent = test::write_packet(udp_packet(host, server, 5000, 80));
    const auto fields = [&](Field field) { return damaged(gateway_, Side::left, sent, field).fields; };
    EXPECT_TRUE(fields(Field::other_subscriber).none()) << "its tunnel leads to its relay";
    EXPECT_TRUE(fields(Field::interface_identifier).none()) << "its public address is IPv4";
    for (const Field field : {Field::tunnel_missing, Field::tunnel_source, Field::tunnel_destination, Field::tunnel_option}) {
        EXPECT_TRUE(fields(field).has(field));
    }
    EXPECT_TRUE(fields(Field::outside_port_set).has(Field::source_port));
    EXPECT_TRUE(fields(Field::other_edge_address).has(Field::source_address));
    EXPECT_TRUE(fields(Field::outside_rule).has(Field::source_address));
}

INSTANTIATE_TEST_SUITE_P(All, RefdutTunnelEdge, testing::Values(map_e, softwire));

/// A customer edge of MAP-E in a mesh: it reaches other customers by a forwarding mapping rule (RFC
/// 7597 section 5).
class RefdutMeshEdge : public testing::Test {
protected:
    // 192.0.2.24 and PSID 0x51: ports 1348 to 1351, 2372 to 2375 and so on.
    static constexpr const char *other = "192.0.2.24", *other_end = "2001:db8:18:5100:0:c000:218:51";
    static constexpr std::uint16_t other_port = 1348;

    static TranslationConfig mesh_config() {
        TranslationConfig config = config_of(map_e);
        config.domains[0].forwarding = true;
        return config;
    }
    /// To an IPv4 address and port, through the NAT and `end`.
    static void expect_sent(PacketGateway& gateway, const char* to, std::uint16_t port, const char* end) {
        const Result sent = gateway.pass(Side::left, udp_packet(host, to, 5000, port));
        ASSERT_EQ(name_of(sent.drop), "none") << to << ' ' << port;
        SlowPacket inside = test::routed(udp_packet(host, to, 5000, port), 1);
        inside.source = address_of(shared);
        inside.source_port = source_port_in(sent);
        EXPECT_EQ(test::to_hex(sent.frame), test::to_hex(in_tunnel(map_e.address, end, inside))) << to << ' ' << port;
        EXPECT_TRUE(sent.notes.tunnel == Tunnel::entered && sent.notes.treatment == Treatment::outward && sent.notes.new_connection);
    }
    /// From an IPv4 address and port, through `end`.
    Result answer(const char* end, const char* from, std::uint16_t from_port, std::uint16_t port) {
        return gateway_.pass(Side::right, in_tunnel(end, map_e.address, udp_packet(from, shared, from_port, port)));
    }

    PacketGateway gateway_{mesh_config()};
};

TEST_F(RefdutMeshEdge, SendsToOtherCustomersThroughTunnelsToTheirAddresses) {
    expect_sent(gateway_, other, other_port, other_end);
    expect_sent(gateway_, other, 64839, other_end);  // the last port of the set
    expect_sent(gateway_, other, other_port + 4, "2001:db8:18:5200:0:c000:218:52");
    expect_sent(gateway_, "192.0.2.0", 1024, "2001:db8::c000:200:0");
    expect_sent(gateway_, "192.0.2.255", 2047, "2001:db8:ff:ff00:0:c000:2ff:ff");
    expect_sent(gateway_, shared, 1236, "2001:db8:12:3500:0:c000:212:35");  // who shares its address
    EXPECT_EQ(name_of(gateway_.pass(Side::left, udp_packet(host, other, 5000, 1023)).drop), "outside_port_set") << "a port of nobody";
}

TEST_F(RefdutMeshEdge, UsesItsRelayForAllElse) {
    expect_sent(gateway_, server, 80, relay);
    expect_sent(gateway_, "192.0.3.24", other_port, relay);
    expect_sent(gateway_, "192.0.1.24", other_port, relay);
}

TEST_F(RefdutMeshEdge, ForwardsByEachRuleThatSaysSoAndByNoOther) {
    TranslationConfig config = config_of(map_e);
    MapRuleSpec rule = config.domains[0];
    rule.ipv6 = prefix_of("2001:db8:a0::/44");
    rule.ipv4 = prefix_of("198.18.0.0/16");
    rule.ea_bits = 20;
    rule.psid_offset = 4;
    rule.forwarding = true;
    config.domains.push_back(rule);
    PacketGateway gateway{config};
    expect_sent(gateway, other, other_port, relay);
    expect_sent(gateway, "198.18.1.2", 7936, "2001:db8:a0:102f:0:c612:102:f");
}

TEST_F(RefdutMeshEdge, TakesFromTheTunnelOfACustomerWhatIsHis) {
    const Result sent = gateway_.pass(Side::left, udp_packet(host, other, 5000, other_port));
    const std::uint16_t port = source_port_in(sent);
    const auto drop = [&](const char* end, const char* from, std::uint16_t from_port) {
        return name_of(answer(end, from, from_port, port).drop);
    };
    EXPECT_EQ(drop(other_end, "192.0.2.25", other_port), "not_map_address") << "the address of another customer";
    EXPECT_EQ(drop(other_end, server, other_port), "not_map_address") << "of no customer";
    const Result foreign_port = answer(other_end, other, other_port + 4, port);
    EXPECT_TRUE(foreign_port.drop == Drop::outside_port_set && foreign_port.notes.error_wanted);
    EXPECT_EQ(drop("2001:db8:18:5200:0:c000:218:52", other, other_port), "outside_port_set") << "the tunnel of another customer";
    EXPECT_EQ(drop("2001:db8:19:5100:0:c000:219:51", other, other_port), "not_map_address") << "the same, of the same PSID";
    EXPECT_EQ(drop("2001:db8:18:5100:0:c000:218:52", other, other_port), "not_map_address") << "a wrong interface identifier";
    EXPECT_EQ(drop("2001:db8:18:5101:0:c000:218:51", other, other_port), "not_map_address") << "another subnet of the customer";
    EXPECT_EQ(drop("2001:db9:18:5100:0:c000:218:51", other, other_port), "no_mapping") << "outside the rule";
    EXPECT_EQ(drop("2001:db8:ffff::2", other, other_port), "no_mapping") << "another relay";
    EXPECT_EQ(drop(other_end, other, other_port + 1), "no_state") << "a port that nobody asked";
    const Result delivered = answer(other_end, other, other_port, port);
    ASSERT_EQ(name_of(delivered.drop), "none");
    EXPECT_EQ(test::to_hex(delivered.frame), test::to_hex(test::write_packet(test::routed(udp_packet(other, host, other_port, 5000), 1))));
    EXPECT_TRUE(delivered.notes.tunnel == Tunnel::left && delivered.notes.treatment == Treatment::inward);
}

TEST_F(RefdutMeshEdge, StillTakesAnswersOfItsRelay) {
    const Result sent = gateway_.pass(Side::left, udp_packet(host, server, 5000, 80));
    const std::uint16_t port = source_port_in(sent);
    EXPECT_EQ(name_of(answer(other_end, server, 80, port).drop), "outside_port_set") << "no customer is the relay";
    const Result delivered = answer(relay, server, 80, port);
    ASSERT_EQ(name_of(delivered.drop), "none");
    EXPECT_EQ(test::to_hex(delivered.frame), test::to_hex(test::write_packet(test::routed(udp_packet(server, host, 80, 5000), 1))));
}

/// Damage to a customer's address is to its own, wherever its tunnel leads.
TEST_F(RefdutMeshEdge, DamagesWhatGoesToAnotherCustomer) {
    const Bytes sent = test::write_packet(udp_packet(host, other, 5000, other_port));
    const auto fields = [&](Field field) { return damaged(gateway_, Side::left, sent, field).fields; };
    for (const Field field : {Field::tunnel_missing, Field::tunnel_source, Field::tunnel_destination, Field::tunnel_option}) {
        EXPECT_TRUE(fields(field).has(field));
    }
    EXPECT_TRUE(fields(Field::other_subscriber).none());
    EXPECT_TRUE(fields(Field::outside_port_set).has(Field::source_port));
    EXPECT_TRUE(fields(Field::other_edge_address).has(Field::source_address));
    EXPECT_TRUE(fields(Field::outside_rule).has(Field::source_address));
}

}  // namespace
}  // namespace gatemark::refdut::tunnel_edge
