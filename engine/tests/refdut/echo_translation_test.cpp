#include "frame/echo_verification.hpp"
#include "frame/echoes.hpp"
#include "refdut/classify.hpp"
#include "refdut/corrupt.hpp"
#include "refdut/map_vectors.hpp"
#include "refdut/packets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <tuple>

/// Echo messages through the reference gateway, judged by the Tester's own verification.
namespace gatemark::refdut {
namespace {

using frame::EchoKind;
using test::Bytes;

struct EchoCase {
    const char* name;
    Mode mode;
    test::Gateway like;
    const char* pool;  ///< nullptr for a stateless gateway
};
constexpr EchoCase echo_cases[]{
    {"router, IPv4", Mode::router, test::Gateway::router44, nullptr}, {"router, IPv6", Mode::router, test::Gateway::router66, nullptr},
    {"SIIT from IPv6", Mode::siit, test::Gateway::siit64, nullptr},   {"SIIT from IPv4", Mode::siit, test::Gateway::siit46, nullptr},
    {"MAP-T relay", Mode::map_t_br, test::Gateway::siit64, nullptr},  {"NAT44", Mode::nat44, test::Gateway::router44, "198.19.255.0/30"},
    {"NAT64", Mode::nat64, test::Gateway::siit64, "198.19.255.0/30"},
};

constexpr const EchoCase customer_edge{"MAP-T customer edge", Mode::map_t_ce, test::Gateway::siit46, "2001:db8:12:3400:0:c000:212:34/128"};
constexpr const EchoCase& nat64 = echo_cases[std::size(echo_cases) - 1];

/// The Tester's messages and a gateway between them.
class EchoThroughGateway {
public:
    explicit EchoThroughGateway(const EchoCase& echo_case) {
        frame::StreamRequest request = echo_case.mode == Mode::map_t_br ? of_edges() : test::echo_request(echo_case.like);
        TranslationConfig config;
        config.mode = echo_case.mode;
        config.hop_limit_decrement = request.hop_limit_decrement;
        std::optional<frame::GatewayEdge> edge;
        if (echo_case.mode == Mode::map_t_ce) {
            config.domains = {rule_of("2001:db8::/40", "192.0.2.0/24", 16, 6)};
            config.end_user_prefix = prefix_of("2001:db8:12:3400::/56");
            edge = std::get<frame::GatewayEdge>(
                frame::GatewayEdge::make(test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6).rule, 0x1234, "edge"));
            table_ = std::make_unique<NatTable>(public_endpoints(config), NatLimits{.capacity = 100});
        } else if (echo_case.mode == Mode::map_t_br) {
            config.domains = {rule_of("2001:db8::/40", "192.0.2.0/30", 6, 2, "2001:db8:ffff::/64")};
        } else if (request.mapping) {
            config.pref64 = prefix_of("64:ff9b::/96");
        }
        if (echo_case.mode == Mode::nat64) {
            request.source = test::varying_host("2001:2::", 14, frame::ValueMode::increasing, 2, 254);
        }
        if (echo_case.pool != nullptr && !edge) {
            config.pool = pool_of({echo_case.pool});
            table_ = std::make_unique<NatTable>(config.pool, NatLimits{.capacity = 100});
        }
        EXPECT_EQ(check(config), Errors{});
        echo.emplace(test::make_echo(request, test::small_shape,
                                     echo_case.pool == nullptr ? std::nullopt : std::optional<std::string>{echo_case.pool}, {}, {}, edge));
        translator_ = std::make_unique<Translator>(std::move(config), table_.get());
    }

    /// Three customer edges that share an address.
    static frame::StreamRequest of_edges() {
        return test::echo_request_of(
            {.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/30", 6, 2)}, .count = 3, .order = enumerate::Order::increasing});
    }

    /// As it comes out on the other side, damaged if the test wants; empty if it was dropped.
    Bytes pass(Side from, const Bytes& sent, std::optional<Field> field = std::nullopt) {
        if (sent.size() > 9216) {  // longer than any frame; this also tells the compiler that sizes do not overflow
            ADD_FAILURE() << sent.size();
            return {};
        }
        Buffer buffer{sent};
        Notes notes;
        EXPECT_TRUE((TestFrames{{}, table_.get(), Mode::router}.has(buffer.packet)));
        drop = translator_->translate(from, buffer.packet, 0, notes);
        EXPECT_TRUE(buffer.is_sound());
        if (drop != Drop::none) {
            return {};
        }
        if (field) {
            announced = corrupt(*field, buffer.packet, notes, table_.get());
        }
        return {buffer.frame().begin(), buffer.frame().end()};
    }
    /// Request i there and its reply back; returns what the Tester says of both.
    std::string exchange(std::uint64_t index, std::optional<Field> request_field = std::nullopt,
                         std::optional<Field> reply_field = std::nullopt) {
        const Bytes request = pass(Side::left, test::sent_request(*echo, index), request_field);
        if (request.empty()) {
            return "request dropped";
        }
        if (const std::string faults = faults_of(EchoKind::request, index, request); !faults.empty()) {
            return std::string{"request:"}.append(faults);
        }
        const auto source = frame::public_source(request, frame::classify_echo(request, test::trial_id()), *echo);
        EXPECT_EQ(source.has_value(), echo->pool() != nullptr);
        const Bytes reply =
            pass(Side::right, test::sent_reply(*echo, {.index = index, .sent = {1000}, .source = source.value_or(frame::PublicSource{})}),
                 reply_field);
        return reply.empty() ? "reply dropped" : faults_of(EchoKind::reply, index, reply);
    }

    std::optional<frame::Echo> echo;
    Drop drop = Drop::none;
    Fields announced;

private:
    [[nodiscard]] std::string faults_of(EchoKind kind, std::uint64_t index, const Bytes& frame) const {
        const frame::Arrival arrival = frame::classify_echo(frame, test::trial_id());
        if (arrival.kind != frame::ArrivalKind::ours) {
            return " not ours";
        }
        const frame::Faults faults = frame::verify_echo(frame, arrival, *echo, kind, echo->numbers().place_of(index));
        std::string names;
        for (std::size_t i = 0; i < frame::fault_count; ++i) {
            if (faults.has(static_cast<frame::Fault>(i))) {
                names.append(" ").append(frame::fault_names[i]);
            }
        }
        return names;
    }

    std::unique_ptr<NatTable> table_;
    std::unique_ptr<Translator> translator_;
};

std::multiset<std::string> sorted(const std::string& text) {
    std::istringstream words{text};
    return {std::istream_iterator<std::string>{words}, {}};
}

TEST(RefdutEcho, EveryRequestAndReplyIsAsTheTesterExpects) {
    for (const EchoCase& echo_case : echo_cases) {
        EchoThroughGateway gateway{echo_case};
        for (std::uint64_t i = 0; i < test::small_shape.requests(); ++i) {
            EXPECT_EQ(gateway.exchange(i), "") << echo_case.name << ", request " << i;
        }
    }
}

TEST(RefdutEcho, EachDamageIsFoundUnderItsName) {
    for (const EchoCase& echo_case : echo_cases) {
        if (echo_case.mode == Mode::map_t_br) {
            continue;  // clients are customer edges, below
        }
        for (const auto& [field, faults] :
             {std::pair{Field::icmp_type, "request: icmp_type"}, std::pair{Field::sequence, "request: sequence"},
              std::pair{Field::icmp_checksum, "request: icmp_checksum"}, std::pair{Field::identifier, ""},
              std::pair{Field::wrong_client, ""}, std::pair{Field::udp_checksum, ""}, std::pair{Field::trailer, ""}}) {
            EchoThroughGateway gateway{echo_case};
            EXPECT_EQ(gateway.exchange(0, field), faults) << echo_case.name;
        }
        for (const auto& [field, faults] : {std::pair{Field::icmp_type, " icmp_type"}, std::pair{Field::sequence, " sequence"},
                                            std::pair{Field::icmp_checksum, " icmp_checksum"}, std::pair{Field::identifier, " identifier"},
                                            std::pair{Field::wrong_client, " destination_address wrong_client"},
                                            std::pair{Field::wrong_slot, " identifier wrong_slot"}}) {
            EchoThroughGateway gateway{echo_case};
            EXPECT_EQ(gateway.exchange(0, std::nullopt, field), faults) << echo_case.name;
            EXPECT_TRUE(gateway.announced.has(field));
        }
    }
}

TEST(RefdutEcho, DamageOfCustomerEdgesIsFoundUnderItsName) {
    const EchoCase& relay = *std::ranges::find(echo_cases, Mode::map_t_br, &EchoCase::mode);
    for (const auto& [field, request, reply] :
         {std::tuple{Field::other_edge_port, "request: identifier other_edge_port", " identifier other_edge_port"},
          std::tuple{Field::other_edge_address, "request: source_address other_edge_address",
                     " destination_address other_edge_address wrong_client"},
          std::tuple{Field::outside_rule, "request: source_address outside_rule", " destination_address outside_rule"},
          std::tuple{Field::interface_identifier, "", " destination_address interface_identifier"},
          std::tuple{Field::outside_port_set, "", ""}, std::tuple{Field::wrong_client, "", ""},
          std::tuple{Field::identifier, "", " identifier"}, std::tuple{Field::wrong_slot, "", " identifier wrong_slot"}}) {
        EchoThroughGateway there{relay}, back{relay};
        EXPECT_EQ(sorted(there.exchange(0, field)), sorted(request));
        EXPECT_EQ(sorted(back.exchange(0, std::nullopt, field)), sorted(reply));
        EXPECT_EQ(back.announced.none(), std::string{reply}.empty());
    }
}

TEST(RefdutEcho, ARelayDropsAnIdentifierOfAnotherEdge) {
    EchoThroughGateway gateway{*std::ranges::find(echo_cases, Mode::map_t_br, &EchoCase::mode)};
    test::SlowPacket packet = test::read_packet(test::sent_request(*gateway.echo, 0));
    packet.echo->identifier = static_cast<std::uint16_t>(packet.echo->identifier + 1024);
    EXPECT_TRUE(gateway.pass(Side::left, test::write_packet(packet)).empty());
    EXPECT_EQ(gateway.drop, Drop::outside_port_set);
    packet = test::read_packet(test::sent_reply(*gateway.echo, {.index = 0}));
    packet.echo->identifier = 77;
    EXPECT_TRUE(gateway.pass(Side::right, test::write_packet(packet)).empty());
    EXPECT_EQ(gateway.drop, Drop::outside_port_set) << "nobody's";
}

TEST(RefdutEcho, ACustomerEdgeMapsIdentifiersToItsPortSet) {
    EchoThroughGateway gateway{customer_edge};
    for (std::uint64_t i = 0; i < test::small_shape.requests(); ++i) {
        EXPECT_EQ(gateway.exchange(i), "") << i;
    }
    for (const auto& [field, request] :
         {std::pair{Field::outside_port_set, "request: identifier outside_port_set"},
          std::pair{Field::other_edge_address, "request: source_address other_edge_address"},
          std::pair{Field::interface_identifier, "request: source_address interface_identifier"},
          std::pair{Field::outside_rule, "request: source_address outside_rule"}, std::pair{Field::other_edge_port, ""}}) {
        EXPECT_EQ(sorted(gateway.exchange(0, field)), sorted(request));
    }
    test::SlowPacket packet =
        test::read_packet(test::sent_reply(*gateway.echo, {.index = 0, .source = {.address = 0, .identifier = 1236}}));
    EXPECT_TRUE(gateway.pass(Side::right, test::write_packet(packet)).empty());
    EXPECT_EQ(gateway.drop, Drop::outside_port_set);
    packet.echo->type = 128;
    EXPECT_TRUE(gateway.pass(Side::right, test::write_packet(packet)).empty());
    EXPECT_EQ(gateway.drop, Drop::unsupported) << "a request from outside";
}

TEST(RefdutEcho, AReplyThatNobodyAskedForHasNoState) {
    EchoThroughGateway gateway{nat64};
    EXPECT_TRUE(
        gateway.pass(Side::right, test::sent_reply(*gateway.echo, {.index = 0, .source = {.address = 1, .identifier = 2000}})).empty());
    EXPECT_EQ(gateway.drop, Drop::no_state);
}

TEST(RefdutEcho, ARequestFromOutsideIsNotTranslated) {
    EchoThroughGateway gateway{nat64};
    test::SlowPacket packet =
        test::read_packet(test::sent_reply(*gateway.echo, {.index = 0, .source = {.address = 1, .identifier = 2000}}));
    packet.echo->type = 8;
    EXPECT_TRUE(gateway.pass(Side::right, test::write_packet(packet)).empty());
    EXPECT_EQ(gateway.drop, Drop::unsupported);
}

TEST(RefdutEcho, ADamagedChecksumStaysDamaged) {
    EchoThroughGateway gateway{nat64};
    Bytes request = test::sent_request(*gateway.echo, 0);
    request.back() ^= std::byte{1};
    const Bytes arrived = gateway.pass(Side::left, request);
    const frame::Arrival arrival = frame::classify_echo(arrived, test::trial_id());
    EXPECT_TRUE(frame::verify_echo(arrived, arrival, *gateway.echo, EchoKind::request, gateway.echo->numbers().place_of(0))
                    .has(frame::Fault::icmp_checksum));
}

}  // namespace
}  // namespace gatemark::refdut
