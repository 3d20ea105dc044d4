#include "golden/tunnel_vectors.hpp"
#include "refdut/packet_gateway.hpp"
#include "refdut/tunnel_packets.hpp"

#include <gtest/gtest.h>

#include <map>

/// The AFTR of DS-Lite: a NAT44 whose users share their addresses.
namespace gatemark::refdut::aftr {
namespace {

using test::Bytes, test::SlowPacket, test::address_of;
using Result = PacketGateway::Result;

constexpr const char *relay = "2001:db8:0:2::1", *inner_host = "10.0.0.1", *server = "198.51.100.1";

TranslationConfig config_of(std::uint16_t port_min = 1024, std::uint16_t port_max = 65535) {
    TranslationConfig config;
    config.mode = Mode::aftr;
    config.tunnel.relay = address_of(relay);
    config.pool = pool_of({"192.0.2.1/32"}, port_min, port_max);
    return config;
}

std::string b4(unsigned number) { return "2001:db8:0:1::" + std::to_string(number); }

Bytes from_b4(const std::string& source, const SlowPacket& inner) {
    return SlowTunnel{.source = address_of(source), .destination = address_of(relay)}.around(test::write_packet(inner));
}

Bytes to_b4(const std::string& destination, const SlowPacket& inner) {
    return SlowTunnel{.source = address_of(relay), .destination = address_of(destination)}.around(test::write_packet(inner));
}

TEST(RefdutAftr, MakesTheOctetsOfTheVectorsBothWays) {
    PacketGateway gateway{config_of(5000, 5000)};
    const Result up = gateway.pass(Side::left, test::frame_of_packet(test::aftr_up.inside));
    ASSERT_EQ(name_of(up.drop), "none");
    EXPECT_EQ(test::to_hex(up.frame), test::to_hex(test::frame_of_packet(test::aftr_up.outside)));
    EXPECT_TRUE(up.notes.tunnel == Tunnel::left && up.notes.treatment == Treatment::outward && up.notes.new_connection);
    const Result down = gateway.pass(Side::right, test::frame_of_packet(test::aftr_down.outside));
    ASSERT_EQ(name_of(down.drop), "none");
    EXPECT_EQ(test::to_hex(down.frame), test::to_hex(test::frame_of_packet(test::aftr_down.inside)));
    EXPECT_TRUE(down.notes.tunnel == Tunnel::entered && down.notes.treatment == Treatment::inward);
}

TEST(RefdutAftr, TellsB4sWithOneInnerAddressApart) {
    PacketGateway gateway{config_of()};
    constexpr unsigned b4s = 150;
    std::map<std::uint16_t, unsigned> owners;
    for (unsigned i = 1; i <= b4s; ++i) {
        const Result up = gateway.pass(Side::left, from_b4(b4(i), udp_packet(inner_host, server, 7000, 80)));
        ASSERT_EQ(name_of(up.drop), "none");
        const SlowPacket sent = test::read_packet(Bytes(up.frame.begin(), up.frame.begin() + 60));
        EXPECT_EQ(sent.source, address_of("192.0.2.1"));
        EXPECT_TRUE(owners.emplace(sent.source_port, i).second) << "the port of another";
    }
    EXPECT_EQ(gateway.table->size(), b4s);
    for (const auto& [port, owner] : owners) {
        const SlowPacket reply = udp_packet(server, "192.0.2.1", 80, port, 30);
        SlowPacket expected = test::routed(reply, 1);
        expected.destination = address_of(inner_host);
        expected.destination_port = 7000;
        const Result down = gateway.pass(Side::right, reply);
        EXPECT_EQ(test::to_hex(down.frame), test::to_hex(to_b4(b4(owner), expected))) << owner;
    }
    // The same endpoint again is the same connection; of another B4 it is another.
    EXPECT_FALSE(gateway.pass(Side::left, from_b4(b4(7), udp_packet(inner_host, server, 7000, 80))).notes.new_connection);
    EXPECT_TRUE(gateway.pass(Side::left, from_b4(b4(999), udp_packet(inner_host, server, 7000, 80))).notes.new_connection);
    gateway.table->clear();
    EXPECT_EQ(name_of(gateway.pass(Side::right, udp_packet(server, "192.0.2.1", 80, owners.begin()->first)).drop), "no_state");
    const Result again = gateway.pass(Side::left, from_b4(b4(7), udp_packet(inner_host, server, 7000, 80)));
    EXPECT_TRUE(again.notes.new_connection && gateway.table->b4_of(again.notes.connection) == address_of(b4(7)).bytes);
}

TEST(RefdutAftr, DropsWithTheReason) {
    PacketGateway gateway{config_of(), {.capacity = 1, .overflow = Overflow::refuse}};
    const auto up = [&](const char* source, const std::string& b4_address = b4(1)) {
        return name_of(gateway.pass(Side::left, from_b4(b4_address, udp_packet(source, server, 7000, 80))).drop);
    };
    for (const char* const source : {"198.18.0.2", "11.0.0.1", "172.32.0.1", "192.169.0.1", "192.0.0.8"}) {
        EXPECT_EQ(up(source), "no_mapping") << "not a private address: " << source;
    }
    EXPECT_EQ(name_of(gateway.pass(Side::right, udp_packet(server, "192.0.2.1", 80, 7000)).drop), "no_state");
    EXPECT_EQ(up("10.0.0.1"), "none");
    EXPECT_EQ(up("10.0.0.1", b4(2)), "table_full");
    EXPECT_EQ(name_of(gateway.pass(Side::right, udp_packet(server, "192.0.2.2", 80, 7000)).drop), "no_mapping") << "not of the pool";
    EXPECT_EQ(name_of(gateway.pass(Side::left, udp_packet(inner_host, server, 7000, 80)).drop), "no_mapping") << "no tunnel";
    const Result refused = gateway.pass(Side::left, from_b4(b4(2), udp_packet(inner_host, server, 7000, 80)));
    EXPECT_TRUE(refused.notes.error_wanted);
    const SlowPacket native = udp_packet("2001:db8:606::41", "2001:db8:4242::2", 7, 7);
    for (const Side side : {Side::left, Side::right}) {
        EXPECT_EQ(test::to_hex(gateway.pass(side, native).frame), test::to_hex(test::write_packet(test::routed(native, 1))));
    }
}

TEST(RefdutAftr, TakesEachPrivateAddress) {
    PacketGateway gateway{config_of()};
    for (const char* const source : {"10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1", "192.0.0.2"}) {
        EXPECT_EQ(name_of(gateway.pass(Side::left, from_b4(b4(1), udp_packet(source, server, 7000, 80))).drop), "none") << source;
    }
}

TEST(RefdutAftr, CarriesEchoMessages) {
    PacketGateway gateway{config_of(5000, 5000)};
    SlowPacket echo = udp_packet(inner_host, server, 0, 0, 30);
    echo.echo = test::SlowEcho{.type = 8, .identifier = 7000, .sequence = 7};
    SlowPacket expected = test::routed(echo, 1);
    expected.source = address_of("192.0.2.1");
    expected.echo->identifier = 5000;
    EXPECT_EQ(test::to_hex(gateway.pass(Side::left, from_b4(b4(1), echo)).frame), test::to_hex(test::write_packet(expected)));
    SlowPacket reply = udp_packet(server, "192.0.2.1", 0, 0, 30);
    reply.echo = test::SlowEcho{.type = 0, .identifier = 5000, .sequence = 7};
    expected = test::routed(reply, 1);
    expected.destination = address_of(inner_host);
    expected.echo->identifier = 7000;
    EXPECT_EQ(test::to_hex(gateway.pass(Side::right, reply).frame), test::to_hex(to_b4(b4(1), expected)));
}

TEST(RefdutAftr, SendsToAnotherB4WhereItIsAskedTo) {
    PacketGateway gateway{config_of()};
    const auto establish = [&](unsigned number, std::uint16_t port) {
        const Result up = gateway.pass(Side::left, from_b4(b4(number), udp_packet(inner_host, server, port, 80)));
        return gateway.table->pool_of(up.notes.connection).port;
    };
    const std::uint16_t first = establish(1, 7000);
    const SlowPacket reply = udp_packet(server, "192.0.2.1", 80, first, 30);
    SlowPacket carried = test::routed(reply, 1);
    carried.destination = address_of(inner_host);
    carried.destination_port = 7000;
    EXPECT_TRUE(damaged(gateway, Side::right, test::write_packet(reply), Field::other_subscriber).fields.none()) << "nobody else";
    (void)establish(2, 7000);
    const Damaged to_another = damaged(gateway, Side::right, test::write_packet(reply), Field::other_subscriber);
    EXPECT_EQ(to_another.fields, (Fields{Field::other_subscriber, Field::tunnel_destination}));
    EXPECT_EQ(test::to_hex(to_another.frame), test::to_hex(to_b4(b4(2), carried)));
    EXPECT_TRUE(damaged(gateway, Side::right, test::write_packet(reply), Field::wrong_owner).fields.none()) << "its endpoint is the same";
    EXPECT_EQ(test::to_hex(damaged(gateway, Side::right, test::write_packet(reply), Field::tunnel_missing).frame),
              test::to_hex(test::write_packet(carried)));
    const Damaged left = damaged(gateway, Side::left, from_b4(b4(1), udp_packet(inner_host, server, 7000, 80)), Field::tunnel_left);
    EXPECT_EQ(left.fields, Fields{Field::tunnel_left});
    EXPECT_EQ(test::to_hex(std::span{left.frame}.subspan(14 + 8, 16)), test::to_hex(address_of(b4(1)).bytes));
}

TEST(RefdutAftr, EstablishesItsWholeCapacityBehindOneB4OrMany) {
    for (const unsigned b4s : {1U, 100U}) {
        PacketGateway gateway{config_of(), {.capacity = 1000, .overflow = Overflow::drop}};
        for (unsigned i = 0; i < 1001; ++i) {
            const auto port = static_cast<std::uint16_t>(2000 + i / b4s);
            const Drop drop = gateway.pass(Side::left, from_b4(b4(i % b4s), udp_packet(inner_host, server, port, 80))).drop;
            ASSERT_EQ(name_of(drop), i < 1000 ? "none" : "table_full") << i;
        }
        EXPECT_EQ(gateway.table->size(), 1000U);
    }
}

TEST(RefdutB4Set, RefusesWhatItHasNoRoomFor) {
    B4Set set{2};
    EXPECT_EQ(set.number_of(address_of(b4(1)).bytes), 0U);
    EXPECT_EQ(set.number_of(address_of(b4(2)).bytes), 1U);
    EXPECT_EQ(set.number_of(address_of(b4(3)).bytes), B4Set::none);
    EXPECT_EQ(set.number_of(address_of(b4(1)).bytes), 0U);
    set.clear();
    EXPECT_EQ(set.number_of(address_of(b4(3)).bytes), 0U);
    EXPECT_EQ(set.address_of(0), address_of(b4(3)).bytes);
}

}  // namespace
}  // namespace gatemark::refdut::aftr
