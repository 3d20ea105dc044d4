#include "control/server.hpp"

#include "control/pipes.hpp"
#include "pace/calibrate.hpp"
#include "pace/false_clock.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <nlohmann/json.hpp>

#include <array>
#include <fstream>

namespace gatemark::control {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

/// The whole engine behind its pipes, with a pair of rings as its wire: what one port sends the
/// other receives.
class RingTrial : public testing::Test {
protected:
    static void SetUpTestSuite() {
        pipes_ = new Pipes;
        server_ = new std::thread{[] {
            LineChannel channel{pipes_->in.reading(), pipes_->out.writing()};
            Server{channel, pace::ticks_per_second()}.serve();
        }};
        client_ = new LineChannel{pipes_->out.reading(), pipes_->in.writing()};
        const Json answer = ask(Json::parse(R"({"request":"open","id":1,"cores":[],"huge_pages":"never",
            "left":{"port":"ring","queues":1,"ring_frames":1024,"vlan_id":null,"mtu":1500,"answer_for":[],
                    "host_macs":"fixed","gateway_mac":null},
            "right":{"port":"ring","queues":1,"ring_frames":1024,"vlan_id":null,"mtu":1500,"answer_for":[],
                     "host_macs":"fixed","gateway_mac":null},
            "seed":42})"));
        ASSERT_EQ(answer["answer"], "ok") << answer;
    }
    static void TearDownTestSuite() {
        EXPECT_EQ(ask({{"request", "close"}, {"id", 99}})["answer"], "ok");
        server_->join();
        delete server_;
        delete client_;
        delete pipes_;
    }

    static Json ask(const Json& request) {
        client_->write(request.dump());
        return answer();
    }
    /// The next answer that is no progress.
    static Json answer() {
        while (const auto line = client_->read(60s)) {
            Json json = Json::parse(*line);
            if (json["answer"] != "progress") {
                return json;
            }
            progress_.push_back(std::move(json));
        }
        return {{"answer", "none within a minute"}};
    }
    /// The next progress of a trial under way.
    static Json progress() {
        const auto line = client_->read(60s);
        Json json = line ? Json::parse(*line) : Json{{"answer", "none within a minute"}};
        EXPECT_EQ(json["answer"], "progress") << json;
        return json;
    }
    static Json hosts(const char* address) {
        return {{"address", address}, {"offset", 0}, {"mode", "fixed"}, {"minimum", 0}, {"maximum", 0}, {"networks", 1}};
    }
    static Json stream(const char* source, const char* destination, const char* expect) {
        return {{"frame_octets", 84},
                {"hop_limit", 10},
                {"traffic_classes", {0}},
                {"flow_label", 0},
                {"extension_headers", Json::array()},
                {"trailer_octets", 0},
                {"dont_fragment", false},
                {"dont_fragment_rule", "kept"},
                {"udp_checksum", "computed"},
                {"source", hosts(source)},
                {"destination", hosts(destination)},
                {"source_ports", {{"mode", "pseudorandom"}, {"minimum", 1024}, {"maximum", 65535}}},
                {"destination_ports", {{"mode", "pseudorandom"}, {"minimum", 1}, {"maximum", 49151}}},
                {"expect", expect},
                {"hop_limit_decrement", std::string{expect} == "gateway" ? 1 : 0},
                {"translation", nullptr}};
    }
    static Json trial(std::chrono::nanoseconds duration, const char* expect) {
        Json request = Json::parse(
            R"({"request":"trial","id":2,"trial_number":5,"seed":42,"waits":{"settle_ns":0,"learn_ns":0,"drain_ns":100000000,"rest_ns":0},
            "give_up_lateness_ns":60000000000,"kept_frames_max":2,"progress_ns":100000000,"directions":[]})");
        request["duration_ns"] = duration.count();
        for (const char* const direction : {"forward", "reverse"}) {
            request["directions"].push_back({{"direction", direction},
                                             {"frames_per_second", 10'000},
                                             {"foreground_m", 3},
                                             {"foreground_n", 4},
                                             {"foreground", stream("198.18.0.2", "198.19.0.2", expect)},
                                             {"background", stream("2001:2::2", "2001:2:0:8000::2", expect)}});
        }
        return request;
    }

    /// A phase of a stateful test in loop-back: 400 connections, the Initiator on the left.
    static Json phase(const char* name, const std::vector<const char*>& directions, unsigned frames_per_second,
                      const char* order_of_use = "pseudorandom", const char* expect = "as_sent") {
        Json request = trial(100ms, expect);
        const bool establishes = std::string{name} == "establish";
        request["connections"] = {{"phase", name},
                                  {"initiator", "left"},
                                  {"count", 400},
                                  {"order", "pseudorandom"},
                                  {"send_order", establishes ? "increasing" : order_of_use},
                                  {"read_order", order_of_use},
                                  {"pool", {"198.18.0.2/32"}}};
        request["directions"] = Json::array();
        const Json inside{{"mode", "pseudorandom"}, {"minimum", 1024}, {"maximum", 1063}};
        const Json outside{{"mode", "pseudorandom"}, {"minimum", 1}, {"maximum", 10}};
        for (const char* const direction : directions) {
            const bool upload = std::string{direction} == "forward";
            Json foreground = upload ? stream("198.18.0.2", "198.19.0.2", expect) : stream("198.19.0.2", "198.18.0.2", expect);
            foreground["source_ports"] = upload ? inside : outside;
            foreground["destination_ports"] = upload ? outside : inside;
            request["directions"].push_back({{"direction", direction},
                                             {"frames_per_second", frames_per_second},
                                             {"foreground_m", 1},
                                             {"foreground_n", 1},
                                             {"foreground", foreground},
                                             {"background", nullptr}});
        }
        return request;
    }

    /// Three clients that send 360 echo requests to themselves through the rings.
    static Json echo(const Json& closed_loop, const Json& frames_per_second) {
        Json request = trial(1s, "as_sent");
        request["waits"]["drain_ns"] = 1'000'000'000;
        request["echo"] = {{"clients", 3},
                           {"window", 2},
                           {"count", 3},
                           {"destinations", 40},
                           {"closed_loop", closed_loop},
                           {"pool", nullptr},
                           {"timeout_ns", 1'000'000'000}};
        Json foreground = stream("2001:2::2", "2001:2:0:8000::2", "as_sent");
        foreground["frame_octets"] = 122;
        foreground["source_ports"] = foreground["destination_ports"] = nullptr;
        for (const auto& [end, last] : {std::pair{"source", 4}, std::pair{"destination", 121}}) {
            foreground[end].update({{"offset", 14}, {"mode", "increasing"}, {"minimum", 2}, {"maximum", last}});
        }
        request["directions"] = {{{"direction", "forward"},
                                  {"frames_per_second", frames_per_second},
                                  {"foreground_m", 1},
                                  {"foreground_n", 1},
                                  {"foreground", foreground},
                                  {"background", nullptr}}};
        return request;
    }

    struct Pipes {
        test::Pipe in, out;
    };
    static inline Pipes* pipes_ = nullptr;
    static inline std::thread* server_ = nullptr;
    static inline LineChannel* client_ = nullptr;
    static inline std::vector<Json> progress_;
};

TEST_F(RingTrial, NoWaitIsShorterThanItIsNamed) {
    Json request = trial(20ms, "as_sent");
    const std::array<std::pair<const char*, std::chrono::nanoseconds>, 5> named{
        {{"settle", 30ms}, {"learn", 10ms}, {"send", 20ms}, {"drain", 50ms}, {"rest", 40ms}}};
    for (const auto& [phase, time] : named) {
        if (std::string{phase} != "send") {
            request["waits"][std::string{phase} + "_ns"] = time.count();
        }
    }
    const auto begun = std::chrono::steady_clock::now();
    const Json answer = ask(request);
    EXPECT_GE(std::chrono::steady_clock::now() - begun, 150ms);
    ASSERT_EQ(answer["phases"].size(), named.size()) << answer;
    for (std::size_t i = 0; i < named.size(); ++i) {
        EXPECT_EQ(answer["phases"][i]["phase"], named[i].first);
        EXPECT_GE(answer["phases"][i]["duration_ns"], named[i].second.count()) << named[i].first;
    }
}

TEST_F(RingTrial, BothClocksAreReportedSoAMachineThatSleptShows) {
    constexpr std::int64_t millisecond = 1'000'000;
    const auto ahead = [](const Json& report) {
        const Json& clocks = report.at("clocks");
        return clocks["cycle_counter_ns"].get<std::int64_t>() - clocks["monotonic_raw_ns"].get<std::int64_t>();
    };
    const Json awake = ask(trial(200ms, "as_sent"));
    ASSERT_TRUE(awake.contains("clocks")) << awake;
    EXPECT_GE(awake["clocks"]["monotonic_raw_ns"], 300 * millisecond) << "200 ms of sending, 100 ms for residual frames";
    constexpr std::int64_t held_up = 100 * millisecond;  // between the readings of two clocks, in each of 20 attempts
    EXPECT_LT(std::abs(ahead(awake)), held_up) << awake["clocks"];
    client_->write(trial(60s, "as_sent").dump());
    while (progress()["elapsed_ns"] < 300 * millisecond && !HasFailure()) {}
    test::set_raw_clock_back(200ms);
    client_->write(R"({"request":"cancel","id":2})");
    const Json slept = answer();
    EXPECT_NEAR(static_cast<double>(ahead(slept)), 200 * millisecond, static_cast<double>(held_up)) << slept["clocks"];
    EXPECT_FALSE(slept["directions"][0]["gave_up"]) << "nothing else in the report tells it";
}

TEST_F(RingTrial, EveryFrameThatWasOfferedComesBack) {
    const Json report = ask(trial(500ms, "as_sent"));
    ASSERT_EQ(report["answer"], "ok") << report;
    EXPECT_FALSE(report["cancelled"]);
    ASSERT_EQ(report["directions"].size(), 2U);
    for (const Json& direction : report["directions"]) {
        EXPECT_FALSE(direction["gave_up"]);
        for (const auto& [name, frames] : {std::pair{"foreground", 3750}, std::pair{"background", 1250}}) {
            const Json& counts = direction[name];
            EXPECT_EQ(counts["intended"], frames);
            EXPECT_EQ(counts["offered"], frames);
            EXPECT_EQ(counts["received"], frames) << counts["faults"];
            EXPECT_EQ(counts["lost"], 0);
            EXPECT_EQ(counts["duplicate"], 0);
            EXPECT_EQ(counts["reordered"], 0);
        }
        EXPECT_GE(direction["sending_ns"].get<std::int64_t>(), 499'800'000);
    }
    EXPECT_TRUE(report["kept_frames"].empty());
}

/// A million customer edges of two domains on the left, as frames of their own family on both
/// rings.
TEST_F(RingTrial, EveryFrameOfEveryCustomerEdgeComesBack) {
    Json request = trial(500ms, "as_sent");
    const Json edges = Json::parse(R"({"edges":{"domains":[
        {"ipv6":"2001:db8:a0::/44","ipv4":"198.20.0.0/16","ea_bits":20,"psid_offset":4,"psid_bits":null,"psid":null,
         "dmr":"2001:db8:ffff::/64","weight":2,"in_identifier":false,"except_suffixes":false,"except_system_ports":false},
        {"ipv6":"2001:db8:ce::/51","ipv4":"192.0.2.0/24","ea_bits":20,"psid_offset":0,"psid_bits":null,"psid":null,
         "dmr":"64:ff9b::/96","weight":1,"in_identifier":false,"except_suffixes":true,"except_system_ports":true}],
        "count":1000000,"order":"pseudorandom","choice":"cycle"}})");
    for (Json& direction : request["directions"]) {
        const bool forward = direction["direction"] == "forward";
        direction["foreground"][forward ? "source" : "destination"] = edges;
        direction["foreground"][forward ? "destination" : "source"] = hosts("203.0.113.2");
    }
    const Json answer = ask(request);
    ASSERT_EQ(answer["answer"], "ok") << answer;
    for (const Json& direction : answer["directions"]) {
        EXPECT_EQ(direction["foreground"]["received"], 3750);
        EXPECT_EQ(direction["background"]["received"], 1250);
        EXPECT_EQ(direction["foreground"]["faults"], Json::object());
    }
    EXPECT_EQ(answer["kept_frames"], Json::array());
}

TEST_F(RingTrial, DelaysOfEveryFrameAreRecorded) {
    Json request = trial(400ms, "as_sent");
    request["delays"] = Json::parse(R"({"timeout_ns":null,"tags":{"first_ns":200000000,"count":500},"variation":true,"histogram":true})");
    const auto begun = std::chrono::steady_clock::now();
    const Json report = ask(request);
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begun;
    ASSERT_EQ(report["answer"], "ok") << report;
    for (const Json& direction : report["directions"]) {
        std::uint64_t tags = 0;
        for (const char* const name : {"foreground", "background"}) {
            const Json& counts = direction[name];
            const Json& delay = counts["delay"];
            EXPECT_EQ(delay["samples"], counts["received"]);
            EXPECT_EQ(delay["negative"], 0);
            EXPECT_GT(delay["minimum_ns"], 0);
            EXPECT_LE(delay["percentiles"][5]["ns"], delay["maximum_ns"]);
            EXPECT_LT(delay["maximum_ns"], took.count()) << "no frame was under way for longer than the trial took";
            EXPECT_EQ(delay["tags"]["count"], delay["tags"]["received"]);
            EXPECT_GE(delay["tags"]["p999_ns"], delay["tags"]["median_ns"]);
            tags += delay["tags"]["count"].get<std::uint64_t>();
            EXPECT_EQ(delay["variation"]["pairs"].get<std::uint64_t>(), counts["received"].get<std::uint64_t>() - 1);
            EXPECT_EQ(delay["variation"]["skipped"], 0);
            EXPECT_LE(delay["variation"]["minimum_ns"], 0);
            EXPECT_GE(delay["variation"]["maximum_ns"], 0);
            std::uint64_t frames = 0;
            for (const Json& bucket : delay["histogram"]) {
                frames += bucket[1].get<std::uint64_t>();
            }
            EXPECT_EQ(frames, counts["received"]);
        }
        EXPECT_EQ(tags, 500U);
    }
}

TEST_F(RingTrial, FramesBeyondTheTimeoutAreLate) {
    Json request = trial(50ms, "as_sent");
    request["delays"] = Json::parse(R"({"timeout_ns":1,"tags":null,"variation":false,"histogram":false})");
    const Json report = ask(request);
    const Json& counts = report["directions"][0]["foreground"];
    EXPECT_EQ(counts["late"], 375) << report;
    EXPECT_EQ(counts["received"], 0);
    EXPECT_EQ(counts["lost"], 0);
    EXPECT_EQ(counts["delay"]["samples"], 0);
}

TEST_F(RingTrial, TheLoadStepsDown) {
    Json request = trial(400ms, "as_sent");
    for (Json& direction : request["directions"]) {
        direction["step"] = Json::parse(R"({"after_ns":100000000,"frames_per_second":2000})");
    }
    const Json report = ask(request);
    ASSERT_EQ(report["answer"], "ok") << report;
    for (const Json& direction : report["directions"]) {
        EXPECT_EQ(direction["foreground"]["received"].get<int>() + direction["background"]["received"].get<int>(), 1000 + 600);
        EXPECT_GE(direction["sending_ns"].get<std::int64_t>(), 399'000'000);
    }
}

TEST_F(RingTrial, TheLoadLeavesInBursts) {
    constexpr std::int64_t frames_per_second = 4000, last_due_ns = 750'000'000 + 999 * 10'000;
    Json request = trial(1s, "as_sent");
    request["progress_ns"] = 10'000'000;
    for (Json& direction : request["directions"]) {
        direction["frames_per_second"] = frames_per_second;
        direction["bursts"] = Json::parse(R"({"frames":1000,"frames_per_second":100000})");
    }
    progress_.clear();
    const Json report = ask(request);
    ASSERT_EQ(report["answer"], "ok") << report;
    for (const Json& direction : report["directions"]) {
        EXPECT_EQ(direction["foreground"]["received"], 3000);
        EXPECT_EQ(direction["background"]["received"], 1000);
        const auto sending_ns = direction["sending_ns"].get<std::int64_t>();
        EXPECT_GE(sending_ns, last_due_ns - 1);
        EXPECT_LE(sending_ns, last_due_ns + 1 + direction["lateness_max_ns"].get<std::int64_t>());
    }
    const auto due_after = [](std::int64_t ns) {
        const std::int64_t burst = ns / 250'000'000, frame = ns % 250'000'000 / 10'000;
        return ns < 0 ? 0 : 1000 * burst + std::min<std::int64_t>(frame + 1, 1000);
    };
    ASSERT_EQ(report["phases"][2]["phase"], "send");
    for (const std::size_t i : {0U, 1U}) {
        const Json& direction = report["directions"][i];
        // The first frame was due this long after the phase began, at most.
        const std::int64_t first_max = report["phases"][2]["duration_ns"].get<std::int64_t>() - direction["sending_ns"].get<std::int64_t>();
        const std::int64_t late_max = first_max + direction["lateness_max_ns"].get<std::int64_t>();
        for (const Json& progress : progress_) {
            if (progress["phase"] == "send") {
                const auto due = due_after(progress["elapsed_ns"].get<std::int64_t>() - late_max);
                EXPECT_GE(progress["directions"][i]["offered"].get<std::int64_t>(), due - 64) << "all but what is just being counted";
            }
        }
    }
}

TEST_F(RingTrial, FlowsStartOneAfterAnother) {
    Json request = trial(400ms, "as_sent");  // a round of 4 flows takes 400 us, so one starts every 100 ms
    for (Json& direction : request["directions"]) {
        direction["foreground_m"] = direction["foreground_n"] = 1;
        direction["background"] = nullptr;
        direction["foreground"]["source_ports"] = {{"mode", "increasing"}, {"minimum", 1000}, {"maximum", 1003}};
        direction["flow_start"] = Json::parse(R"({"flows":4,"rounds_between":250})");
    }
    const Json report = ask(request);
    ASSERT_EQ(report["answer"], "ok") << report;
    for (const Json& direction : report["directions"]) {
        EXPECT_EQ(direction["foreground"]["intended"], 250 + 500 + 750 + 1000);
        EXPECT_EQ(direction["foreground"]["received"], 2500);
        EXPECT_EQ(direction["foreground"]["faulty"], 0);
        EXPECT_GE(direction["sending_ns"].get<std::int64_t>(), 399'000'000);
    }
    request["directions"][0]["flow_start"]["rounds_between"] = 334;  // the last one would start after 400.8 ms
    EXPECT_EQ(ask(request)["answer"], "error");
}

/// Address space that this process may take in addition to what it has, while this lives.
class RoomFor {
public:
    explicit RoomFor(std::uint64_t bytes) {
        getrlimit(RLIMIT_AS, &before_);
        std::uint64_t pages = 0;
        std::ifstream{"/proc/self/statm"} >> pages;
        const rlimit limit{.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + bytes, .rlim_max = before_.rlim_max};
        EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    }
    ~RoomFor() { setrlimit(RLIMIT_AS, &before_); }
    RoomFor(const RoomFor&) = delete;
    RoomFor& operator=(const RoomFor&) = delete;

private:
    rlimit before_{};
};

/// The process may not take what the machine has: nothing but the allocation itself can tell.
TEST_F(RingTrial, MemoryThatRunsOutIsOneErrorAndTheNextTrialIsMade) {
    {
        const RoomFor room{std::uint64_t{64} << 20};
        Json request = trial(120s, "as_sent");
        request["directions"][0]["frames_per_second"] = 10'000'000;
        const Json refused = ask(request);
        ASSERT_EQ(refused["answer"], "error") << refused;
        EXPECT_EQ(refused["id"], 2);
        EXPECT_EQ(refused["errors"][0]["where"], "memory");
    }
    EXPECT_EQ(ask(trial(20ms, "as_sent"))["directions"][0]["foreground"]["received"], 150);
}

TEST_F(RingTrial, RecordsThatTheMachineCannotHoldAreRefusedBeforeTheTrial) {
    Json request = phase("establish", {"forward"}, 1'000'000'000);
    request["duration_ns"] = 60'000'000'000;
    request["connections"]["count"] = 60'000'000'000;
    for (const char* const ports : {"source_ports", "destination_ports"}) {
        request["directions"][0]["foreground"][ports] = {{"mode", "pseudorandom"}, {"minimum", 1}, {"maximum", 65535}};
    }
    request["directions"][0]["foreground"]["source"] =
        Json::parse(R"({"address":"10.0.0.0","offset":2,"mode":"increasing","minimum":0,"maximum":15,"networks":1})");
    const Json refused = ask(request);
    ASSERT_EQ(refused["answer"], "error") << refused;
    EXPECT_EQ(refused["errors"][0]["where"], "memory") << refused;
    EXPECT_NE(refused.dump().find("the records of the trial need 465140 MiB"), std::string::npos) << refused;
}

TEST_F(RingTrial, AWireIsNoGateway) {
    const Json report = ask(trial(50ms, "gateway"));
    ASSERT_EQ(report["answer"], "ok") << report;
    const Json& counts = report["directions"][0]["foreground"];
    EXPECT_EQ(counts["received"], 0);
    EXPECT_EQ(counts["faulty"], 375);
    EXPECT_EQ(counts["lost"], 0);
    EXPECT_EQ(counts["faults"], Json::parse(R"({"hop_limit":375})"));
    EXPECT_FALSE(report["kept_frames"].empty());
}

TEST_F(RingTrial, CancelEndsItAndHostileLinesDoNot) {
    client_->write(trial(60s, "as_sent").dump());
    for (const char* const line : {"x", "[]", R"({"request":5})", R"({"request":["cancel"]})", R"({"request":null,"id":1})", ""}) {
        client_->write(line);
    }
    std::int64_t elapsed = 0, told = 0;
    for (Json so_far = progress(); told < 3 || so_far["directions"][0]["offered"] == 0; so_far = progress(), ++told) {
        ASSERT_FALSE(HasFailure());
        EXPECT_GT(so_far["elapsed_ns"], elapsed);
        elapsed = so_far["elapsed_ns"];
    }
    client_->write(R"({"request":"cancel","id":2})");
    const Json report = answer();
    for (int hostile = 0; hostile < 5; ++hostile) {
        EXPECT_EQ(answer()["answer"], "error") << "each line is answered, after the trial";
    }
    ASSERT_EQ(report["answer"], "ok") << report;
    EXPECT_TRUE(report["cancelled"]);
    const Json& counts = report["directions"][0]["foreground"];
    EXPECT_GT(counts["offered"].get<int>(), 0);
    EXPECT_LT(counts["offered"].get<int>(), counts["intended"].get<int>());
    EXPECT_EQ(counts["offered"].get<int>(), counts["received"].get<int>() + counts["lost"].get<int>());
}

TEST_F(RingTrial, ALateSenderEndsItForAll) {
    Json request = trial(60s, "as_sent");
    request["give_up_lateness_ns"] = 1;
    const Json report = ask(request);
    ASSERT_EQ(report["answer"], "ok") << report;
    EXPECT_FALSE(report["cancelled"]);
    EXPECT_TRUE(report["directions"][0]["gave_up"] || report["directions"][1]["gave_up"]);
    for (const Json& direction : report["directions"]) {
        const Json& counts = direction["foreground"];
        EXPECT_LT(counts["offered"].get<int>(), counts["intended"].get<int>()) << "both directions ended";
        EXPECT_EQ(counts["offered"], counts["received"].get<int>() + counts["lost"].get<int>());
    }
}

TEST_F(RingTrial, ConnectionsAreEstablishedThenUsed) {
    EXPECT_EQ(ask(phase("use", {"forward"}, 4000))["answer"], "error") << "nothing is established yet";
    EXPECT_EQ(ask({{"request", "connections"}, {"id", 8}})["answer"], "error");
    const Json established = ask(phase("establish", {"forward"}, 4000));
    ASSERT_EQ(established["answer"], "ok") << established;
    EXPECT_EQ(established["connections"], Json::parse(R"({"phase":"establish","count":400,"established":400})"));
    const Json behaviour = ask({{"request", "connections"}, {"id", 8}});
    for (const char* const all : {"count", "established", "examined", "port_preserved", "parity_preserved", "port_class_preserved"}) {
        EXPECT_EQ(behaviour[all], 400) << all;
    }
    EXPECT_EQ(behaviour["public_addresses"], 1);
    EXPECT_EQ(behaviour["sources_endpoint_independent"], 40);
    for (const char* const order : {"fixed", "increasing", "decreasing", "pseudorandom"}) {
        const Json used = ask(phase("use", {"reverse", "forward"}, 10'000, order));
        ASSERT_EQ(used["answer"], "ok") << used;
        EXPECT_EQ(used["connections"]["phase"], "use");
        for (const Json& direction : used["directions"]) {
            EXPECT_EQ(direction["foreground"]["frame_octets"], 84);
            EXPECT_EQ(direction["foreground"]["received"], 1000) << order << direction["foreground"]["faults"];
        }
    }
    Json other = phase("use", {"reverse"}, 4000, "increasing");
    EXPECT_EQ(ask(other)["directions"][0]["foreground"]["received"], 400) << "validation: every connection once";
    other["connections"]["count"] = 399;
    EXPECT_EQ(ask(other)["answer"], "error") << "other connections than those established";
    other["connections"]["count"] = 400;
    other["seed"] = 43;
    EXPECT_EQ(ask(other)["answer"], "error");
}

TEST_F(RingTrial, ConnectionsMayBeUsedOneAfterAnother) {
    ASSERT_EQ(ask(phase("establish", {"forward"}, 4000))["answer"], "ok");
    Json request = phase("use", {"forward", "reverse"}, 160'000, "increasing");
    request["duration_ns"] = 1'250'000'000;  // a round of 400 connections takes 2.5 ms, and the next one starts with each
    for (Json& direction : request["directions"]) {
        direction["flow_start"] = Json::parse(R"({"flows":400,"rounds_between":1})");
    }
    const Json report = ask(request);
    ASSERT_EQ(report["answer"], "ok") << report;
    for (const Json& direction : report["directions"]) {
        EXPECT_EQ(direction["foreground"]["received"], 200'000 - 400 * 399 / 2);
        EXPECT_EQ(direction["foreground"]["faulty"], 0);
    }
}

TEST_F(RingTrial, OfConnectionsThatAreDrawnTheDistinctOnesAreEstablished) {
    Json request = phase("establish", {"forward"}, 4000);
    request["connections"]["send_order"] = "pseudorandom";
    const Json drawn = ask(request);
    ASSERT_EQ(drawn["answer"], "ok") << drawn;
    EXPECT_EQ(drawn["directions"][0]["foreground"]["received"], 400);
    const int established = drawn["connections"]["established"].get<int>();
    EXPECT_NEAR(established, 253, 40) << "400 * (1 - 1/e)";
    EXPECT_EQ(ask({{"request", "connections"}, {"id", 8}})["examined"], established);
    EXPECT_EQ(ask(phase("use", {"forward"}, 4000))["answer"], "error") << "the table is not full";
    request["duration_ns"] = 2'000'000'000;
    request["directions"][0]["frames_per_second"] = 10'000;
    EXPECT_EQ(ask(request)["connections"]["established"], 400) << "20,000 frames";
}

TEST_F(RingTrial, TheSecondPhaseNeverStartsOverATableThatIsNotFull) {
    // A wire is no gateway: every frame arrives with a fault, so no connection is established.
    const Json established = ask(phase("establish", {"forward"}, 4000, "pseudorandom", "gateway"));
    ASSERT_EQ(established["answer"], "ok") << established;
    EXPECT_EQ(established["connections"]["established"], 0);
    EXPECT_EQ(established["directions"][0]["foreground"]["faults"]["untranslated_source"], 400);
    const Json refused = ask(phase("use", {"forward"}, 4000, "pseudorandom", "gateway"));
    ASSERT_EQ(refused["answer"], "error");
    EXPECT_NE(refused.dump().find("0 of 400"), std::string::npos) << refused;
}

/// An IPv4 packet of so many octets; its data is `filling`.
std::string packet_of(std::size_t octets, char filling) {
    const std::string header = "45000000000040000a110000c6120002c6130002";
    return header + std::string(2 * octets - header.size(), filling);
}

TEST_F(RingTrial, PacketsAreExchangedAsTheyAre) {
    const std::string small = packet_of(28, 'a'), large = packet_of(1500, 'b'), back = packet_of(64, 'c');
    const Json answer = ask({{"request", "exchange"},
                             {"id", 9},
                             {"left", {large, small, large}},
                             {"right", {back}},
                             {"interval_ns", 1'000'000},
                             {"wait_ns", 50'000'000}});
    ASSERT_EQ(answer["answer"], "ok") << answer;
    EXPECT_EQ(answer["sent"], Json::parse(R"({"left":3,"right":1})"));
    EXPECT_EQ(answer["not_kept"], 0);
    std::vector<std::string> right, left;
    std::int64_t before = 0;
    for (const Json& frame : answer["arrived"]) {
        (frame["side"] == "right" ? right : left).push_back(frame["octets"].get<std::string>().substr(24));
        EXPECT_GE(frame["at_ns"], before);
        before = frame["at_ns"];
    }
    EXPECT_EQ(right, (std::vector<std::string>{"0800" + large, "0800" + small + std::string(2 * (46 - 28), '0'), "0800" + large}));
    EXPECT_EQ(left, (std::vector<std::string>{"0800" + back}));
    EXPECT_GE(before, 2'000'000) << "the third packet leaves after two intervals";
}

TEST_F(RingTrial, AnExchangeLeavesNothingBehindInTheBuffersOfTrials) {
    ASSERT_EQ(ask({{"request", "exchange"},
                   {"id", 9},
                   {"left", std::vector<std::string>(64, packet_of(20, 'e'))},
                   {"right", Json::array()},
                   {"interval_ns", 0},
                   {"wait_ns", 10'000'000}})["sent"]["left"],
              64);
    const Json answer = ask(trial(20ms, "as_sent"));
    const Json& foreground = answer["directions"][0]["foreground"];
    EXPECT_EQ(foreground["received"], foreground["intended"]) << answer;
}

TEST_F(RingTrial, AnExchangeLeavesTheCpuToAGatewayOnIt) {
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    ask({{"request", "exchange"},
         {"id", 9},
         {"left", Json::array()},
         {"right", Json::array()},
         {"interval_ns", 0},
         {"wait_ns", 300'000'000}});
    getrusage(RUSAGE_SELF, &after);
    EXPECT_GT(after.ru_nvcsw - before.ru_nvcsw, 200) << "a worker that polls without pause gives up its CPU to nobody";
}

TEST_F(RingTrial, APacketLargerThanTheLinkIsRefused) {
    const Json answer = ask({{"request", "exchange"},
                             {"id", 9},
                             {"left", Json::array()},
                             {"right", {packet_of(1500, 'a'), packet_of(1501, 'b')}},
                             {"interval_ns", 0},
                             {"wait_ns", 0}});
    ASSERT_EQ(answer["answer"], "error") << answer;
    EXPECT_EQ(answer["errors"][0]["where"], "right[1]");
}

TEST_F(RingTrial, AnExchangeIsEndedByCancel) {
    client_->write(R"({"request":"exchange","id":9,"left":[],"right":[],"interval_ns":0,"wait_ns":60000000000})");
    client_->write(R"({"request":"cancel","id":9})");
    EXPECT_EQ(answer()["cancelled"], true);
}

TEST_F(RingTrial, AGatewayThatIsNotThereIsAnError) {
    const Json answered = ask({{"request", "resolve"},
                               {"id", 6},
                               {"side", "left"},
                               {"gateway", "198.18.0.1"},
                               {"source", "198.18.0.2"},
                               {"timeout_ns", 200'000'000}});
    EXPECT_EQ(answered["answer"], "error");
    EXPECT_NE(answered.dump().find("198.18.0.1"), std::string::npos);
}

TEST_F(RingTrial, AQuestionToAGatewayIsEndedByCancel) {
    client_->write(R"({"request":"resolve","id":6,"side":"left","gateway":"198.18.0.1","source":"198.18.0.2","timeout_ns":60000000000})");
    client_->write(R"({"request":"cancel","id":6})");
    EXPECT_NE(answer().dump().find("cancelled"), std::string::npos);
}

TEST_F(RingTrial, PortsAreOpenedOnce) { EXPECT_EQ(ask({{"request", "open"}, {"id", 7}})["answer"], "error"); }

TEST_F(RingTrial, EchoRequestsOfAClosedLoopAreAllAnswered) {
    Json request = echo({{"pace_without_reply_ns", 10'000'000}}, nullptr);
    request["duration_ns"] = 60'000'000'000;  // it ends before, with the last reply
    const Json answer = ask(request);
    ASSERT_EQ(answer["answer"], "ok") << answer;
    ASSERT_EQ(answer["directions"].size(), 2U);
    for (const Json& direction : answer["directions"]) {
        const Json& counts = direction["foreground"];
        EXPECT_EQ(counts["intended"], 360) << counts;
        EXPECT_EQ(counts["offered"], 360);
        EXPECT_EQ(counts["received"], 360);
        EXPECT_EQ(counts["lost"], 0);
        EXPECT_EQ(counts["faults"], Json::object());
        EXPECT_EQ(counts["delay"]["samples"], 360);
        EXPECT_EQ(direction["frames_per_second"], 0);
    }
    const Json& facts = answer["echo"];
    ASSERT_EQ(facts["clients"].size(), 3U);
    for (const Json& client : facts["clients"]) {
        for (const char* const count : {"requests", "arrived", "replies"}) {
            EXPECT_EQ(client[count], 120) << client;
        }
        EXPECT_EQ(client["rtt"]["requests"], 120);
        EXPECT_EQ(client["rtt"]["samples"], 120);
        EXPECT_GE(client["rtt"]["mean_ns"], client["rtt"]["minimum_ns"]);
        EXPECT_GE(client["end_ns"], client["begin_ns"]);
        for (const char* const count : {"late", "lost", "duplicate", "faulty"}) {
            EXPECT_EQ(client[count], 0) << client;
        }
    }
    EXPECT_EQ(facts["all"]["samples"], 360);
    EXPECT_EQ(facts["first"]["samples"], 120);
    EXPECT_EQ(facts["first"]["requests"], 120);
    EXPECT_EQ(facts["all"]["maximum_ns"], answer["directions"][1]["foreground"]["delay"]["maximum_ns"]);
    EXPECT_GT(facts["steady"]["requests"], 0);
    EXPECT_GT(facts["client_busy_ns"], 0);
    EXPECT_GT(facts["responder_busy_ns"], 0);
}

TEST_F(RingTrial, EchoRequestsAtAConstantRateBeginAgainAfterTheLast) {
    const Json answer = ask(echo(nullptr, 500));
    ASSERT_EQ(answer["answer"], "ok") << answer;
    EXPECT_EQ(answer["directions"][0]["foreground"]["received"], 500);
    EXPECT_EQ(answer["directions"][1]["foreground"]["received"], 500);
    EXPECT_EQ(answer["echo"]["clients"][0]["requests"], 167);
    EXPECT_EQ(answer["echo"]["clients"][2]["requests"], 166);
    EXPECT_EQ(answer["echo"]["clients"][1]["begin_ns"], 1'999'999) << "when it was due, on a clock of whole ticks";
    for (const char* const count : {"requests", "samples"}) {
        EXPECT_EQ(answer["echo"]["first"][count], 120 + 7 * 6 + 6)
            << "of 360 requests and the first 140 of them again, seven times 18 and 14";
    }
    EXPECT_EQ(answer["echo"]["steady"]["requests"], 498);
}

TEST_F(RingTrial, AnEchoTrialIsCheckedBeforeItBegins) {
    Json request = echo(nullptr, nullptr);
    request["echo"]["destinations"] = 41;
    request["directions"][0]["foreground"]["source_ports"] = {{"mode", "fixed"}, {"minimum", 0}, {"maximum", 0}};
    Json answer = ask(request);
    EXPECT_EQ(answer["answer"], "error");
    EXPECT_EQ(answer["errors"].size(), 2U) << answer;
    request = echo({{"pace_without_reply_ns", 1}}, nullptr);
    request["echo"]["destinations"] = 122;
    request["delays"] = {{"timeout_ns", 5}, {"tags", nullptr}, {"variation", false}, {"histogram", false}};
    answer = ask(request);
    EXPECT_EQ(answer["answer"], "error");
    EXPECT_EQ(answer["errors"][0]["where"], "delays") << answer;
    request["delays"] = nullptr;
    answer = ask(request);
    EXPECT_EQ(answer["errors"][0]["where"], "directions[0].foreground.destination") << "122 destinations, 120 addresses";
}

}  // namespace
}  // namespace gatemark::control
