#include "frame/echo_verification.hpp"
#include "frame/echoes.hpp"
#include "refdut/classify.hpp"
#include "refdut/corrupt.hpp"
#include "refdut/packets.hpp"

#include <gtest/gtest.h>

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
    {"router, IPv4", Mode::router, test::Gateway::router44, nullptr},   {"router, IPv6", Mode::router, test::Gateway::router66, nullptr},
    {"SIIT from IPv6", Mode::siit, test::Gateway::siit64, nullptr},     {"SIIT from IPv4", Mode::siit, test::Gateway::siit46, nullptr},
    {"NAT44", Mode::nat44, test::Gateway::router44, "198.19.255.0/30"}, {"NAT64", Mode::nat64, test::Gateway::siit64, "198.19.255.0/30"},
};

/// The Tester's messages and a gateway between them.
class EchoThroughGateway {
public:
    explicit EchoThroughGateway(const EchoCase& echo_case) {
        frame::StreamRequest request = test::echo_request(echo_case.like);
        TranslationConfig config;
        config.mode = echo_case.mode;
        config.hop_limit_decrement = request.hop_limit_decrement;
        if (request.mapping) {
            config.pref64 = prefix_of("64:ff9b::/96");
        }
        if (echo_case.mode == Mode::nat64) {
            request.source = test::varying_host("2001:2::", 14, frame::ValueMode::increasing, 2, 254);
        }
        if (echo_case.pool != nullptr) {
            config.pool = pool_of({echo_case.pool});
            table_ = std::make_unique<NatTable>(config.pool, NatLimits{.capacity = 100});
        }
        EXPECT_EQ(check(config), Errors{});
        echo.emplace(test::make_echo(request, test::small_shape,
                                     echo_case.pool == nullptr ? std::nullopt : std::optional<std::string>{echo_case.pool}));
        translator_ = std::make_unique<Translator>(std::move(config), table_.get());
    }

    /// As it comes out on the other side, damaged if the test wants; empty if it was dropped.
    Bytes pass(Side from, const Bytes& sent, std::optional<Field> field = std::nullopt) {
        if (sent.size() > 9216) {  // longer than any frame; this also tells the compiler that sizes do not overflow
            ADD_FAILURE() << sent.size();
            return {};
        }
        Buffer buffer{sent};
        Notes notes;
        EXPECT_TRUE((TestFrames{{}, table_.get()}.has(buffer.packet)));
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
        for (const auto& [field, faults] :
             {std::pair{Field::icmp_type, "request: icmp_type"}, std::pair{Field::sequence, "request: sequence"},
              std::pair{Field::icmp_checksum, "request: icmp_checksum"}, std::pair{Field::identifier, ""},
              std::pair{Field::wrong_client, ""}, std::pair{Field::udp_checksum, ""}}) {
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

TEST(RefdutEcho, AReplyThatNobodyAskedForHasNoState) {
    EchoThroughGateway gateway{echo_cases[5]};
    EXPECT_TRUE(
        gateway.pass(Side::right, test::sent_reply(*gateway.echo, {.index = 0, .source = {.address = 1, .identifier = 2000}})).empty());
    EXPECT_EQ(gateway.drop, Drop::no_state);
}

TEST(RefdutEcho, ARequestFromOutsideIsNotTranslated) {
    EchoThroughGateway gateway{echo_cases[5]};
    test::SlowPacket packet =
        test::read_packet(test::sent_reply(*gateway.echo, {.index = 0, .source = {.address = 1, .identifier = 2000}}));
    packet.echo->type = 8;
    EXPECT_TRUE(gateway.pass(Side::right, test::write_packet(packet)).empty());
    EXPECT_EQ(gateway.drop, Drop::unsupported);
}

TEST(RefdutEcho, ADamagedChecksumStaysDamaged) {
    EchoThroughGateway gateway{echo_cases[5]};
    Bytes request = test::sent_request(*gateway.echo, 0);
    request.back() ^= std::byte{1};
    const Bytes arrived = gateway.pass(Side::left, request);
    const frame::Arrival arrival = frame::classify_echo(arrived, test::trial_id());
    EXPECT_TRUE(frame::verify_echo(arrived, arrival, *gateway.echo, EchoKind::request, gateway.echo->numbers().place_of(0))
                    .has(frame::Fault::icmp_checksum));
}

}  // namespace
}  // namespace gatemark::refdut
