#include "control/read_requests.hpp"

#include "control/protocol_examples.hpp"
#include "trial/trial_plan.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>

namespace gatemark::control {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

std::vector<std::string> sorted_places(const Errors& errors) {
    std::vector<std::string> places;
    for (const Error& error : errors) {
        EXPECT_FALSE(error.what.empty() || error.fix.empty()) << error.where;
        places.push_back(error.where);
    }
    std::sort(places.begin(), places.end());
    return places;
}

using Places = std::vector<std::string>;

TEST(ReadTrialRequest, AcceptsCustomerEdgesAtEitherEnd) {
    Errors errors;
    const trial::TrialRequest request = read_trial_request(example("trial_edges_request"), errors);
    ASSERT_TRUE(errors.empty());
    const frame::StreamRequest &forward = *request.directions[0].foreground, &reverse = *request.directions[1].foreground;
    ASSERT_TRUE(forward.source_edges && !forward.destination_edges && reverse.destination_edges && !reverse.source_edges);
    const frame::EdgesRequest& edges = *forward.source_edges;
    EXPECT_EQ(edges.count, 4U);
    EXPECT_EQ(edges.order, enumerate::Order::pseudorandom);
    EXPECT_EQ(edges.choice, frame::EdgeChoice::cycle);
    ASSERT_EQ(edges.domains.size(), 2U);
    EXPECT_EQ(net::to_text(edges.domains[0].rule.ipv6.address), "2001:db8::");
    EXPECT_EQ(edges.domains[0].rule.ipv6.length, 40U);
    EXPECT_EQ(edges.domains[0].rule.ea_bits, 16U);
    EXPECT_EQ(edges.domains[0].rule.psid, std::nullopt);
    EXPECT_EQ(edges.domains[0].weight, 3U);
    EXPECT_EQ(edges.domains[1].rule.psid, 52);
    EXPECT_EQ(edges.domains[1].rule.psid_bits, 8U);
    EXPECT_EQ(edges.domains[1].rule.dmr->length, 96U);
    const auto plan = trial::make_trial_plan(request, {});
    ASSERT_TRUE(std::holds_alternative<trial::TrialPlan>(plan)) << std::get<Errors>(plan)[0].what;
}

/// A customer edge talks to another one of its rule.
Json mesh_request() {
    Json message = example("trial_gateway_edge_request");
    Json& stream = message["directions"][0]["foreground"];
    stream["destination"]["address"] = "198.18.128.19";
    stream["translation"] = nullptr;
    Json rule = message["connections"]["edge"];
    rule.erase("ea");
    stream["destination_peers"] = {{"rule", rule}, {"psid", 81U}};
    return message;
}

TEST(ReadTrialRequest, AcceptsHostsThatAreOtherCustomerEdges) {
    Json message = mesh_request();
    Errors errors;
    const trial::TrialRequest request = read_trial_request(message, errors);
    ASSERT_TRUE(errors.empty()) << errors[0].where << ": " << errors[0].what;
    const frame::StreamRequest& stream = *request.directions[0].foreground;
    ASSERT_TRUE(stream.destination_peers && !stream.source_peers);
    EXPECT_EQ(stream.destination_peers->psid, 81);
    EXPECT_EQ(stream.destination_peers->rule, request.connections->edge->rule);
    const auto plan = trial::make_trial_plan(request, {});
    ASSERT_TRUE(std::holds_alternative<trial::TrialPlan>(plan)) << std::get<Errors>(plan)[0].what;
    EXPECT_EQ(std::get<trial::TrialPlan>(plan).connections->identity.peers, stream.destination_peers);
    Json& directions = message["directions"];
    directions[0]["foreground"]["source_peers"] = directions[0]["foreground"]["destination_peers"];
    directions[0]["foreground"]["destination_peers"] = nullptr;
    const trial::TrialRequest reversed = read_trial_request(message, errors);
    ASSERT_TRUE(errors.empty());
    EXPECT_EQ(reversed.directions[0].foreground->source_peers, stream.destination_peers);
    EXPECT_FALSE(reversed.directions[0].foreground->destination_peers);
}

TEST(ReadTrialRequest, NamesEveryProblemOfOtherCustomerEdges) {
    const auto places_with = [](auto&& change) {
        Json message = mesh_request();
        change(message["directions"][0]["foreground"]["destination_peers"]);
        Errors errors;
        (void)read_trial_request(message, errors);
        return sorted_places(errors);
    };
    const std::string where = "directions[0].foreground.destination_peers";
    EXPECT_EQ(places_with([](Json& peers) {
                  peers["rule"]["ipv6"] = "2001:db8::1/40";
                  peers["rule"]["ipv4"] = "2001:db8::/40";
                  peers["rule"]["ea_bits"] = 49;
                  peers["rule"]["psid_offset"] = 16;
                  peers["rule"]["dmr"] = "64:ff9b::1/96";
                  peers["rule"]["ea"] = 4660;
                  peers["psid"] = 65536;
                  peers["surprise"] = 1;
              }),
              (Places{where + ".psid", where + ".rule.dmr", where + ".rule.ea", where + ".rule.ea_bits", where + ".rule.ipv4",
                      where + ".rule.ipv6", where + ".rule.psid_offset", where + ".surprise"}));
    EXPECT_EQ(places_with([](Json& peers) { peers.erase("psid"); }), Places{where + ".psid"});
    EXPECT_EQ(places_with([](Json& peers) { peers["rule"].erase("ea_bits"); }), Places{where + ".rule.ea_bits"});
    EXPECT_EQ(places_with([](Json& peers) { peers.erase("rule"); }).front(), where + ".rule");
    EXPECT_EQ(places_with([](Json& peers) { peers = 81; }).front(), where);
}

TEST(ReadTrialRequest, TheEndsOfAnEchoTrialAreNoOtherCustomerEdges) {
    const Json peers = mesh_request()["directions"][0]["foreground"]["destination_peers"];
    for (const char* const key : {"source_peers", "destination_peers"}) {
        Json message = example("trial_echo_request");
        Errors errors;
        message["directions"][0]["foreground"][key] = nullptr;
        (void)read_trial_request(message, errors);
        EXPECT_TRUE(errors.empty());
        message["directions"][0]["foreground"][key] = peers;
        (void)read_trial_request(message, errors);
        EXPECT_EQ(sorted_places(errors), Places{std::string{"directions[0].foreground."} + key});
    }
}

TEST(ReadOpenRequest, AcceptsCustomerEdgesOnTheLink) {
    Errors errors;
    const trial::OpenRequest request = read_open_request(example("open_edges_request"), errors);
    ASSERT_TRUE(errors.empty());
    ASSERT_EQ(request.left.answer_for_edges.size(), 1U);
    EXPECT_EQ(request.left.answer_for.size(), 2U);
    EXPECT_EQ(request.left.answer_for_edges[0].count, 1000U);
    EXPECT_TRUE(request.right.answer_for_edges.empty());
}

TEST(ReadTrialRequest, NamesEveryProblemOfCustomerEdges) {
    Json message = example("trial_edges_request");
    Json& edges = message["directions"][0]["foreground"]["source"]["edges"];
    edges["domains"][0]["ipv6"] = "2001:db8::1/40";
    edges["domains"][0]["ipv4"] = "2001:db8::/40";
    edges["domains"][1]["ea_bits"] = 49;
    edges["domains"][1]["surprise"] = 1;
    edges["order"] = "random";
    edges["count"] = 0;
    message["directions"][1]["foreground"]["destination"]["address"] = "2001:db8::1";
    Errors errors;
    (void)read_trial_request(message, errors);
    const std::string source = "directions[0].foreground.source.edges.";
    EXPECT_EQ(sorted_places(errors),
              (Places{source + "count", source + "domains[0].ipv4", source + "domains[0].ipv6", source + "domains[1].ea_bits",
                      source + "domains[1].surprise", source + "order", "directions[1].foreground.destination.address"}));
}

TEST(ReadTrialRequest, AcceptsEveryValue) {
    Errors errors;
    const trial::TrialRequest request = read_trial_request(example("trial_request"), errors);
    ASSERT_TRUE(errors.empty());
    EXPECT_EQ(request.trial_number, 12U);
    EXPECT_EQ(request.seed, 42U);
    EXPECT_EQ(request.duration, 60s);
    EXPECT_EQ(request.waits.settle, 2s);
    EXPECT_EQ(request.waits.rest, 5s);
    EXPECT_EQ(request.give_up_lateness, 1ms);
    EXPECT_EQ(request.progress, 500ms);
    ASSERT_EQ(request.directions.size(), 2U);
    const trial::DirectionRequest& forward = request.directions[0];
    EXPECT_EQ(forward.direction, trial::Direction::forward);
    EXPECT_EQ(request.directions[1].direction, trial::Direction::reverse);
    EXPECT_EQ(forward.frames_per_second, 1'000'000U);
    EXPECT_EQ(forward.foreground_m, 9U);
    EXPECT_EQ(forward.foreground_n, 10U);
    ASSERT_TRUE(forward.foreground && forward.background);
    EXPECT_EQ(forward.foreground->frame_octets, 84U);
    EXPECT_EQ(forward.foreground->hop_limit_decrement, 3U);
    EXPECT_EQ(forward.foreground->source.offset, 14U);
    EXPECT_EQ(forward.foreground->source.part, (frame::ValueRange{frame::ValueMode::pseudorandom, 2, 254}));
    EXPECT_EQ(net::to_text(forward.foreground->destination.address), "198.19.0.2");
    EXPECT_EQ(forward.foreground->destination_ports, (frame::ValueRange{frame::ValueMode::pseudorandom, 1, 49151}));
    ASSERT_TRUE(forward.foreground->mapping);
    EXPECT_EQ(net::to_text(*forward.foreground->mapping->to_ipv6(*net::parse_address("198.18.0.9"))), "2001:2::9");
    EXPECT_FALSE(forward.background->mapping);
    EXPECT_FALSE(forward.background->as_sent);
    EXPECT_EQ(forward.background->destination.part.mode, frame::ValueMode::fixed);
}

TEST(ReadTrialRequest, AllProblemsComeAtOnce) {
    Json message = example("trial_request");
    message["speed"] = 5;
    message["duration_ns"] = "60s";
    message["waits"].erase("learn_ns");
    message["waits"]["lern_ns"] = 1;
    message["give_up_lateness_ns"] = 0;
    Json& stream = message["directions"][0]["foreground"];
    stream["frame_octets"] = 63;
    stream["hop_limit"] = 256;
    stream["dont_fragment"] = 0;
    stream["udp_checksum"] = "none";
    stream["source"]["address"] = "2001:2::g";
    stream["source"]["mode"] = "random";
    stream["destination"]["networks"] = 257;
    stream["source_ports"]["maximum"] = 65536;
    stream["expect"] = "nothing";
    stream["translation"]["eam"][0]["ipv4"] = "198.18.0.1/24";
    message["directions"][1]["direction"] = "backward";
    Errors errors;
    (void)read_trial_request(message, errors);
    EXPECT_EQ(sorted_places(errors),
              (Places{"directions[0].foreground.destination.networks", "directions[0].foreground.dont_fragment",
                      "directions[0].foreground.expect", "directions[0].foreground.frame_octets", "directions[0].foreground.hop_limit",
                      "directions[0].foreground.source.address", "directions[0].foreground.source.mode",
                      "directions[0].foreground.source_ports.maximum", "directions[0].foreground.translation.eam[0]",
                      "directions[0].foreground.udp_checksum", "directions[1].direction", "duration_ns", "give_up_lateness_ns", "speed",
                      "waits.learn_ns", "waits.lern_ns"}));
}

TEST(ReadTrialRequest, ADirectionMayHaveBursts) {
    Json message = example("trial_request");
    Errors errors;
    const trial::TrialRequest request = read_trial_request(message, errors);
    EXPECT_FALSE(request.directions[0].bursts);
    for (const char* const text : {R"({"frames":1,"frames_per_second":1000000})", R"({"frames":1000000,"frames_per_second":1000000000})"}) {
        const Json bursts = message["directions"][1]["bursts"] = Json::parse(text);
        const auto read = read_trial_request(message, errors).directions[1].bursts;
        ASSERT_TRUE(read && errors.empty());
        EXPECT_EQ(read->frames, bursts["frames"].get<std::uint64_t>());
        EXPECT_EQ(read->frames_per_second, bursts["frames_per_second"].get<std::uint64_t>());
    }
    const std::string where = "directions[1].bursts";
    for (const auto& [text, places] :
         {std::pair{R"({"frames":0,"frames_per_second":0})", Places{where + ".frames", where + ".frames_per_second"}},
          std::pair{R"({"frames":1000001,"frames_per_second":1000000001})", Places{where + ".frames", where + ".frames_per_second"}},
          std::pair{R"({"frames":64,"after_ns":1})", Places{where + ".after_ns", where + ".frames_per_second"}},
          std::pair{R"({"frames":6.5,"frames_per_second":1000000})", Places{where + ".frames"}},
          std::pair{"64", Places{where, where + ".frames", where + ".frames_per_second"}}}) {
        message["directions"][1]["bursts"] = Json::parse(text);
        errors.clear();
        (void)read_trial_request(message, errors);
        EXPECT_EQ(sorted_places(errors), places) << text;
    }
}

TEST(ReadTrialRequest, FlowsOfADirectionMayStartOneAfterAnother) {
    Json message = example("trial_request");
    Errors errors;
    EXPECT_FALSE(read_trial_request(message, errors).directions[0].flow_start);
    message["directions"][1]["flow_start"] = Json::parse(R"({"flows":4,"rounds_between":10})");
    const auto read = read_trial_request(message, errors).directions[1].flow_start;
    ASSERT_TRUE(read && errors.empty());
    EXPECT_EQ(read->ramp_slots(), 4U * 3 * 10);
    const std::string where = "directions[1].flow_start";
    for (const auto& [text, places] :
         {std::pair{R"({"flows":0,"rounds_between":0})", Places{where + ".flows", where + ".rounds_between"}},
          std::pair{R"({"flows":1048577,"rounds_between":1048577})", Places{where + ".flows", where + ".rounds_between"}},
          std::pair{R"({"flows":4,"after_ns":1})", Places{where + ".after_ns", where + ".rounds_between"}}}) {
        message["directions"][1]["flow_start"] = Json::parse(text);
        errors.clear();
        (void)read_trial_request(message, errors);
        EXPECT_EQ(sorted_places(errors), places) << text;
    }
}

TEST(ReadOpenRequest, AcceptsEveryValueAndReportsAllProblems) {
    Errors errors;
    const trial::OpenRequest request = read_open_request(example("open_request"), errors);
    ASSERT_TRUE(errors.empty());
    EXPECT_EQ(request.left.port, "af_packet:gm0-left");
    EXPECT_EQ(request.left.answer_for.size(), 2U);
    EXPECT_FALSE(request.left.gateway_mac);
    EXPECT_FALSE(request.left.random_host_macs);
    EXPECT_EQ(request.seed, 42U);
    EXPECT_EQ(request.right.vlan_id, 100);
    EXPECT_EQ(net::to_text(*request.right.gateway_mac), "02:00:00:00:00:01");
    EXPECT_EQ(request.cores, (std::vector<unsigned>{1}));
    EXPECT_TRUE(request.huge_pages_allowed);
    Json message = example("open_request");
    message["left"]["queues"] = 0;
    message["left"]["vlan_id"] = 4095;
    message["right"]["host_macs"] = "random";
    EXPECT_TRUE(read_open_request(message, errors).right.random_host_macs);
    errors.clear();
    message["left"]["host_macs"] = "own";
    message["seed"] = -1;
    message["right"]["gateway_mac"] = "02:00";
    message["right"]["mtu"] = 100;
    message["cores"] = Json::parse(R"([0,-1,"x"])");
    message["huge_pages"] = "always";
    (void)read_open_request(message, errors);
    EXPECT_EQ(sorted_places(errors), (Places{"cores", "cores", "huge_pages", "left.host_macs", "left.queues", "left.vlan_id",
                                             "right.gateway_mac", "right.mtu", "seed"}));
}

TEST(ReadResolveRequest, AcceptsEveryValue) {
    Errors errors;
    const trial::ResolveRequest request = read_resolve_request(example("resolve_request"), errors);
    ASSERT_TRUE(errors.empty());
    EXPECT_EQ(request.side, trial::Side::left);
    EXPECT_EQ(net::to_text(request.gateway), "2001:2::1");
    EXPECT_EQ(request.timeout, 3s);
}

TEST(ReadExchangeRequest, TakesPacketsOctetForOctet) {
    Errors errors;
    const trial::ExchangeRequest request = read_exchange_request(example("exchange_request"), errors);
    ASSERT_TRUE(errors.empty());
    ASSERT_EQ(request.packets[0].size(), 1U);
    EXPECT_EQ(request.packets[0][0].size(), 32U);
    EXPECT_EQ(request.packets[0][0][0], std::byte{0x45});
    EXPECT_EQ(request.packets[0][0][31], std::byte{0x03});
    EXPECT_TRUE(request.packets[1].empty());
    EXPECT_EQ(request.interval, 10ms);
    EXPECT_EQ(request.wait, 500ms);
}

TEST(ReadExchangeRequest, NamesEveryPacketThatIsNone) {
    Json message = example("exchange_request");
    const std::string good = message["left"][0];
    const auto beginning_with = [&](char first) {
        std::string changed = good;
        changed[0] = first;
        return changed;
    };
    message["left"] = {
        good, good + "0", good.substr(0, 38), beginning_with('x'), beginning_with('+'), beginning_with('7'), 5, std::string(2 * 9001, '4')};
    message["right"] = std::vector<std::string>(1025, good);
    message["interval_ns"] = -1;
    Errors errors;
    (void)read_exchange_request(message, errors);
    EXPECT_EQ(sorted_places(errors),
              (Places{"interval_ns", "left[1]", "left[2]", "left[3]", "left[4]", "left[5]", "left[6]", "left[7]", "right"}));
}

TEST(ReadHosts, FixedHostsAreTakenAsTheyStand) {
    Json message = example("open_request");
    message["left"]["answer_for"] =
        Json::parse(R"([{"address":"198.18.0.2","offset":2,"mode":"fixed","minimum":7,"maximum":9,"networks":256}])");
    Errors errors;
    const trial::OpenRequest request = read_open_request(message, errors);
    ASSERT_TRUE(errors.empty());
    EXPECT_EQ(request.left.answer_for[0].part, (frame::ValueRange{frame::ValueMode::fixed, 0, 0}));
    EXPECT_EQ(request.left.answer_for[0].networks, 256);
}

/// Replaces one value after the other, at every depth, by values of every type: reading must report
/// problems, and never throw or crash.
void with_each_value_replaced(Json& root, Json& part, const std::function<void()>& visit) {
    const Json replacements = Json::parse(R"([null,true,-1,0,1,2,1.5,18446744073709551615,"","x",[],[null],{},{"a":1},"1.2.3.4\u0000/5"])");
    for (auto& value : part) {
        const Json original = value;
        for (const Json& replacement : replacements) {
            value = replacement;
            visit();
        }
        value = original;
        if (value.is_structured()) {
            with_each_value_replaced(root, value, visit);
        }
    }
}

TEST(ReadRequests, SurviveEveryValueOfEveryType) {
    using Reader = void (*)(const Json&, Errors&);
    constexpr Reader read_trial = [](const Json& message, Errors& errors) { (void)read_trial_request(message, errors); };
    constexpr Reader read_open = [](const Json& message, Errors& errors) { (void)read_open_request(message, errors); };
    constexpr Reader read_resolve = [](const Json& message, Errors& errors) { (void)read_resolve_request(message, errors); };
    constexpr Reader read_frames = [](const Json& message, Errors& errors) { (void)read_frames_request(message, errors); };
    constexpr Reader read_exchange = [](const Json& message, Errors& errors) { (void)read_exchange_request(message, errors); };
    struct Readable {
        Json message;
        Reader read;
    };
    const std::vector<Readable> messages{
        {example("trial_request"), read_trial},
        {example("trial_edges_request"), read_trial},
        {mesh_request(), read_trial},
        {example("open_edges_request"), read_open},
        {example("resolve_request"), read_resolve},
        {example("frames_request"), read_frames},
        {example("exchange_request"), read_exchange},
    };
    for (const Readable& readable : messages) {
        Json changed = readable.message;
        std::uint64_t refused = 0;
        with_each_value_replaced(changed, changed, [&] {
            Errors errors;
            readable.read(changed, errors);
            refused += errors.empty() ? 0 : 1;
        });
        EXPECT_GT(refused, 0U);
        for (const Readable& other : messages) {
            Errors errors;
            other.read(readable.message, errors);
            EXPECT_EQ(errors.empty(), other.read == readable.read) << readable.message["type"] << " read as " << other.message["type"];
        }
        for (const char* const text : {"null", "[]", "5", "\"trial\"", "{}", "[[[[[[]]]]]]"}) {
            Errors errors;
            readable.read(Json::parse(text), errors);
            EXPECT_FALSE(errors.empty()) << text;
        }
    }
}

TEST(ReadRequests, WhatCanBeReadIsPlannedOrRefusedWithReasons) {
    for (Json message : {example("trial_request"), example("trial_edges_request"), mesh_request()}) {
        unsigned planned = 0, refused = 0;
        with_each_value_replaced(message, message, [&] {
            Errors errors;
            const trial::TrialRequest request = read_trial_request(message, errors);
            if (!errors.empty()) {
                return;
            }
            (std::holds_alternative<Errors>(trial::make_trial_plan(request, {})) ? refused : planned) += 1;
        });
        EXPECT_GT(planned, 0U);
        EXPECT_GT(refused, 0U);
    }
}

}  // namespace
}  // namespace gatemark::control
