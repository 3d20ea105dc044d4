#include "golden/tunnel_vectors.hpp"
#include "refdut/packet_gateway.hpp"
#include "refdut/tunnel_packets.hpp"

#include <gtest/gtest.h>

/// The border relay of 6rd, against headers that are written octet by octet.
namespace gatemark::refdut::sixrd {
namespace {

using test::Bytes, test::SlowPacket, test::address_of;
using Result = PacketGateway::Result;

constexpr const char *relay = "198.18.0.1", *customer = "198.18.0.2", *host = "2001:db8:c612:2::1", *server = "2001:db9::2";

MapRuleSpec rule_of(const std::string& ipv6, const std::string& ipv4) {
    MapRuleSpec rule;
    rule.ipv6 = prefix_of(ipv6);
    rule.ipv4 = prefix_of(ipv4);
    rule.ea_bits = 32 - rule.ipv4.length;
    return rule;
}

TranslationConfig relay_of(std::vector<MapRuleSpec> rules) {
    TranslationConfig config;
    config.mode = Mode::sixrd_br;
    config.domains = std::move(rules);
    config.tunnel.relay = address_of(relay);
    return config;
}

SlowTunnel tunnel_of(const char* source, const char* destination) {
    return {.source = address_of(source), .destination = address_of(destination)};
}

TEST(RefdutSixrd, MakesTheOctetsOfTheVectorsBothWays) {
    PacketGateway gateway{relay_of({rule_of("2001:db8::/32", "0.0.0.0/0")})};
    const Result up = gateway.pass(Side::left, test::frame_of_packet(test::sixrd_up.inside));
    ASSERT_EQ(name_of(up.drop), "none");
    EXPECT_EQ(test::to_hex(up.frame), test::to_hex(test::frame_of_packet(test::sixrd_up.outside)));
    EXPECT_TRUE(up.notes.tunnel == Tunnel::left && up.notes.udp);
    const Result down = gateway.pass(Side::right, test::frame_of_packet(test::sixrd_down.outside));
    ASSERT_EQ(name_of(down.drop), "none");
    EXPECT_EQ(test::to_hex(down.frame), test::to_hex(test::frame_of_packet(test::sixrd_down.inside)));
    EXPECT_TRUE(down.notes.tunnel == Tunnel::entered && down.notes.udp);
}

TEST(RefdutSixrd, WritesTheOuterHeaderThatTheFileSays) {
    TranslationConfig config = relay_of({rule_of("2001:db8::/32", "0.0.0.0/0")});
    SlowPacket packet = udp_packet(server, host, 80, 1024);
    packet.traffic_class = 0xb8;
    PacketGateway counting{config};
    SlowTunnel tunnel = tunnel_of(relay, customer);
    tunnel.traffic_class = 0xb8;
    for (tunnel.identification = 0; tunnel.identification < 3; ++tunnel.identification) {
        EXPECT_EQ(test::to_hex(counting.pass(Side::right, packet).frame),
                  test::to_hex(tunnel.around(test::write_packet(test::routed(packet, 1)))));
    }
    config.tunnel.dont_fragment = true;
    config.tunnel.hop_limit = 7;
    config.tunnel.traffic_class = 4;
    PacketGateway fixed{config};
    tunnel.hop_limit = 7;
    tunnel.traffic_class = 4;
    tunnel.identification = 0;
    tunnel.flags = 0x4000;
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(test::to_hex(fixed.pass(Side::right, packet).frame),
                  test::to_hex(tunnel.around(test::write_packet(test::routed(packet, 1)))));
    }
}

TEST(RefdutSixrd, FindsTheAddressBehindACommonPrefix) {
    // 24 bits of 10.0.0.0/8 behind 28 bits: 2001:dbc:3456:70 is 10.195.69.103.
    PacketGateway gateway{relay_of({rule_of("2001:db0::/28", "10.0.0.0/8"), rule_of("2001:dc0::/40", "192.0.2.0/24")})};
    const auto end_of = [&](const char* destination) {
        const Result result = gateway.pass(Side::right, udp_packet(server, destination, 80, 7));
        return result.drop == Drop::none ? test::to_hex(std::span{result.frame}.subspan(14 + 16, 4)) : std::string{name_of(result.drop)};
    };
    EXPECT_EQ(end_of("2001:dbc:3456:7000::9"), "0ac34567");
    EXPECT_EQ(end_of("2001:dc0:7:ffff::9"), "c0000207");
    const auto drop = [&](const char* source, const char* end) {
        return name_of(gateway.pass(Side::left, tunnel_of(end, relay).around(test::write_packet(udp_packet(source, server, 7, 80)))).drop);
    };
    EXPECT_EQ(drop("2001:dbc:3456:7000::9", "10.195.69.103"), "none");
    EXPECT_EQ(drop("2001:dbc:3456:7000::9", "11.195.69.103"), "not_map_address");
    EXPECT_EQ(drop("2001:dc0:7:ffff::9", "192.0.2.7"), "none");
    EXPECT_EQ(drop("2001:dc0:7:ffff::9", "192.0.2.8"), "not_map_address");
}

TEST(RefdutSixrd, DropsWithTheReason) {
    TranslationConfig config = relay_of({rule_of("2001:db8::/32", "0.0.0.0/0")});
    config.assigned_addresses = {address_of(relay), address_of("198.18.0.9"), address_of("2001:db9::1")};
    PacketGateway gateway{config};
    const SlowPacket good = udp_packet(host, server, 1024, 80);
    const auto drop = [&](Side side, const auto& packet) { return name_of(gateway.pass(side, packet).drop); };
    const auto up = [&](const SlowPacket& inner, const char* source = customer, const char* destination = relay) {
        return tunnel_of(source, destination).around(test::write_packet(inner));
    };
    EXPECT_EQ(drop(Side::left, up(good)), "none");
    EXPECT_EQ(drop(Side::left, up(good, "198.18.0.3")), "not_map_address");
    EXPECT_EQ(drop(Side::left, up(udp_packet("2001:db8:c612:3::1", server, 1, 2))), "not_map_address");
    EXPECT_EQ(drop(Side::left, up(udp_packet("2001:dba::1", server, 1, 2))), "no_rule");
    EXPECT_EQ(drop(Side::left, up(good, customer, "198.18.0.7")), "no_mapping") << "to another relay";
    EXPECT_EQ(drop(Side::left, up(good, customer, "198.18.0.9")), "not_for_us");
    EXPECT_EQ(drop(Side::right, up(good)), "not_for_us") << "a tunnel from outside";
    EXPECT_EQ(drop(Side::left, up(udp_packet(host, "2001:db9::1", 1, 2))), "not_for_us");
    EXPECT_EQ(drop(Side::left, good), "no_mapping") << "no tunnel";
    EXPECT_EQ(drop(Side::right, udp_packet(server, "2001:db8:e000:1::1", 1, 2)), "not_for_us") << "to a multicast address";
    EXPECT_EQ(drop(Side::right, udp_packet(server, "2001:db8:c612:1::1", 1, 2)), "not_for_us") << "to the relay itself";
    SlowPacket last = good;
    last.hop_limit = 1;
    EXPECT_EQ(drop(Side::left, up(last)), "hop_limit");
    SlowTunnel tunnel = tunnel_of(customer, relay);
    tunnel.flags = 0x2000;
    EXPECT_EQ(drop(Side::left, tunnel.around(test::write_packet(good))), "unsupported") << "a fragment of a tunnel";
    tunnel.flags = 0;
    tunnel.longer_by = -1;
    EXPECT_EQ(drop(Side::left, tunnel.around(test::write_packet(good))), "truncated");
    tunnel.longer_by = 0;
    tunnel.next_header = 4;
    EXPECT_EQ(drop(Side::left, tunnel.around(test::write_packet(good))), "unsupported");
    tunnel.next_header = 41;
    EXPECT_EQ(drop(Side::left, tunnel.around(test::write_packet(udp_packet("198.18.0.2", "198.19.0.2", 1, 2)))), "not_ip") << "IPv4 in it";
}

TEST(RefdutSixrd, CarriesAnyProtocolAndRoutesTheBackground) {
    PacketGateway gateway{relay_of({rule_of("2001:db8::/32", "0.0.0.0/0")})};
    Bytes bare = test::write_packet(udp_packet(server, host, 80, 1024, 0));
    bare.resize(14 + 40);
    bare[14 + 5] = std::byte{0};
    bare[14 + 6] = std::byte{59};  // no next header
    EXPECT_EQ(gateway.pass(Side::right, bare).frame.size(), 14U + 20 + 40);
    const SlowPacket native = udp_packet("2001:db9:1::1", server, 7, 7);
    for (const Side side : {Side::left, Side::right}) {
        EXPECT_EQ(test::to_hex(gateway.pass(side, native).frame), test::to_hex(test::write_packet(test::routed(native, 1))));
    }
}

TEST(RefdutSixrd, HairpinsFromOneCustomerToAnother) {
    PacketGateway gateway{relay_of({rule_of("2001:db8::/32", "0.0.0.0/0")})};
    const SlowPacket inner = udp_packet(host, "2001:db8:c612:5::1", 1, 2);
    const Result result = gateway.pass(Side::left, tunnel_of(customer, relay).around(test::write_packet(inner)));
    ASSERT_EQ(name_of(result.drop), "none");
    EXPECT_TRUE(result.notes.hairpinned);
    EXPECT_EQ(test::to_hex(result.frame), test::to_hex(tunnel_of(relay, "198.18.0.5").around(test::write_packet(test::routed(inner, 1)))));
}

TEST(RefdutSixrd, DamagesWhatIsBeforeThePacket) {
    const SlowPacket packet = udp_packet(server, host, 80, 1024, 30), carried = test::routed(packet, 1);
    const auto down = [&](Field field) {
        PacketGateway gateway{relay_of({rule_of("2001:db8::/32", "0.0.0.0/0")})};
        return damaged(gateway, Side::right, test::write_packet(packet), field);
    };
    const SlowTunnel right = tunnel_of(relay, customer);
    const auto with = [&](auto&& change) {
        SlowTunnel tunnel = right;
        change(tunnel);
        return test::to_hex(tunnel.around(test::write_packet(carried)));
    };
    EXPECT_EQ(test::to_hex(down(Field::tunnel_missing).frame), test::to_hex(test::write_packet(carried)));
    EXPECT_EQ(test::to_hex(down(Field::tunnel_source).frame), with([](SlowTunnel& t) { t.source = address_of("240.18.0.1"); }));
    EXPECT_EQ(test::to_hex(down(Field::other_subscriber).frame), with([](SlowTunnel& t) { t.destination = address_of("198.18.0.3"); }));
    EXPECT_EQ(test::to_hex(down(Field::tunnel_traffic_class).frame), with([](SlowTunnel& t) { t.traffic_class = 4; }));
    EXPECT_EQ(test::to_hex(down(Field::tunnel_header).frame), with([](SlowTunnel& t) { t.longer_by = 8; }));
    EXPECT_EQ(test::to_hex(down(Field::hop_limit).frame), test::to_hex(right.around(test::write_packet(packet))));
    EXPECT_TRUE(down(Field::tunnel_option).fields.none());
    for (const Field field : {Field::fragment, Field::extension_headers}) {  // the tunnel is as long as what is in it
        const Damaged result = down(field);
        EXPECT_EQ(result.fields, Fields{field});
        Buffer buffer{result.frame};
        View outer, inner;
        ASSERT_TRUE(read_headers(buffer.packet, outer) == Drop::none && outer.carries_packet());
        EXPECT_TRUE(read_carried(buffer.packet, outer, inner) == Drop::none && buffer.packet.bytes == outer.end());
    }
    PacketGateway gateway{relay_of({rule_of("2001:db8::/32", "0.0.0.0/0")})};
    SlowTunnel sent = tunnel_of(customer, relay);
    sent.identification = 77;
    sent.flags = 0x4000;
    const SlowPacket up = udp_packet(host, server, 1, 2);
    EXPECT_EQ(test::to_hex(damaged(gateway, Side::left, sent.around(test::write_packet(up)), Field::tunnel_left).frame),
              test::to_hex(sent.around(test::write_packet(test::routed(up, 1)))));
    // The neighbour of this one is the relay itself.
    const Damaged beside =
        damaged(gateway, Side::right, test::write_packet(udp_packet(server, "2001:db8:c612::1", 1, 2, 30)), Field::other_subscriber);
    EXPECT_EQ(test::to_hex(std::span{beside.frame}.subspan(14 + 16, 4)), "c6120002");
}

TEST(RefdutSixrd, NamesWhatIsWrong) {
    using Places = std::vector<std::string>;
    EXPECT_EQ(places_of(relay_of({rule_of("2001:db8::/32", "198.18.0.2/32")})), (Places{"translation.domains[0].ipv4"}));
    EXPECT_EQ(places_of(relay_of({rule_of("2001:db8::/48", "0.0.0.0/0")})), (Places{"translation.domains[0].ipv6"}));
    EXPECT_EQ(places_of(relay_of({rule_of("2001:db8::/48", "198.18.0.0/16")})), Places{});
    TranslationConfig config = relay_of({rule_of("2001:db8::/32", "0.0.0.0/0")});
    config.tunnel.relay = address_of("2001:db9::1");
    EXPECT_EQ(places_of(config), (Places{"tunnel.relay"}));
}

}  // namespace
}  // namespace gatemark::refdut::sixrd
