#include "trial/trial_plan.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace gatemark::trial {
namespace {

using namespace std::chrono_literals;
using test::Gateway;

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
    const auto made = make_trial_plan(request_with({direction_of(Direction::reverse, 9, 10), direction_of(Direction::forward)}), links);
    ASSERT_TRUE(std::holds_alternative<TrialPlan>(made));
    const auto& plan = std::get<TrialPlan>(made);
    EXPECT_EQ(plan.tag, test::trial_tag());
    ASSERT_EQ(plan.directions.size(), 2U);
    const DirectionPlan &forward = plan.directions[0], &reverse = plan.directions[1];
    EXPECT_EQ(plan.direction(Direction::reverse), &reverse);
    EXPECT_EQ(forward.frame_count, 1000U);
    EXPECT_EQ(forward.intended_foreground(), 1000U);
    EXPECT_FALSE(forward.background);
    EXPECT_EQ(reverse.intended_foreground(), 900U);
    EXPECT_EQ(reverse.intended_background(), 100U);
    EXPECT_EQ(forward.foreground->octet(), 0xa0);
    EXPECT_EQ(reverse.background->octet(), 0xa3);
    EXPECT_EQ(forward.foreground->expected_vlan(), 100);
    EXPECT_EQ(forward.foreground->sent().layout.ip, 14U);
    EXPECT_EQ(reverse.foreground->sent().layout.ip, 18U);
    EXPECT_EQ(reverse.foreground->expected_vlan(), std::nullopt);
}

TEST(TrialPlan, BackgroundAloneIsATrialToo) {
    const auto made = make_trial_plan(request_with({direction_of(Direction::forward, 0, 1)}), {});
    ASSERT_TRUE(std::holds_alternative<TrialPlan>(made));
    EXPECT_EQ(std::get<TrialPlan>(made).directions[0].intended_background(), 1000U);
}

TEST(TrialPlan, CountsFramesIn128Bits) {
    EXPECT_EQ(frame_count_of(60s, 148'809'523), 8'928'571'380U);
    EXPECT_EQ(frame_count_of(1ms, 1), 0U);
    EXPECT_EQ(frame_count_of(1ms, 1999), 1U);
    EXPECT_EQ(frame_count_of(168h, 1'000'000'000), 604'800'000'000'000U);
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
    EXPECT_EQ(problems_with(test::varying_host("198.19.0.0", 2, pseudorandom, 0, 255, true)), 0U);
    EXPECT_EQ(problems_with(test::varying_host("198.19.0.0", 2, pseudorandom, 0, 256, true)), 1U);
    EXPECT_EQ(problems_with(test::varying_host("198.19.0.0", 1, pseudorandom, 0, 255, true)), 1U);
    EXPECT_EQ(problems_with(test::varying_host("198.19.0.0", 1, pseudorandom, 0, 65535)), 0U);
    EXPECT_EQ(problems_with(test::varying_host("198.19.0.0", 3, pseudorandom, 0, 255)), 1U);
    EXPECT_EQ(problems_with(test::varying_host("2001:2::", 6, pseudorandom, 0, 255, true)), 1U);
    EXPECT_EQ(problems_with(test::varying_host("2001:2::", 7, pseudorandom, 0, 255, true)), 0U);
    EXPECT_EQ(problems_with(test::varying_host("2001:2::", 14, pseudorandom, 0, 65535, true)), 0U);
}

}  // namespace
}  // namespace gatemark::trial
