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
    direction.foreground.counts.received = 4;
    direction.foreground.counts.faulty = 1;
    direction.foreground.counts.faults[static_cast<std::size_t>(frame::Fault::hop_limit)] = 2;
    direction.foreground.loss.first_runs = {{5, 4}};
    report.ports[1].foreign.icmp[record::ForeignCounts::icmp_slot(true, 1, 3)] = 17;
    report.ports[1].foreign.icmp[record::ForeignCounts::icmp_slot(false, 3, 13)] = 2;
    report.ports[0].own_drops.peer_queue_drops = 8;
    report.kept_frames = {{trial::Side::right, "hop_limit", {std::byte{0x02}, std::byte{0xff}}}};
    const Json json = to_json(report, pace::TickScale{500'000'000});
    EXPECT_EQ(json["phases"], Json::parse(R"([{"phase":"settle","duration_ns":2000000000},{"phase":"send","duration_ns":1000000000}])"));
    const Json& written = json["directions"][0];
    EXPECT_EQ(written["direction"], "reverse");
    EXPECT_EQ(written["sending_ns"], 999);
    EXPECT_EQ(written["lateness_histogram"], Json::parse(R"([{"below_ns":128,"bursts":2},{"below_ns":256,"bursts":1}])"))
        << "64 and 128 ticks of 2 ns";
    EXPECT_EQ(written["foreground"]["faults"], Json::parse(R"({"hop_limit":2})"));
    EXPECT_EQ(written["foreground"]["loss"]["first_runs"], Json::parse(R"([{"index":5,"length":4}])"));
    EXPECT_EQ(written["foreground"]["loss"]["by_slice"].size(), 100U);
    EXPECT_EQ(written["background"]["intended"], 0);
    EXPECT_EQ(json["ports"]["right"]["foreign"]["icmp"], Json::parse(R"({"icmpv6 1/3":17,"icmpv4 3/13":2})"));
    EXPECT_EQ(json["ports"]["left"]["peer_queue_drops"], 8);
    EXPECT_EQ(json["kept_frames"], Json::parse(R"([{"side":"right","reason":"hop_limit","octets":"02ff"}])"));
}

TEST(WriteAnswers, EveryFaultHasItsOwnName) {
    trial::TrialReport report;
    report.directions.resize(1);
    report.directions[0].background.counts.faults.fill(1);
    const Json json = to_json(report, pace::TickScale{1});
    EXPECT_EQ(json["directions"][0]["background"]["faults"].size(), frame::fault_count);
}

}  // namespace
}  // namespace gatemark::control
