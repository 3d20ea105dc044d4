#include "frame/echo.hpp"

#include "frame/echo_verification.hpp"
#include "frame/echoes.hpp"
#include "golden/slow_border_relay.hpp"
#include "net/headers.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <set>
#include <sstream>

namespace gatemark::frame {
namespace {

using test::edge_domain, test::Bytes, test::Gateway, test::SlowPacket, test::small_shape;

TEST(EchoNumbers, ClientsTakeTurnsAndEachSlotHasADestinationAtATime) {
    constexpr EchoNumbers numbers{small_shape};
    const auto text = [&](std::uint64_t index) {
        const EchoPlace place = numbers.place_of(index);
        return std::to_string(place.client) + " " + std::to_string(place.slot) + " " + std::to_string(place.destination) + " " +
               std::to_string(place.round);
    };
    EXPECT_EQ(text(0), "0 0 0 0");
    EXPECT_EQ(text(1), "1 0 0 0");
    EXPECT_EQ(text(3), "0 1 1 0");
    EXPECT_EQ(text(6), "0 0 0 1");
    EXPECT_EQ(text(18), "0 0 2 0");
    EXPECT_EQ(text(35), "2 1 3 2");
    EXPECT_EQ(text(36), "0 0 0 0") << "again with the first";
}

TEST(EchoNumbers, EveryRequestHasAPlaceOfItsOwnAndAWayBack) {
    for (const EchoShape& shape : {small_shape, EchoShape{.clients = 8, .window = 4, .count = 11, .destinations = 64},
                                   EchoShape{.clients = 1, .window = 1, .count = 1, .destinations = 5}}) {
        const EchoNumbers numbers{shape};
        std::set<std::array<std::uint64_t, 3>> seen;
        for (std::uint64_t i = 0; i < shape.requests(); ++i) {
            const EchoPlace place = numbers.place_of(i);
            EXPECT_LT(place.client, shape.clients);
            EXPECT_LT(place.destination, shape.destinations);
            EXPECT_LT(place.round, shape.count);
            EXPECT_EQ(place.destination % shape.window, place.slot);
            EXPECT_EQ(numbers.index_of(place.client, place.slot, place.number), i);
            seen.insert({place.client, place.destination, place.round});
        }
        EXPECT_EQ(seen.size(), shape.requests());
    }
}

TEST(EchoNumbers, ClientsWithMoreDestinationsThanHostsShareThem) {
    StreamRequest request = test::echo_request(Gateway::siit64);
    request.destination.part.minimum = 2;
    request.destination.part.maximum = 7;
    const Echo echo = test::make_echo(request, small_shape, std::nullopt);
    std::map<std::string, std::set<std::string>> asked;  // the destinations of each client
    for (std::uint64_t i = 0; i < small_shape.requests(); ++i) {
        const Bytes frame = test::sent_request(echo, i);
        asked[test::to_hex(std::span{frame}.subspan(22, 16))].insert(test::to_hex(std::span{frame}.subspan(38, 16)));
    }
    std::set<std::string> hosts;
    for (const auto& [client, destinations] : asked) {
        EXPECT_EQ(destinations.size(), small_shape.destinations) << client;
        hosts.insert(destinations.begin(), destinations.end());
    }
    EXPECT_EQ(asked.size(), small_shape.clients);
    EXPECT_EQ(hosts.size(), 6U) << "12 destinations, 6 hosts";
}

StreamRequest nat64_request() {
    StreamRequest request = test::echo_request(Gateway::siit64);
    request.source = test::varying_host("2001:2::", 14, ValueMode::increasing, 2, 254);
    return request;
}
constexpr const char* pool = "198.19.0.1/32";

/// Request 29 of `small_shape` and its reply, worked out by hand: client 2 asks its destination 3
/// for the second time. Trial 7 of seed 42 has the id fb9c7007.
constexpr const char* echo_data =
    "fb9c7007 a0 000000001d 1122334455667788 12131415161718191a1b1c1d1e1f"
    "202122232425262728292a2b2c2d2e2f3031323334353637";
constexpr std::uint64_t echo_ticks = 0x1122334455667788;

void expect_golden(const Bytes& frame, const std::string& headers) {
    Bytes expected = test::from_hex(headers);
    test::append(expected, test::from_hex(echo_data));
    EXPECT_EQ(test::to_hex(std::span{frame}.subspan(14)), test::to_hex(expected));
}

TEST(GoldenEcho, ThroughANat64) {
    const Echo echo = test::make_echo(nat64_request(), small_shape, pool);
    const EchoAnswer answer{.index = 29, .sent = {echo_ticks}, .source = {.address = 0, .identifier = 0x8001}};
    expect_golden(test::sent_request(echo, 29, echo_ticks),
                  "6005a5a500403a0a 20010002000000000000000000000004 0064ff9b0000000000000000c613000d 8000cd80 0003 0001");
    expect_golden(test::expected_request(echo, answer), "4500005400000000 0701 2775 c6130001 c613000d 0800ac24 8001 0001");
    expect_golden(test::sent_reply(echo, answer), "4500005400000000 0a01 2475 c613000d c6130001 0000b424 8001 0001");
    expect_golden(test::expected_reply(echo, 29, echo_ticks),
                  "6000000000403a07 0064ff9b0000000000000000c613000d 20010002000000000000000000000004 8100cc80 0003 0001");
}

/// What verification says of a frame that claims to be number 29.
std::string faults_of_echo(const Echo& echo, EchoKind kind, const Bytes& frame) {
    const Arrival arrival = classify_echo(frame, test::trial_id());
    return arrival.kind == ArrivalKind::ours ? test::names_of(verify_echo(frame, arrival, echo, kind, echo.numbers().place_of(29)))
                                             : "not ours";
}

/// Both messages as they arrive through a gateway that the slow translator plays.
SlowPacket request_arrived(const Echo& echo, Gateway gateway, std::optional<std::uint16_t> vlan = {}) {
    return test::forwarded(test::sent_request(echo, 29), gateway, vlan);
}
SlowPacket reply_arrived(const Echo& echo, Gateway gateway, std::optional<std::uint16_t> vlan = {}) {
    const Gateway back = gateway == Gateway::siit64 ? Gateway::siit46 : gateway == Gateway::siit46 ? Gateway::siit64 : gateway;
    return test::forwarded(test::sent_reply(echo, {.index = 29, .sent = {1000}}), back, vlan);
}

TEST(Echo, WhatACorrectGatewayMakesOfRequestAndReplyHasNoFault) {
    for (const Gateway gateway : test::all_gateways) {
        for (const std::size_t bytes : {84U, 102U, 122U, 1279U, 1298U, 1299U, 1518U}) {
            for (const auto& vlans : {test::Vlans{}, test::Vlans{.sent = 100, .received = 200}}) {
                for (const bool dont_fragment : {false, true}) {
                    StreamRequest request = test::echo_request(gateway, bytes);
                    request.marking.traffic_classes = {0xb8};
                    request.dont_fragment = dont_fragment;
                    const Echo echo = test::make_echo(request, small_shape, {}, vlans);
                    EXPECT_EQ(faults_of_echo(echo, EchoKind::request, test::write_packet(request_arrived(echo, gateway, vlans.received))),
                              "")
                        << bytes;
                    EXPECT_EQ(faults_of_echo(echo, EchoKind::reply, test::write_packet(reply_arrived(echo, gateway, vlans.sent))), "")
                        << bytes;
                }
            }
        }
    }
}

TEST(Echo, ItExpectsWhatTheSlowGatewayMakes) {
    for (const Gateway gateway : test::all_gateways) {
        const Echo echo = test::make_echo(test::echo_request(gateway));
        for (std::uint64_t i = 0; i < small_shape.requests(); ++i) {
            SlowPacket request = test::forwarded(test::sent_request(echo, i), gateway);
            request.identification = 0;
            EXPECT_EQ(test::to_hex(test::expected_request(echo, {.index = i, .sent = {1000}})), test::to_hex(test::write_packet(request)));
        }
    }
}

struct EchoCorruption {
    const char* name;
    std::function<void(SlowPacket&)> apply;
    const char *request, *reply;  ///< faults
};

const std::vector<EchoCorruption>& echo_corruptions() {
    static const std::vector<EchoCorruption> list{
        {"to another host on the link", [](SlowPacket& p) { p.link_destination[5] ^= std::byte{0x40}; }, "destination_mac",
         "destination_mac"},
        {"hop limit not decremented", [](SlowPacket& p) { p.hop_limit = 10; }, "hop_limit", "hop_limit"},
        {"another type", [](SlowPacket& p) { p.echo->type = 200; }, "icmp_type", "icmp_type"},
        {"a code", [](SlowPacket& p) { p.echo->code = 1; }, "icmp_type", "icmp_type"},
        {"identifier of nobody", [](SlowPacket& p) { p.echo->identifier = 77; }, "identifier", "identifier"},
        {"identifier of the other slot", [](SlowPacket& p) { p.echo->identifier = 2; }, "identifier wrong_slot", "identifier wrong_slot"},
        {"another identifier of the slot", [](SlowPacket& p) { p.echo->identifier = 1; }, "identifier", "identifier"},
        {"another sequence number", [](SlowPacket& p) { ++p.echo->sequence; }, "sequence", "sequence"},
        {"checksum", [](SlowPacket& p) { p.echo->checksum_xor = 0x0100; }, "icmp_checksum", "icmp_checksum"},
        {"data", [](SlowPacket& p) { p.payload[20] ^= std::byte{1}; }, "payload", "payload"},
        {"shorter", [](SlowPacket& p) { p.payload.pop_back(); }, "length", "length"},
        {"longer", [](SlowPacket& p) { p.payload.push_back(std::byte{1}); }, "length", "length"},
        {"traffic class", [](SlowPacket& p) { p.traffic_class = 4; }, "traffic_class", "traffic_class"},
        {"with a tag", [](SlowPacket& p) { p.vlan = 5; }, "vlan", "vlan"},
        {"the source is the next host", [](SlowPacket& p) { ++reinterpret_cast<unsigned char&>(p.source.bytes[p.is_ipv4() ? 3 : 15]); },
         "source_address", "source_address"},
        {"to a host that nobody is", [](SlowPacket& p) { p.destination.bytes[p.is_ipv4() ? 0 : 1] ^= std::byte{0x10}; },
         "destination_address", "destination_address"},
        {"to the client before", [](SlowPacket& p) { --reinterpret_cast<unsigned char&>(p.destination.bytes[p.is_ipv4() ? 3 : 15]); },
         "destination_address", "destination_address wrong_client"},
    };
    return list;
}

TEST(Echo, EachCorruptionHasItsReasonInBothDirections) {
    for (const Gateway gateway : test::all_gateways) {
        const Echo echo = test::make_echo(test::echo_request(gateway));
        for (const EchoCorruption& corruption : echo_corruptions()) {
            SlowPacket request = request_arrived(echo, gateway), reply = reply_arrived(echo, gateway);
            corruption.apply(request);
            corruption.apply(reply);
            // What is not there any more shortens the data that is compared as well.
            const std::string shortened = std::string{corruption.name} == "shorter" ? "length" : corruption.request;
            EXPECT_EQ(faults_of_echo(echo, EchoKind::request, test::write_packet(request)), shortened) << corruption.name;
            EXPECT_EQ(faults_of_echo(echo, EchoKind::reply, test::write_packet(reply)), corruption.reply) << corruption.name;
        }
    }
}

TEST(Echo, ExtensionHeadersThatAGatewayAddsAreAFault) {
    const Echo echo = test::make_echo(test::echo_request(Gateway::router66));
    for (const auto& [kind, frame] : {std::pair{EchoKind::request, test::expected_request(echo, {.index = 29, .sent = {1000}})},
                                      std::pair{EchoKind::reply, test::expected_reply(echo, 29)}}) {
        Bytes longer = frame;
        const Bytes options = test::from_hex("3a00010400000000");
        longer.insert(longer.begin() + 54, options.begin(), options.end());
        longer[20] = std::byte{60};
        store_big_endian(longer.data() + 18,
                         static_cast<std::uint16_t>(load_big_endian<std::uint16_t>(longer.data() + 18) + options.size()));
        EXPECT_EQ(faults_of_echo(echo, kind, frame), "");
        EXPECT_EQ(faults_of_echo(echo, kind, longer), "extension_headers");
    }
}

TEST(Echo, ARequestOfAStatefulGatewayHasAnySourceOfThePool) {
    const Echo echo = test::make_echo(nat64_request(), small_shape, "198.19.255.0/24");
    Bytes frame = test::expected_request(echo, {.index = 29, .sent = {1000}, .source = {.address = 7, .identifier = 500}});
    const Arrival arrival = classify_echo(frame, test::trial_id());
    EXPECT_EQ(faults_of_echo(echo, EchoKind::request, frame), "");
    const auto source = public_source(frame, arrival, echo);
    ASSERT_TRUE(source);
    EXPECT_EQ(source->address, 7U);
    EXPECT_EQ(source->identifier, 500);
    SlowPacket outside = test::read_packet(frame);
    outside.source = test::address_of("198.19.254.7");
    frame = test::write_packet(outside);
    EXPECT_EQ(faults_of_echo(echo, EchoKind::request, frame), "source_address");
    EXPECT_FALSE(public_source(frame, classify_echo(frame, test::trial_id()), echo));
}

TEST(Echo, ARequestThatANat44LeftAloneIsUntranslated) {
    const Echo echo = test::make_echo(test::echo_request(Gateway::router44), small_shape, pool);
    EXPECT_EQ(faults_of_echo(echo, EchoKind::request, test::write_packet(request_arrived(echo, Gateway::router44))), "untranslated_source");
}

TEST(Echo, HostsWithLinkLayerAddressesOfTheirOwn) {
    const Echo echo = test::make_echo(test::echo_request(Gateway::router66), small_shape, {}, {}, 3);
    const Bytes sent = test::sent_request(echo, 29);
    Bytes request = test::expected_request(echo, {.index = 29, .sent = {1000}});
    const Bytes reply = test::expected_reply(echo, 29), answered = test::sent_reply(echo, {.index = 29});
    EXPECT_EQ(faults_of_echo(echo, EchoKind::request, request), "");
    EXPECT_EQ(faults_of_echo(echo, EchoKind::reply, reply), "");
    EXPECT_EQ(test::to_hex(std::span{sent}.subspan(6, 6)), test::to_hex(std::span{reply}.first(6))) << "the client's own";
    EXPECT_EQ(test::to_hex(std::span{answered}.subspan(6, 6)), test::to_hex(std::span{request}.first(6)));
    request[5] ^= std::byte{1};
    EXPECT_EQ(faults_of_echo(echo, EchoKind::request, request), "destination_mac");
    request[5] ^= std::byte{1};
    const Bytes to_port = test::expected_request(test::make_echo(test::echo_request(Gateway::router66), small_shape), {.index = 29});
    std::ranges::copy(std::span{to_port}.first(6), request.begin() + 6);
    EXPECT_EQ(faults_of_echo(echo, EchoKind::request, request), "source_mac") << "from the port itself";
}

TEST(Echo, InALoopBackTheReplyGoesToTheHostItself) {
    StreamRequest request = nat64_request();
    request.as_sent = true;
    request.hop_limit_decrement = 0;
    const Echo echo = test::make_echo(request, small_shape, {}, {}, 3);
    EXPECT_EQ(faults_of_echo(echo, EchoKind::request, test::sent_request(echo, 29)), "");
    EXPECT_EQ(faults_of_echo(echo, EchoKind::reply, test::sent_reply(echo, {.index = 29, .sent = {1000}})), "");
}

TEST(Echo, WhatComesBackIsToldFromAMessageOfTheWrongType) {
    const Echo echo = test::make_echo(test::echo_request(Gateway::router66));
    const Bytes bounced = test::sent_request(echo, 29);
    EXPECT_TRUE(came_back(bounced, classify_echo(bounced, test::trial_id()), echo, EchoKind::reply));
    SlowPacket reply = reply_arrived(echo, Gateway::router66);
    reply.echo->type = 128;
    const Bytes wrong_type = test::write_packet(reply);
    EXPECT_FALSE(came_back(wrong_type, classify_echo(wrong_type, test::trial_id()), echo, EchoKind::reply));
}

TEST(Echo, AMessageBetweenOurHostsIsOursWhateverItsMark) {
    const Echo echo = test::make_echo(nat64_request(), small_shape, pool);
    SlowPacket packet = test::read_packet(test::expected_reply(echo, 29));
    packet.payload.assign(56, std::byte{});
    const Bytes frame = test::write_packet(packet);
    const Arrival arrival = classify_echo(frame, test::trial_id());
    EXPECT_EQ(arrival.kind, ArrivalKind::foreign);
    EXPECT_TRUE(goes_between_echo_hosts(frame, arrival, echo, EchoKind::reply));
    EXPECT_FALSE(goes_between_echo_hosts(frame, arrival, echo, EchoKind::request));
}

TEST(Echo, ADatagramWithTheMarkIsNoEchoMessage) {
    const Echo echo = test::make_echo(test::echo_request(Gateway::router44));
    SlowPacket packet = request_arrived(echo, Gateway::router44);
    packet.echo.reset();
    EXPECT_EQ(faults_of_echo(echo, EchoKind::request, test::write_packet(packet)), "headers");
}

TEST(Echo, APacketOfAnotherProtocolIsNoEchoMessage) {
    constexpr std::byte tcp{6};
    for (const Gateway gateway : {Gateway::router44, Gateway::router66}) {
        const Echo echo = test::make_echo(test::echo_request(gateway));
        Bytes frame = test::write_packet(request_arrived(echo, gateway));
        const std::size_t at = gateway == Gateway::router44 ? net::ipv4::protocol : net::ipv6::next_header;
        frame[net::ethernet::header_bytes + at] = tcp;
        EXPECT_EQ(faults_of_echo(echo, EchoKind::request, frame), "headers");
    }
}

TEST(Echo, AnyBytesAreTaken) {
    std::mt19937 random{1};
    for (const Gateway gateway : test::all_gateways) {
        const Echo echo = test::make_echo(test::echo_request(gateway), small_shape,
                                          gateway == Gateway::siit64 ? std::optional<std::string>{pool} : std::nullopt);
        const Bytes whole = test::expected_reply(echo, 29);
        for (int i = 0; i < 20'000; ++i) {
            Bytes frame = whole;
            frame.resize(random() % (whole.size() + 20));
            for (std::size_t flips = random() % 4; flips != 0 && !frame.empty(); --flips) {
                frame[random() % std::min<std::size_t>(frame.size(), 60)] = static_cast<std::byte>(random());
            }
            frame.shrink_to_fit();
            const Arrival arrival = classify_echo(frame, test::trial_id());
            for (const EchoKind kind : {EchoKind::request, EchoKind::reply}) {
                if (arrival.kind == ArrivalKind::ours) {
                    (void)verify_echo(frame, arrival, echo, kind, echo.numbers().place_of(random()));
                    (void)public_source(frame, arrival, echo);
                    (void)came_back(frame, arrival, echo, kind);
                } else {
                    (void)goes_between_echo_hosts(frame, arrival, echo, kind);
                }
            }
        }
    }
}

/// Rules of every form, one of which has 15 ports for each customer edge.
EdgesRequest map_edges(std::uint64_t count) {
    EdgesRequest request{
        .domains = {edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6), edge_domain("2001:db8:8000::/50", "198.51.100.0/24", 8, 0),
                    edge_domain("2001:db8:ce::/51", "198.18.0.0/24", 20, 0), edge_domain("2001:db8:1300::/50", "203.0.113.78/32", 12, 4)},
        .count = count};
    const std::array<const char*, 4> domain_prefixes{"2001:dba::/32", "2001:dbb:ff00::/40", "2001:dbb:3::/64", "64:ff9b::/96"};
    for (std::size_t i = 0; i < domain_prefixes.size(); ++i) {
        request.domains[i].rule.dmr = net::parse_prefix(domain_prefixes[i]).value();
    }
    return request;
}
test::SlowBorderRelay relay_of(const EdgesRequest& edges) {
    std::vector<test::SlowRule> rules;
    for (const EdgeDomain& domain : edges.domains) {
        rules.push_back({.ipv6 = domain.rule.ipv6,
                         .ipv4 = domain.rule.ipv4,
                         .ea_bits = domain.rule.ea_bits,
                         .psid_offset = domain.rule.psid_offset,
                         .dmr = domain.rule.dmr.value()});
    }
    return test::SlowBorderRelay{std::move(rules)};
}
constexpr EchoShape map_shape{.clients = 8, .window = 4, .count = 2, .destinations = 40};

/// The relay drops what is not of an edge's set, so that each identifier that passes is one of it.
TEST(EchoOfEdges, ARelayFindsEveryCustomerEdgeByTheIdentifier) {
    for (const std::size_t bytes : {122U, 1298U, 1518U}) {
        const EdgesRequest edges = map_edges(map_shape.clients);
        const Echo echo = test::make_echo(test::echo_request_of(edges, bytes), map_shape);
        const test::SlowBorderRelay relay = relay_of(edges);
        for (std::uint64_t i = 0; i < map_shape.requests(); ++i) {
            const EchoPlace place = echo.numbers().place_of(i);
            auto request = relay.forwarded(test::read_packet(test::sent_request(echo, i)), 1);
            auto reply = relay.forwarded(test::read_packet(test::sent_reply(echo, {.index = i, .sent = {1000}})), 1);
            ASSERT_TRUE(request && reply) << i;
            request->identification = 0;
            const Bytes there = test::write_packet(*request), back = test::write_packet(*reply);
            EXPECT_EQ(test::to_hex(there), test::to_hex(test::expected_request(echo, {.index = i, .sent = {1000}})));
            EXPECT_EQ(test::to_hex(back), test::to_hex(test::expected_reply(echo, i)));
            for (const auto& [kind, frame] : {std::pair{EchoKind::request, &there}, std::pair{EchoKind::reply, &back}}) {
                EXPECT_TRUE(verify_echo(*frame, classify_echo(*frame, test::trial_id()), echo, kind, place).none()) << i;
            }
        }
    }
}

TEST(EchoOfEdges, DestinationsTakeTheIdentifiersOfTheSetInTurn) {
    const Echo echo = test::make_echo(test::echo_request_of(map_edges(map_shape.clients)), map_shape);
    for (std::uint64_t client = 0; client < map_shape.clients; ++client) {
        std::vector<std::uint16_t> identifiers;
        for (std::uint64_t destination = 0; destination < map_shape.destinations; ++destination) {
            const EchoPlace place{.client = client, .slot = 0, .number = 0, .destination = destination, .round = 0};
            identifiers.push_back(echo.identifier_of(place, echo.values_of(place)));
        }
        const Edge edge = echo.values_of({.client = client, .slot = 0, .number = 0, .destination = 0, .round = 0}).edge();
        const net::MapDomain& map = echo.edges()->edges().domain_of(edge).map;
        const std::uint64_t ports = echo.edges()->port_count(edge);
        EXPECT_EQ(ports, map.restricts_ports() ? map.ports() : 65536U);
        EXPECT_EQ(std::set(identifiers.begin(), identifiers.end()).size(), std::min(ports, map_shape.destinations));
        EXPECT_EQ(identifiers.front(), map.restricts_ports() ? map.port(map.psid_of(edge.ea()), 0) : 0);
        if (ports < map_shape.destinations) {
            EXPECT_EQ(identifiers[static_cast<std::size_t>(ports)], identifiers.front()) << "again from the first";
        }
    }
}

/// Client 1 of two edges that share an address: 4 ranges of 1024 ports each.
TEST(EchoOfEdges, EachCorruptionHasItsReason) {
    const EdgesRequest edges{
        .domains = {edge_domain("2001:db8::/40", "192.0.2.0/30", 6, 2)}, .count = 3, .order = enumerate::Order::increasing};
    const Echo echo = test::make_echo(test::echo_request_of(edges));
    const test::SlowBorderRelay relay = relay_of(edges);
    const struct {
        const char* name;
        std::function<void(SlowPacket&)> apply;
        const char *request, *reply;
    } corruptions[]{
        {"none", [](SlowPacket&) {}, "", ""},
        {"identifier of nobody", [](SlowPacket& p) { p.echo->identifier = 77; }, "identifier", "identifier"},
        {"identifier of the edge above", [](SlowPacket& p) { p.echo->identifier = static_cast<std::uint16_t>(p.echo->identifier + 1024); },
         "identifier other_edge_port", "identifier other_edge_port"},
        {"identifier of the other slot", [](SlowPacket& p) { --p.echo->identifier; }, "identifier wrong_slot", "identifier wrong_slot"},
        {"a later identifier of the set", [](SlowPacket& p) { p.echo->identifier = static_cast<std::uint16_t>(p.echo->identifier + 100); },
         "identifier", "identifier"},
        {"last octet of the edge's address",
         [](SlowPacket& p) { (p.is_ipv4() ? p.source : p.destination).bytes[p.is_ipv4() ? 3 : 15] ^= std::byte{1}; },
         "source_address other_edge_address", "destination_address interface_identifier"},
        {"nobody's address", [](SlowPacket& p) { (p.is_ipv4() ? p.source : p.destination).bytes[0] = std::byte{1}; },
         "source_address outside_rule", "destination_address outside_rule"},
        {"the address of the client before",
         [&](SlowPacket& p) {
             if (!p.is_ipv4()) {
                 p.destination = net::ipv6_of(echo.edges()->edges().address_of(echo.edges()->edges().edge_of(1)));
             }
         },
         "", "destination_address wrong_client other_edge_address"},
    };
    for (const auto& corruption : corruptions) {
        auto request = relay.forwarded(test::read_packet(test::sent_request(echo, 29)), 1);
        auto reply = relay.forwarded(test::read_packet(test::sent_reply(echo, {.index = 29, .sent = {1000}})), 1);
        ASSERT_TRUE(request && reply);
        corruption.apply(*request);
        corruption.apply(*reply);
        const auto is_same = [&](const char* text, const std::string& found) {
            std::set<std::string> expected, names;
            std::istringstream of_text{text}, of_found{found};
            for (std::string word; of_text >> word;) {
                expected.insert(word);
            }
            for (std::string word; of_found >> word;) {
                names.insert(word);
            }
            EXPECT_EQ(names, expected) << corruption.name;
        };
        is_same(corruption.request, faults_of_echo(echo, EchoKind::request, test::write_packet(*request)));
        is_same(corruption.reply, faults_of_echo(echo, EchoKind::reply, test::write_packet(*reply)));
    }
}

TEST(EchoOfEdges, InLoopBackNothingChanges) {
    StreamRequest request = test::echo_request_of(map_edges(map_shape.clients));
    request.as_sent = true;
    request.hop_limit_decrement = 0;
    const Echo echo = test::make_echo(request, map_shape);
    for (std::uint64_t i = 0; i < map_shape.requests(); ++i) {
        EXPECT_EQ(test::to_hex(test::sent_request(echo, i)), test::to_hex(test::expected_request(echo, {.index = i, .sent = {1000}})));
        EXPECT_EQ(test::to_hex(test::sent_reply(echo, {.index = i, .sent = {1000}})), test::to_hex(test::expected_reply(echo, i)));
    }
}

/// 2001:db8:12:3400:0:c000:212:34, PSID 0x34: 63 ranges of 4 ports, the first of them 1232-1235.
TEST(Echo, ACustomerEdgeHasItsMapAddressAndTheIdentifiersOfItsSet) {
    const auto edge = GatewayEdge::make(edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6).rule, 0x1234, "edge");
    const Echo echo = test::make_echo(test::echo_request(Gateway::siit46), small_shape, "2001:db8:12:3400:0:c000:212:34/128", {}, {},
                                      std::get<GatewayEdge>(edge));
    const auto faults = [&](std::uint16_t identifier, const char* source = nullptr) {
        SlowPacket packet = test::read_packet(
            test::expected_request(echo, {.index = 29, .sent = {1000}, .source = {.address = 0, .identifier = identifier}}));
        packet.source = source == nullptr ? packet.source : test::address_of(source);
        return faults_of_echo(echo, EchoKind::request, test::write_packet(packet));
    };
    EXPECT_EQ(faults(1232), "");
    EXPECT_EQ(faults(64723), "");
    EXPECT_EQ(faults(1236), "outside_port_set identifier") << "of the edge above";
    EXPECT_EQ(faults(208), "outside_port_set identifier") << "nobody's";
    EXPECT_EQ(faults(1232, "2001:db8:12:3500:0:c000:212:35"), "source_address other_edge_address");
    EXPECT_EQ(faults(1232, "2001:db8:12:3400:0:c000:212:35"), "source_address interface_identifier");
    EXPECT_EQ(faults(1232, "2001:dba::1"), "source_address outside_rule");
}

}  // namespace
}  // namespace gatemark::frame
