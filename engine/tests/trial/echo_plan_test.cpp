#include "trial/echo_plan.hpp"

#include "frame/echoes.hpp"
#include "trial/frame_preview.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace gatemark::trial {
namespace {

using namespace std::chrono_literals;
using test::Gateway;

TrialRequest echo_trial(Gateway gateway = Gateway::siit64) {
    TrialRequest request;
    request.trial_number = test::trial_number;
    request.seed = test::seed;
    request.duration = 10s;
    request.waits.drain = 2s;
    request.echo = EchoRequest{.shape = test::small_shape, .pace_without_reply = 10ms, .timeout = 1s};
    request.directions.push_back(
        {.direction = Direction::forward, .frames_per_second = 0, .foreground = test::echo_request(gateway), .background = {}});
    return request;
}

/// Where the problems of a changed request are.
std::vector<std::string> problems(const std::function<void(TrialRequest&)>& change) {
    TrialRequest request = echo_trial();
    change(request);
    const auto plan = make_trial_plan(request, {});
    std::vector<std::string> list;
    if (const auto* errors = std::get_if<Errors>(&plan)) {
        for (const Error& error : *errors) {
            list.push_back(error.where);
        }
    }
    return list;
}

TEST(EchoPlan, CustomerEdgesAreClients) {
    const auto with_edges = [](
                                std::uint64_t count, const std::function<void(TrialRequest&)>& change = [](TrialRequest&) {}) {
        return problems([&](TrialRequest& r) {
            const frame::EdgesRequest edges{.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)}, .count = count};
            r.directions[0].foreground = test::echo_request_of(edges);
            change(r);
        });
    };
    using List = std::vector<std::string>;
    const std::string source = "directions[0].foreground.source";
    EXPECT_EQ(with_edges(3), List{});
    EXPECT_EQ(with_edges(4), List{source + ".edges"});
    EXPECT_EQ(with_edges(3, [](TrialRequest& r) { r.directions[0].foreground->source_edges->choice = frame::EdgeChoice::pseudorandom; }),
              List{source + ".edges"});
    EXPECT_FALSE(with_edges(3, [](TrialRequest& r) { r.directions[0].foreground->source_edges->domains[0].rule.ea_bits = 80; }).empty());
    EXPECT_EQ(with_edges(3, [](TrialRequest& r) { r.echo->pool.emplace(1, *net::parse_prefix("198.19.255.0/24")); }), List{"echo.pool"});
    EXPECT_EQ(
        with_edges(
            3, [](TrialRequest& r) { std::swap(r.directions[0].foreground->source_edges, r.directions[0].foreground->destination_edges); }),
        List{"directions[0].foreground.destination"});
}

TEST(EchoPlan, ACustomerEdgeIsAStatefulGateway) {
    const auto with_edge = [](const char* pool, std::uint64_t ea, Gateway gateway = Gateway::siit46) {
        return problems([&](TrialRequest& r) {
            r.directions[0].foreground = test::echo_request(gateway);
            r.echo->edge = EdgeRequest{.rule = test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6).rule, .ea = ea};
            if (pool != nullptr) {
                r.echo->pool.emplace(1, *net::parse_prefix(pool));
            }
        });
    };
    using List = std::vector<std::string>;
    constexpr const char* address = "2001:db8:12:3400:0:c000:212:34/128";
    EXPECT_EQ(with_edge(address, 0x1234), List{});
    EXPECT_EQ(with_edge(address, 0x1235), List{"echo.pool"});
    EXPECT_EQ(with_edge(nullptr, 0x1234), List{"echo.pool"});
    EXPECT_EQ(with_edge(address, 0x12345), List{"echo.edge.ea"});
    EXPECT_EQ(with_edge(address, 0x1234, Gateway::router66), List{"echo.edge"});
}

TEST(EchoPlan, HasTwoDirectionsWithOneFrameForEachRequest) {
    const auto plan = make_trial_plan(echo_trial(), {});
    ASSERT_TRUE(std::holds_alternative<TrialPlan>(plan));
    const TrialPlan& trial_plan = std::get<TrialPlan>(plan);
    ASSERT_EQ(trial_plan.directions.size(), 2U);
    EXPECT_EQ(trial_plan.direction(Direction::forward)->intended_foreground(), 36U);
    EXPECT_EQ(trial_plan.direction(Direction::reverse)->frame_count, 36U);
    EXPECT_EQ(trial_plan.echo->timeout, 1s);
}

TEST(EchoPlan, EachProblemIsNamed) {
    using List = std::vector<std::string>;
    EXPECT_EQ(problems([](TrialRequest&) {}), List{});
    EXPECT_EQ(problems([](TrialRequest& r) { r.echo->shape.destinations = 5; }), List{"echo.destinations"});
    EXPECT_EQ(problems([](TrialRequest& r) { r.directions[0].frames_per_second = 5; }), List{"directions[0].frames_per_second"});
    EXPECT_EQ(problems([](TrialRequest& r) { r.echo->pace_without_reply.reset(); }), List{"directions[0].frames_per_second"});
    EXPECT_EQ(problems([](TrialRequest& r) { r.waits.drain = 999ms; }), List{"waits.drain_ns"});
    EXPECT_EQ(problems([](TrialRequest& r) { r.delays.variation = true; }), List{"delays"});
    EXPECT_EQ(problems([](TrialRequest& r) { r.directions[0].direction = Direction::reverse; }), List{"directions"});
    EXPECT_EQ(problems([](TrialRequest& r) { r.directions[0].foreground_n = 2; }), List{"directions[0]"});
    EXPECT_EQ(problems([](TrialRequest& r) { r.echo->shape.clients = 254; }), List{"directions[0].foreground.source"});
    EXPECT_EQ(problems([](TrialRequest& r) { r.echo->shape.destinations = 80'000; }), List{"directions[0].foreground.destination"});
    EXPECT_EQ(problems([](TrialRequest& r) { r.directions[0].foreground->destination.part.mode = frame::ValueMode::pseudorandom; }),
              List{"directions[0].foreground.destination.mode"});
    EXPECT_EQ(problems([](TrialRequest& r) { r.directions[0].foreground->mapping.reset(); }), List{"directions[0].foreground.translation"});
    EXPECT_EQ(problems([](TrialRequest& r) { r.directions[0].foreground->trailer_octets = 4; }),
              List{"directions[0].foreground.trailer_octets"});
    const auto change_pool = [](const char* prefix) {
        return [prefix](TrialRequest& request) { request.echo->pool.emplace(1, *net::parse_prefix(prefix)); };
    };
    EXPECT_EQ(problems(change_pool("198.19.255.0/24")), List{});
    EXPECT_EQ(problems(change_pool("2001:2::/120")), List{"echo.pool"}) << "of the other family";
    EXPECT_EQ(problems(change_pool("2001:2::/64")), List{"echo.pool"}) << "too large";
    EXPECT_EQ(problems([](TrialRequest& r) {
                  r.echo->pace_without_reply.reset();
                  r.directions[0].frames_per_second = 1;
                  r.duration = 1ms;
              }),
              List{"directions[0]"})
        << "not one request";
}

TEST(EchoPlan, ThePreviewShowsRequests) {
    FramesRequest request;
    request.count = 100;
    request.trial = echo_trial();
    request.left_mac = test::sending_mac;
    request.right_mac = test::receiving_mac;
    const auto preview = preview_frames(request);
    const auto* frames = std::get_if<std::vector<PreviewedFrame>>(&preview);
    ASSERT_NE(frames, nullptr);
    ASSERT_EQ(frames->size(), 36U);
    for (const PreviewedFrame& frame : *frames) {
        test::SlowPacket expected = test::forwarded(frame.sent, Gateway::siit64);
        expected.identification = 0;
        EXPECT_EQ(test::to_hex(frame.expected), test::to_hex(test::write_packet(expected)));
    }
}

}  // namespace
}  // namespace gatemark::trial
