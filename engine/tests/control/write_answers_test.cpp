#include "control/write_answers.hpp"

#include <gtest/gtest.h>

namespace gatemark::control {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

TEST(WriteAnswers, FactsOfATrialKeepTheirNames) {
    trial::TrialReport report;
    report.trial_number = 3;
    report.phases = {{"settle", 2s}, {"send", 1s}};
    trial::DirectionReport& direction = report.directions.emplace_back();
    direction.direction = trial::Direction::reverse;
    direction.sending = 999ns;
    direction.lateness.add(pace::Ticks{3});
    direction.lateness.add(pace::Ticks{2});
    direction.lateness.add(pace::Ticks{100});
    direction.foreground.intended = 10;
    direction.foreground.offered = 9;
    direction.foreground.lost = 4;
    direction.foreground.counts[record::Count::received] = 4;
    direction.foreground.counts[record::Count::faulty] = 1;
    direction.foreground.counts.faults[frame::Fault::hop_limit] = 2;
    direction.foreground.loss.first_runs = {{5, 4}};
    direction.longest_loss_runs = {{5, 4}};
    direction.late_bursts = {{3, 7, 2100us}};
    direction.foreground.loss_table =
        record::LossTable{.examined = {4, 96},
                          .fields = {{.field = record::LossField::index_residue,
                                      .modulus = 12,
                                      .count = {3, 90},
                                      .values = 12,
                                      .losing = 1,
                                      .dead = 1,
                                      .lost_in_dead = 3,
                                      .firsts = 2,
                                      .heaviest = {{"7", {3, 0}}},
                                      .ranges = {{"7", "8", 2, 3}},
                                      .bits = {{1, 2}}}},
                          .ages = record::LossTable::Ages{.silent = std::chrono::nanoseconds{5000}, .older = {3, 1}, .all = {4, 90}}};
    report.ports[1].foreign.icmp[record::ForeignCounts::icmp_slot(true, 1, 3)] = 17;
    report.ports[1].foreign.icmp[record::ForeignCounts::icmp_slot(false, 3, 13)] = 2;
    report.ports[0].own_drops.peer_queue_drops = 8;
    report.ports[0].received_by_queue = {3, 0};
    report.kept_frames = {{trial::Side::right, "hop_limit", {std::byte{0x02}, std::byte{0xff}}}};
    report.clocks = {.cycle_counter = 7ns, .monotonic_raw = 8ns};
    report.worker_pause_max = 9ns;
    const Json json = to_json(report, pace::TickScale{500'000'000});
    EXPECT_EQ(json["worker_pause_max_ns"], 9);
    EXPECT_EQ(json["clocks"], Json::parse(R"({"cycle_counter_ns":7,"monotonic_raw_ns":8})"));
    EXPECT_EQ(json["phases"], Json::parse(R"([{"phase":"settle","duration_ns":2000000000},{"phase":"send","duration_ns":1000000000}])"));
    const Json& written = json["directions"][0];
    EXPECT_EQ(written["direction"], "reverse");
    EXPECT_EQ(written["sending_ns"], 999);
    EXPECT_EQ(written["lateness_histogram"], Json::parse(R"([{"below_ns":128,"bursts":2},{"below_ns":256,"bursts":1}])"))
        << "64 and 128 ticks of 2 ns";
    EXPECT_EQ(written["foreground"]["faults"], Json::parse(R"({"hop_limit":2})"));
    EXPECT_EQ(written["foreground"]["loss"]["first_runs"], Json::parse(R"([{"index":5,"length":4}])"));
    EXPECT_EQ(written["foreground"]["loss"]["by_slice"].size(), 100U);
    EXPECT_TRUE(written["background"]["loss_table"].is_null());
    EXPECT_EQ(written["foreground"]["loss_table"],
              Json::parse(R"({"lost":4,"arrived":96,"fields":[{"field":"index_residue","modulus":12,"lost":3,"arrived":90,"values":12,
                              "losing":1,"dead":1,"lost_in_dead":3,"firsts":2,"heaviest":[{"name":"7","lost":3,"arrived":0}],
                              "ranges":[{"first":"7","last":"8","values":2,"lost":3}],"bits":[{"lost":1,"arrived":2}]}],
                              "ages":{"silent_ns":5000,"after":0,"lost":4,"arrived":90,"older":{"lost":3,"arrived":1}}})"));
    EXPECT_EQ(written["longest_loss_runs"], Json::parse(R"([{"index":5,"length":4}])"));
    EXPECT_EQ(written["late_bursts"], Json::parse(R"([{"index":3,"frames":7,"lateness_ns":2100000}])"));
    EXPECT_EQ(written["background"]["intended"], 0);
    EXPECT_EQ(json["ports"]["right"]["foreign"]["icmp"], Json::parse(R"({"icmpv6 1/3":17,"icmpv4 3/13":2})"));
    EXPECT_EQ(json["ports"]["left"]["peer_queue_drops"], 8);
    EXPECT_EQ(json["ports"]["left"]["received_by_queue"], Json::parse("[3,0]"));
    EXPECT_EQ(json["kept_frames"], Json::parse(R"([{"side":"right","reason":"hop_limit","octets":"02ff"}])"));
}

TEST(WriteAnswers, DelaysAreInNanosecondsAndAbsentOnesAreNull) {
    trial::TrialReport report;
    report.directions.resize(1);
    trial::ClassReport& part = report.directions[0].foreground;
    part.offered = 1002;
    for (std::uint64_t ticks = 1; ticks <= 1000; ++ticks) {
        part.delays.all.add(pace::Ticks{ticks});
    }
    part.delays.negative = 2;
    part.delays.negative_maximum = {7};
    part.tags = record::TagFacts{.count = 500, .received = 499, .median = pace::Ticks{40}, .p999 = {}};
    part.delays.variation.emplace();
    part.delays.variation->add(-6);
    part.delays.variation->add(10);
    const pace::TickScale half_nanoseconds{2'000'000'000};
    Json written = to_json(report, half_nanoseconds)["directions"][0]["foreground"]["delay"];
    EXPECT_EQ(written["samples"], 1000);
    EXPECT_EQ(written["negative"], 2);
    EXPECT_EQ(written["negative_maximum_ns"], 4) << "3.5 ns, rounded";
    EXPECT_EQ(written["minimum_ns"], 1) << "half a nanosecond, rounded";
    EXPECT_EQ(written["maximum_ns"], 500);
    EXPECT_EQ(written["percentiles"], Json::parse(R"([{"per_100000":50000,"ns":250},{"per_100000":90000,"ns":450},
        {"per_100000":99000,"ns":495},{"per_100000":99900,"ns":500},{"per_100000":99990,"ns":500},{"per_100000":99999,"ns":500}])"));
    EXPECT_EQ(written["tags"], Json::parse(R"({"count":500,"received":499,"negative":0,"median_ns":20,"p999_ns":null})"));
    EXPECT_EQ(written["variation"],
              Json::parse(R"({"pairs":2,"skipped":999,"minimum_ns":-3,"median_ns":1,"maximum_ns":5,"histogram":[]})"));
    EXPECT_TRUE(written["histogram"].empty());
    report.with_histograms = true;
    written = to_json(report, half_nanoseconds)["directions"][0];
    EXPECT_EQ(written["foreground"]["delay"]["variation"]["histogram"], Json::parse("[[-3,1],[5,1]]"));
    EXPECT_EQ(written["foreground"]["delay"]["histogram"].size(), 500U) << "buckets that are the same to the nanosecond are one";
    EXPECT_EQ(written["background"]["delay"],
              Json::parse(R"({"samples":0,"negative":0,"negative_maximum_ns":0,"minimum_ns":null,"maximum_ns":null,"percentiles":[],
                  "histogram":[],"tags":null,"variation":null})"));
}

TEST(WriteAnswers, RoundTripsHaveAnExactMeanAndDeviation) {
    trial::TrialReport report;
    record::RoundTrips& all = report.echo.emplace().all;
    for (const std::uint64_t time : {2'000'000'000'004U, 2'000'000'000'008U, 2'000'000'000'000U, 2'000'000'000'012U}) {
        all.add(pace::Ticks{time});
    }
    const Json written = to_json(report, pace::TickScale{2'000'000'000})["echo"];
    EXPECT_EQ(written["all"]["samples"], 4);
    EXPECT_EQ(written["all"]["minimum_ns"], 1'000'000'000'000);
    EXPECT_EQ(written["all"]["mean_ns"], 1'000'000'000'003);
    EXPECT_EQ(written["all"]["deviation_ns"], 2) << "of 0, 2, 4 and 6 ns: the square root of 5";
    EXPECT_EQ(written["all"]["maximum_ns"], 1'000'000'000'006);
    EXPECT_EQ(written["first"],
              Json::parse(R"({"requests":0,"samples":0,"minimum_ns":null,"mean_ns":null,"deviation_ns":null,"maximum_ns":null,
        "percentiles":[]})"));
    EXPECT_EQ(written["steady"], Json{});
}

TEST(WriteAnswers, ARequestWithoutAReplyRanksAboveEveryRoundTrip) {
    trial::TrialReport report;
    trial::EchoReport& echo = report.echo.emplace();
    echo.clients.resize(1);
    echo.clients[0].counts[trial::EchoCount::requests] = 1'000;
    echo.first_requests = 1;
    for (std::uint64_t time = 1; time <= 990; ++time) {
        echo.all.add(pace::Ticks{time});
    }
    const Json written = to_json(report, pace::TickScale{1'000'000'000})["echo"];
    EXPECT_EQ(written["all"]["requests"], 1'000);
    EXPECT_EQ(written["all"]["samples"], 990);
    EXPECT_EQ(written["all"]["percentiles"],
              Json::parse(R"([{"per_100000":50000,"ns":500},{"per_100000":90000,"ns":900},{"per_100000":99000,"ns":990},
                  {"per_100000":99900,"ns":null},{"per_100000":99990,"ns":null},{"per_100000":99999,"ns":null}])"))
        << "of 1000 requests, the 991st has no round trip";
    EXPECT_EQ(written["first"]["percentiles"][0], Json::parse(R"({"per_100000":50000,"ns":null})"));
}

TEST(WriteAnswers, EveryFaultHasItsOwnName) {
    trial::TrialReport report;
    report.directions.resize(1);
    for (std::size_t i = 0; i < frame::fault_count; ++i) {
        report.directions[0].background.counts.faults[static_cast<frame::Fault>(i)] = 1;
    }
    const Json json = to_json(report, pace::TickScale{1});
    EXPECT_EQ(json["directions"][0]["background"]["faults"].size(), frame::fault_count);
}

}  // namespace
}  // namespace gatemark::control
