#include "golden/tunnel_vectors.hpp"
#include "refdut/packet_gateway.hpp"
#include "refdut/tunnel_packets.hpp"

#include <gtest/gtest.h>

/// The B4 of DS-Lite: one tunnel, for all that its customer sends.
namespace gatemark::refdut::b4 {
namespace {

using test::Bytes, test::SlowPacket, test::address_of;
using Result = PacketGateway::Result;

constexpr const char *own_end = "2001:db8:0:1::1", *aftr_end = "2001:db8:0:2::1", *host = "10.0.0.1", *server = "198.51.100.1";

TranslationConfig config_of() {
    TranslationConfig config;
    config.mode = Mode::b4;
    config.tunnel = {.relay = address_of(aftr_end), .subscriber = address_of(own_end)};
    return config;
}

Bytes in_tunnel(const char* source, const char* destination, const SlowPacket& inner) {
    return SlowTunnel{.source = address_of(source), .destination = address_of(destination)}.around(test::write_packet(inner));
}

TEST(RefdutB4, MakesTheOctetsOfTheVectorsBothWays) {
    PacketGateway gateway{config_of()};
    const Result up = gateway.pass(Side::left, test::frame_of_packet(test::b4_up.inside));
    ASSERT_EQ(name_of(up.drop), "none");
    EXPECT_EQ(test::to_hex(up.frame), test::to_hex(test::frame_of_packet(test::b4_up.outside)));
    EXPECT_TRUE(up.notes.tunnel == Tunnel::entered && up.notes.udp && up.notes.treatment == Treatment::routed);
    const Result down = gateway.pass(Side::right, test::frame_of_packet(test::b4_down.outside));
    ASSERT_EQ(name_of(down.drop), "none");
    EXPECT_EQ(test::to_hex(down.frame), test::to_hex(test::frame_of_packet(test::b4_down.inside)));
    EXPECT_TRUE(down.notes.tunnel == Tunnel::left && down.notes.udp);
}

TEST(RefdutB4, TakesOnlyWhatItsAftrSends) {
    PacketGateway gateway{config_of()};
    const auto drop = [&](Side from, const Bytes& frame) { return name_of(gateway.pass(from, frame).drop); };
    const SlowPacket answer = udp_packet(server, host, 80, 1024), question = udp_packet(host, server, 1024, 80);
    EXPECT_EQ(drop(Side::right, in_tunnel(aftr_end, own_end, answer)), "none");
    EXPECT_EQ(drop(Side::right, in_tunnel("2001:db8:0:2::2", own_end, answer)), "no_mapping");
    EXPECT_EQ(drop(Side::right, in_tunnel(aftr_end, "2001:db8:0:1::2", answer)), "no_mapping") << "of another B4";
    EXPECT_EQ(drop(Side::right, test::write_packet(answer)), "no_mapping") << "in no tunnel";
    EXPECT_EQ(drop(Side::left, in_tunnel(aftr_end, own_end, answer)), "not_for_us") << "from its customer";
    EXPECT_EQ(drop(Side::left, in_tunnel(own_end, aftr_end, question)), "no_mapping") << "the customer's own tunnel";
}

TEST(RefdutB4, RoutesNativeIpv6BesideIt) {
    PacketGateway gateway{config_of()};
    for (const Side side : {Side::left, Side::right}) {
        const SlowPacket native = udp_packet("2001:2::2", "2001:2:0:8000::2", 1, 2);
        const Result result = gateway.pass(side, native);
        ASSERT_EQ(name_of(result.drop), "none");
        EXPECT_EQ(test::to_hex(result.frame), test::to_hex(test::write_packet(test::routed(native, 1))));
        EXPECT_EQ(result.notes.tunnel, Tunnel::none);
    }
}

TEST(RefdutB4, CarriesFragmentsOfItsCustomer) {
    PacketGateway gateway{config_of()};
    SlowPacket fragment = udp_packet(host, server, 1024, 80);
    fragment.more_fragments = true;
    const Result result = gateway.pass(Side::left, fragment);
    ASSERT_EQ(name_of(result.drop), "none");
    EXPECT_EQ(test::to_hex(result.frame), test::to_hex(in_tunnel(own_end, aftr_end, test::routed(fragment, 1))));
}

TEST(RefdutB4, HasNoTunnelOfAnotherToDamageAFrameBy) {
    PacketGateway gateway{config_of()};
    const Bytes up = test::frame_of_packet(test::b4_up.inside);
    EXPECT_TRUE(damaged(gateway, Side::left, up, Field::other_subscriber).fields.none());
    for (const Field field : {Field::tunnel_missing, Field::tunnel_source, Field::tunnel_destination, Field::tunnel_traffic_class,
                              Field::tunnel_option, Field::tunnel_header}) {
        EXPECT_TRUE(damaged(gateway, Side::left, up, field).fields.has(field)) << field_names[static_cast<std::size_t>(field)];
    }
    EXPECT_TRUE(
        damaged(gateway, Side::right, test::frame_of_packet(test::b4_down.outside), Field::tunnel_left).fields.has(Field::tunnel_left));
}

}  // namespace
}  // namespace gatemark::refdut::b4
