#include "trial/frame_preview.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

namespace gatemark::trial {
namespace {

using namespace std::chrono_literals;
using test::Gateway;

FramesRequest request_of(std::uint64_t count) {
    FramesRequest request;
    request.count = count;
    request.left_mac = *net::parse_mac("02:00:00:00:00:0a");
    request.right_mac = *net::parse_mac("02:00:00:00:00:0b");
    request.right_vlan_id = 100;
    request.trial.seed = test::seed;
    request.trial.trial_number = test::trial_number;
    request.trial.duration = 10ms;
    DirectionRequest forward;
    forward.frames_per_second = 1000;
    forward.foreground_m = 1;
    forward.foreground_n = 2;
    forward.foreground = test::request_for(Gateway::siit64);
    forward.background = test::request_for(Gateway::router66);
    DirectionRequest reverse;
    reverse.direction = Direction::reverse;
    reverse.frames_per_second = 300;
    reverse.foreground = test::request_for(Gateway::siit46);
    request.trial.directions = {forward, reverse};
    return request;
}

TEST(FramePreview, ShowsWhatIsSentAndWhatMustArrive) {
    const auto result = preview_frames(request_of(4));
    ASSERT_TRUE(std::holds_alternative<std::vector<PreviewedFrame>>(result));
    const auto& frames = std::get<std::vector<PreviewedFrame>>(result);
    ASSERT_EQ(frames.size(), 7U) << "four of ten forward, all three of reverse";
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const PreviewedFrame& frame = frames[i];
        const bool forward = i < 4;
        EXPECT_EQ(frame.direction, forward ? Direction::forward : Direction::reverse);
        EXPECT_EQ(frame.index, forward ? i : i - 4);
        EXPECT_EQ(frame.foreground, !forward || i % 2 == 0);
        EXPECT_EQ(frame.due, std::chrono::nanoseconds{frame.index * 1'000'000'000 / (forward ? 1000 : 300)});
        const test::SlowPacket sent = test::read_packet(frame.sent);
        EXPECT_EQ(net::to_text(sent.link_source), forward ? "02:00:00:00:00:0a" : "02:00:00:00:00:0b");
        EXPECT_EQ(net::to_text(sent.link_destination), forward ? "02:00:00:00:00:0b" : "02:00:00:00:00:0a");
        EXPECT_EQ(sent.vlan, forward ? std::nullopt : std::optional<std::uint16_t>{100});
        test::SlowPacket arrived = test::forwarded(frame.sent,
                                                   !forward           ? Gateway::siit46
                                                   : frame.foreground ? Gateway::siit64
                                                                      : Gateway::router66,
                                                   forward ? std::optional<std::uint16_t>{100} : std::nullopt);
        arrived.identification = 0;
        EXPECT_EQ(test::to_hex(frame.expected), test::to_hex(test::write_packet(arrived)));
    }
}

TEST(FramePreview, FramesOfABurstAreDueCloseTogether) {
    FramesRequest request = request_of(4);
    request.trial.directions.pop_back();
    request.trial.directions[0].bursts = pace::BurstyTraffic{.frames = 3, .frames_per_second = 30'000};
    const auto result = preview_frames(request);
    ASSERT_TRUE(std::holds_alternative<std::vector<PreviewedFrame>>(result));
    std::vector<std::chrono::nanoseconds> due;
    for (const PreviewedFrame& frame : std::get<std::vector<PreviewedFrame>>(result)) {
        due.push_back(frame.due);
    }
    EXPECT_EQ(due, (std::vector<std::chrono::nanoseconds>{0ns, 33'333ns, 66'666ns, 3ms}));
}

TEST(FramePreview, ReportsTheProblemsOfItsTrial) {
    FramesRequest request = request_of(1);
    request.trial.directions[0].foreground->hop_limit = 1;
    request.trial.directions[1].frames_per_second = 0;
    const auto result = preview_frames(request);
    ASSERT_TRUE(std::holds_alternative<Errors>(result));
    EXPECT_EQ(std::get<Errors>(result).size(), 2U);
}

/// RFC 7597 appendix A, example 1, and RFC 7599 appendix A: edge 0x1234 is 192.0.2.18 with PSID
/// 0x34.
TEST(FramePreview, ShowsFramesOfCustomerEdges) {
    FramesRequest request = request_of(1);
    const frame::EdgesRequest edges{.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)},
                                    .count = 65536,
                                    .order = enumerate::Order::decreasing,
                                    .choice = frame::EdgeChoice::cycle};
    for (DirectionRequest& direction : request.trial.directions) {
        direction.foreground_n = 1;
        direction.background.reset();
        direction.frames_per_second = 1'000'000;
        direction.foreground = test::edges_request(edges, direction.direction, frame::ValueMode::fixed);
        (direction.direction == Direction::forward ? direction.foreground->destination : direction.foreground->source) =
            test::fixed_host("10.2.3.4");
    }
    request.count = 0x10000 - 0x1234;
    request.trial.duration = 1s;
    const auto result = preview_frames(request);
    ASSERT_TRUE(std::holds_alternative<std::vector<PreviewedFrame>>(result));
    for (const PreviewedFrame& frame : std::get<std::vector<PreviewedFrame>>(result)) {
        if (frame.index != request.count - 1) {
            continue;
        }
        const bool forward = frame.direction == Direction::forward;
        const test::SlowPacket inside = test::read_packet(forward ? frame.sent : frame.expected);
        const test::SlowPacket outside = test::read_packet(forward ? frame.expected : frame.sent);
        EXPECT_EQ(net::to_text(forward ? inside.source : inside.destination), "2001:db8:12:3400:0:c000:212:34");
        EXPECT_EQ(net::to_text(forward ? inside.destination : inside.source), "2001:db8:ffff:0:a:203:400:0");
        EXPECT_EQ(net::to_text(forward ? outside.source : outside.destination), "192.0.2.18");
        EXPECT_EQ(net::to_text(forward ? outside.destination : outside.source), "10.2.3.4");
        EXPECT_EQ(forward ? outside.source_port : outside.destination_port, 1232);
    }
}

TEST(FramePreview, ShowsANatAsIfItKeptPortsAndTookTheFirstPublicAddress) {
    FramesRequest request = request_of(50);
    request.trial.connections =
        ConnectionsRequest{.phase = state::Phase::use, .count = 100, .pool = {net::parse_prefix("203.0.113.8/30").value()}};
    for (DirectionRequest& direction : request.trial.directions) {
        direction.foreground_n = 1;
        direction.background.reset();
        direction.frames_per_second = 5000;
        frame::StreamRequest& stream = *direction.foreground;
        const bool upload = direction.direction == Direction::forward;
        stream.mapping = test::mapping_of(std::string{test::prefix_96} + "/96");
        stream.dont_fragment_rule = frame::DontFragmentRule::rfc7915;
        stream.frame_octets = upload ? 84 : 64;
        stream.hop_limit_decrement = 3;
        (upload ? stream.source : stream.destination) = test::fixed_host("2001:2::2");
        (upload ? stream.destination : stream.source) = test::fixed_host("198.19.0.2");
        (upload ? stream.source_ports : stream.destination_ports) = {frame::ValueMode::pseudorandom, 1024, 1033};
        (upload ? stream.destination_ports : stream.source_ports) = {frame::ValueMode::pseudorandom, 1, 10};
    }
    const auto result = preview_frames(request);
    ASSERT_TRUE(std::holds_alternative<std::vector<PreviewedFrame>>(result));
    const net::Address public_address = test::address_of("203.0.113.8"), private_address = test::address_of("2001:2::2");
    for (const PreviewedFrame& frame : std::get<std::vector<PreviewedFrame>>(result)) {
        const bool upload = frame.direction == Direction::forward;
        const test::SlowPacket sent = test::read_packet(frame.sent);
        EXPECT_EQ(upload ? sent.source : sent.destination, upload ? private_address : public_address);
        test::SlowPacket arrived = test::translated(sent, 3, test::embedding_96(test::prefix_96));
        (upload ? arrived.source : arrived.destination) = upload ? public_address : private_address;
        arrived.vlan = upload ? std::optional<std::uint16_t>{100} : std::nullopt;
        EXPECT_EQ(test::to_hex(frame.expected), test::to_hex(test::write_packet(arrived)));
    }
}

}  // namespace
}  // namespace gatemark::trial
