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

class RefdutTunnelEdge : public testing::TestWithParam<Edge> {
protected:
    static TranslationConfig config_of() {
        const Edge& edge = GetParam();
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
    static Bytes in_tunnel(const char* source, const char* destination, const SlowPacket& inner) {
        return SlowTunnel{.source = address_of(source), .destination = address_of(destination)}.around(test::write_packet(inner));
    }
    Result up(std::uint16_t port) { return gateway_.pass(Side::left, udp_packet(host, server, port, 80)); }
    static std::uint16_t port_of(const Result& sent) { return load_big_endian<std::uint16_t>(sent.frame.data() + 14 + 40 + 20); }
    Result down(std::uint16_t port, const char* from = relay, const char* to = shared) {
        return gateway_.pass(Side::right, in_tunnel(from, GetParam().address, udp_packet(server, to, 80, port)));
    }

    PacketGateway gateway_{config_of()};
};

TEST_P(RefdutTunnelEdge, SendsFromItsPortsThroughItsTunnelAndGetsTheAnswers) {
    const Result sent = up(5000);
    ASSERT_EQ(name_of(sent.drop), "none");
    SlowPacket inside = test::routed(udp_packet(host, server, 5000, 80), 1);
    inside.source = address_of(shared);
    inside.source_port = port_of(sent);
    EXPECT_EQ(test::to_hex(sent.frame), test::to_hex(in_tunnel(GetParam().address, relay, inside)));
    EXPECT_TRUE(sent.notes.tunnel == Tunnel::entered && sent.notes.treatment == Treatment::outward && sent.notes.new_connection);
    const Result answer = down(port_of(sent));
    ASSERT_EQ(name_of(answer.drop), "none");
    EXPECT_EQ(test::to_hex(answer.frame), test::to_hex(test::write_packet(test::routed(udp_packet(server, host, 80, 5000), 1))));
    EXPECT_TRUE(answer.notes.tunnel == Tunnel::left && answer.notes.treatment == Treatment::inward);
}

TEST_P(RefdutTunnelEdge, HasAsManyConnectionsAsPorts) {
    std::set<std::uint16_t> sources;
    for (std::size_t i = 0; i < GetParam().port_count; ++i) {
        const Result result = up(static_cast<std::uint16_t>(5000 + i));
        ASSERT_EQ(name_of(result.drop), "none") << i;
        sources.insert(port_of(result));
    }
    EXPECT_EQ(sources.size(), GetParam().port_count);
    EXPECT_EQ(name_of(up(4999).drop), "pool_exhausted");
}

TEST_P(RefdutTunnelEdge, TakesOnlyAnswersOfItsRelay) {
    EXPECT_EQ(name_of(down(GetParam().a_port).drop), "no_state");
    const std::uint16_t port = port_of(up(5000));
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

}  // namespace
}  // namespace gatemark::refdut::tunnel_edge
