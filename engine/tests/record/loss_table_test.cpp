#include "record/loss_table.hpp"

#include "frame/streams.hpp"
#include "record/loss.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

namespace gatemark::record {
namespace {

using frame::ValueMode;

/// A direction of which a test decides which frames get lost, and its tables.
class Direction {
public:
    Direction(const frame::StreamRequest& request, std::uint64_t frames, const pace::Mix& mix = {1, 1})
        : stream_{test::make_stream(request)}, frames_{frames}, mix_{mix} {}

    /// Loses the foreground frames of which `loses` says so, by index and values.
    LossTable lose(const std::function<bool(std::uint64_t, const frame::FrameValues&)>& loses) {
        arrivals_.reset(frames_, Receivers::one);
        lost_ = arrived_ = 0;
        for (std::uint64_t i = 0; i < frames_; ++i) {
            const auto place = mix_.place_of(i);
            const bool lost = place.foreground && loses(i, stream_.values(place.number_in_class));
            if (!lost) {
                arrivals_.mark(i);
            }
            lost_ += lost ? 1 : 0;
            arrived_ += place.foreground && !lost ? 1 : 0;
        }
        auto tables = tabulate_losses(arrivals_, mix_, std::array{frames_},
                                      {LossyClass{.stream = &stream_, .lost = lost_, .arrived = arrived_}, LossyClass{}});
        EXPECT_TRUE(tables[0]);
        EXPECT_FALSE(tables[1]);
        return tables[0].value_or(LossTable{});
    }
    [[nodiscard]] std::uint64_t lost() const { return lost_; }
    [[nodiscard]] std::uint64_t arrived() const { return arrived_; }

private:
    frame::Stream stream_;
    std::uint64_t frames_;
    pace::Mix mix_;
    ArrivalBitmap arrivals_;
    std::uint64_t lost_ = 0, arrived_ = 0;
};

const LossTable::Field* field_of(const LossTable& table, LossField field) {
    for (const auto& candidate : table.fields) {
        if (candidate.field == field) {
            return &candidate;
        }
    }
    return nullptr;
}

frame::StreamRequest few_ports() {
    frame::StreamRequest request = test::request_for(test::Gateway::router44);
    request.source_ports = {ValueMode::pseudorandom, 1024, 1087};
    request.destination_ports = {ValueMode::pseudorandom, 100, 227};
    request.source = test::fixed_host("192.0.2.1");
    request.destination = test::varying_host("198.18.0.0", 2, ValueMode::pseudorandom, 1, 8);
    return request;
}

TEST(LossTable, NamesThePortOfWhichNoFrameArrived) {
    Direction direction{few_ports(), 20'000};
    const LossTable table = direction.lose([](std::uint64_t, const frame::FrameValues& values) { return values.destination_port == 161; });
    EXPECT_EQ(table.examined.lost, direction.lost());
    EXPECT_EQ(table.examined.arrived, direction.arrived());
    const auto* const ports = field_of(table, LossField::destination_port);
    ASSERT_NE(ports, nullptr);
    EXPECT_EQ(ports->values, 128U);
    EXPECT_EQ(ports->losing, 1U);
    EXPECT_EQ(ports->dead, 1U);
    EXPECT_EQ(ports->lost_in_dead, direction.lost());
    ASSERT_EQ(ports->heaviest.size(), 1U);
    EXPECT_EQ(ports->heaviest[0].name, "161");
    EXPECT_EQ(ports->heaviest[0].count.lost, direction.lost());
    EXPECT_EQ(ports->heaviest[0].count.arrived, 0U);
    ASSERT_EQ(ports->ranges.size(), 1U);
    EXPECT_EQ(ports->ranges[0].first, "161");
    EXPECT_EQ(ports->ranges[0].last, "161");
    EXPECT_EQ(field_of(table, LossField::source_host), nullptr) << "it has one value";
    EXPECT_EQ(field_of(table, LossField::connection), nullptr);
}

TEST(LossTable, CountsEachValueAsLookingAtEveryFrameDoes) {
    const frame::StreamRequest request = few_ports();
    const frame::Stream stream = test::make_stream(request);
    Direction direction{request, 30'000, pace::Mix{3, 7}};
    std::map<std::uint16_t, LossTable::Count> hosts;
    std::map<std::pair<std::uint16_t, std::uint32_t>, LossTable::Count> flows;
    std::set<std::uint64_t> begun, lost_firsts;
    const LossTable table = direction.lose([&](std::uint64_t i, const frame::FrameValues& values) {
        const bool lost = i % 5 == 1 || values.destination_host == 3;
        ++(lost ? hosts[values.destination_host].lost : hosts[values.destination_host].arrived);
        const std::uint32_t ports = std::uint32_t{values.source_port} << 16U | values.destination_port;
        ++(lost ? flows[{values.destination_host, ports}].lost : flows[{values.destination_host, ports}].arrived);
        const std::uint64_t flow = std::uint64_t{values.destination_host} << 32U | ports;
        if (begun.insert(flow).second && lost) {
            lost_firsts.insert(flow);
        }
        return lost;
    });
    const auto* const by_host = field_of(table, LossField::destination_host);
    ASSERT_NE(by_host, nullptr);
    EXPECT_EQ(by_host->values, 8U);
    EXPECT_EQ(by_host->heaviest.size(), 8U);
    EXPECT_EQ(by_host->heaviest[0].name, "198.18.0.3");
    EXPECT_EQ(by_host->heaviest[0].count.lost, hosts[3].lost);
    EXPECT_EQ(by_host->bits[2].lost, hosts[4].lost + hosts[5].lost + hosts[6].lost + hosts[7].lost);
    EXPECT_EQ(by_host->bits[3].arrived, hosts[8].arrived);
    const auto* const by_flow = field_of(table, LossField::flow);
    ASSERT_NE(by_flow, nullptr);
    EXPECT_EQ(by_flow->values, flows.size());
    EXPECT_EQ(by_flow->losing,
              static_cast<std::uint64_t>(std::ranges::count_if(flows, [](const auto& flow) { return flow.second.lost != 0; })));
    EXPECT_EQ(by_flow->dead, static_cast<std::uint64_t>(std::ranges::count_if(
                                 flows, [](const auto& flow) { return flow.second.lost != 0 && flow.second.arrived == 0; })));
    EXPECT_EQ(by_flow->firsts, lost_firsts.size());
    EXPECT_EQ(by_flow->count.lost, direction.lost());
}

TEST(LossTable, PassesOverValuesThatNoFrameHadWithinARange) {
    frame::StreamRequest request = few_ports();
    request.destination_ports = {ValueMode::pseudorandom, 1, 60'000};  // many of them in no frame
    Direction direction{request, 30'000};
    const LossTable table = direction.lose([](std::uint64_t, const frame::FrameValues& values) {
        return values.destination_port <= 1023 || (values.destination_port >= 5000 && values.destination_port <= 5999);
    });
    const auto* const ports = field_of(table, LossField::destination_port);
    ASSERT_NE(ports, nullptr);
    ASSERT_EQ(ports->ranges.size(), 2U);
    EXPECT_LE(std::stoi(ports->ranges[0].last), 1023);
    EXPECT_GE(std::stoi(ports->ranges[0].last), 1015);
    EXPECT_GE(std::stoi(ports->ranges[1].first), 5000);
    EXPECT_LE(std::stoi(ports->ranges[1].last), 5999);
    EXPECT_EQ(ports->ranges[0].lost + ports->ranges[1].lost, direction.lost());
}

TEST(LossTable, FindsTheSmallestModulusOfTheIndex) {
    Direction direction{few_ports(), 20'000};
    const LossTable table = direction.lose([](std::uint64_t i, const frame::FrameValues&) { return i % 12 == 7; });
    const auto* const residues = field_of(table, LossField::index_residue);
    ASSERT_NE(residues, nullptr);
    EXPECT_EQ(residues->modulus, 12U);
    EXPECT_EQ(residues->dead, 1U);
    EXPECT_EQ(residues->heaviest[0].name, "7");
    EXPECT_EQ(
        field_of(direction.lose([](std::uint64_t i, const frame::FrameValues&) { return mix_bits(i) % 9 == 0; }), LossField::index_residue),
        nullptr);
}

TEST(LossTable, LooksAtAShareOfManyFramesAndKeepsAShareOfManyFlows) {
    frame::StreamRequest request = few_ports();
    request.source_ports = {ValueMode::pseudorandom, 1024, 65'000};
    request.destination_ports = {ValueMode::pseudorandom, 1, 49'151};
    Direction direction{request, 6'000'000};
    const LossTable table =
        direction.lose([](std::uint64_t, const frame::FrameValues& values) { return values.destination_port % 2 == 0; });
    EXPECT_NEAR(static_cast<double>(table.examined.lost), LossTable::examined_max, LossTable::examined_max / 20);
    EXPECT_NEAR(static_cast<double>(table.examined.arrived), LossTable::examined_max, LossTable::examined_max / 20);
    const auto* const ports = field_of(table, LossField::destination_port);
    ASSERT_NE(ports, nullptr);
    EXPECT_EQ(ports->dead, ports->losing);
    EXPECT_EQ(ports->bits[0].lost, 0U);
    EXPECT_EQ(ports->bits[0].arrived, table.examined.arrived);
    const auto* const flows = field_of(table, LossField::flow);
    ASSERT_NE(flows, nullptr);
    EXPECT_LE(flows->values, LossTable::values_tracked_max);
    EXPECT_GE(flows->values, LossTable::values_tracked_max / 3);
    EXPECT_FALSE(flows->firsts) << "an earlier frame of the flow may not have been looked at";
}

TEST(LossTable, LeavesOutFramesThatWereNotOffered) {
    const frame::Stream stream = test::make_stream(few_ports());
    ArrivalBitmap arrivals;
    arrivals.reset(1000, Receivers::one);
    for (std::uint64_t i = 10; i < 400; ++i) {
        arrivals.mark(i);
    }
    const auto tables = tabulate_losses(arrivals, pace::Mix{1, 1}, std::array<std::uint64_t, 2>{400, 301},
                                        {LossyClass{.stream = &stream, .lost = 10, .arrived = 390}, LossyClass{}});
    ASSERT_TRUE(tables[0]);
    EXPECT_EQ(tables[0]->examined.lost, 10U);
    EXPECT_EQ(tables[0]->examined.arrived, 390U);
}

TEST(LossTable, NamesTheTrafficClassOfWhichNoFrameArrived) {
    frame::StreamRequest request = few_ports();
    request.marking.traffic_classes = {0, 40, 184};
    const frame::Stream stream = test::make_stream(request);
    Direction direction{request, 20'000};
    const LossTable table =
        direction.lose([&](std::uint64_t, const frame::FrameValues& values) { return stream.sent_mark(values).traffic_class == 184; });
    const auto* const classes = field_of(table, LossField::traffic_class);
    ASSERT_NE(classes, nullptr);
    EXPECT_EQ(classes->values, 3U);
    EXPECT_EQ(classes->dead, 1U);
    EXPECT_EQ(classes->lost_in_dead, direction.lost());
    ASSERT_EQ(classes->heaviest.size(), 1U);
    EXPECT_EQ(classes->heaviest[0].name, "184");
    Direction of_one_class{few_ports(), 20'000};
    const LossTable without = of_one_class.lose([](std::uint64_t i, const frame::FrameValues&) { return i % 3 == 0; });
    EXPECT_EQ(field_of(without, LossField::traffic_class), nullptr);
}

TEST(LossTable, NamesCustomerEdgesByTheirAddresses) {
    const frame::EdgesRequest edges{.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 0)}, .count = 64};
    const frame::StreamRequest request = test::edges_request(edges, frame::signature::Direction::forward);
    const std::uint64_t dead = test::make_stream(request).values(3).connection;
    Direction direction{request, 20'000};
    const LossTable table = direction.lose([&](std::uint64_t, const frame::FrameValues& values) { return values.connection == dead; });
    const auto* const by_edge = field_of(table, LossField::customer_edge);
    ASSERT_NE(by_edge, nullptr);
    EXPECT_EQ(by_edge->values, 64U);
    EXPECT_EQ(by_edge->dead, 1U);
    ASSERT_EQ(by_edge->heaviest.size(), 1U);
    EXPECT_TRUE(by_edge->heaviest[0].name.starts_with("2001:db8")) << by_edge->heaviest[0].name;
    const auto* const pairs = field_of(table, LossField::host_pair);
    ASSERT_NE(pairs, nullptr);
    EXPECT_TRUE(pairs->heaviest[0].name.starts_with("customer edge " + by_edge->heaviest[0].name + " to ")) << pairs->heaviest[0].name;
}

TEST(LongestRuns, AreThoseOfAllRunsThatAreLongest) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const std::uint64_t frames = 1 + mix_bits(seed) % 30'000, keeps = 1 + mix_bits(seed + 1000) % 100;
        ArrivalBitmap arrivals;
        arrivals.reset(frames, Receivers::one);
        std::vector<LossFacts::Run> all;
        bool lost = false;
        for (std::uint64_t i = 0; i < frames; ++i) {
            lost = mix_bits(seed * frames + i) % 100 < keeps ? lost : !lost;
            if (!lost) {
                arrivals.mark(i);
            } else if (!all.empty() && all.back().index + all.back().length == i) {
                ++all.back().length;
            } else {
                all.push_back({i, 1});
            }
        }
        std::vector<std::uint64_t> lengths, kept_lengths;
        for (const auto& run : all) {
            lengths.push_back(run.length);
        }
        std::ranges::sort(lengths, std::ranges::greater{});
        lengths.resize(std::min(lengths.size(), longest_runs_kept));
        const auto kept = find_longest_runs(arrivals, std::array{frames});
        for (const auto& run : kept) {
            kept_lengths.push_back(run.length);
            EXPECT_TRUE(
                std::ranges::any_of(all, [&](const auto& other) { return other.index == run.index && other.length == run.length; }));
        }
        EXPECT_TRUE(std::ranges::is_sorted(kept, std::ranges::less{}, &LossFacts::Run::index));
        std::ranges::sort(kept_lengths, std::ranges::greater{});
        EXPECT_EQ(kept_lengths, lengths);
    }
}

}  // namespace
}  // namespace gatemark::record
