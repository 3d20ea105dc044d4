#include "frame/streams.hpp"
#include "golden/tunnel_vectors.hpp"
#include "refdut/icmp_error.hpp"
#include "refdut/map_vectors.hpp"
#include "refdut/packet_gateway.hpp"
#include "refdut/tunnel_packets.hpp"

#include <gtest/gtest.h>

#include <random>

/// The border relay of MAP-E, and the lwAFTR, against headers that are written octet by octet.
namespace gatemark::refdut::map_e {
namespace {

using test::Bytes, test::SlowPacket, test::address_of;
using Result = PacketGateway::Result;

constexpr const char *relay = "2001:db8:ffff::1", *server = "203.0.113.56";
/// The first of `map_vectors`, and one who differs in the PSID.
constexpr const char *customer = "2001:db8:12:3400:0:c000:212:34", *neighbour = "2001:db8:12:3500:0:c000:212:35", *shared = "192.0.2.18";

MapRuleSpec without_dmr(MapRuleSpec rule) {
    rule.dmr.reset();
    return rule;
}

TranslationConfig relay_of(std::vector<MapRuleSpec> domains, const char* address = relay) {
    TranslationConfig config;
    config.mode = Mode::map_e_br;
    config.tunnel.relay = address_of(address);
    for (const MapRuleSpec& rule : domains) {
        config.domains.push_back(without_dmr(rule));
    }
    return config;
}

Bytes from_customer(const SlowPacket& inner, const char* source = customer, const char* destination = relay) {
    return SlowTunnel{.source = address_of(source), .destination = address_of(destination)}.around(test::write_packet(inner));
}

Bytes to_customer(const SlowPacket& inner, const char* destination = customer) {
    return SlowTunnel{.source = address_of(relay), .destination = address_of(destination), .traffic_class = inner.traffic_class}.around(
        test::write_packet(inner));
}

std::string destination_of(const Result& result) {
    AddressBytes address{};
    std::copy_n(result.frame.begin() + 14 + 24, address.size(), address.begin());
    return text_of(address);
}

TEST(RefdutMapE, MakesTheOctetsOfTheVectorsBothWays) {
    PacketGateway gateway{relay_of({rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6)})};
    const Result up = gateway.pass(Side::left, test::frame_of_packet(test::map_e_up.inside));
    ASSERT_EQ(name_of(up.drop), "none");
    EXPECT_EQ(test::to_hex(up.frame), test::to_hex(test::frame_of_packet(test::map_e_up.outside)));
    EXPECT_TRUE(up.notes.tunnel == Tunnel::left && up.notes.udp && !up.notes.crossed && !up.notes.hairpinned);
    const Result down = gateway.pass(Side::right, test::frame_of_packet(test::map_e_down.outside));
    ASSERT_EQ(name_of(down.drop), "none");
    EXPECT_EQ(test::to_hex(down.frame), test::to_hex(test::frame_of_packet(test::map_e_down.inside)));
    EXPECT_TRUE(down.notes.tunnel == Tunnel::entered && down.notes.udp && !down.notes.crossed && !down.notes.hairpinned);
}

TEST(RefdutMapE, CarriesThePacketsOfTheVectorsOfMapBothWays) {
    for (const MapVector& vector : map_vectors) {
        for (const Side inside : {Side::left, Side::right}) {
            TranslationConfig config = relay_of({vector.rule()}, "2001:db8:42::1");
            if (vector.rule().ipv4.length == 0) {
                continue;  // all addresses are in the domain
            }
            if (vector.rule().ipv6.contains(*config.tunnel.relay)) {
                config.tunnel.relay = address_of("2001:db9::1");
            }
            config.inside = inside;
            PacketGateway gateway{config};
            for (const std::uint32_t number : {vector.first_low, vector.first_high, vector.last_low, vector.last_high}) {
                const auto port = static_cast<std::uint16_t>(number);
                SlowPacket inner = udp_packet(vector.customer, server, port, 80, 30);
                inner.traffic_class = 0xb8;
                inner.identification = 4711;
                inner.dont_fragment = port % 2 == 0;
                inner.options = Bytes(4, std::byte{1});
                SlowTunnel tunnel{.source = address_of(vector.address), .destination = *config.tunnel.relay, .hop_limit = 1};
                tunnel.flow_label = 0xabcde;
                const Result up = gateway.pass(inside, tunnel.around(test::write_packet(inner)));
                ASSERT_EQ(name_of(up.drop), "none") << vector.address << ' ' << port;
                EXPECT_EQ(test::to_hex(up.frame), test::to_hex(test::write_packet(test::routed(inner, 1))));
                std::swap(inner.source, inner.destination);
                std::swap(inner.source_port, inner.destination_port);
                const Result down = gateway.pass(other(inside), inner);
                ASSERT_EQ(name_of(down.drop), "none") << vector.address << ' ' << port;
                tunnel = {.source = *config.tunnel.relay, .destination = address_of(vector.address), .traffic_class = 0xb8};
                EXPECT_EQ(test::to_hex(down.frame), test::to_hex(tunnel.around(test::write_packet(test::routed(inner, 1)))));
            }
        }
    }
}

TEST(RefdutMapE, KeepsAllOfThePacketButItsTtl) {
    PacketGateway gateway{relay_of({map_vectors[0].rule()})};
    SlowPacket packet = udp_packet(server, shared, 80, 1232, 7);
    packet.vlan = 5;
    packet.udp_checksum_absent = true;  // the addresses of the tunnel are in no checksum
    const Result absent = gateway.pass(Side::right, packet);
    EXPECT_EQ(test::to_hex(absent.frame), test::to_hex(to_customer(test::routed(packet, 1))));
    packet.udp_checksum_absent = false;
    packet.udp_checksum_xor = 0x1234;
    const Result wrong = gateway.pass(Side::right, packet);
    EXPECT_EQ(test::to_hex(wrong.frame), test::to_hex(to_customer(test::routed(packet, 1))));
    const SlowPacket small = udp_packet(server, shared, 80, 1232, 0);
    const Result cut = gateway.pass(Side::right, padded(test::write_packet(small)));
    EXPECT_EQ(test::to_hex(cut.frame), test::to_hex(to_customer(test::routed(small, 1)))) << "padding is no part of the packet";
}

TEST(RefdutMapE, WritesTheOuterHeaderThatTheFileSays) {
    TranslationConfig config = relay_of({map_vectors[0].rule()});
    config.tunnel.hop_limit = 255;
    config.tunnel.traffic_class = 0;
    config.hop_limit_decrement = 3;
    PacketGateway gateway{config};
    SlowPacket packet = udp_packet(server, shared, 80, 1232);
    packet.traffic_class = 0xb8;
    const SlowTunnel tunnel{.source = address_of(relay), .destination = address_of(customer), .hop_limit = 255};
    EXPECT_EQ(test::to_hex(gateway.pass(Side::right, packet).frame),
              test::to_hex(tunnel.around(test::write_packet(test::routed(packet, 3)))));
}

/// RFC 6040 section 4.1 and RFC 3168 section 9.1.1, by their tables.
TEST(RefdutMapE, WritesTheCongestionFieldThatTheFileSays) {
    constexpr std::array<std::array<std::uint8_t, 4>, 3> by_mode{{{0, 1, 2, 3}, {0, 0, 0, 0}, {0, 1, 2, 2}}};
    for (std::size_t mode = 0; mode < by_mode.size(); ++mode) {
        for (std::uint8_t field = 0; field < 4; ++field) {
            for (const std::uint8_t stated : {std::uint8_t{0xb8}, std::uint8_t{0x20}}) {
                TranslationConfig config = relay_of({map_vectors[0].rule()});
                config.tunnel.ecn = static_cast<EcnMode>(mode);
                if (stated == 0x20) {
                    config.tunnel.traffic_class = stated;
                }
                PacketGateway gateway{config};
                SlowPacket packet = udp_packet(server, shared, 80, 1232);
                packet.traffic_class = static_cast<std::uint8_t>(0xb8 + field);
                const SlowTunnel tunnel{.source = address_of(relay),
                                        .destination = address_of(customer),
                                        .traffic_class = static_cast<std::uint8_t>(stated + by_mode[mode][field])};
                EXPECT_EQ(test::to_hex(gateway.pass(Side::right, packet).frame),
                          test::to_hex(tunnel.around(test::write_packet(test::routed(packet, 1)))));
            }
        }
    }
}

TEST(RefdutMapE, ServesEachAddressOfACustomersPrefix) {
    PacketGateway gateway{relay_of({rule_of("2001:db8::/32", "198.51.100.0/24", 6, 6)}, "2001:db9::1")};
    for (const char* const address : {"198.51.100.20", "198.51.100.21", "198.51.100.23"}) {
        const SlowPacket up = udp_packet(address, server, 7, 80), down = udp_packet(server, address, 80, 7);
        EXPECT_EQ(name_of(gateway.pass(Side::left, from_customer(up, "2001:db8:1400::c633:6414:0", "2001:db9::1")).drop), "none")
            << address;
        const Result result = gateway.pass(Side::right, down);
        ASSERT_EQ(name_of(result.drop), "none") << address;
        EXPECT_EQ(destination_of(result), "2001:db8:1400::c633:6414:0");
    }
    EXPECT_EQ(
        name_of(
            gateway.pass(Side::left, from_customer(udp_packet("198.51.100.24", server, 7, 80), "2001:db8:1400::c633:6414:0", "2001:db9::1"))
                .drop),
        "not_map_address");
}

TEST(RefdutMapE, DropsWithTheReason) {
    TranslationConfig config = relay_of({map_vectors[0].rule()});
    config.assigned_addresses = {address_of("192.0.2.1"), address_of("2001:db8:6::1"), address_of(relay)};
    PacketGateway gateway{config};
    const auto drop = [&](Side side, const auto& packet) { return name_of(gateway.pass(side, packet).drop); };
    const SlowPacket good = udp_packet(shared, server, 1232, 80), reply = udp_packet(server, shared, 80, 1232);
    const auto changed = [](SlowPacket packet, auto&& change) {
        change(packet);
        return packet;
    };
    EXPECT_EQ(drop(Side::left, from_customer(good)), "none");
    EXPECT_EQ(drop(Side::left, from_customer(good, neighbour)), "outside_port_set") << "the tunnel of another customer";
    EXPECT_EQ(drop(Side::left, from_customer(good, "2001:db8:12:3400:0:c000:212:35")), "not_map_address") << "PSID";
    EXPECT_EQ(drop(Side::left, from_customer(good, "2001:db8:200::1")), "no_rule");
    EXPECT_EQ(drop(Side::left, from_customer(udp_packet("192.0.2.19", server, 1232, 80))), "not_map_address") << "another's address";
    EXPECT_EQ(drop(Side::left, from_customer(udp_packet("10.0.0.1", server, 1232, 80))), "not_map_address") << "nobody's address";
    EXPECT_EQ(drop(Side::left, from_customer(udp_packet(shared, server, 1236, 80))), "outside_port_set");
    EXPECT_EQ(drop(Side::left, from_customer(good, customer, "2001:db8:ffff::2")), "no_mapping") << "to another relay";
    EXPECT_EQ(drop(Side::left, from_customer(good, customer, "2001:db8:6::1")), "not_for_us") << "to the gateway's own address";
    EXPECT_EQ(drop(Side::right, from_customer(good)), "not_for_us") << "a tunnel from outside";
    EXPECT_EQ(drop(Side::right, to_customer(reply)), "no_mapping") << "a tunnel from outside to a customer";
    EXPECT_EQ(drop(Side::left, udp_packet(customer, relay, 1, 2)), "unsupported") << "IPv6 to the relay";
    EXPECT_EQ(drop(Side::left, good), "no_mapping") << "no tunnel";
    EXPECT_EQ(drop(Side::left, from_customer(changed(good, [](SlowPacket& p) { p.hop_limit = 1; }))), "hop_limit");
    EXPECT_EQ(drop(Side::left, from_customer(changed(good, [](SlowPacket& p) { p.more_fragments = true; }))), "unsupported");
    EXPECT_EQ(drop(Side::left, from_customer(changed(good, [](SlowPacket& p) { p.header_checksum_xor = 1; }))), "bad_header_checksum");
    EXPECT_EQ(drop(Side::left, from_customer(udp_packet(shared, "192.0.2.1", 1232, 80))), "not_for_us");
    EXPECT_EQ(drop(Side::left, from_customer(udp_packet(shared, "224.0.0.1", 1232, 80))), "not_for_us");
    EXPECT_EQ(drop(Side::right, reply), "none");
    EXPECT_EQ(drop(Side::right, udp_packet(server, shared, 80, 1023)), "outside_port_set");
    EXPECT_EQ(drop(Side::right, udp_packet(server, "192.0.3.18", 80, 1232)), "no_rule");
    EXPECT_EQ(drop(Side::right, changed(reply, [](SlowPacket& p) { p.more_fragments = true; })), "unsupported");
    EXPECT_EQ(drop(Side::right, changed(reply, [](SlowPacket& p) { p.hop_limit = 1; })), "hop_limit");
}

TEST(RefdutMapE, TakesNoTunnelThatIsNotWhatItSays) {
    PacketGateway gateway{relay_of({map_vectors[0].rule()})};
    const Bytes inner = test::write_packet(udp_packet(shared, server, 1232, 80));
    const auto drop = [&](const Bytes& frame) { return name_of(gateway.pass(Side::left, frame).drop); };
    SlowTunnel tunnel{.source = address_of(customer), .destination = address_of(relay)};
    const Bytes good = tunnel.around(inner);
    EXPECT_EQ(drop(good), "none");
    for (std::size_t bytes = 14; bytes < good.size(); ++bytes) {
        EXPECT_EQ(drop({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes)}), "truncated") << bytes;
    }
    Bytes trailed = good;
    trailed.resize(good.size() + 8);
    EXPECT_EQ(drop(trailed), "none") << "behind the outer packet: not of the tunnel";
    tunnel.longer_by = 8;
    EXPECT_EQ(drop(tunnel.around(inner)), "truncated") << "longer than the frame";
    Bytes padded_tunnel = tunnel.around(inner);
    padded_tunnel.resize(padded_tunnel.size() + 8);
    EXPECT_EQ(drop(padded_tunnel), "truncated") << "the packet is shorter than its tunnel";
    tunnel.longer_by = -1;
    EXPECT_EQ(drop(tunnel.around(inner)), "truncated") << "the packet is longer than its tunnel";
    tunnel.longer_by = 0;
    tunnel.next_header = 41;
    EXPECT_EQ(drop(tunnel.around(inner)), "unsupported");
    tunnel.next_header = 60;
    tunnel.extension = test::from_hex("0400 0401 0401 0100");
    EXPECT_EQ(drop(tunnel.around(inner)), "unsupported") << "the option that Linux sends (RFC 2473 section 4.1.1)";
    tunnel.next_header = 44;
    tunnel.extension = test::from_hex("0400 0001 0000 0001");
    EXPECT_EQ(drop(tunnel.around(inner)), "unsupported") << "a fragment of a tunnel";
    tunnel = {.source = address_of(customer), .destination = address_of(relay)};
    EXPECT_EQ(drop(tunnel.around(test::write_packet(udp_packet("2001:db8:42::1", "2001:db8:42::2", 1232, 80)))), "not_ip") << "IPv6 in it";
}

TEST(RefdutMapE, TellsACustomerThatItsPortIsNot) {
    PacketGateway gateway{relay_of({map_vectors[0].rule()})};
    const Bytes sent = from_customer(udp_packet(shared, server, 1236, 80));
    const Result result = gateway.pass(Side::left, sent);
    ASSERT_TRUE(result.drop == Drop::outside_port_set && result.notes.error_wanted);
    EXPECT_EQ(test::to_hex(result.frame), test::to_hex(sent)) << "quoted in the error, so not changed";
    ErrorFrame error;
    write_refusal(Buffer{result.frame, 0, 0}.packet, result.drop, address_of("2001:db8:6::1"), error);
    ASSERT_EQ(error.bytes, 14 + 40 + 8 + sent.size() - 14);
    EXPECT_EQ(test::to_hex(std::span{error.data}.subspan(14 + 40, 2)), "0105");
    EXPECT_FALSE(gateway.pass(Side::right, udp_packet(server, shared, 80, 1023)).notes.error_wanted);
}

TEST(RefdutMapE, RoutesTheBackgroundBothWays) {
    PacketGateway gateway{relay_of({map_vectors[0].rule()})};
    const SlowPacket forward = udp_packet("2001:db8:606::41", "2001:db8:4242::2", 7, 7);
    for (const Side side : {Side::left, Side::right}) {
        const Result result = gateway.pass(side, forward);
        EXPECT_TRUE(result.notes.tunnel == Tunnel::none && result.notes.treatment == Treatment::routed);
        EXPECT_EQ(test::to_hex(result.frame), test::to_hex(test::write_packet(test::routed(forward, 1))));
    }
}

TEST(RefdutMapE, HairpinsFromOneCustomerToAnother) {
    PacketGateway gateway{relay_of({map_vectors[0].rule(), rule_of("2001:db8:a0::/44", "198.18.0.0/16", 20, 4)}, "2001:db9::1")};
    // To the customer with 198.18.1.2 and PSID 15, of the other rule.
    SlowPacket inner = udp_packet(shared, "198.18.1.2", 1232, 7936, 21);
    inner.traffic_class = 9;
    const Result result = gateway.pass(Side::left, from_customer(inner, customer, "2001:db9::1"));
    ASSERT_EQ(name_of(result.drop), "none");
    EXPECT_TRUE(result.notes.hairpinned && result.notes.tunnel == Tunnel::entered);
    const SlowTunnel expected{
        .source = address_of("2001:db9::1"), .destination = address_of("2001:db8:a0:102f:0:c612:102:f"), .traffic_class = 9};
    EXPECT_EQ(test::to_hex(result.frame), test::to_hex(expected.around(test::write_packet(test::routed(inner, 1)))));
    inner.destination_port = 4095;
    EXPECT_EQ(name_of(gateway.pass(Side::left, from_customer(inner, customer, "2001:db9::1")).drop), "outside_port_set")
        << "a port of nobody";
}

TEST(RefdutMapE, CarriesEchoMessagesByTheirIdentifier) {
    PacketGateway gateway{relay_of({map_vectors[0].rule()})};
    for (const std::uint8_t type : {std::uint8_t{8}, std::uint8_t{0}}) {
        SlowPacket echo = udp_packet(shared, server, 0, 0, 30);
        echo.echo = test::SlowEcho{.type = type, .identifier = 1232, .sequence = 7};
        const Result up = gateway.pass(Side::left, from_customer(echo));
        EXPECT_EQ(test::to_hex(up.frame), test::to_hex(test::write_packet(test::routed(echo, 1))));
        EXPECT_NE(up.notes.echo, EchoMessage::none);
        std::swap(echo.source, echo.destination);
        EXPECT_EQ(test::to_hex(gateway.pass(Side::right, echo).frame), test::to_hex(to_customer(test::routed(echo, 1))));
        echo.echo->identifier = 1236;
        EXPECT_EQ(destination_of(gateway.pass(Side::right, echo)), neighbour);
    }
}

MapRuleSpec softwires(const std::string& ipv6, const std::string& ipv4, unsigned number_bits) {
    MapRuleSpec rule = without_dmr(rule_of(ipv6, ipv4, number_bits, 0));
    rule.in_identifier = true;
    return rule;
}

TranslationConfig lwaftr_of(const MapRuleSpec& rule) {
    TranslationConfig config = relay_of({rule});
    config.mode = Mode::lwaftr;
    return config;
}

TEST(RefdutLwaftr, BindsASoftwireToAnAddressAndPorts) {
    PacketGateway gateway{lwaftr_of(softwires("2001:db8:1:2::/64", "192.0.2.0/24", 14))};
    const char* const softwire = "2001:db8:1:2:0:c000:201:12";
    const auto drop = [&](const char* source, const SlowPacket& inner) {
        return name_of(gateway.pass(Side::left, from_customer(inner, source)).drop);
    };
    for (const std::uint16_t port : {std::uint16_t{18432}, std::uint16_t{19455}}) {
        const SlowPacket up = udp_packet("192.0.2.1", server, port, 80, 30), down = udp_packet(server, "192.0.2.1", 80, port, 30);
        EXPECT_EQ(test::to_hex(gateway.pass(Side::left, from_customer(up, softwire)).frame),
                  test::to_hex(test::write_packet(test::routed(up, 1))));
        EXPECT_EQ(test::to_hex(gateway.pass(Side::right, down).frame), test::to_hex(to_customer(test::routed(down, 1), softwire)));
    }
    EXPECT_EQ(drop(softwire, udp_packet("192.0.2.1", server, 18431, 80)), "outside_port_set");
    EXPECT_EQ(drop(softwire, udp_packet("192.0.2.1", server, 19456, 80)), "outside_port_set");
    EXPECT_EQ(drop(softwire, udp_packet("192.0.2.2", server, 18432, 80)), "not_map_address");
    EXPECT_EQ(drop("2001:db8:1:2:0:c000:201:52", udp_packet("192.0.2.1", server, 18432, 80)), "not_map_address") << "PSID of 7 bits";
    EXPECT_EQ(drop("2001:db8:1:2:0:c000:301:12", udp_packet("192.0.3.1", server, 18432, 80)), "not_map_address");
    EXPECT_EQ(drop("2001:db8:1:2:1:c000:201:12", udp_packet("192.0.2.1", server, 18432, 80)), "not_map_address");
    EXPECT_EQ(drop("2001:db8:1:3:0:c000:201:12", udp_packet("192.0.2.1", server, 18432, 80)), "no_rule");
    EXPECT_EQ(destination_of(gateway.pass(Side::right, udp_packet(server, "192.0.2.1", 80, 19456))), "2001:db8:1:2:0:c000:201:13");
}

TEST(RefdutLwaftr, KeepsNothingOfAMillionSoftwires) {
    const MapRule rule{softwires("2001:db8:1:2::/64", "198.18.0.0/16", 20)};  // four bits of PSID
    for (std::uint32_t number = 0; number < 1U << 20; number += 97) {
        AddressBytes address = bytes_of("2001:db8:1:2::"), ipv4{};
        store_big_endian(ipv4.data(), 0xc612'0000U | number >> 4);
        std::copy_n(ipv4.begin(), 4, address.begin() + 10);
        address[15] = static_cast<std::byte>(number & 0xfU);
        const MapCustomer owner{.ipv4 = ipv4, .psid = static_cast<std::uint16_t>(number & 0xfU)};
        ASSERT_EQ(rule.address_of(owner), address) << number;
        ASSERT_EQ(rule.customer_of(address), owner) << number;
        const auto port = static_cast<std::uint16_t>((number & 0xfU) << 12 | (number & 0xfffU));
        ASSERT_EQ(rule.customer_at(ipv4, port), owner) << number;
        ASSERT_TRUE(rule.has_port(owner, port));
    }
}

TEST(RefdutMapE, DamagesWhatIsBeforeThePacket) {
    PacketGateway gateway{relay_of({map_vectors[0].rule()})};
    SlowPacket packet = udp_packet(server, shared, 80, 1232, 30);
    packet.traffic_class = 0xb8;
    const auto down = [&](Field field) {
        const Damaged result = damaged(gateway, Side::right, test::write_packet(packet), field);
        EXPECT_EQ(result.fields, field == Field::length ? (Fields{field, Field::tunnel_header}) : Fields{field});
        return test::to_hex(result.frame);
    };
    const SlowPacket carried = test::routed(packet, 1);
    const Bytes inner = test::write_packet(carried);
    const SlowTunnel right{.source = address_of(relay), .destination = address_of(customer), .traffic_class = 0xb8};
    const auto with = [&](auto&& change) {
        SlowTunnel tunnel = right;
        change(tunnel);
        return test::to_hex(tunnel.around(inner));
    };
    EXPECT_EQ(down(Field::tunnel_missing), test::to_hex(inner));
    EXPECT_EQ(down(Field::tunnel_source), with([](SlowTunnel& t) { t.source = address_of("100:db8:ffff::1"); }));
    EXPECT_EQ(down(Field::tunnel_destination), with([](SlowTunnel& t) { t.destination = address_of("100:db8:12:3400:0:c000:212:34"); }));
    const Damaged other_one = damaged(gateway, Side::right, test::write_packet(packet), Field::other_subscriber);
    EXPECT_EQ(other_one.fields, (Fields{Field::other_subscriber, Field::tunnel_destination}));
    EXPECT_EQ(test::to_hex(other_one.frame), with([](SlowTunnel& t) { t.destination = address_of(neighbour); }));
    EXPECT_EQ(down(Field::tunnel_traffic_class), with([](SlowTunnel& t) { t.traffic_class = 0; }));
    EXPECT_EQ(down(Field::tunnel_header), with([](SlowTunnel& t) { t.longer_by = 8; }));
    EXPECT_EQ(down(Field::tunnel_option), with([](SlowTunnel& t) {
                  t.next_header = 60;
                  t.extension = test::from_hex("0400 0401 0401 0100");
              }));
    // What else is damaged is the packet's, and the tunnel stays right.
    EXPECT_EQ(down(Field::hop_limit), test::to_hex(right.around(test::write_packet(packet)))) << "the TTL that it came with";
    SlowPacket shorter = carried;
    shorter.wrong_ip_length = static_cast<std::uint16_t>(20 + 8 + 30 - 1);
    SlowTunnel agreeing = right;
    agreeing.longer_by = -1;
    EXPECT_EQ(down(Field::length), test::to_hex(agreeing.around(test::write_packet(shorter)))) << "in both headers";
    EXPECT_TRUE(damaged(gateway, Side::right, test::write_packet(packet), Field::family).fields.none());
    EXPECT_TRUE(damaged(gateway, Side::right, test::write_packet(packet), Field::tunnel_left).fields.none());
    packet.traffic_class = 0;
    EXPECT_EQ(std::string(down(Field::tunnel_traffic_class), 2 * 14, 4), "6040");
}

TEST(RefdutMapE, DamagesWhatLeftItsTunnel) {
    PacketGateway gateway{relay_of({map_vectors[0].rule()})};
    for (const std::size_t data : {std::size_t{0}, std::size_t{30}}) {
        const SlowPacket inner = udp_packet(shared, server, 1232, 80, data);
        const Damaged left = damaged(gateway, Side::left, from_customer(inner), Field::tunnel_left);
        EXPECT_EQ(left.fields, Fields{Field::tunnel_left});
        EXPECT_EQ(test::to_hex(left.frame), test::to_hex(from_customer(test::routed(inner, 1))));
    }
    const Bytes sent = from_customer(udp_packet(shared, server, 1232, 80, 30));
    for (const Field field : {Field::tunnel_missing, Field::tunnel_source, Field::tunnel_destination, Field::other_subscriber,
                              Field::tunnel_traffic_class, Field::tunnel_option, Field::tunnel_header}) {
        EXPECT_TRUE(damaged(gateway, Side::left, sent, field).fields.none());
    }
    const auto port_of = [](const Bytes& frame) { return test::to_hex(std::span{frame}.subspan(14 + 20, 2)); };
    EXPECT_EQ(port_of(damaged(gateway, Side::left, sent, Field::source_port).frame), "04d1") << "the customer's";
    EXPECT_EQ(port_of(damaged(gateway, Side::left, sent, Field::other_edge_port).frame), "04cc") << "that of another customer";
    EXPECT_EQ(damaged(gateway, Side::left, sent, Field::identification).fields, Fields{Field::identification});
}

TEST(RefdutLwaftr, LeadsToAnotherSoftwireWhereItIsAskedTo) {
    PacketGateway gateway{lwaftr_of(softwires("2001:db8:1:2::/64", "192.0.2.0/24", 14))};
    const SlowPacket packet = udp_packet(server, "192.0.2.1", 80, 18432, 30);
    const Damaged other_one = damaged(gateway, Side::right, test::write_packet(packet), Field::other_subscriber);
    EXPECT_EQ(test::to_hex(other_one.frame), test::to_hex(to_customer(test::routed(packet, 1), "2001:db8:1:2:0:c000:201:13")));
}

/// The Tester's frames through the relay, neither of which knows the other's code.
struct BothEnds {
    explicit BothEnds(frame::signature::Direction direction, const std::vector<frame::EdgeDomain>& domains)
        : forward{direction == frame::signature::Direction::forward},
          stream{test::make_stream(test::map_e_request({.domains = domains, .count = 16}, direction, 100), {},
                                   frame::signature::TrafficClass::foreground, direction)},
          gateway{relay_of(rules_of(domains))} {}

    static std::vector<MapRuleSpec> rules_of(const std::vector<frame::EdgeDomain>& domains) {
        std::vector<MapRuleSpec> rules;
        for (const frame::EdgeDomain& domain : domains) {
            const auto text = [](const net::Prefix& prefix) { return net::to_text(prefix.address) + "/" + std::to_string(prefix.length); };
            rules.push_back(rule_of(text(domain.rule.ipv6), text(domain.rule.ipv4), domain.rule.ea_bits, domain.rule.psid_offset));
        }
        return rules;
    }
    [[nodiscard]] Side from() const { return forward ? Side::left : Side::right; }
    [[nodiscard]] Bytes sent(std::uint64_t number) const { return test::sent_frame(stream, number, number); }
    /// What the Tester finds wrong with it, from a gateway with a link-layer address of its own.
    [[nodiscard]] std::string found(Bytes frame, std::uint64_t number) const {
        std::ranges::copy(net::parse_mac("02:00:00:00:00:09").value(), frame.begin() + 6);
        return test::faults_of(stream, frame, number);
    }

    bool forward;
    frame::Stream stream;
    PacketGateway gateway;
};

TEST(RefdutMapE, DeliversWhatTheTesterExpects) {
    std::mt19937 chance{7};
    const auto below = [&](unsigned limit) { return static_cast<unsigned>(chance() % limit); };
    for (unsigned round = 0; round < 60; ++round) {
        const unsigned offset = below(9), ipv4_bits = 12 + below(17), psid_bits = below(std::min(9U, 17 - offset));
        const unsigned ea_bits = 32 - ipv4_bits + psid_bits, ipv6_bits = 32 + below(89 - ea_bits);
        const auto prefix = [](const char* text, unsigned length) {
            net::Prefix of_text{test::address_of(text), length};
            for (std::size_t bit = length; bit < 128; ++bit) {
                of_text.address.bytes[bit / 8] &= static_cast<std::byte>(~(0x80U >> (bit % 8)));
            }
            return net::to_text(of_text.address) + "/" + std::to_string(length);
        };
        const std::vector<frame::EdgeDomain> domains{test::edge_domain(prefix("2001:db9:dead:beef:dead:beef:dead:beef", ipv6_bits),
                                                                       prefix("10.173.190.239", ipv4_bits), ea_bits, offset)};
        for (const auto direction : {frame::signature::Direction::forward, frame::signature::Direction::reverse}) {
            BothEnds both{direction, domains};
            for (std::uint64_t number = 0; number < 20; ++number) {
                const Result result = both.gateway.pass(both.from(), both.sent(number));
                ASSERT_EQ(name_of(result.drop), "none") << domains[0].rule.ea_bits;
                ASSERT_EQ(both.found(result.frame, number), "") << test::to_hex(both.sent(number));
            }
        }
    }
}

TEST(RefdutMapE, TheTesterFindsEachDamage) {
    constexpr Fields told_elsewhere{Field::trailer, Field::source_mac, Field::index, Field::mark, Field::wrong_port};
    const std::vector<frame::EdgeDomain> domains{test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)};
    for (const auto direction : {frame::signature::Direction::forward, frame::signature::Direction::reverse}) {
        BothEnds both{direction, domains};
        unsigned tried = 0;
        for (std::size_t i = 0; i < field_count; ++i) {
            if (told_elsewhere.has(static_cast<Field>(i))) {
                continue;
            }
            const Damaged result = damaged(both.gateway, both.from(), both.sent(i), static_cast<Field>(i));
            if (result.fields.none()) {
                continue;
            }
            frame::Faults due;
            for (std::size_t name = 0; name < frame::fault_count; ++name) {
                const auto announced = field_of(frame::fault_names[name]);
                if (announced && result.fields.has(*announced)) {
                    due.add(static_cast<frame::Fault>(name));
                }
            }
            EXPECT_EQ(both.found(result.frame, i), test::names_of(due)) << field_names[i];
            ++tried;
        }
        EXPECT_GE(tried, 20U);
    }
}

TEST(RefdutMapE, FindsNoOtherSubscriberWhereThereIsNone) {
    PacketGateway gateway{relay_of({rule_of("2001:db8:12:3400::/56", "192.0.2.18/32", 0, 6)})};
    const Bytes sent = test::write_packet(udp_packet(server, shared, 80, 7, 30));
    EXPECT_TRUE(damaged(gateway, Side::right, sent, Field::other_subscriber).fields.none());
}

TEST(RefdutMapE, DamagesEchoMessagesInTheirTunnels) {
    PacketGateway gateway{relay_of({map_vectors[0].rule()})};
    SlowPacket echo = udp_packet(server, shared, 0, 0, 30);
    echo.echo = test::SlowEcho{.type = 0, .identifier = 1232, .sequence = 7};
    for (const Field field : {Field::tunnel_missing, Field::other_subscriber, Field::tunnel_option, Field::sequence, Field::trailer}) {
        EXPECT_TRUE(damaged(gateway, Side::right, test::write_packet(echo), field).fields.has(field));
    }
}

TEST(RefdutMapE, NamesWhatTheModeLacksOrDoesNotHave) {
    using Places = std::vector<std::string>;
    TranslationConfig config = relay_of({});
    config.tunnel.relay.reset();
    EXPECT_EQ(places_of(config), (Places{"translation.domains", "tunnel.relay"}));
    config = relay_of({map_vectors[0].rule()}, "2001:db8:12::1");
    config.domains[0].dmr = prefix_of("64:ff9b::/96");
    config.tunnel.hop_limit = 0;
    EXPECT_EQ(places_of(config), (Places{"translation.domains[0].dmr", "tunnel.relay", "tunnel.hop_limit"})) << "a customer's address";
    for (const char* const address : {"ff02::1", "fe80::1", "::", "192.0.2.1"}) {
        EXPECT_EQ(places_of(relay_of({map_vectors[0].rule()}, address)), (Places{"tunnel.relay"})) << address;
    }
    config = relay_of({map_vectors[0].rule()});
    config.mode = Mode::map_t_br;
    EXPECT_EQ(places_of(config), (Places{"translation.domains[0].dmr", "tunnel"}));
}

}  // namespace
}  // namespace gatemark::refdut::map_e
