#include "refdut/gateway.hpp"

#include "refdut/map_vectors.hpp"
#include "refdut/memory_forwarding_port.hpp"
#include "refdut/packets.hpp"
#include "refdut/ticks.hpp"
#include "refdut/tunnel_packets.hpp"

#include <gtest/gtest.h>

namespace gatemark::refdut {
namespace {

using gatemark::test::address_of, gatemark::test::SlowPacket, gatemark::test::write_packet;

using TestGateway = Gateway<MemoryForwardingPort, StoppedClock>;

const net::MacAddress left_mac = *net::parse_mac("02:00:00:00:00:01"), right_mac = *net::parse_mac("02:00:00:00:00:02"),
                      left_peer = *net::parse_mac("02:00:00:00:01:01"), right_peer = *net::parse_mac("02:00:00:00:01:02");

class RefdutGateway : public testing::Test {
protected:
    RefdutGateway() {
        settings.sides[0].ipv4 = address_of("198.18.0.1");
        settings.sides[0].ipv6 = address_of("2001:2::1");
        settings.sides[1].ipv4 = address_of("198.19.0.1");
        settings.sides[0].peer_mac = left_peer;
        settings.sides[1].peer_mac = right_peer;
        settings.translation.assigned_addresses = {*settings.sides[0].ipv4, *settings.sides[0].ipv6, *settings.sides[1].ipv4};
    }
    ~RefdutGateway() override {
        if (gateway) {
            now += 3600 * second;
            gateway->poll();
        }
        EXPECT_EQ(MemoryForwardingPort::in_use, 0U) << "buffers were lost";
    }
    void start() {
        program = make_program(settings, {left_mac, right_mac}, second, nullptr);
        gateway.emplace(*program, left, right, second, StoppedClock{&now});
    }
    [[nodiscard]] static MemoryForwardingPort::Bytes frame(std::uint16_t number, bool reverse = false) {
        SlowPacket packet =
            reverse ? udp_packet("198.19.0.2", "198.18.0.2", 5000, number) : udp_packet("198.18.0.2", "198.19.0.2", 5000, number);
        packet.link_destination = reverse ? right_mac : left_mac;
        packet.link_source = reverse ? right_peer : left_peer;
        return write_packet(packet);
    }
    void poll_at(std::uint64_t time) {
        now = time;
        gateway->poll();
    }
    [[nodiscard]] std::vector<std::uint16_t> numbers(const MemoryForwardingPort& port) const {
        std::vector<std::uint16_t> list;
        for (const auto& sent : port.sent) {
            list.push_back(gatemark::test::read_packet(sent).destination_port);
        }
        return list;
    }
    [[nodiscard]] Snapshot counts() {
        Command command;
        gateway->execute(command);
        return command.snapshot;
    }
    void execute(Command command) { gateway->execute(command); }

    Settings settings;
    std::unique_ptr<Program> program;
    MemoryForwardingPort left, right;
    std::uint64_t now = second;
    std::optional<TestGateway> gateway;
};

TEST_F(RefdutGateway, RoutesBothWaysAtOnce) {
    start();
    left.arrive(frame(7));
    right.arrive(frame(8, true));
    poll_at(2 * second);
    ASSERT_TRUE(right.sent.size() == 1 && left.sent.size() == 1);
    const SlowPacket sent = gatemark::test::read_packet(right.sent[0]);
    EXPECT_TRUE(sent.link_destination == right_peer && sent.link_source == right_mac && sent.hop_limit == 9 && sent.destination_port == 7);
    const Snapshot taken = counts();
    for (const DirectionCounts& direction : taken.counts.directions) {
        EXPECT_TRUE(direction.balanced() && direction[DirectionCount::received] == 1 && direction[DirectionCount::test_frames] == 1 &&
                    direction[DirectionCount::forwarded] == 1);
        EXPECT_TRUE(direction.delay_samples == 1 && direction.delay_max == 0);
    }
}

TEST_F(RefdutGateway, HoldsAFrameForExactlyItsDelay) {
    settings.directions[0].delay = {.kind = DelaySpec::Kind::periodic, .values_ns = {3 * ms, 1 * ms}};
    settings.directions[0].keep_order = false;
    start();
    left.arrive(frame(1));
    left.arrive(frame(2));
    poll_at(2 * second);
    poll_at(2 * second + ms - 1);
    EXPECT_TRUE(right.sent.empty());
    EXPECT_EQ(counts().counts.directions[0][DirectionCount::held], 2U);
    poll_at(2 * second + ms);
    EXPECT_EQ(numbers(right), (std::vector<std::uint16_t>{2}));
    poll_at(2 * second + 3 * ms - 1);
    EXPECT_EQ(right.sent.size(), 1U);
    poll_at(2 * second + 3 * ms + 12'000);
    EXPECT_EQ(numbers(right), (std::vector<std::uint16_t>{2, 1}));
    const Snapshot taken = counts();
    const DirectionCounts& forward = taken.counts.directions[0];
    EXPECT_TRUE(forward.delay_min == ms && forward.delay_max == 3 * ms + 12'000 && forward[DirectionCount::held] == 0 &&
                forward.balanced());
    EXPECT_TRUE(forward[DirectionCount::late] == 1 && forward.late_max == 12'000);
}

TEST_F(RefdutGateway, CountsAGapBetweenPollsOnlyIfAFrameWaited) {
    settings.directions[0].delay = {.kind = DelaySpec::Kind::fixed, .values_ns = {4 * ms}};
    start();
    poll_at(2 * second);
    poll_at(3 * second);
    EXPECT_EQ(counts().counts.poll_gap_max, 0U) << "nothing came in a whole second";
    right.arrive(frame(1, true));
    poll_at(3 * second + 2 * ms);
    EXPECT_EQ(counts().counts.poll_gap_max, 2 * ms);
    left.arrive(frame(2));
    poll_at(3 * second + 3 * ms);
    poll_at(3 * second + 9 * ms);
    EXPECT_EQ(counts().counts.poll_gap_max, 6 * ms) << "a frame was held, and left late";
    poll_at(4 * second);
    EXPECT_EQ(counts().counts.poll_gap_max, 6 * ms);
}

TEST_F(RefdutGateway, KeepsTheOrderIfAskedTo) {
    settings.directions[0].delay = {.kind = DelaySpec::Kind::periodic, .values_ns = {3 * ms, 1 * ms, 2 * ms}};
    start();
    for (std::uint16_t i = 1; i <= 3; ++i) {
        left.arrive(frame(i));
    }
    poll_at(2 * second);
    poll_at(2 * second + 2 * ms);
    EXPECT_TRUE(right.sent.empty());
    poll_at(2 * second + 3 * ms);
    EXPECT_EQ(numbers(right), (std::vector<std::uint16_t>{1, 2, 3}));
}

TEST_F(RefdutGateway, OnlyTestFramesTakePart) {
    settings.directions[0].impairments.loss = {{.kind = SelectorSpec::Kind::every, .count = 1}};
    start();
    SlowPacket to_gateway = udp_packet("198.18.0.2", "198.19.0.1", 5000, 9);
    to_gateway.link_destination = left_mac;
    SlowPacket elsewhere = udp_packet("198.18.0.2", "198.19.0.2", 5000, 9);
    elsewhere.link_destination = right_mac;
    MemoryForwardingPort::Bytes tcp = frame(3);
    tcp[23] = std::byte{6};
    tcp[25] = static_cast<std::byte>(static_cast<unsigned>(tcp[25]) + 11);  // protocol 6 instead of 17: the checksum grows by 11
    left.arrive(write_packet(to_gateway));
    left.arrive(write_packet(elsewhere));
    left.arrive(tcp);
    left.arrive(MemoryForwardingPort::Bytes(10));
    left.arrive(frame(4));
    poll_at(2 * second);
    const Snapshot taken = counts();
    EXPECT_TRUE(taken.counts.directions[0][DirectionCount::received] == 5 && taken.counts.directions[0][DirectionCount::test_frames] == 1);
    EXPECT_EQ(taken.counts.directions[0][DirectionCount::lost], 1U);
    EXPECT_EQ(taken.counts.other[OtherCount::dropped], 3U);
    EXPECT_EQ(taken.counts.other[OtherCount::forwarded], 1U);
    EXPECT_EQ(right.sent.size(), 1U);
}

TEST_F(RefdutGateway, AResetDropsWhatIsHeldAndWhatArrives) {
    settings.directions[0].delay = {.kind = DelaySpec::Kind::fixed, .values_ns = {ms}};
    settings.directions[0].impairments.reorder = {{.selector = {.kind = SelectorSpec::Kind::first, .count = 1}, .by = 1}};
    start();
    left.arrive(frame(1));
    poll_at(2 * second);
    poll_at(2 * second + ms);  // waits to be overtaken
    left.arrive(frame(2));
    poll_at(2 * second + ms + 1);
    EXPECT_EQ(counts().counts.directions[0][DirectionCount::held], 2U);
    execute({.kind = Command::Kind::reset, .duration_ns = 10 * ms});
    const std::uint64_t until = now + 10 * ms;
    left.arrive(frame(3));
    poll_at(until - 1);
    left.arrive(frame(4));
    poll_at(until);
    poll_at(until + ms);
    EXPECT_EQ(numbers(right), (std::vector<std::uint16_t>{4}));
    const Snapshot taken = counts();
    const DirectionCounts& forward = taken.counts.directions[0];
    EXPECT_EQ(forward.own_drops[OwnDrop::reset], 3U);
    EXPECT_TRUE(forward.balanced());
}

TEST_F(RefdutGateway, ResetCountsRestartsSelectorsAndForgetsFramesInFlight) {
    settings.directions[0].delay = {.kind = DelaySpec::Kind::fixed, .values_ns = {ms}};
    settings.directions[0].impairments.loss = {{.kind = SelectorSpec::Kind::first, .count = 1}};
    start();
    left.arrive(frame(1));
    left.arrive(frame(2));
    poll_at(2 * second);
    execute({.kind = Command::Kind::reset_counts});
    left.arrive(frame(3));
    left.arrive(frame(4));
    poll_at(2 * second + 1);
    poll_at(2 * second + 2 * ms);
    EXPECT_EQ(numbers(right), (std::vector<std::uint16_t>{2, 4}));
    const Snapshot taken = counts();
    const DirectionCounts& forward = taken.counts.directions[0];
    EXPECT_TRUE(forward[DirectionCount::carried_over] == 1 && forward[DirectionCount::forwarded] == 1 &&
                forward[DirectionCount::lost] == 1 && forward[DirectionCount::test_frames] == 2 && forward.balanced());
}

TEST_F(RefdutGateway, ALoadKeepsTheConnectionsOfTheSameTranslation) {
    settings.translation.mode = Mode::nat44;
    settings.translation.pool = pool_of({"198.19.0.1/32"});
    settings.translation_key = "one";
    start();
    left.arrive(frame(1));
    poll_at(2 * second);
    EXPECT_EQ(counts().connections, 1U);
    settings.seed = 5;
    auto same = make_program(settings, {left_mac, right_mac}, second, program.get());
    execute({.kind = Command::Kind::load, .program = same.get()});
    EXPECT_EQ(counts().connections, 1U);
    settings.translation_key = "two";
    auto other = make_program(settings, {left_mac, right_mac}, second, same.get());
    execute({.kind = Command::Kind::load, .program = other.get()});
    EXPECT_EQ(counts().connections, 0U);
    program = std::move(other);
}

TEST_F(RefdutGateway, RefusesWithAnErrorWhenTheTableIsFull) {
    settings.translation.mode = Mode::nat44;
    settings.translation.pool = pool_of({"198.19.0.1/32"});
    settings.table.capacity = 1;
    start();
    left.arrive(frame(1));
    left.arrive(frame(2));
    left.arrive(frame(3));
    poll_at(2 * second);
    EXPECT_EQ(right.sent.size(), 1U);
    ASSERT_EQ(left.sent.size(), 1U) << "one error a millisecond";
    EXPECT_EQ(left.sent[0][23], std::byte{1}) << "ICMP";
    const Snapshot taken = counts();
    EXPECT_EQ(taken.counts.directions[0].translator_drops[Drop::table_full], 2U);
    EXPECT_TRUE(taken.counts.other[OtherCount::icmp_errors] == 1 && taken.counts.directions[0].balanced() &&
                taken.table[NatCount::refused] == 2);
}

TEST_F(RefdutGateway, AsksForANeighbourItDoesNotKnow) {
    settings.sides[1].peer_mac.reset();
    start();
    for (std::uint16_t i = 0; i < 3; ++i) {
        left.arrive(frame(i));
    }
    poll_at(2 * second);
    ASSERT_EQ(right.sent.size(), 1U) << "one question in ten milliseconds";
    EXPECT_TRUE(right.sent[0][12] == std::byte{8} && right.sent[0][13] == std::byte{6}) << "ARP";
    const Snapshot taken = counts();
    EXPECT_EQ(taken.counts.directions[0].own_drops[OwnDrop::no_neighbour], 3U);
    EXPECT_TRUE(taken.counts.neighbour[NeighbourCount::asked] == 1 && taken.counts.directions[0].balanced());
}

TEST_F(RefdutGateway, CountsWhatThePortDoesNotTakeAndWhatIsTooLong) {
    start();
    right.accepts = 1;
    SlowPacket packet = udp_packet("198.18.0.2", "198.19.0.2", 5000, 9, 1473);
    packet.link_destination = left_mac;
    left.arrive(write_packet(packet));
    packet.payload.pop_back();
    left.arrive(write_packet(packet));
    left.arrive(frame(2));
    poll_at(2 * second);
    EXPECT_EQ(right.sent.size(), 1U);
    const Snapshot taken = counts();
    const auto& drops = taken.counts.directions[0].own_drops;
    EXPECT_TRUE(drops[OwnDrop::too_long] == 1 && drops[OwnDrop::transmit_full] == 1);
    EXPECT_TRUE(taken.counts.directions[0].balanced());
}

TEST_F(RefdutGateway, AFrameForTheWrongPortGoesBackWithTheTagOfWhereItBelongs) {
    settings.sides[1].vlan_id = 200;
    settings.directions[0].impairments.corrupt = {
        {.selector = {.kind = SelectorSpec::Kind::every, .count = 2}, .field = Field::wrong_port}};
    start();
    left.arrive(frame(1));
    left.arrive(frame(2));
    poll_at(2 * second);
    ASSERT_TRUE(left.sent.size() == 1 && right.sent.size() == 1);
    const SlowPacket back = gatemark::test::read_packet(left.sent[0]);
    EXPECT_TRUE(back.link_destination == left_peer && back.vlan == 200 && back.destination_port == 2 && back.hop_limit == 9);
    const Snapshot taken = counts();
    EXPECT_TRUE(taken.counts.directions[0].corrupted[Field::wrong_port] == 1 && taken.counts.directions[0].balanced());
}

/// From the first customer of the vectors.
MemoryForwardingPort::Bytes from_customer(const std::string& destination, std::uint16_t source_port, std::uint16_t destination_port) {
    SlowPacket packet = udp_packet(map_vectors[0].address, destination, source_port, destination_port);
    packet.link_destination = left_mac;
    packet.link_source = left_peer;
    packet.vlan = 100;
    return write_packet(packet);
}

TEST_F(RefdutGateway, ARelayHairpinsToWhereAFrameCameFrom) {
    settings.translation.mode = Mode::map_t_br;
    settings.translation.domains = {map_vectors[0].rule()};
    settings.sides[0].vlan_id = 100;
    settings.sides[1].vlan_id = 200;
    settings.directions[0].impairments.corrupt = {
        {.selector = {.kind = SelectorSpec::Kind::every, .count = 3}, .field = Field::wrong_port}};
    start();
    left.arrive(from_customer("64:ff9b::192.0.2.255", 1232, 2044));
    left.arrive(from_customer("64:ff9b::203.0.113.56", 1233, 80));
    left.arrive(from_customer("64:ff9b::192.0.2.255", 1234, 2045));  // goes back anyway
    poll_at(2 * second);
    EXPECT_EQ(numbers(left), (std::vector<std::uint16_t>{2044, 2045}));
    EXPECT_EQ(numbers(right), (std::vector<std::uint16_t>{80}));
    const SlowPacket back = gatemark::test::read_packet(left.sent[0]);
    EXPECT_TRUE(back.link_destination == left_peer && back.link_source == left_mac && back.vlan == 100 && back.hop_limit == 9);
    EXPECT_EQ(back.destination, address_of("2001:db8:ff:ff00:0:c000:2ff:ff"));
    EXPECT_EQ(gatemark::test::read_packet(right.sent[0]).vlan, 200);
    const Snapshot taken = counts();
    const DirectionCounts& forward = taken.counts.directions[0];
    EXPECT_TRUE(forward[DirectionCount::forwarded] == 3 && forward[DirectionCount::hairpinned] == 2 &&
                forward[DirectionCount::not_applicable] == 1 && forward.balanced());
}

TEST_F(RefdutGateway, ARelayOfTunnelsDamagesThemExactlyAsOftenAsAsked) {
    const char* const relay = "2001:db8:ffff::1";
    settings.translation.mode = Mode::map_e_br;
    settings.translation.domains = {map_vectors[0].rule()};
    settings.translation.domains[0].dmr.reset();
    settings.translation.tunnel.relay = address_of(relay);
    const auto every = [](std::uint64_t count, Field field) {
        return CorruptSpec{.selector = {.kind = SelectorSpec::Kind::every, .count = count}, .field = field};
    };
    settings.directions[0].impairments.corrupt = {every(3, Field::tunnel_left), every(5, Field::tunnel_missing)};
    settings.directions[1].impairments.corrupt = {every(4, Field::other_subscriber), every(5, Field::tunnel_option)};
    start();
    constexpr std::uint16_t count = 60;
    for (std::uint16_t i = 0; i < count; ++i) {
        SlowPacket up = udp_packet("192.0.2.18", "203.0.113.56", 1232, i), down = udp_packet("203.0.113.56", "192.0.2.18", i, 1232);
        up.link_destination = left_mac;
        down.link_destination = right_mac;
        const SlowTunnel tunnel{.source = address_of(map_vectors[0].address), .destination = address_of(relay)};
        left.arrive(tunnel.around(write_packet(up)));
        right.arrive(write_packet(down));
    }
    SlowPacket elsewhere = udp_packet("192.0.2.18", "203.0.113.56", 1232, 80);
    elsewhere.link_destination = left_mac;
    const SlowTunnel wrong{.source = address_of(map_vectors[0].address), .destination = address_of("2001:db8:ffff::2")};
    left.arrive(wrong.around(write_packet(elsewhere)));
    for (std::uint64_t i = 0; i < 3; ++i) {
        poll_at(2 * second + i * ms);
    }
    const auto starts = [](const MemoryForwardingPort& port, std::byte type, std::byte next_header) {
        return std::ranges::count_if(
            port.sent, [&](const auto& frame) { return frame[12] == type && (type == std::byte{8} || frame[14 + 6] == next_header); });
    };
    EXPECT_EQ(starts(right, std::byte{0x86}, std::byte{4}), 20) << "still in the tunnel";
    EXPECT_EQ(starts(right, std::byte{0x08}, std::byte{}), 40);
    EXPECT_EQ(starts(left, std::byte{0x86}, std::byte{60}), 9) << "every fifth of those that are left";
    EXPECT_EQ(starts(left, std::byte{0x86}, std::byte{4}), 51);
    const Snapshot taken = counts();
    const DirectionCounts &forward = taken.counts.directions[0], &reverse = taken.counts.directions[1];
    EXPECT_TRUE(forward.balanced() && forward[DirectionCount::test_frames] == count + 1U && forward[DirectionCount::forwarded] == count);
    EXPECT_TRUE(forward.corrupted[Field::tunnel_left] == 20 && forward.reasons[Field::tunnel_left] == 20);
    EXPECT_EQ(forward[DirectionCount::not_applicable], 8U) << "tunnel_missing";
    EXPECT_EQ(forward.translator_drops[Drop::no_mapping], 1U) << "to another relay";
    EXPECT_TRUE(reverse.balanced() && reverse[DirectionCount::test_frames] == count && reverse[DirectionCount::forwarded] == count &&
                reverse[DirectionCount::not_applicable] == 0);
    EXPECT_TRUE(reverse.corrupted[Field::other_subscriber] == 15 && reverse.corrupted[Field::tunnel_option] == 9);
}

TEST_F(RefdutGateway, WhatComesInIpv4ThroughARelayOf6rdIsATestFrame) {
    settings.translation.mode = Mode::sixrd_br;
    MapRuleSpec rule = rule_of("2001:db8::/32", "0.0.0.0/0", 32, 0);
    rule.dmr.reset();
    settings.translation.domains = {rule};
    settings.translation.tunnel.relay = settings.sides[0].ipv4;
    settings.directions[0].impairments.corrupt = {
        {.selector = {.kind = SelectorSpec::Kind::every, .count = 2}, .field = Field::tunnel_left}};
    start();
    SlowPacket up = udp_packet("2001:db8:c612:2::1", "2001:2:0:8000::2", 1, 2);
    up.link_destination = left_mac;
    const SlowTunnel tunnel{.source = address_of("198.18.0.2"), .destination = address_of("198.18.0.1")};
    left.arrive(tunnel.around(write_packet(up)));
    left.arrive(tunnel.around(write_packet(up)));
    poll_at(2 * second);
    ASSERT_EQ(right.sent.size(), 2U);
    EXPECT_TRUE(right.sent[0][12] == std::byte{0x86} && right.sent[1][12] == std::byte{0x08});
    const DirectionCounts forward = counts().counts.directions[0];
    EXPECT_TRUE(forward.balanced() && forward[DirectionCount::test_frames] == 2 && forward.corrupted[Field::tunnel_left] == 1);
}

TEST_F(RefdutGateway, ARelayTellsACustomerThatThePortIsNotItsOwn) {
    settings.translation.mode = Mode::map_t_br;
    settings.translation.domains = {map_vectors[0].rule()};
    settings.sides[0].vlan_id = 100;
    start();
    left.arrive(from_customer("64:ff9b::203.0.113.56", 1236, 80));
    left.arrive(from_customer("64:ff9b::203.0.113.56", 1236, 80));
    poll_at(2 * second);
    EXPECT_TRUE(right.sent.empty());
    ASSERT_EQ(left.sent.size(), 1U) << "one error a millisecond";
    EXPECT_EQ(gatemark::test::to_hex(std::span{left.sent[0]}.subspan(18 + 40, 2)), "0105");
    const Snapshot taken = counts();
    EXPECT_EQ(taken.counts.directions[0].translator_drops[Drop::outside_port_set], 2U);
    EXPECT_TRUE(taken.counts.other[OtherCount::icmp_errors] == 1 && taken.counts.directions[0].balanced());
}

TEST_F(RefdutGateway, ACustomerEdgeAnswersForItsMapAddress) {
    settings.translation.mode = Mode::map_t_ce;
    settings.translation.domains = {map_vectors[0].rule()};
    settings.translation.end_user_prefix = prefix_of("2001:db8:12:3400::/56");
    settings.sides[1].ipv6 = address_of(map_vectors[0].address);
    settings.translation.assigned_addresses.push_back(*settings.sides[1].ipv6);
    settings.translation_key = "edge";
    start();
    left.arrive(frame(80));  // from port 5000; the first of its ports from there on is 5328
    SlowPacket answer = udp_packet("64:ff9b::198.19.0.2", map_vectors[0].address, 80, 5328);
    answer.link_destination = right_mac;
    poll_at(2 * second);
    right.arrive(write_packet(answer));
    poll_at(2 * second + ms);
    ASSERT_TRUE(right.sent.size() == 1 && left.sent.size() == 1);
    EXPECT_EQ(numbers(left), (std::vector<std::uint16_t>{5000}));
    const Snapshot taken = counts();
    EXPECT_TRUE(taken.connections == 1 && taken.counts.directions[0][DirectionCount::forwarded] == 1 &&
                taken.counts.directions[1][DirectionCount::forwarded] == 1);
}

}  // namespace
}  // namespace gatemark::refdut
