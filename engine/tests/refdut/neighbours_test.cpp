#include "refdut/neighbours.hpp"

#include "refdut/icmp_error.hpp"
#include "refdut/packets.hpp"

#include "loop/neighbor_messages.hpp"

#include <gtest/gtest.h>

/// The Tester's own messages are the other side.
namespace gatemark::refdut {
namespace {

using loop::NeighborLink, loop::NeighborMessage;

const net::MacAddress gateway_mac = *net::parse_mac("02:00:00:00:00:02"), tester_mac = *net::parse_mac("02:00:00:00:00:01");

class RefdutNeighbours : public testing::TestWithParam<std::optional<std::uint16_t>> {
protected:
    RefdutNeighbours()
        : config_{.own_mac = gateway_mac,
                  .vlan_id = GetParam(),
                  .ipv4 = test::address_of("198.18.0.1"),
                  .ipv6 = test::address_of("2001:2::1"),
                  .peer_mac = std::nullopt},
          tester_{.own_mac = tester_mac, .vlan_id = GetParam()} {}

    Neighbours::Taken take(Neighbours& neighbours, std::span<const std::byte> frame) {
        Neighbours::Taken taken;
        neighbours.take(frame, taken);
        return taken;
    }

    NeighbourConfig config_;
    NeighborLink tester_;
};

TEST_P(RefdutNeighbours, AnswersForItsOwnAddressAndLearnsWhoAsked) {
    for (const auto& [target, asker] : {std::pair{"198.18.0.1", "198.18.0.2"}, std::pair{"2001:2::1", "2001:2::2"}}) {
        Neighbours neighbours{config_};
        EXPECT_EQ(neighbours.peer(), std::nullopt);
        const auto question = loop::write_question(tester_, test::address_of(target), test::address_of(asker));
        const auto taken = take(neighbours, std::span{question.data}.first(question.bytes));
        EXPECT_TRUE(taken.consumed);
        ASSERT_TRUE(taken.answer);
        EXPECT_EQ(neighbours.peer(), tester_mac);
        const NeighborMessage message = loop::read_neighbor_message(taken.answer_frame.span());
        ASSERT_TRUE(message.fact);
        EXPECT_EQ(message.fact->owner, test::address_of(target));
        EXPECT_EQ(message.fact->mac, gateway_mac);
        EXPECT_EQ(taken.answer_frame.bytes, question.bytes);
    }
}

TEST_P(RefdutNeighbours, LearnsFromQuestionsForOthersWithoutAnswering) {
    for (const auto& [target, asker] : {std::pair{"198.18.0.9", "198.18.0.2"}, std::pair{"2001:2::9", "2001:2::2"}}) {
        Neighbours neighbours{config_};
        const auto question = loop::write_question(tester_, test::address_of(target), test::address_of(asker));
        EXPECT_FALSE(take(neighbours, std::span{question.data}.first(question.bytes)).answer);
        EXPECT_EQ(neighbours.peer(), tester_mac);
        neighbours.forget();
        EXPECT_EQ(neighbours.peer(), std::nullopt);
    }
}

TEST_P(RefdutNeighbours, ItsQuestionsAreUnderstoodAndItsAnswersLearned) {
    for (const auto& [own, target] : {std::pair{"198.18.0.1", "198.18.0.2"}, std::pair{"2001:2::1", "2001:2::2"}}) {
        Neighbours neighbours{config_};
        const NeighbourFrame question = neighbours.question(test::address_of(target));
        const NeighborMessage message = loop::read_neighbor_message(question.span());
        ASSERT_TRUE(message.question);
        EXPECT_EQ(message.question->target, test::address_of(target));
        EXPECT_EQ(message.question->asker, test::address_of(own));
        const auto answer = loop::write_answer(tester_, *message.question);
        EXPECT_FALSE(take(neighbours, std::span{answer.data}.first(answer.bytes)).answer);
        EXPECT_EQ(neighbours.peer(), tester_mac);
    }
}

TEST_P(RefdutNeighbours, AnswersAProbeForDuplicatesToAllNodes) {
    Neighbours neighbours{config_};
    const auto question = loop::write_question(tester_, test::address_of("2001:2::1"), test::address_of("::"));
    test::Bytes probe(question.data.begin(), question.data.begin() + static_cast<std::ptrdiff_t>(question.bytes));
    EXPECT_FALSE(take(neighbours, probe).answer) << "with a link-layer address it is no probe";
    const std::size_t ip = GetParam() ? 18 : 14;
    probe.resize(ip + 40 + 24);
    probe[ip + 5] = std::byte{24};
    probe[ip + 42] = probe[ip + 43] = std::byte{0};
    test::Bytes summed(probe.begin() + static_cast<std::ptrdiff_t>(ip) + 8, probe.end());
    test::append_16(summed, 24 + 58);
    const std::uint16_t checksum = test::slow_checksum(summed);
    probe[ip + 42] = static_cast<std::byte>(checksum >> 8);
    probe[ip + 43] = static_cast<std::byte>(checksum);
    const auto taken = take(neighbours, probe);
    ASSERT_TRUE(taken.answer);
    EXPECT_EQ(test::to_hex(std::span{taken.answer_frame.data}.first(6)), "333300000001");
    const NeighborMessage message = loop::read_neighbor_message(taken.answer_frame.span());
    ASSERT_TRUE(message.fact);
    EXPECT_EQ(message.fact->mac, gateway_mac);
    EXPECT_EQ(neighbours.peer(), std::nullopt);
}

TEST_P(RefdutNeighbours, AGivenPeerIsKeptAndWritten) {
    config_.peer_mac = *net::parse_mac("02:00:00:00:00:07");
    Neighbours neighbours{config_};
    const auto question = loop::write_question(tester_, test::address_of("198.18.0.1"), test::address_of("198.18.0.2"));
    EXPECT_TRUE(take(neighbours, std::span{question.data}.first(question.bytes)).answer);
    EXPECT_EQ(neighbours.peer(), config_.peer_mac);
    Buffer buffer{test::from_hex("ffffffffffff eeeeeeeeeeee 0800 45")};
    EXPECT_TRUE(neighbours.address(buffer.packet));
    EXPECT_EQ(test::to_hex(buffer.frame()), test::to_hex(test::from_hex("020000000007 020000000002 0800 45")));
}

TEST_P(RefdutNeighbours, LeavesTestFramesAlone) {
    Neighbours neighbours{config_};
    for (const char* destination : {"198.19.0.2", "2001:2:0:8000::2"}) {
        const bool ipv4 = destination[0] == '1';
        auto packet = udp_packet(ipv4 ? "198.18.0.2" : "2001:2::2", destination, 1, 2);
        packet.vlan = GetParam();
        EXPECT_FALSE(take(neighbours, test::write_packet(packet)).consumed);
    }
    EXPECT_EQ(neighbours.peer(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Vlan, RefdutNeighbours, testing::Values(std::nullopt, std::optional<std::uint16_t>{5}));

TEST(RefdutRefusal, QuotesTheFrameToItsSender) {
    for (const auto& [source, own] : {std::pair{"10.0.0.2", "10.0.0.1"}, std::pair{"2001:2::2", "2001:2::1"}}) {
        const bool ipv4 = source[0] == '1';
        auto packet = udp_packet(source, ipv4 ? "198.19.0.2" : "64:ff9b::c613:2", 5000, 80, 1400);
        packet.link_source = tester_mac;
        packet.link_destination = gateway_mac;
        packet.vlan = 5;
        const Buffer refused{test::write_packet(packet), 0, 0};
        ErrorFrame error;
        write_refusal(refused.packet, Drop::table_full, test::address_of(own), error);
        const std::size_t header = ipv4 ? 20 : 40, quoted = ipv4 ? 28 : 1280 - 48;
        ASSERT_EQ(error.bytes, 18 + header + 8 + quoted);
        const std::span<const std::byte> frame{error.data.data(), error.bytes};
        EXPECT_EQ(test::to_hex(frame.first(12)), test::to_hex(test::from_hex("020000000001 020000000002")));
        EXPECT_EQ(test::to_hex(frame.subspan(18 + header, 2)), ipv4 ? "030d" : "0103");
        EXPECT_EQ(test::to_hex(frame.subspan(18 + header + 8)), test::to_hex(refused.frame().subspan(18, quoted)));
        test::Bytes checked;
        if (ipv4) {
            EXPECT_EQ(test::slow_checksum(frame.subspan(18, 20)), 0);
        } else {
            test::append(checked, frame.subspan(18 + 8, 32));
            test::append_16(checked, static_cast<std::uint16_t>(8 + quoted));
            test::append_16(checked, 58);
        }
        test::append(checked, frame.subspan(18 + header));
        EXPECT_EQ(test::slow_checksum(checked), 0);
        write_refusal(refused.packet, Drop::table_full, test::address_of(ipv4 ? "2001:2::1" : "10.0.0.1"), error);
        EXPECT_EQ(error.bytes, 0U);
    }
}

}  // namespace
}  // namespace gatemark::refdut
