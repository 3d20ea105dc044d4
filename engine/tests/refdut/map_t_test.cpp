#include "refdut/icmp_error.hpp"
#include "refdut/map_vectors.hpp"
#include "refdut/packet_gateway.hpp"

#include <gtest/gtest.h>

/// Border relay and customer edge of MAP-T, against a translator that is slow and knows no MAP.
namespace gatemark::refdut::map_t {
namespace {

using test::Bytes, test::SlowPacket;

using Gateway = PacketGateway;
using Result = PacketGateway::Result;

TranslationConfig relay_of(std::vector<MapRuleSpec> domains) {
    TranslationConfig config;
    config.mode = Mode::map_t_br;
    config.domains = std::move(domains);
    return config;
}

TranslationConfig edge_config(std::vector<MapRuleSpec> domains, const std::string& end_user_prefix) {
    TranslationConfig config;
    config.mode = Mode::map_t_ce;
    config.domains = std::move(domains);
    config.end_user_prefix = prefix_of(end_user_prefix);
    return config;
}

/// As it is after translation, with these addresses.
std::string crossed(const SlowPacket& packet, const std::string& source, const std::string& destination, std::uint16_t identification = 0) {
    SlowPacket expected = test::translated(
        packet, 1, [&](const net::Address& of) { return test::address_of(of == packet.source ? source : destination); }, identification);
    Bytes frame = test::write_packet(expected);
    frame.resize(std::max<std::size_t>(frame.size(), expected.is_ipv4() ? 60 : 0));  // padded, as the slow writer does not
    return test::to_hex(frame);
}

constexpr const char *server = "203.0.113.56", *embedded_server = "64:ff9b::203.0.113.56";
constexpr const char *dmr_64 = "2001:db8:ffff::/64", *embedded_64 = "2001:db8:ffff:0:cb:71:3800:0";  ///< of the server
/// The first vector.
constexpr const char *customer = "2001:db8:12:3400:0:c000:212:34", *shared = "192.0.2.18";

TEST(RefdutBorderRelay, TranslatesTheCustomersOfTheVectorsBothWays) {
    for (const MapVector& vector : map_vectors) {
        for (const Side inside : {Side::left, Side::right}) {
            TranslationConfig config = relay_of({vector.rule()});
            config.inside = inside;
            Gateway gateway{config};
            std::uint16_t identification = 0;
            for (const std::uint32_t number : {vector.first_low, vector.first_high, vector.last_low, vector.last_high}) {
                const auto port = static_cast<std::uint16_t>(number);
                SlowPacket up = udp_packet(vector.address, embedded_server, port, 80, 30);
                up.traffic_class = 0xb8;
                up.flow_label = 0x12345;
                const Result to_ipv4 = gateway.pass(inside, up);
                ASSERT_EQ(name_of(to_ipv4.drop), "none") << vector.address << ' ' << port;
                if (vector.rule().ipv4.length == 0) {  // where all addresses are of the domain, so is the server
                    EXPECT_TRUE(to_ipv4.notes.hairpinned);
                    EXPECT_EQ(test::read_packet(to_ipv4.frame).destination, test::address_of("2001:db8:1:cb00:7138:50:7138:50"));
                } else {
                    EXPECT_EQ(test::to_hex(to_ipv4.frame), crossed(up, vector.customer, server, identification++)) << vector.address;
                    EXPECT_TRUE(to_ipv4.notes.crossed && to_ipv4.notes.treatment == Treatment::stateless);
                }
                SlowPacket down = udp_packet(server, vector.customer, 80, port, 30);
                down.traffic_class = 3;
                const Result to_ipv6 = gateway.pass(other(inside), down);
                ASSERT_EQ(name_of(to_ipv6.drop), "none") << vector.address << ' ' << port;
                EXPECT_EQ(test::to_hex(to_ipv6.frame), crossed(down, embedded_server, vector.address)) << vector.address;
                EXPECT_TRUE(to_ipv6.notes.crossed && to_ipv6.notes.treatment == Treatment::stateless);
            }
        }
    }
}

TEST(RefdutBorderRelay, HoldsTheCustomerToItsPorts) {
    for (const MapVector& vector : map_vectors) {
        Gateway gateway{relay_of({vector.rule()})};
        for (const auto& [low, high] : {std::pair{vector.first_low, vector.first_high}, std::pair{vector.last_low, vector.last_high}}) {
            for (const std::uint32_t port : {low - 1, high + 1}) {
                if (port > 65535) {
                    continue;
                }
                const Result up =
                    gateway.pass(Side::left, udp_packet(vector.address, embedded_server, static_cast<std::uint16_t>(port), 80));
                EXPECT_EQ(name_of(up.drop), "outside_port_set") << vector.address << ' ' << port;
                EXPECT_TRUE(up.notes.error_wanted);
                // From outside it is another customer's port, or nobody's.
                const Result down = gateway.pass(Side::right, udp_packet(server, vector.customer, 80, static_cast<std::uint16_t>(port)));
                EXPECT_FALSE(down.notes.error_wanted);
                if (down.drop == Drop::none) {
                    EXPECT_NE(test::read_packet(down.frame).destination, test::address_of(vector.address)) << port;
                } else {
                    EXPECT_EQ(name_of(down.drop), "outside_port_set");
                }
            }
        }
    }
}

TEST(RefdutBorderRelay, TellsACustomerThatItsPortIsNot) {
    Gateway gateway{relay_of({map_vectors[0].rule()})};
    const SlowPacket packet = udp_packet(customer, embedded_server, 1236, 80);
    const Result result = gateway.pass(Side::left, packet);
    ASSERT_TRUE(result.drop == Drop::outside_port_set && result.notes.error_wanted);
    EXPECT_EQ(test::to_hex(result.frame), test::to_hex(test::write_packet(packet))) << "quoted in the error, so not changed";
    const Buffer refused{result.frame, 0, 0};
    ErrorFrame error;
    write_refusal(refused.packet, result.drop, test::address_of("2001:db8:6::1"), error);
    ASSERT_EQ(error.bytes, 14 + 40 + 8 + result.frame.size() - 14);
    EXPECT_EQ(test::to_hex(std::span{error.data}.subspan(14 + 40, 2)), "0105");
}

TEST(RefdutBorderRelay, DropsWithTheReason) {
    TranslationConfig config =
        relay_of({rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6, dmr_64), rule_of("2001:db8:100::/40", "198.51.100.0/24", 6, 6)});
    config.assigned_addresses = {test::address_of("192.0.2.1"), test::address_of("2001:db8:6::1")};
    config.lowest_ipv6_mtu = 1280;
    Gateway gateway{config};
    const auto drop = [&](Side side, const SlowPacket& packet) { return name_of(gateway.pass(side, packet).drop); };
    const auto up = [](const char* source, const char* destination, std::uint16_t port = 1232) {
        return udp_packet(source, destination, port, 80);
    };
    EXPECT_EQ(drop(Side::left, up(customer, embedded_64)), "none");
    EXPECT_EQ(drop(Side::left, up("2001:db8:12:3400:0:c000:212:35", embedded_64)), "not_map_address") << "PSID";
    EXPECT_EQ(drop(Side::left, up("2001:db8:12:3400:0:c000:213:34", embedded_64)), "not_map_address") << "IPv4 address";
    EXPECT_EQ(drop(Side::left, up("2001:db8:12:3400:1:c000:212:34", embedded_64)), "not_map_address") << "bits 64 to 79";
    EXPECT_EQ(drop(Side::left, up("2001:db8:12:3401:0:c000:212:34", embedded_64)), "not_map_address") << "another subnet";
    EXPECT_EQ(drop(Side::left, up("2001:db8:12:3500:0:c000:212:34", embedded_64)), "not_map_address") << "EA bits";
    EXPECT_EQ(drop(Side::left, up("2001:db8:200::1", embedded_64)), "no_rule");
    EXPECT_EQ(drop(Side::left, up(customer, embedded_server)), "no_mapping") << "the prefix of another domain";
    EXPECT_EQ(drop(Side::left, up(customer, "2001:db8:6::1")), "not_for_us");
    EXPECT_EQ(drop(Side::left, udp_packet(shared, server, 1232, 80)), "no_mapping") << "IPv4 inside";
    EXPECT_EQ(drop(Side::right, up("2001:db8:42::2", embedded_64)), "no_mapping") << "from outside to the outside";
    EXPECT_EQ(drop(Side::right, udp_packet(server, shared, 80, 1232)), "none");
    EXPECT_EQ(drop(Side::right, udp_packet(server, shared, 80, 1023)), "outside_port_set");
    EXPECT_EQ(drop(Side::right, udp_packet(server, "192.0.3.18", 80, 1232)), "no_rule");
    EXPECT_EQ(drop(Side::right, udp_packet(server, "192.0.2.1", 80, 1232)), "not_for_us");
    EXPECT_EQ(drop(Side::right, udp_packet(server, "198.51.100.20", 80, 7)), "none");
    EXPECT_EQ(drop(Side::right, udp_packet(server, "198.51.100.21", 80, 7)), "no_mapping") << "a host of a customer's IPv4 prefix";
    const auto changed = [](SlowPacket packet, auto&& change) {
        change(packet);
        return packet;
    };
    const SlowPacket good = up(customer, embedded_64), reply = udp_packet(server, shared, 80, 1232);
    EXPECT_EQ(drop(Side::left, changed(good, [](SlowPacket& p) { p.hop_limit = 1; })), "hop_limit");
    EXPECT_EQ(drop(Side::left, changed(good, [](SlowPacket& p) { p.fragment_header = true; })), "unsupported");
    EXPECT_EQ(drop(Side::left, changed(good, [](SlowPacket& p) { p.udp_checksum_absent = true; })), "unsupported");
    EXPECT_EQ(drop(Side::right, changed(reply, [](SlowPacket& p) { p.more_fragments = true; })), "unsupported");
    EXPECT_EQ(drop(Side::right, changed(reply, [](SlowPacket& p) { p.payload.resize(1300); })), "unsupported");
    EXPECT_EQ(drop(Side::right, changed(reply, [](SlowPacket& p) { p.header_checksum_xor = 1; })), "bad_header_checksum");
}

TEST(RefdutBorderRelay, RoutesTheBackgroundBothWays) {
    Gateway gateway{relay_of({map_vectors[0].rule()})};
    const SlowPacket forward = udp_packet("2001:db8:606::41", "2001:db8:4242::2", 7, 7);
    const SlowPacket reverse = udp_packet("2001:db8:4242::2", "2001:db8:606::41", 7, 7);
    const SlowPacket of_customer = udp_packet("2001:db8:12:3401::1", "2001:db8:4242::2", 7, 7);
    for (const auto& [side, packet] :
         {std::pair{Side::left, forward}, std::pair{Side::right, reverse}, std::pair{Side::left, of_customer}}) {
        const Result result = gateway.pass(side, packet);
        EXPECT_EQ(result.notes.treatment, Treatment::routed);
        EXPECT_EQ(test::to_hex(result.frame), test::to_hex(test::write_packet(test::routed(packet, 1))));
    }
}

TEST(RefdutBorderRelay, HairpinsFromOneCustomerToAnother) {
    Gateway gateway{
        relay_of({rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6, dmr_64), rule_of("2001:db8:a0::/44", "198.18.0.0/16", 20, 4)})};
    // To the customer with 198.18.1.2 and PSID 15, of the other domain.
    SlowPacket packet = udp_packet(customer, "2001:db8:ffff:0:c6:1201:200:0", 1232, 7936, 21);
    packet.flow_label = 7;
    packet.traffic_class = 9;
    const Result result = gateway.pass(Side::left, packet);
    ASSERT_EQ(name_of(result.drop), "none");
    EXPECT_TRUE(result.notes.hairpinned && !result.notes.crossed && result.notes.treatment == Treatment::stateless);
    SlowPacket expected = test::routed(packet, 1);
    expected.flow_label = 0;
    expected.source = test::address_of("64:ff9b::192.0.2.18");
    expected.destination = test::address_of("2001:db8:a0:102f:0:c612:102:f");
    EXPECT_EQ(test::to_hex(result.frame), test::to_hex(test::write_packet(expected)));
    packet.destination_port = 4095;
    EXPECT_EQ(name_of(gateway.pass(Side::left, packet).drop), "outside_port_set") << "a port of nobody";
    packet.destination_port = 7936;
    packet.source_port = 1236;
    EXPECT_EQ(name_of(gateway.pass(Side::left, packet).drop), "outside_port_set");
}

TEST(RefdutBorderRelay, KeepsNothingOfAMillionCustomers) {
    const MapVector& vector = map_vectors[11];  // 2^20 customers
    Gateway gateway{relay_of({vector.rule()})};
    const MapRule rule{vector.rule()};
    for (std::uint32_t i = 0; i < 1U << 20; i += 997) {
        AddressBytes ipv4 = bytes_of("198.18.0.0");
        ipv4[2] = static_cast<std::byte>(i >> 12);
        ipv4[3] = static_cast<std::byte>(i >> 4);
        // 15 ranges of 256 ports: A in the four highest bits, then the PSID.
        const auto port = static_cast<std::uint16_t>(0x1000 + (i % 16 << 8) + i % 256);
        const std::string address = net::to_text(net::Address{.family = net::Family::ipv4, .bytes = ipv4});
        const Result down = gateway.pass(Side::right, udp_packet(server, address, 80, port));
        ASSERT_EQ(name_of(down.drop), "none");
        const net::Address to = test::read_packet(down.frame).destination;
        // 44 bits of prefix, 16 of the address, 4 of the PSID.
        EXPECT_EQ(load_big_endian<std::uint64_t>(to.bytes.data()), 0x2001'0db8'00a0'0000 + i);
        const Result up = gateway.pass(Side::left, udp_packet(net::to_text(to), embedded_server, port, 80));
        ASSERT_EQ(name_of(up.drop), "none");
        EXPECT_EQ(net::to_text(test::read_packet(up.frame).source), address);
    }
    EXPECT_EQ(gateway.translator->table(), nullptr);
}

TEST(RefdutCustomerEdge, TranslatesOutwardsAndBack) {
    const MapRuleSpec rule = rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6, dmr_64);
    for (const Side inside : {Side::left, Side::right}) {
        TranslationConfig config = edge_config({rule}, "2001:db8:12:3400::/56");
        config.inside = inside;
        config.assigned_addresses = {test::address_of(customer)};  // its own, but what comes there is the customer's
        Gateway gateway{config};
        const SlowPacket sent = udp_packet("10.0.0.2", server, 5000, 80, 40);
        const Result out = gateway.pass(inside, sent);
        ASSERT_EQ(name_of(out.drop), "none");
        EXPECT_TRUE(out.notes.treatment == Treatment::outward && out.notes.new_connection && out.notes.crossed);
        const std::uint16_t port = test::read_packet(out.frame).source_port;
        EXPECT_EQ(port, 5328) << "the first of its ports from 5000 on: 5 x 1024 + 4 x 0x34";
        SlowPacket mapped = sent;
        mapped.source_port = port;
        EXPECT_EQ(test::to_hex(out.frame), crossed(mapped, customer, embedded_64));

        const SlowPacket reply = udp_packet(embedded_64, customer, 80, port, 40);
        const Result back = gateway.pass(other(inside), reply);
        ASSERT_EQ(name_of(back.drop), "none");
        EXPECT_EQ(back.notes.treatment, Treatment::inward);
        SlowPacket expected = reply;
        expected.destination_port = 5000;
        EXPECT_EQ(test::to_hex(back.frame), crossed(expected, server, "10.0.0.2"));
        EXPECT_EQ(gateway.table->size(), 1U);
    }
}

TEST(RefdutCustomerEdge, UsesEveryPortOfItsSetAndNoOther) {
    for (const MapVector& vector : map_vectors) {
        net::Prefix prefix{.address = test::address_of(vector.address), .length = vector.rule().end_user_bits()};
        for (unsigned bit = prefix.length; bit < 128; ++bit) {
            net::set_bit(prefix.address, bit, false);
        }
        TranslationConfig config;
        config.mode = Mode::map_t_ce;
        config.domains = {vector.rule()};
        config.end_user_prefix = prefix;
        Gateway gateway{config};
        std::vector<bool> used(65536);
        const std::uint32_t count = vector.ports == 65536 ? 64512 : vector.ports - (vector.first_low == 0 ? 1 : 0);
        for (std::uint32_t i = 0; i < count; ++i) {
            const auto port = static_cast<std::uint16_t>(i);
            const Result out = gateway.pass(Side::left, udp_packet(i < 32768 ? "10.0.0.2" : "10.0.0.3", server, port, 80));
            ASSERT_EQ(name_of(out.drop), "none") << vector.address << ' ' << i;
            const SlowPacket packet = test::read_packet(out.frame);
            ASSERT_FALSE(used[packet.source_port]) << packet.source_port;
            used[packet.source_port] = true;
            ASSERT_EQ(packet.source, test::address_of(vector.address));
            ASSERT_TRUE(MapRule{vector.rule()}.has_port({.ipv4 = bytes_of(vector.customer), .psid = vector.psid}, packet.source_port));
        }
        EXPECT_FALSE(used[0]);
        // One more endpoint finds no port; one that has a port may have more connections.
        EXPECT_EQ(name_of(gateway.pass(Side::left, udp_packet("10.0.0.4", server, 1, 80)).drop), "pool_exhausted") << vector.address;
        EXPECT_EQ(name_of(gateway.pass(Side::left, udp_packet("10.0.0.2", server, 0, 81)).drop), "none");
    }
}

TEST(RefdutCustomerEdge, DropsWithTheReason) {
    MapRuleSpec own = rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6, dmr_64);
    MapRuleSpec others = rule_of("2001:db8:a0::/44", "198.18.0.0/16", 20, 4, dmr_64);
    others.forwarding = true;
    Gateway gateway{edge_config({own, others}, "2001:db8:12:3400::/56"), {.capacity = 2, .overflow = Overflow::refuse}};
    const auto drop = [&](Side side, const SlowPacket& packet) { return name_of(gateway.pass(side, packet).drop); };
    ASSERT_EQ(drop(Side::left, udp_packet("10.0.0.2", server, 5328, 80)), "none");
    EXPECT_EQ(drop(Side::right, udp_packet(embedded_64, customer, 80, 5328)), "none");
    EXPECT_EQ(drop(Side::right, udp_packet(embedded_64, customer, 81, 5328)), "no_state");
    EXPECT_EQ(drop(Side::right, udp_packet(embedded_64, customer, 80, 5332)), "outside_port_set");
    EXPECT_EQ(drop(Side::right, udp_packet(embedded_64, "2001:db8:12:3400:0:c000:212:35", 80, 5328)), "not_map_address");
    EXPECT_EQ(drop(Side::right, udp_packet("2001:db8:42::2", customer, 80, 5328)), "no_rule") << "neither the DMR nor another customer";
    EXPECT_EQ(drop(Side::right, udp_packet(server, "10.0.0.2", 80, 5000)), "no_mapping") << "IPv4 outside";
    // To and from a customer of the other rule, 198.18.1.2 with PSID 15.
    const char* const other_customer = "2001:db8:a0:102f:0:c612:102:f";
    const Result out = gateway.pass(Side::left, udp_packet("10.0.0.2", "198.18.1.2", 5328, 7936));
    ASSERT_EQ(name_of(out.drop), "none");
    EXPECT_EQ(test::read_packet(out.frame).destination, test::address_of(other_customer));
    EXPECT_EQ(drop(Side::right, udp_packet(other_customer, customer, 7936, 5328)), "none");
    EXPECT_EQ(drop(Side::left, udp_packet("10.0.0.2", "198.18.1.2", 5328, 80)), "outside_port_set") << "a port of nobody";
    EXPECT_EQ(drop(Side::right, udp_packet("2001:db8:a0:102f::1", customer, 7936, 5328)), "not_map_address");
    const Result wrong_port = gateway.pass(Side::right, udp_packet(other_customer, customer, 8192, 5328));
    EXPECT_TRUE(wrong_port.drop == Drop::outside_port_set && wrong_port.notes.error_wanted);
    // A third connection.
    const Result refused = gateway.pass(Side::left, udp_packet("10.0.0.2", server, 5328, 81));
    EXPECT_TRUE(refused.drop == Drop::table_full && refused.notes.error_wanted);
    // Native IPv6.
    EXPECT_EQ(drop(Side::left, udp_packet("2001:db8:12:3401::1", "2001:db8:42::2", 7, 7)), "none");
    EXPECT_EQ(drop(Side::right, udp_packet("2001:db8:42::2", "2001:db8:12:3401::1", 7, 7)), "none");
    EXPECT_EQ(drop(Side::right, udp_packet(embedded_64, "2001:db8:12:3401::1", 7, 7)), "none") << "not to the MAP address";
    EXPECT_EQ(drop(Side::left,
                   [] {
                       SlowPacket packet = udp_packet("10.0.0.2", server, 5328, 80);
                       packet.more_fragments = true;
                       return packet;
                   }()),
              "unsupported");
}

TEST(RefdutCustomerEdge, WithEndpointDependentMappingEachDestinationGetsEveryPort) {
    TranslationConfig config = edge_config({map_vectors[0].rule()}, "2001:db8:12:3400::/56");
    config.pool.mapping = MappingKind::endpoint_dependent;
    Gateway gateway{config};
    for (const char* const destination : {"203.0.113.56", "203.0.113.57"}) {
        for (std::uint16_t i = 0; i < 252; ++i) {
            ASSERT_EQ(name_of(gateway.pass(Side::left, udp_packet("10.0.0.2", destination, i, 80)).drop), "none") << i;
        }
        EXPECT_EQ(name_of(gateway.pass(Side::left, udp_packet("10.0.0.2", destination, 252, 80)).drop), "pool_exhausted");
    }
    EXPECT_EQ(gateway.table->size(), 504U);
}

TEST(RefdutCustomerEdge, AFullTableFollowsItsOverflowBehaviour) {
    for (const Overflow overflow : {Overflow::drop, Overflow::evict_oldest, Overflow::forward_untranslated}) {
        Gateway gateway{edge_config({map_vectors[0].rule()}, "2001:db8:12:3400::/56"), {.capacity = 1, .overflow = overflow}};
        EXPECT_EQ(name_of(gateway.pass(Side::left, udp_packet("10.0.0.2", server, 5000, 80)).drop), "none");
        const SlowPacket second = udp_packet("10.0.0.2", server, 5001, 80);
        const Result result = gateway.pass(Side::left, second);
        EXPECT_EQ(gateway.table->size(), 1U);
        EXPECT_EQ(name_of(result.drop), overflow == Overflow::drop ? "table_full" : "none");
        if (overflow == Overflow::forward_untranslated) {
            EXPECT_EQ(test::to_hex(result.frame), test::to_hex(test::write_packet(test::routed(second, 1))));
        }
    }
}

TEST(RefdutMapCheck, NamesWhatTheModeLacksOrDoesNotHave) {
    using Places = std::vector<std::string>;
    TranslationConfig config = relay_of({});
    EXPECT_EQ(places_of(config), (Places{"translation.domains"}));
    config.mode = Mode::map_t_ce;
    EXPECT_EQ(places_of(config), (Places{"translation.domains", "translation.end_user_prefix"}));
    config = edge_config({map_vectors[0].rule()}, "2001:db8:12:3400::/56");
    EXPECT_EQ(places_of(config), Places{});
    config.pool = pool_of({"198.19.0.1/32"});
    config.pref64 = prefix_of("64:ff9b::/96");
    EXPECT_EQ(places_of(config), (Places{"translation.prefix", "translation.pool"}));
    config = relay_of({map_vectors[0].rule()});
    config.end_user_prefix = prefix_of("2001:db8:12:3400::/56");
    config.domains[0].forwarding = true;
    EXPECT_EQ(places_of(config), (Places{"translation.end_user_prefix", "translation.domains[0].fmr"}));
    config.mode = Mode::router;
    EXPECT_EQ(places_of(config), (Places{"translation.domains", "translation.end_user_prefix", "translation.domains[0].fmr"}));
}

}  // namespace
}  // namespace gatemark::refdut::map_t
