#include "trial/trial_plan.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace gatemark::trial {
namespace {

using namespace std::chrono_literals;
using test::Gateway;
using Order = enumerate::ConnectionChoice::Mode;

TrialRequest request_with(std::vector<DirectionRequest> directions) {
    TrialRequest request;
    request.trial_number = test::trial_number;
    request.seed = test::seed;
    request.duration = 1s;
    request.directions = std::move(directions);
    return request;
}

DirectionRequest direction_of(Direction direction, std::uint32_t m = 1, std::uint32_t n = 1) {
    DirectionRequest request;
    request.direction = direction;
    request.frames_per_second = 1000;
    request.foreground_m = m;
    request.foreground_n = n;
    if (m != 0) {
        request.foreground = test::request_for(direction == Direction::forward ? Gateway::siit64 : Gateway::siit46);
    }
    if (m != n) {
        request.background = test::request_for(Gateway::router66);
    }
    return request;
}

std::vector<std::string> problems_of(const TrialRequest& request) {
    const auto plan = make_trial_plan(request, {});
    std::vector<std::string> places;
    if (const auto* const errors = std::get_if<Errors>(&plan)) {
        for (const Error& error : *errors) {
            EXPECT_FALSE(error.what.empty() || error.fix.empty());
            places.push_back(error.where);
        }
    }
    return places;
}

using Places = std::vector<std::string>;

TEST(TrialPlan, ComputesBothDirectionsForwardFirst) {
    LinkPlan links;
    links.sides[1].vlan_id = 100;
    const auto result = make_trial_plan(request_with({direction_of(Direction::reverse, 9, 10), direction_of(Direction::forward)}), links);
    ASSERT_TRUE(std::holds_alternative<TrialPlan>(result));
    const auto& plan = std::get<TrialPlan>(result);
    EXPECT_EQ(plan.trial_id, test::trial_id());
    ASSERT_EQ(plan.directions.size(), 2U);
    const DirectionPlan &forward = plan.directions[0], &reverse = plan.directions[1];
    EXPECT_EQ(plan.direction(Direction::reverse), &reverse);
    EXPECT_EQ(forward.frame_count, 1000U);
    EXPECT_EQ(forward.intended_foreground(), 1000U);
    EXPECT_FALSE(forward.background);
    EXPECT_EQ(reverse.intended_foreground(), 900U);
    EXPECT_EQ(reverse.intended_background(), 100U);
    EXPECT_EQ(forward.foreground->id(), 0xa0);
    EXPECT_EQ(reverse.background->id(), 0xa3);
    EXPECT_EQ(forward.foreground->expected_vlan(), 100);
    EXPECT_EQ(forward.foreground->sent().layout.ip, 14U);
    EXPECT_EQ(reverse.foreground->sent().layout.ip, 18U);
    EXPECT_EQ(reverse.foreground->expected_vlan(), std::nullopt);
}

TEST(TrialPlan, BackgroundAloneIsATrialToo) {
    const auto result = make_trial_plan(request_with({direction_of(Direction::forward, 0, 1)}), {});
    ASSERT_TRUE(std::holds_alternative<TrialPlan>(result));
    EXPECT_EQ(std::get<TrialPlan>(result).directions[0].intended_background(), 1000U);
}

TEST(TrialPlan, CountsFramesIn128Bits) {
    EXPECT_EQ(frame_count_of(60s, 148'809'523), 8'928'571'380U);
    EXPECT_EQ(frame_count_of(1ms, 1), 0U);
    EXPECT_EQ(frame_count_of(1ms, 1999), 1U);
    EXPECT_EQ(frame_count_of(168h, 1'000'000'000), 604'800'000'000'000U);
}

TEST(TrialPlan, AStepChangesTheNumberOfFramesAndWhereTagsAre) {
    TrialRequest request = request_with({direction_of(Direction::forward)});
    request.directions[0].step = RateStep{.after = 300ms, .frames_per_second = 100};
    request.delays.tags = TagsRequest{.first = 100500us, .count = 250};
    auto result = make_trial_plan(request, {});
    ASSERT_TRUE(std::holds_alternative<TrialPlan>(result));
    EXPECT_EQ(std::get<TrialPlan>(result).directions[0].frame_count, 300U + 70U);
    EXPECT_EQ(std::get<TrialPlan>(result).directions[0].tags->first, 101U) << "frame 100 is due at 100 ms";
    request.delays.tags->first = 305ms;
    request.delays.tags->count = 69;
    result = make_trial_plan(request, {});
    EXPECT_EQ(std::get<TrialPlan>(result).directions[0].tags->first, 301U) << "the one after the step is due at 310 ms";
    request.delays.tags->count = 70;
    request.directions[0].step->after = 1s;
    EXPECT_EQ(problems_of(request), (Places{"directions[0].step.after_ns"}));
    request.directions[0].step.reset();
    request.delays.tags = TagsRequest{.first = 950ms, .count = 51};
    EXPECT_EQ(problems_of(request), (Places{"directions[0]"}));
}

TEST(TrialPlan, BurstsChangeNoNumberOfFramesButWhereTagsAre) {
    TrialRequest request = request_with({direction_of(Direction::forward)});
    for (const std::uint64_t frames : {1U, 3U, 7U, 64U, 5000U}) {
        request.directions[0].bursts = pace::BurstyTraffic{.frames = frames, .frames_per_second = 1'700};
        const pace::Schedule schedule{{.frames_per_second = 1000, .bursts = request.directions[0].bursts}, {}, 1'000'000'000};
        pace::Schedule::Position position = schedule.begin();
        std::uint64_t expected = 0;
        for (std::chrono::nanoseconds first = 0ns; first < 500ms; first += 1'234'567ns) {
            for (; position.due().value < static_cast<std::uint64_t>(first.count()); ++expected) {
                schedule.advance(position);
            }
            request.delays.tags = TagsRequest{.first = first, .count = 1};
            const auto result = make_trial_plan(request, {});
            ASSERT_TRUE(std::holds_alternative<TrialPlan>(result));
            ASSERT_EQ(std::get<TrialPlan>(result).directions[0].frame_count, 1000U);
            ASSERT_EQ(std::get<TrialPlan>(result).directions[0].tags->first, expected) << first.count() << " ns, bursts of " << frames;
        }
    }
}

TEST(TrialPlan, BurstsAreNotSlowerThanTheLoadAndHaveNoStep) {
    TrialRequest request = request_with({direction_of(Direction::forward)});
    request.directions[0].bursts = pace::BurstyTraffic{.frames = 10, .frames_per_second = 1000};
    EXPECT_EQ(problems_of(request), Places{});
    request.directions[0].bursts->frames_per_second = 999;
    EXPECT_EQ(problems_of(request), (Places{"directions[0].bursts.frames_per_second"}));
    request.directions[0].bursts->frames_per_second = 2000;
    request.directions[0].step = RateStep{.after = 300ms, .frames_per_second = 100};
    EXPECT_EQ(problems_of(request), (Places{"directions[0].bursts"}));
}

TEST(TrialPlan, FlowsThatStartOneAfterAnotherHaveFewerFrames) {
    TrialRequest request = request_with({direction_of(Direction::forward)});
    request.duration = 5s;
    request.directions[0].flow_start = pace::FlowStart{4, 250};  // a round takes 4 ms, so a flow starts each second
    request.delays.tags = TagsRequest{.first = 1500ms, .count = 10};
    const auto result = make_trial_plan(request, {});
    ASSERT_TRUE(std::holds_alternative<TrialPlan>(result));
    const DirectionPlan& plan = std::get<TrialPlan>(result).directions[0];
    EXPECT_EQ(plan.frame_count, 250U + 500 + 750 + 2000);
    EXPECT_EQ(plan.tags->first, 250U + 250);
    EXPECT_EQ(plan.mix.place_of(250).number_in_class, 1000U);
    const pace::Schedule schedule{plan.load(pace::TickScale{1'000'000'000}), {}, 1'000'000'000};
    pace::Schedule::Position position = schedule.begin();
    for (int i = 0; i < 250; ++i) {
        schedule.advance(position);
    }
    EXPECT_EQ(position.due().value, 1'000'000'000U);
}

TEST(TrialPlan, FlowsThatStartOneAfterAnotherNeedTheTrialForThemselves) {
    TrialRequest request = request_with({direction_of(Direction::forward, 1, 2)});
    request.directions[0].flow_start = pace::FlowStart{2, 499};
    EXPECT_EQ(problems_of(request), (Places{"directions[0].flow_start"}));
    request = request_with({direction_of(Direction::forward)});
    request.directions[0].flow_start = pace::FlowStart{2, 499};
    EXPECT_EQ(problems_of(request), Places{});
    request.directions[0].flow_start = pace::FlowStart{2, 500};
    EXPECT_EQ(problems_of(request), (Places{"directions[0].flow_start"}));
    request.directions[0].flow_start = pace::FlowStart{2, 499};
    request.directions[0].bursts = pace::BurstyTraffic{.frames = 10, .frames_per_second = 1000};
    EXPECT_EQ(problems_of(request), (Places{"directions[0].flow_start"}));
}

TEST(TrialPlan, DirectionsMustBeOneOrTwoAndDifferent) {
    EXPECT_EQ(problems_of(request_with({})), (Places{"directions"}));
    EXPECT_EQ(problems_of(request_with({direction_of(Direction::forward), direction_of(Direction::forward)})), (Places{"directions[1]"}));
    EXPECT_EQ(
        problems_of(request_with({direction_of(Direction::forward), direction_of(Direction::reverse), direction_of(Direction::forward)})),
        (Places{"directions", "directions[2]"}));
}

TEST(TrialPlan, LoadsMixesAndLengthsMustBePossible) {
    DirectionRequest direction = direction_of(Direction::forward);
    direction.frames_per_second = 0;
    EXPECT_EQ(problems_of(request_with({direction})), (Places{"directions[0].frames_per_second"}));
    direction = direction_of(Direction::forward);
    direction.foreground_m = 2;
    EXPECT_EQ(problems_of(request_with({direction})), (Places{"directions[0]"}));
    direction.foreground_n = 0;
    EXPECT_EQ(problems_of(request_with({direction})), (Places{"directions[0]"}));
    TrialRequest request = request_with({direction_of(Direction::forward)});
    request.duration = 999us;
    EXPECT_EQ(problems_of(request), (Places{"directions[0]"}));
    request.duration = 168h;
    request.directions[0].frames_per_second = 1'000'000'000;
    EXPECT_EQ(problems_of(request), (Places{"directions[0]"}));
}

TEST(TrialPlan, StreamsMustFitTheMix) {
    DirectionRequest direction = direction_of(Direction::forward, 1, 2);
    direction.background.reset();
    EXPECT_EQ(problems_of(request_with({direction})), (Places{"directions[0].background"}));
    direction = direction_of(Direction::forward);
    direction.background = direction.foreground;
    EXPECT_EQ(problems_of(request_with({direction})), (Places{"directions[0].background"}));
    direction = direction_of(Direction::forward, 0, 1);
    direction.foreground = direction.background;
    EXPECT_EQ(problems_of(request_with({direction})), (Places{"directions[0].foreground"}));
}

TEST(TrialPlan, AllProblemsComeAtOnce) {
    DirectionRequest forward = direction_of(Direction::forward, 1, 2), reverse = direction_of(Direction::reverse);
    forward.foreground->source.offset = 15;
    forward.foreground->destination.part = {frame::ValueMode::increasing, 9, 3};
    forward.foreground->source_ports = {frame::ValueMode::pseudorandom, 9, 8};
    forward.foreground->destination_ports = {frame::ValueMode::pseudorandom, 9, 8};
    forward.foreground->mapping.reset();
    forward.background->hop_limit = 1;
    reverse.foreground->frame_octets = 63;
    Places places = problems_of(request_with({forward, reverse}));
    std::sort(places.begin(), places.end());
    EXPECT_EQ(places, (Places{"directions[0].background.hop_limit", "directions[0].foreground.destination",
                              "directions[0].foreground.destination_ports", "directions[0].foreground.source.offset",
                              "directions[0].foreground.source_ports", "directions[0].foreground.translation",
                              "directions[1].foreground.frame_octets"}));
}

TEST(TrialPlan, VaryingPartsAndNetworksMustNotOverlap) {
    const auto problems_with = [](const frame::HostSet& destination) {
        DirectionRequest direction = direction_of(Direction::forward);
        direction.foreground = test::request_for(destination.address.family == net::Family::ipv4 ? Gateway::router44 : Gateway::router66);
        direction.foreground->destination = destination;
        return problems_of(request_with({direction})).size();
    };
    using enum frame::ValueMode;
    EXPECT_EQ(problems_with(test::varying_host("198.19.0.0", 2, pseudorandom, 0, 255, 256)), 0U);
    EXPECT_EQ(problems_with(test::varying_host("198.19.0.0", 2, pseudorandom, 0, 256, 256)), 1U);
    EXPECT_EQ(problems_with(test::varying_host("198.19.0.0", 1, pseudorandom, 0, 255, 256)), 1U);
    EXPECT_EQ(problems_with(test::varying_host("198.19.0.0", 1, pseudorandom, 0, 65535)), 0U);
    EXPECT_EQ(problems_with(test::varying_host("198.19.0.0", 3, pseudorandom, 0, 255)), 1U);
    EXPECT_EQ(problems_with(test::varying_host("2001:2::", 6, pseudorandom, 0, 255, 256)), 1U);
    EXPECT_EQ(problems_with(test::varying_host("2001:2::", 7, pseudorandom, 0, 255, 256)), 0U);
    EXPECT_EQ(problems_with(test::varying_host("2001:2::", 14, pseudorandom, 0, 65535, 256)), 0U);
}

TEST(TrialPlan, NamesEveryProblemOfCustomerEdges) {
    const auto direction_with = [](const frame::StreamRequest& stream) {
        DirectionRequest direction = direction_of(Direction::forward);
        direction.foreground = stream;
        return direction;
    };
    const frame::EdgesRequest edges{.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)}, .count = 1000};
    frame::StreamRequest stream = test::edges_request(edges, Direction::forward);
    EXPECT_EQ(problems_of(request_with({direction_with(stream)})), Places{});
    stream.mapping = test::mapping_of("64:ff9b::/96");
    stream.dont_fragment_rule = frame::DontFragmentRule::rfc7915;
    stream.source_edges->domains.push_back(test::edge_domain("2001:db8::/40", "198.19.0.64/26", 16, 6));
    stream.source_edges->domains.push_back(test::edge_domain("2001:dba::/40", "203.0.113.0/24", 16, 12));
    const std::string where = "directions[0].foreground";
    EXPECT_EQ(problems_of(request_with({direction_with(stream)})),
              (Places{where + ".source.edges.domains[2].psid_offset", where + ".translation.prefix", where + ".destination"}));
    stream.source_edges->domains.pop_back();
    EXPECT_EQ(problems_of(request_with({direction_with(stream)})),
              (Places{where + ".source.edges.domains[1].ipv6", where + ".translation.prefix", where + ".destination"}));
    stream = test::edges_request(edges, Direction::forward);
    stream.mapping.reset();
    EXPECT_EQ(problems_of(request_with({direction_with(stream)})), Places{where + ".translation"});
    DirectionRequest background = direction_of(Direction::forward, 0, 1);
    background.background = test::edges_request(edges, Direction::forward);
    EXPECT_EQ(problems_of(request_with({background})), Places{"directions[0].background.source"});
}

/// Hosts from 198.19.0.2 to 198.19.0.254, or in their lower half.
TEST(TrialPlan, HostsOutsideHaveNoAddressOfARule) {
    const auto problems_with = [](const char* ipv4, const frame::HostSet& hosts) {
        const frame::EdgesRequest edges{.domains = {test::edge_domain("2001:db8::/40", ipv4, 8, 6)}, .count = 1};
        DirectionRequest direction = direction_of(Direction::reverse);
        direction.foreground = test::edges_request(edges, Direction::reverse);
        direction.foreground->source = hosts;
        return problems_of(request_with({direction}));
    };
    using enum frame::ValueMode;
    const auto hosts = test::varying_host("198.19.0.0", 2, pseudorandom, 2, 126);
    for (const char* const inside : {"0.0.0.0/0", "198.18.0.0/15", "198.19.0.0/24", "198.19.0.64/26", "198.19.0.126/32", "198.19.0.0/30"}) {
        EXPECT_EQ(problems_with(inside, hosts), Places{"directions[0].foreground.source"}) << inside;
    }
    for (const char* const outside : {"198.18.0.0/16", "198.19.0.128/25", "198.19.0.127/32", "198.19.0.0/31", "198.19.1.0/24"}) {
        EXPECT_EQ(problems_with(outside, hosts), Places{}) << outside;
    }
    const auto aside = test::varying_host("198.0.0.5", 1, pseudorandom, 0x1300, 0x13ff);
    EXPECT_EQ(problems_with("198.19.7.5/32", aside), Places{"directions[0].foreground.source"});
    EXPECT_EQ(problems_with("198.19.7.6/32", aside), Places{});
    EXPECT_EQ(problems_with("198.19.0.2/32", test::fixed_host("198.19.0.2")), Places{"directions[0].foreground.source"});
    EXPECT_EQ(problems_with("198.19.0.3/32", test::fixed_host("198.19.0.2")), Places{});
}

/// Ten ports to ten ports through a NAT44: a hundred four-tuples.
frame::StreamRequest upload_request() {
    frame::StreamRequest request;
    request.source = test::fixed_host("198.18.0.2");
    request.destination = test::fixed_host("198.19.0.2");
    request.source_ports = {frame::ValueMode::pseudorandom, 1024, 1033};
    request.destination_ports = {frame::ValueMode::pseudorandom, 1, 10};
    return request;
}

DirectionRequest connection_direction(Direction direction) {
    DirectionRequest request;
    request.direction = direction;
    request.frames_per_second = 100;
    request.foreground = upload_request();
    if (direction == Direction::reverse) {
        std::swap(request.foreground->source, request.foreground->destination);
        std::swap(request.foreground->source_ports, request.foreground->destination_ports);
    }
    return request;
}

TrialRequest connection_trial(state::Phase phase, std::vector<DirectionRequest> directions) {
    TrialRequest request = request_with(std::move(directions));
    request.connections = ConnectionsRequest{.phase = phase, .count = 100, .pool = {net::parse_prefix("198.19.0.1/32").value()}};
    return request;
}

TEST(TrialPlan, NumbersTheConnectionsAlikeInBothPhasesAndBothDirections) {
    using enum Direction;
    std::vector<ConnectionIdentity> identities;
    for (const TrialRequest& request : {connection_trial(state::Phase::establish, {connection_direction(forward)}),
                                        connection_trial(state::Phase::use, {connection_direction(reverse), connection_direction(forward)}),
                                        connection_trial(state::Phase::use, {connection_direction(reverse)})}) {
        const auto result = make_trial_plan(request, {});
        ASSERT_TRUE(std::holds_alternative<TrialPlan>(result));
        const auto& plan = std::get<TrialPlan>(result);
        ASSERT_TRUE(plan.connections);
        EXPECT_EQ(plan.connections->upload(), forward);
        EXPECT_EQ(plan.connections->identity.ranges.source_ports, (enumerate::TupleRange{1024, 10}));
        EXPECT_EQ(plan.connections->identity.ranges.destination_ports, (enumerate::TupleRange{1, 10}));
        for (const DirectionPlan& direction : plan.directions) {
            EXPECT_EQ(direction.foreground->role(), direction.direction == forward ? frame::Role::initiator : frame::Role::responder);
        }
        identities.push_back(plan.connections->identity);
    }
    EXPECT_EQ(identities[0], identities[1]);
    EXPECT_EQ(identities[0], identities[2]);
}

TEST(TrialPlan, EstablishesEachConnectionWithOneForegroundFrame) {
    auto request = connection_trial(state::Phase::establish, {connection_direction(Direction::forward)});
    const auto result = make_trial_plan(request, {});
    const frame::Stream& stream = *std::get<TrialPlan>(result).directions[0].foreground;
    std::vector<bool> visited(100);
    for (std::uint64_t j = 0; j < 100; ++j) {
        const frame::FrameValues values = stream.values(j);
        EXPECT_EQ(values.connection, j);
        const std::size_t tuple = static_cast<std::size_t>(values.source_port - 1024) * 10 + values.destination_port - 1;
        EXPECT_FALSE(visited.at(tuple));
        visited[tuple] = true;
    }
    request.duration = 990ms;
    EXPECT_EQ(problems_of(request), Places{"directions[0]"}) << "99 frames";
    request.duration = 1010ms;
    EXPECT_EQ(problems_of(request), Places{"directions[0]"}) << "101 frames";
    request.duration = 2s;
    request.directions[0].foreground_n = 2;
    request.directions[0].background = test::request_for(Gateway::router66);
    EXPECT_EQ(problems_of(request), Places{}) << "of 200 frames 100 are foreground";
}

TEST(TrialPlan, ConnectionsThatAreDrawnComeAgainInAnyNumberOfFrames) {
    auto request = connection_trial(state::Phase::establish, {connection_direction(Direction::forward)});
    request.connections->send_order = Order::pseudorandom;
    for (const auto duration : {300ms, 1000ms, 7000ms}) {
        request.duration = duration;
        const auto result = make_trial_plan(request, {});
        ASSERT_TRUE(std::holds_alternative<TrialPlan>(result));
        const auto& plan = std::get<TrialPlan>(result);
        EXPECT_TRUE(plan.connections->draws);
        EXPECT_EQ(plan.connections->identity.count, 100U);
        EXPECT_EQ(plan.directions[0].intended_foreground(), static_cast<std::uint64_t>(duration.count()) / 10);
    }
}

TEST(TrialPlan, EachSideUsesTheConnectionsInItsOwnOrder) {
    using enum Direction;
    auto request = connection_trial(state::Phase::use, {connection_direction(forward), connection_direction(reverse)});
    for (const auto& [order, connections] : std::initializer_list<std::pair<Order, std::array<std::uint64_t, 3>>>{
             {Order::fixed, {0, 0, 0}}, {Order::increasing, {0, 1, 99}}, {Order::decreasing, {99, 98, 0}}}) {
        for (const bool is_initiators : {true, false}) {
            request.connections->send_order = is_initiators ? order : Order::pseudorandom;
            request.connections->read_order = is_initiators ? Order::pseudorandom : order;
            const auto result = make_trial_plan(request, {});
            const auto& directions = std::get<TrialPlan>(result).directions;
            const frame::Stream& ordered = *directions[is_initiators ? 0 : 1].foreground;
            const frame::Stream& drawn = *directions[is_initiators ? 1 : 0].foreground;
            EXPECT_EQ(ordered.values(100).connection, connections[0]);
            EXPECT_EQ(ordered.values(101).connection, connections[1]);
            EXPECT_EQ(ordered.values(199).connection, connections[2]);
            std::set<std::uint64_t> visited;
            for (std::uint64_t j = 0; j < 100; ++j) {
                visited.insert(drawn.values(j).connection);
            }
            EXPECT_NEAR(static_cast<double>(visited.size()), 63.4, 15.0) << "drawn from 100, 100 times";
        }
    }
}

TEST(TrialPlan, RefusesConnectionsThatCannotBe) {
    using enum Direction;
    const auto good = connection_trial(state::Phase::use, {connection_direction(forward), connection_direction(reverse)});
    EXPECT_EQ(problems_of(good), Places{});
    const auto problems_with = [&](auto&& change) {
        TrialRequest request = good;
        change(request);
        return problems_of(request);
    };
    EXPECT_EQ(problems_with([](TrialRequest& r) { r.connections->count = 101; }), Places{"connections.count"});
    EXPECT_EQ(problems_with([](TrialRequest& r) { r.connections->pool.clear(); }), Places{"connections.pool"});
    EXPECT_EQ(problems_with([](TrialRequest& r) { r.connections->pool = {net::parse_prefix("2001:2::1/128").value()}; }),
              Places{"connections.pool"});
    EXPECT_EQ(problems_with([](TrialRequest& r) { r.connections->phase = state::Phase::establish; }).front(), "directions");
    EXPECT_EQ(problems_with([](TrialRequest& r) { r.directions[1].foreground->source_ports.maximum = 11; }), Places{"connections"});
    EXPECT_EQ(problems_with([](TrialRequest& r) { r.directions[1].foreground->source = test::fixed_host("198.19.0.3"); }),
              Places{"connections"});
    EXPECT_EQ(problems_with([](TrialRequest& r) {
                  r.directions[0].foreground->destination.networks = r.directions[1].foreground->source.networks = 256;
              }),
              Places{"connections"});
    EXPECT_EQ(problems_with([](TrialRequest& r) {
                  for (DirectionRequest& direction : r.directions) {
                      for (frame::HostSet* hosts : {&direction.foreground->source, &direction.foreground->destination}) {
                          *hosts = test::varying_host(net::to_text(hosts->address), 2, frame::ValueMode::pseudorandom, 0, 65535);
                      }
                      for (frame::ValueRange* ports : {&direction.foreground->source_ports, &direction.foreground->destination_ports}) {
                          *ports = {frame::ValueMode::pseudorandom, 0, 65535};
                      }
                  }
              }),
              Places{"connections"})
        << "2^64 four-tuples";
    EXPECT_EQ(problems_with([](TrialRequest& r) { r.directions[0].foreground.reset(); }).size(), 1U);
    for (const auto order : {Order::fixed, Order::decreasing}) {
        auto request = connection_trial(state::Phase::establish, {connection_direction(forward)});
        request.connections->send_order = order;
        EXPECT_EQ(problems_of(request), Places{"connections.send_order"});
    }
}

/// 4 subscribers share 2 addresses: 4 * 2 * 100 four-tuples.
TEST(TrialPlan, CountsTheHostsOfSubscribersInOneDigit) {
    using enum Direction;
    TrialRequest request = connection_trial(state::Phase::use, {connection_direction(forward), connection_direction(reverse)});
    const frame::TunnelRequest tunnel{.gateway = test::address_of("2001:db8:0:2::1"),
                                      .subscribers = test::varying_host("2001:db8:0:1::", 14, frame::ValueMode::pseudorandom, 3, 6)};
    frame::StreamRequest &upload = *request.directions[0].foreground, &download = *request.directions[1].foreground;
    upload.source = download.destination = test::varying_host("10.0.0.0", 2, frame::ValueMode::pseudorandom, 1, 2);
    upload.source_tunnel = download.destination_tunnel = tunnel;
    upload.frame_octets = 104;
    request.connections->count = 800;
    const auto result = make_trial_plan(request, {});
    ASSERT_TRUE(std::holds_alternative<TrialPlan>(result));
    const ConnectionIdentity& identity = std::get<TrialPlan>(result).connections->identity;
    EXPECT_EQ(identity.ranges.source_hosts, (enumerate::TupleRange{6, 8}));
    EXPECT_EQ(identity.subscribers, tunnel.subscribers);
    const auto problems_with = [&](auto&& change) {
        TrialRequest other = request;
        change(other, *other.directions[0].foreground, *other.directions[1].foreground);
        return problems_of(other);
    };
    using Stream = frame::StreamRequest;
    EXPECT_EQ(problems_with([](TrialRequest& r, Stream&, Stream&) { r.connections->count = 801; }), Places{"connections.count"});
    EXPECT_EQ(problems_with([](TrialRequest&, Stream& up, Stream&) { up.source_tunnel->subscribers->part.maximum = 7; }),
              Places{"connections"});
    EXPECT_EQ(problems_with([](TrialRequest&, Stream&, Stream& down) { down.destination_tunnel.reset(); }), Places{"connections"});
    EXPECT_EQ(problems_with([](TrialRequest&, Stream& up, Stream& down) {
                  up.source_tunnel->subscribers->part.maximum = down.destination_tunnel->subscribers->part.maximum = 32'768;
              }),
              Places{"connections"});
    EXPECT_EQ(problems_with([](TrialRequest&, Stream& up, Stream& down) {
                  up.source_tunnel->subscribers->part.maximum = down.destination_tunnel->subscribers->part.maximum = 32'767;
              }),
              Places{});
    EXPECT_EQ(problems_with([](TrialRequest&, Stream& up, Stream& down) {
                  up.source_tunnel->subscribers->offset = down.destination_tunnel->subscribers->offset = 15;
              }),
              (Places{"directions[0].foreground.source_tunnel.subscribers.offset",
                      "directions[1].foreground.destination_tunnel.subscribers.offset"}));
}

/// IPv4 clients of a customer edge talk to a server that is known under the prefix of its domain.
TrialRequest edge_trial() {
    TrialRequest request = connection_trial(state::Phase::establish, {connection_direction(Direction::forward)});
    frame::StreamRequest& stream = *request.directions[0].foreground;
    stream.destination = test::fixed_host("2001:db8:ffff::c613:2");
    stream.mapping = test::mapping_of("2001:db8:ffff::/96");
    stream.dont_fragment_rule = frame::DontFragmentRule::rfc7915;
    request.connections->edge = EdgeRequest{.rule = {.ipv6 = net::parse_prefix("2001:db8::/40").value(),
                                                     .ipv4 = net::parse_prefix("192.0.2.0/24").value(),
                                                     .ea_bits = 16,
                                                     .dmr = net::parse_prefix("2001:db8:ffff::/96").value()},
                                            .ea = 0x1234};
    request.connections->pool = {net::parse_prefix("2001:db8:12:3400:0:c000:212:34/128").value()};
    return request;
}

TEST(TrialPlan, TheGatewayMayBeACustomerEdgeThatBothSidesComputeAlike) {
    const auto problems_with = [&](auto&& change) {
        TrialRequest request = edge_trial();
        change(request);
        return problems_of(request);
    };
    EXPECT_EQ(problems_with([](TrialRequest&) {}), Places{});
    for (const char* const pool : {"2001:db8:12:3400:0:c000:212:35/128", "2001:db8:12:3400:0:c000:212:34/127"}) {
        EXPECT_EQ(problems_with([&](TrialRequest& r) { r.connections->pool = {net::parse_prefix(pool).value()}; }),
                  Places{"connections.pool"});
    }
    EXPECT_EQ(problems_with([](TrialRequest& r) { r.connections->edge->ea = 0x1'0000; }), Places{"connections.edge.ea"});
    EXPECT_EQ(problems_with([](TrialRequest& r) { r.connections->edge->rule.ea_bits = 25; }).front(), "connections.edge.ea_bits");
    EXPECT_EQ(problems_with([](TrialRequest& r) { r.directions[0].foreground->source = test::fixed_host("2001:2::2"); }).front(),
              "connections.edge");
    const auto in_tunnel = [](const char* pool) {
        return [pool](TrialRequest& r) {
            frame::StreamRequest& stream = *r.directions[0].foreground;
            stream.destination = test::fixed_host("198.19.0.2");
            stream.mapping.reset();
            stream.destination_tunnel = frame::TunnelRequest{.gateway = test::address_of("2001:db8:12:3400:0:c000:212:34"),
                                                             .subscribers = test::fixed_host("2001:db8:ffff::1")};
            r.connections->pool = {net::parse_prefix(pool).value()};
        };
    };
    EXPECT_EQ(problems_with(in_tunnel("192.0.2.18/32")), Places{});
    EXPECT_EQ(problems_with(in_tunnel("192.0.2.19/32")), Places{"connections.pool"});
    EXPECT_EQ(problems_with(in_tunnel("2001:db8:12:3400:0:c000:212:34/128")), Places{"connections.pool"});
    const auto in_a_row = [](const char* pool) {
        return [pool](TrialRequest& r) {
            r.directions[0].foreground->destination = test::fixed_host("198.19.0.2");
            r.connections->pool = {net::parse_prefix(pool).value()};
        };
    };
    EXPECT_EQ(problems_with(in_a_row("192.0.2.18/32")), Places{});
    EXPECT_EQ(problems_with(in_a_row("2001:db8:12:3400:0:c000:212:34/128")), Places{"connections.pool"});
    TrialRequest again = edge_trial();
    const auto plan = std::get<TrialPlan>(make_trial_plan(again, {}));
    again.connections->edge->rule.psid_offset = 4;  // the same address with other ports
    EXPECT_NE(plan.connections->identity, std::get<TrialPlan>(make_trial_plan(again, {})).connections->identity);
}

TEST(TrialPlan, TheNatOfACustomerEdgeIsInsideAndThatOfANat46OnEitherSide) {
    const auto changes = [](const TrialRequest& request) {
        return std::get<TrialPlan>(make_trial_plan(request, {})).directions[0].foreground->changes_after_translation();
    };
    EXPECT_FALSE(changes(edge_trial()));
    TrialRequest nat46 = edge_trial();
    nat46.connections->edge.reset();
    EXPECT_TRUE(changes(nat46));
    nat46.directions = {connection_direction(Direction::reverse)};
    frame::StreamRequest& stream = *nat46.directions[0].foreground;
    stream.frame_octets = 84;
    stream.source = test::fixed_host("2001:db8:ffff::c613:2");
    stream.mapping = test::mapping_of("2001:db8:ffff::/96");
    nat46.connections->phase = state::Phase::use;
    EXPECT_TRUE(changes(nat46));
}

/// The server of `edge_trial` is another customer edge, in this phase of the connections.
TrialRequest mesh_trial(state::Phase phase, bool with_upload, bool with_download, bool in_tunnels) {
    TrialRequest request = edge_trial();
    DirectionRequest up = request.directions[0];
    up.foreground->destination = test::fixed_host("192.0.2.19");
    up.foreground->mapping.reset();
    up.foreground->destination_peers = frame::PeersRequest{.rule = request.connections->edge->rule, .psid = 0x51};
    if (in_tunnels) {
        up.foreground->dont_fragment_rule = frame::DontFragmentRule::kept;
        up.foreground->destination_tunnel = frame::TunnelRequest{.gateway = test::address_of("2001:db8:12:3400:0:c000:212:34")};
        request.connections->pool = {net::parse_prefix("192.0.2.18/32").value()};
    }
    DirectionRequest down = up;
    down.direction = Direction::reverse;
    down.foreground->frame_octets = 128;
    std::swap(down.foreground->source, down.foreground->destination);
    std::swap(down.foreground->source_ports, down.foreground->destination_ports);
    std::swap(down.foreground->source_peers, down.foreground->destination_peers);
    std::swap(down.foreground->source_tunnel, down.foreground->destination_tunnel);
    request.connections->phase = phase;
    request.directions.clear();
    if (with_upload) {
        request.directions.push_back(up);
    }
    if (with_download) {
        request.directions.push_back(down);
    }
    return request;
}

TEST(TrialPlan, TheHostsOutsideMayBeOtherCustomerEdges) {
    using state::Phase;
    for (const bool in_tunnels : {false, true}) {
        std::vector<ConnectionIdentity> identities;
        for (const TrialRequest& request :
             {mesh_trial(Phase::establish, true, false, in_tunnels), mesh_trial(Phase::use, true, true, in_tunnels),
              mesh_trial(Phase::use, false, true, in_tunnels)}) {
            const auto plan = make_trial_plan(request, {});
            ASSERT_TRUE(std::holds_alternative<TrialPlan>(plan))
                << std::get<Errors>(plan)[0].where << ": " << std::get<Errors>(plan)[0].what;
            for (const DirectionPlan& direction : std::get<TrialPlan>(plan).directions) {
                EXPECT_NE(direction.foreground->peers(), nullptr);
            }
            identities.push_back(std::get<TrialPlan>(plan).connections->identity);
        }
        EXPECT_TRUE(identities[0].peers && identities[0] == identities[1] && identities[0] == identities[2]);
        TrialRequest request = mesh_trial(Phase::establish, true, false, in_tunnels);
        request.directions[0].foreground->destination_peers->psid = 0x52;
        EXPECT_NE(std::get<TrialPlan>(make_trial_plan(request, {})).connections->identity, identities[0]);
        request = mesh_trial(Phase::use, true, true, in_tunnels);
        request.directions[1].foreground->source_peers->psid = 0x52;
        EXPECT_EQ(problems_of(request), Places{"connections"});
        request = mesh_trial(Phase::establish, true, false, in_tunnels);
        request.connections->pool = {net::parse_prefix(in_tunnels ? "2001:db8:12:3400:0:c000:212:34/128" : "192.0.2.18/32").value()};
        EXPECT_EQ(problems_of(request), Places{"connections.pool"});
        request = mesh_trial(Phase::establish, true, false, in_tunnels);
        request.directions[0].foreground->destination = test::fixed_host("192.0.3.19");
        EXPECT_EQ(problems_of(request), Places{"directions[0].foreground.destination_peers.rule.ipv4"});
    }
}

}  // namespace
}  // namespace gatemark::trial
