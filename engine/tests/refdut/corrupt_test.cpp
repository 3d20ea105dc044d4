#include "refdut/corrupt.hpp"

#include "frame/streams.hpp"
#include "refdut/map_vectors.hpp"
#include "refdut/packets.hpp"
#include "state/path_end.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>

/// Every corruption against the Tester's own verification: the Tester finds exactly the reasons
/// that were announced.
namespace gatemark::refdut {
namespace {

using frame::Role, frame::signature::Direction, frame::signature::TrafficClass;
using test::Bytes;

constexpr bool is_field(std::string_view name) { return std::ranges::find(field_names, name) != field_names.end(); }
static_assert(std::ranges::all_of(frame::fault_names, is_field));

/// Those that only echo messages have follow: echo_translation_test.
constexpr auto udp_field_count = static_cast<std::size_t>(Field::icmp_type);

/// What the Tester says of the address or port of a customer edge beside that it is wrong; but not
/// of the streams here, which know no rules.
constexpr Fields edge_reasons{Field::other_edge_port, Field::other_edge_address, Field::interface_identifier, Field::outside_rule,
                              Field::outside_port_set};

/// A receiver of the Tester for one stream.
class Receiving {
public:
    Receiving(const frame::Stream& stream, Direction direction, bool arrives_here, const state::ConnectionKeeper* keeper)
        : direction_{direction} {
        const loop::ReceiverPlan plan = state::receiver_plan_of(stream, direction, frame_count, arrivals_, keeper, arrives_here);
        receiver_ = std::make_unique<loop::Receiver<io::MemoryReceiveQueue>>(plan, queue_, mailbox_);
    }
    void receive(std::span<const std::byte> frame) {
        wire_.frames.push_back(Bytes(frame.begin(), frame.end()));
        while (receiver_->poll()) {}
    }
    [[nodiscard]] Fields reported() const {
        Fields reported;
        receiver_->counts(direction_, TrafficClass::foreground).faults.visit([&](frame::Fault fault, std::uint64_t count) {
            if (count != 0) {
                reported.add(field_of(gatemark::name_of(fault)).value());
            }
        });
        if (receiver_->counts(direction_, TrafficClass::foreground).remarks[frame::Remark::with_trailer] != 0) {
            reported.add(Field::trailer);
        }
        return reported;
    }
    [[nodiscard]] std::uint64_t received() const {
        return receiver_->counts(direction_, TrafficClass::foreground)[record::Count::received];
    }

    static constexpr std::uint64_t frame_count = 1000;

private:
    Direction direction_;
    record::ArrivalBitmap arrivals_;
    io::MemoryWire wire_;
    io::MemoryReceiveQueue queue_{wire_};
    loop::NeighborMailbox mailbox_;
    std::unique_ptr<loop::Receiver<io::MemoryReceiveQueue>> receiver_;
};

/// Frame `number`, sent after the trial began and before it arrives.
Bytes sent_frame(const frame::Stream& stream, std::uint64_t number) {
    constexpr std::uint64_t ticks = 1;
    return test::frame_in(stream.sent(), stream, number, number, ticks);
}

std::string names_of(Fields fields) {
    std::string names;
    for (std::size_t i = 0; i < udp_field_count; ++i) {
        names += fields.has(static_cast<Field>(i)) ? std::string{field_names[i]} + " " : "";
    }
    return names;
}

bool is_of_ipv6(Field field) { return field == Field::flow_label || field == Field::extension_headers; }

/// Of a damage that is for every gateway, and has one reason; those of MAP are not.
Fields reason_of(Field field) {
    if (edge_reasons.has(field) || field == Field::embedding_suffix) {
        return {};
    }
    return {field == Field::no_udp_checksum ? Field::udp_checksum : field};
}

Fields without_edge_reasons(const Fields& fields) {
    Fields rest;
    for (std::size_t i = 0; i < udp_field_count; ++i) {
        const auto field = static_cast<Field>(i);
        if (fields.has(field) && !edge_reasons.has(field)) {
            rest.add(field);
        }
    }
    return rest;
}

struct Case {
    Translator& translator;
    NatTable* table;
    Side from;
    const frame::Stream& stream;
    Direction direction;
    const state::ConnectionKeeper* keeper;
    std::optional<std::uint16_t> received_vlan;
};

/// Sends `frame` through the gateway, corrupted, and compares what the Tester finds with what was
/// announced. Returns the announced reasons.
Fields pass(const Case& gateway, Field field, const Bytes& sent) {
    Buffer buffer{sent};
    Notes notes;
    EXPECT_EQ(gateway.translator.translate(gateway.from, buffer.packet, 1, notes), Drop::none);
    EXPECT_TRUE(set_vlan(buffer.packet, gateway.received_vlan));
    const Bytes before(buffer.frame().begin(), buffer.frame().end());
    const Fields announced = corrupt(field, buffer.packet, notes, gateway.table);
    EXPECT_TRUE(buffer.is_sound());
    Receiving receiving{gateway.stream, gateway.direction, field != Field::wrong_port, gateway.keeper};
    receiving.receive(buffer.frame());
    EXPECT_EQ(names_of(receiving.reported()), names_of(without_edge_reasons(announced))) << field_names[static_cast<std::size_t>(field)];
    EXPECT_EQ(receiving.received(), announced.none() || field == Field::trailer ? 1U : 0U);
    if (announced.none() || field == Field::wrong_port) {
        EXPECT_EQ(test::to_hex(buffer.frame()), test::to_hex(before));
    }
    return announced;
}

class RefdutCorrupt : public testing::TestWithParam<std::tuple<test::Gateway, std::size_t, bool>> {};

TEST_P(RefdutCorrupt, EachFieldOfAStatelessGatewayIsFoundUnderItsName) {
    const auto [gateway, larger_by, with_vlan] = GetParam();
    const bool crosses = gateway == test::Gateway::siit64 || gateway == test::Gateway::siit46;
    const bool to_ipv4 = gateway == test::Gateway::router44 || gateway == test::Gateway::siit64;
    TranslationConfig config;
    config.mode = crosses ? Mode::siit : Mode::router;
    config.hop_limit_decrement = crosses ? 3 : 1;
    if (crosses) {
        config.pref64 = prefix_of("64:ff9b::/96");
    }
    Translator translator{config, nullptr};
    const test::Vlans vlans{.sent = with_vlan ? std::optional<std::uint16_t>{5} : std::nullopt,
                            .received = with_vlan ? std::optional<std::uint16_t>{7} : std::nullopt};
    const frame::Stream stream = test::make_stream(test::request_for(gateway, test::smallest_frame(gateway) + larger_by), vlans);
    for (std::size_t i = 0; i < udp_field_count; ++i) {
        const auto field = static_cast<Field>(i);
        const bool of_ipv4 = field == Field::ipv4_header || field == Field::ipv4_header_checksum || field == Field::dont_fragment;
        const bool stateful = field >= Field::untranslated_source && field <= Field::unknown_connection;
        const bool exists = !stateful && !(of_ipv4 && !to_ipv4) && !(is_of_ipv6(field) && to_ipv4) &&
                            !(field == Field::identification && gateway != test::Gateway::router44) &&
                            !(field == Field::payload && larger_by == 0);
        for (std::uint64_t number = 0; number < 10; ++number) {
            const Fields announced = pass({translator, nullptr, Side::left, stream, Direction::forward, nullptr, vlans.received}, field,
                                          sent_frame(stream, number));
            ASSERT_EQ(announced, exists ? reason_of(field) : Fields{}) << field_names[i];
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Gateways, RefdutCorrupt,
                         testing::Combine(testing::ValuesIn(test::all_gateways),
                                          testing::Values(std::size_t{0}, std::size_t{1}, std::size_t{1300}), testing::Bool()));

class RefdutCorruptNat : public testing::TestWithParam<Mode> {
protected:
    RefdutCorruptNat() {
        crosses_ = GetParam() == Mode::nat64 || GetParam() == Mode::nat46;
        const bool public_ipv4 = GetParam() == Mode::nat44 || GetParam() == Mode::nat64;
        const std::string pool = public_ipv4 ? "203.0.113.8/31" : "2001:2:0:8000::8/127";
        TranslationConfig config;
        config.mode = GetParam();
        config.pool = pool_of({pool});
        if (crosses_) {
            config.pref64 = prefix_of("64:ff9b::/96");
        }
        table_ = std::make_unique<NatTable>(config.pool, NatLimits{.capacity = 1000});
        translator_ = std::make_unique<Translator>(config, table_.get());
        EXPECT_EQ(state_.reset(connection_count), std::nullopt);
        pool_ = std::get<net::AddressPool>(net::AddressPool::make({prefix_of(pool)}, "pool"));
    }

    [[nodiscard]] frame::Stream stream(Role role) const {
        const bool initiator = role == Role::initiator;
        const bool inside_ipv4 = GetParam() == Mode::nat44 || GetParam() == Mode::nat46;
        const auto inside =
            test::varying_host(inside_ipv4 ? "10.0.0.0" : "2001:2::", inside_ipv4 ? 2 : 14, frame::ValueMode::pseudorandom, 2, 9);
        const auto outside = GetParam() == Mode::nat44 || GetParam() == Mode::nat64
                                 ? test::varying_host("198.19.0.0", 2, frame::ValueMode::pseudorandom, 2, 6)
                             : GetParam() == Mode::nat66 ? test::varying_host("2001:2:0:8000::", 14, frame::ValueMode::pseudorandom, 2, 6)
                                                         : test::varying_host("64:ff9b::c613:0", 14, frame::ValueMode::pseudorandom, 2, 6);
        const frame::ValueRange inner{frame::ValueMode::pseudorandom, 5000, 5004}, outer{frame::ValueMode::pseudorandom, 80, 81};
        frame::StreamRequest request;
        request.frame_octets = 128;
        request.marking.flow_label = GetParam() == Mode::nat66 ? 0x77 : 0;
        request.source = initiator ? inside : outside;
        request.destination = initiator ? outside : inside;
        request.source_ports = initiator ? inner : outer;
        request.destination_ports = initiator ? outer : inner;
        if (crosses_) {
            request.mapping = test::mapping_of(std::string{test::prefix_96} + "/96");
            request.dont_fragment_rule = frame::DontFragmentRule::rfc7915;
        }
        const enumerate::TupleRanges ranges{
            .source_ports = {5000, 5}, .destination_ports = {80, 2}, .source_hosts = {2, 8}, .destination_hosts = {2, 5}};
        request.connections = frame::ConnectionTraffic{.role = role,
                                                       .set = {ranges, enumerate::Order::pseudorandom, connection_count, test::seed},
                                                       .choice = enumerate::ConnectionChoice::Mode::increasing};
        return test::make_stream(request, {}, TrafficClass::foreground, initiator ? Direction::forward : Direction::reverse);
    }
    /// Test phase 1 without a fault.
    void establish(const frame::Stream& upload) {
        const state::ConnectionKeeper keeper{state::Phase::establish, state_, pool_};
        const Case gateway{*translator_, table_.get(), Side::left, upload, Direction::forward, &keeper, std::nullopt};
        for (std::uint64_t k = 0; k < connection_count; ++k) {
            EXPECT_TRUE(pass(gateway, Field::unknown_connection, sent_frame(upload, k)).none());
        }
        EXPECT_EQ(table_->size(), connection_count);
    }

    static constexpr std::uint64_t connection_count = 200;
    bool crosses_ = false;
    std::unique_ptr<NatTable> table_;
    std::unique_ptr<Translator> translator_;
    state::StateTable state_;
    net::AddressPool pool_;
};

TEST_P(RefdutCorruptNat, EachFieldOfAnInitiatorsFrameIsFoundUnderItsName) {
    const frame::Stream upload = stream(Role::initiator);
    establish(upload);
    const bool to_ipv4 = GetParam() == Mode::nat44 || GetParam() == Mode::nat64;
    const state::ConnectionKeeper keeper{state::Phase::use, state_, pool_};
    const Case gateway{*translator_, table_.get(), Side::left, upload, Direction::forward, &keeper, std::nullopt};
    for (std::size_t i = 0; i < udp_field_count; ++i) {
        const auto field = static_cast<Field>(i);
        const bool of_ipv4 = field == Field::ipv4_header || field == Field::ipv4_header_checksum || field == Field::dont_fragment;
        const bool exists = !(of_ipv4 && !to_ipv4) && !(is_of_ipv6(field) && to_ipv4) && field != Field::identification &&
                            field != Field::wrong_owner && field != Field::unknown_connection;
        Fields expected = exists ? reason_of(field) : Fields{};
        if (field == Field::untranslated_source && crosses_) {
            expected.add(Field::family);
        }
        for (std::uint64_t k = 0; k < connection_count; k += 19) {
            ASSERT_EQ(names_of(pass(gateway, field, sent_frame(upload, k))), names_of(expected)) << field_names[i];
            // The next frame of the connection is correct, even after the mapping was changed.
            ASSERT_TRUE(pass(gateway, Field::unknown_connection, sent_frame(upload, k)).none()) << field_names[i];
        }
    }
    EXPECT_EQ(table_->size(), connection_count);
}

TEST_P(RefdutCorruptNat, EachFieldOfARespondersFrameIsFoundUnderItsName) {
    const frame::Stream upload = stream(Role::initiator), download = stream(Role::responder);
    establish(upload);
    const bool to_ipv4 = GetParam() == Mode::nat44 || GetParam() == Mode::nat46;
    const Case gateway{*translator_, table_.get(), Side::right, download, Direction::reverse, nullptr, std::nullopt};
    for (std::size_t i = 0; i < udp_field_count; ++i) {
        const auto field = static_cast<Field>(i);
        const bool of_ipv4 = field == Field::ipv4_header || field == Field::ipv4_header_checksum || field == Field::dont_fragment;
        const bool exists = !(of_ipv4 && !to_ipv4) && !(is_of_ipv6(field) && to_ipv4) && field != Field::identification &&
                            field != Field::untranslated_source && field != Field::mapping_changed;
        for (std::uint64_t k = 0; k < connection_count; k += 19) {
            const Fields announced = pass(gateway, field, state::reply_of(download, state_, pool_, k, {k}));
            if (field == Field::wrong_owner) {
                ASSERT_TRUE(announced.has(Field::wrong_owner) &&
                            (announced.has(Field::destination_address) || announced.has(Field::destination_port)));
            } else if (field == Field::unknown_connection || field == Field::destination_address) {
                ASSERT_EQ(announced, (Fields{Field::destination_address, Field::unknown_connection}));
            } else if (field == Field::destination_port) {
                ASSERT_EQ(announced, (Fields{Field::destination_port, Field::unknown_connection}));
            } else {
                ASSERT_EQ(announced, exists ? reason_of(field) : Fields{}) << field_names[i];
            }
        }
    }
}

TEST_P(RefdutCorruptNat, TheFrameThatEstablishesAConnectionHasNoMappingToChange) {
    const frame::Stream upload = stream(Role::initiator);
    const state::ConnectionKeeper keeper{state::Phase::establish, state_, pool_};
    const Case gateway{*translator_, table_.get(), Side::left, upload, Direction::forward, &keeper, std::nullopt};
    EXPECT_TRUE(pass(gateway, Field::mapping_changed, sent_frame(upload, 0)).none());
}

INSTANTIATE_TEST_SUITE_P(Modes, RefdutCorruptNat, testing::Values(Mode::nat44, Mode::nat64, Mode::nat66, Mode::nat46));

/// To the Tester's receiver one customer of a border relay is an explicit mapping: it compares
/// everything all the same.
class RefdutCorruptRelay : public testing::Test {
protected:
    static MapRuleSpec rule() { return rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6, dmr); }
    static TranslationConfig config() {
        TranslationConfig config;
        config.mode = Mode::map_t_br;
        config.domains = {rule()};
        return config;
    }
    static frame::Stream stream(bool up) {
        const auto customer_host = test::fixed_host(customer), server_host = test::fixed_host(server);
        const frame::ValueRange customer_ports{frame::ValueMode::fixed, 1234, 1234}, server_ports{frame::ValueMode::fixed, 80, 80};
        frame::StreamRequest request;
        request.frame_octets = 128;
        request.source = up ? customer_host : server_host;
        request.destination = up ? server_host : customer_host;
        request.source_ports = up ? customer_ports : server_ports;
        request.destination_ports = up ? server_ports : customer_ports;
        request.mapping = test::mapping_of(dmr, {{std::string{shared} + "/32", std::string{customer} + "/128"}});
        return test::make_stream(request, {}, TrafficClass::foreground, up ? Direction::forward : Direction::reverse);
    }
    /// What each damage is found as: for those of MAP as this says, for all others as `reason_of`.
    void expect_reasons(bool up, const std::map<Field, Fields>& of_map) {
        const frame::Stream frames = stream(up);
        const Case gateway{translator_, nullptr,     up ? Side::left : Side::right, frames, up ? Direction::forward : Direction::reverse,
                           nullptr,     std::nullopt};
        for (std::size_t i = 0; i < udp_field_count; ++i) {
            const auto field = static_cast<Field>(i);
            const bool of_ipv4 = field == Field::ipv4_header || field == Field::ipv4_header_checksum || field == Field::dont_fragment;
            const bool stateful = field >= Field::untranslated_source && field <= Field::unknown_connection;
            const bool exists = !stateful && field != Field::identification && of_ipv4 <= up && !(is_of_ipv6(field) && up);
            const Fields expected = of_map.contains(field) ? of_map.at(field) : exists ? reason_of(field) : Fields{};
            for (std::uint64_t number = 0; number < 6; ++number) {
                ASSERT_EQ(names_of(pass(gateway, field, sent_frame(frames, number))), names_of(expected)) << field_names[i];
            }
        }
    }
    /// The endpoint of the customer in what leaves, damaged.
    NatEndpoint damaged(Field field, bool up) {
        const frame::Stream frames = stream(up);
        Buffer buffer{sent_frame(frames, 0)};
        Notes notes;
        EXPECT_EQ(translator_.translate(up ? Side::left : Side::right, buffer.packet, 1, notes), Drop::none);
        EXPECT_FALSE(corrupt(field, buffer.packet, notes, nullptr).none());
        const test::SlowPacket packet = test::read_packet(buffer.frame());
        return {.address = up ? packet.source.bytes : packet.destination.bytes, .port = up ? packet.source_port : packet.destination_port};
    }

    static constexpr const char *dmr = "2001:db8:ffff::/64", *customer = "2001:db8:12:3400:0:c000:212:34", *shared = "192.0.2.18",
                                *server = "203.0.113.56";
    Translator translator_{config(), nullptr};
};

TEST_F(RefdutCorruptRelay, EachFieldTowardsIpv4IsFoundUnderItsName) {
    expect_reasons(true, {{Field::other_edge_port, {Field::other_edge_port, Field::source_port}},
                          {Field::other_edge_address, {Field::other_edge_address, Field::source_address}},
                          {Field::outside_rule, {Field::outside_rule, Field::source_address}},
                          {Field::source_address, {Field::outside_rule, Field::source_address}}});
    // The port has another PSID, in the same place; the address is that of another customer.
    EXPECT_EQ(damaged(Field::other_edge_port, true), (NatEndpoint{.address = bytes_of(shared), .port = 1230}));
    EXPECT_EQ(damaged(Field::other_edge_address, true), (NatEndpoint{.address = bytes_of("192.0.2.19"), .port = 1234}));
    EXPECT_EQ(damaged(Field::source_port, true), (NatEndpoint{.address = bytes_of(shared), .port = 1235})) << "the customer's";
}

TEST_F(RefdutCorruptRelay, EachFieldTowardsIpv6IsFoundUnderItsName) {
    expect_reasons(false, {{Field::other_edge_port, {Field::other_edge_port, Field::destination_port}},
                           {Field::other_edge_address, {Field::other_edge_address, Field::destination_address}},
                           {Field::interface_identifier, {Field::interface_identifier, Field::destination_address}},
                           {Field::outside_rule, {Field::outside_rule, Field::destination_address}},
                           {Field::destination_address, {Field::outside_rule, Field::destination_address}},
                           {Field::embedding_suffix, {Field::source_address}}});
    EXPECT_EQ(damaged(Field::other_edge_port, false), (NatEndpoint{.address = bytes_of(customer), .port = 1230}));
    EXPECT_EQ(damaged(Field::other_edge_address, false),
              (NatEndpoint{.address = bytes_of("2001:db8:12:3500:0:c000:212:35"), .port = 1234}));
    EXPECT_EQ(damaged(Field::interface_identifier, false),
              (NatEndpoint{.address = bytes_of("2001:db8:12:3400:0:c000:212:35"), .port = 1234}));
    EXPECT_EQ(damaged(Field::destination_port, false), (NatEndpoint{.address = bytes_of(customer), .port = 1235}));
}

TEST(RefdutCorruptMap, LeavesAloneWhatHasNoSuchField) {
    // One port for each customer, and the address embedded at the end.
    MapRuleSpec spec = rule_of("2001:db8::/48", "203.0.113.77/32", 16, 0);
    TranslationConfig config;
    config.mode = Mode::map_t_br;
    config.domains = {spec};
    Translator relay{config, nullptr};
    const auto damage = [](Translator& gateway, Side from, const test::SlowPacket& packet, Field field) {
        Buffer buffer{test::write_packet(packet)};
        Notes notes;
        EXPECT_EQ(gateway.translate(from, buffer.packet, 0, notes), Drop::none);
        const Bytes before{buffer.frame().begin(), buffer.frame().end()};
        const Fields fields = corrupt(field, buffer.packet, notes, gateway.table());
        EXPECT_EQ(fields.none(), test::to_hex(before) == test::to_hex(buffer.frame()));
        return fields;
    };
    const auto up = udp_packet("2001:db8:0:1234::cb00:714d:1234", "64:ff9b::192.0.2.1", 0x1234, 80, 30);
    const auto down = udp_packet("192.0.2.1", "203.0.113.77", 80, 0x1234, 30);
    EXPECT_TRUE(damage(relay, Side::left, up, Field::source_port).none());
    EXPECT_TRUE(damage(relay, Side::left, up, Field::other_edge_address).none());
    EXPECT_TRUE(damage(relay, Side::left, up, Field::interface_identifier).none());
    EXPECT_TRUE(damage(relay, Side::left, up, Field::embedding_suffix).none());
    EXPECT_TRUE(damage(relay, Side::right, down, Field::destination_port).none());
    EXPECT_TRUE(damage(relay, Side::right, down, Field::embedding_suffix).none());
    EXPECT_FALSE(damage(relay, Side::right, down, Field::other_edge_address).none());
    EXPECT_FALSE(damage(relay, Side::right, down, Field::other_edge_port).none());
    // A customer alone: no other, no port of another.
    spec = rule_of("2001:db8:12:3400::/56", "192.0.2.18/32", 0, 6);
    config.domains = {spec};
    Translator alone{config, nullptr};
    const auto to_him = udp_packet("192.0.2.1", "192.0.2.18", 80, 7, 30);
    EXPECT_TRUE(damage(alone, Side::right, to_him, Field::other_edge_address).none());
    EXPECT_TRUE(damage(alone, Side::right, to_him, Field::other_edge_port).none());
    // An end-user prefix of 128 bits leaves no interface identifier.
    config.domains = {rule_of("2001:db8::/112", "203.0.113.77/32", 16, 0)};
    Translator narrow{config, nullptr};
    EXPECT_TRUE(damage(narrow, Side::right, down, Field::interface_identifier).none());
}

/// What a customer edge sends: its MAP address is the source, and the mapping's port is learned.
TEST(RefdutCorruptMap, OfACustomerEdgeIsFoundWhereItIsSaid) {
    TranslationConfig config;
    config.mode = Mode::map_t_ce;
    config.domains = {rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6, "2001:db8:ffff::/64")};
    config.end_user_prefix = prefix_of("2001:db8:12:3400::/56");
    NatTable table{public_endpoints(config), {.capacity = 10}};
    Translator edge{config, &table};
    auto sent = udp_packet("10.0.0.2", "203.0.113.56", 1232, 80, 30);
    const auto leaves = [&](std::optional<Field> field, Fields& fields) {
        Buffer buffer{test::write_packet(sent)};
        Notes notes;
        EXPECT_EQ(edge.translate(Side::left, buffer.packet, 0, notes), Drop::none);
        fields = field ? corrupt(*field, buffer.packet, notes, &table) : Fields{};
        return test::read_packet(buffer.frame());
    };
    Fields fields;
    const test::SlowPacket right = leaves(std::nullopt, fields);
    test::SlowPacket packet = leaves(Field::other_edge_port, fields);
    EXPECT_TRUE(fields.none() && packet.source_port == right.source_port);
    constexpr std::size_t index_end = 9;  // of a mark: what differs from frame to frame
    for (const auto& [index, port] : {std::pair{0, 1228}, std::pair{1, 1}}) {
        sent.payload[index_end] = static_cast<std::byte>(index);
        packet = leaves(Field::outside_port_set, fields);
        EXPECT_TRUE(fields == (Fields{Field::outside_port_set, Field::source_port}) && packet.source_port == port &&
                    packet.source == right.source);
    }
    packet = leaves(Field::source_port, fields);
    EXPECT_TRUE(fields == (Fields{Field::outside_port_set, Field::source_port}) && packet.source_port == 0);
    packet = leaves(Field::other_edge_address, fields);
    EXPECT_TRUE(fields == (Fields{Field::other_edge_address, Field::source_address}) &&
                packet.source == test::address_of("2001:db8:12:3500:0:c000:212:35"));
    packet = leaves(Field::interface_identifier, fields);
    EXPECT_TRUE(fields == (Fields{Field::interface_identifier, Field::source_address}) &&
                packet.source == test::address_of("2001:db8:12:3400:0:c000:212:35"));
    packet = leaves(Field::embedding_suffix, fields);
    EXPECT_TRUE(fields == Fields{Field::destination_address} && packet.source == right.source && packet.destination != right.destination);
    packet = leaves(Field::mapping_changed, fields);
    EXPECT_TRUE(fields == Fields{Field::mapping_changed} && packet.source == right.source && packet.source_port == 1233);
    packet = leaves(Field::untranslated_source, fields);
    EXPECT_TRUE(fields == (Fields{Field::family, Field::untranslated_source}) && packet.source == sent.source);
}

TEST(RefdutCorruptField, HasTheNamesOfTheTester) {
    EXPECT_EQ(field_of("hop_limit"), Field::hop_limit);
    EXPECT_EQ(field_of("hoplimit"), std::nullopt);
}

}  // namespace
}  // namespace gatemark::refdut
