#include "refdut/flow_set.hpp"

#include "refdut/tunnel_packets.hpp"

#include <gtest/gtest.h>

namespace gatemark::refdut {
namespace {

std::size_t add(FlowSet& flows, const test::SlowPacket& packet) {
    const Buffer buffer{test::write_packet(packet)};
    return flows.add(buffer.packet);
}

TEST(RefdutFlowSet, CountsEachPairOfEndpointsOnce) {
    FlowSet flows;
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(add(flows, udp_packet("198.18.0.2", "198.19.0.2", 1000, 2000)), round == 0 ? 1U : 6U);
        EXPECT_EQ(add(flows, udp_packet("198.18.0.2", "198.19.0.2", 1001, 2000)), round == 0 ? 2U : 6U);
        EXPECT_EQ(add(flows, udp_packet("198.18.0.2", "198.19.0.2", 1000, 2001)), round == 0 ? 3U : 6U);
        EXPECT_EQ(add(flows, udp_packet("198.18.0.3", "198.19.0.2", 1000, 2000)), round == 0 ? 4U : 6U);
        EXPECT_EQ(add(flows, udp_packet("198.19.0.2", "198.18.0.2", 2000, 1000)), round == 0 ? 5U : 6U);
        EXPECT_EQ(add(flows, udp_packet("2001:2::2", "2001:2:0:8000::2", 1000, 2000)), 6U);
    }
    flows.clear();
    EXPECT_EQ(add(flows, udp_packet("198.18.0.2", "198.19.0.2", 1000, 2000)), 1U);
}

TEST(RefdutFlowSet, InATunnelTheEndsOfTheTunnelTellFlowsApart) {
    FlowSet flows;
    const auto add_in = [&](const char* source, std::uint16_t port) {
        const SlowTunnel tunnel{.source = test::address_of(source), .destination = test::address_of("2001:db8:ffff::1")};
        const Buffer buffer{tunnel.around(test::write_packet(udp_packet("10.0.0.1", "198.19.0.2", port, 80)))};
        return flows.add(buffer.packet);
    };
    EXPECT_EQ(add_in("2001:db8::1", 1000), 1U);
    EXPECT_EQ(add_in("2001:db8::2", 1000), 2U);
    EXPECT_EQ(add_in("2001:db8::2", 1001), 3U);
    EXPECT_EQ(add_in("2001:db8::1", 1000), 3U);
}

TEST(RefdutFlowSet, ManyFlowsAreCountedToTheLast) {
    FlowSet flows;
    for (std::uint32_t i = 0; i < 60'000; ++i) {
        ASSERT_EQ(add(flows, udp_packet("198.18.0.2", "198.19.0.2", static_cast<std::uint16_t>(i), 53)), i + 1);
    }
}

TEST(RefdutFlowSet, WhatIsNoDatagramHasNone) {
    FlowSet flows;
    auto packet = udp_packet("198.18.0.2", "198.19.0.2", 1000, 2000);
    const auto frame = test::write_packet(packet);
    for (std::size_t bytes = 0; bytes < 42; ++bytes) {
        const Buffer cut{std::span{frame}.first(bytes)};
        EXPECT_EQ(flows.add(cut.packet), 0U);
    }
}

}  // namespace
}  // namespace gatemark::refdut
