#include "loop/neighbor_messages.hpp"

#include "golden/slow_packet.hpp"

#include <gtest/gtest.h>

namespace gatemark::loop {
namespace {

using test::address_of, test::Bytes;

const NeighborLink without_vlan{.own_mac = *net::parse_mac("02:00:00:00:00:01"), .vlan_id = std::nullopt};
const NeighborLink with_vlan{.own_mac = *net::parse_mac("02:00:00:00:00:01"), .vlan_id = 100};
const net::MacAddress gateway_mac = *net::parse_mac("02:00:00:00:00:99");

std::string hex_of(const NeighborFrame& frame) { return test::to_hex(std::span{frame.data}.first(frame.bytes)); }
std::string hex_of(const char* text, std::size_t bytes) {
    Bytes frame = test::from_hex(text);
    frame.resize(bytes);
    return test::to_hex(frame);
}

/// An ICMPv6 frame with its checksum (RFC 4443 section 2.3).
Bytes icmpv6_frame(const std::string& source, const std::string& destination, const std::string& message_hex, unsigned hop_limit = 255) {
    Bytes message = test::from_hex(message_hex), summed;
    test::append(summed, address_of(source).bytes);
    test::append(summed, address_of(destination).bytes);
    test::append_16(summed, static_cast<std::uint16_t>(message.size()));
    test::append_16(summed, 58);
    test::append(summed, message);
    const std::uint16_t checksum = test::slow_checksum(summed);
    message[2] = static_cast<std::byte>(checksum / 256);
    message[3] = static_cast<std::byte>(checksum % 256);
    Bytes frame = test::from_hex("020000000001 020000000099 86dd 60000000");
    test::append_16(frame, static_cast<std::uint16_t>(message.size()));
    frame.push_back(std::byte{58});
    frame.push_back(static_cast<std::byte>(hop_limit));
    test::append(frame, address_of(source).bytes);
    test::append(frame, address_of(destination).bytes);
    test::append(frame, message);
    return frame;
}

constexpr const char* solicitation = "87000000 00000000 20010002000000000000000000000002";
constexpr const char* own_address = "2001:2::2";
constexpr const char* gateway = "2001:2::1";
constexpr const char* group = "ff02::1:ff00:2";

TEST(Arp, QuestionByteByByte) {
    EXPECT_EQ(hex_of(write_question(without_vlan, address_of("198.18.0.1"), address_of("198.18.0.2"))),
              hex_of("ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 c6120002 000000000000 c6120001", 60));
    EXPECT_EQ(hex_of(write_question(with_vlan, address_of("198.18.0.1"), address_of("198.18.0.2"))),
              hex_of("ffffffffffff 020000000001 8100 0064 0806 0001 0800 06 04 0001 020000000001 c6120002 000000000000 c6120001", 64));
}

TEST(Arp, AnswerByteByByte) {
    const NeighborQuestion question{.target = address_of("198.18.0.2"), .asker = address_of("198.18.0.1"), .asker_mac = gateway_mac};
    EXPECT_EQ(hex_of(write_answer(without_vlan, question)),
              hex_of("020000000099 020000000001 0806 0001 0800 06 04 0002 020000000001 c6120002 020000000099 c6120001", 60));
}

TEST(Arp, IsReadBack) {
    for (const NeighborLink& link : {without_vlan, with_vlan}) {
        const NeighborFrame asked = write_question(link, address_of("198.18.0.1"), address_of("198.18.0.2"));
        const NeighborMessage message = read_neighbor_message(std::span{asked.data}.first(asked.bytes));
        ASSERT_TRUE(message.question && message.fact);
        EXPECT_EQ(message.question->target, address_of("198.18.0.1"));
        EXPECT_EQ(message.question->asker, address_of("198.18.0.2"));
        EXPECT_EQ(message.fact->owner, address_of("198.18.0.2"));
        EXPECT_EQ(message.fact->mac, link.own_mac);
        const NeighborFrame answered = write_answer(link, *message.question);
        const NeighborMessage answer = read_neighbor_message(std::span{answered.data}.first(answered.bytes));
        EXPECT_FALSE(answer.question);
        ASSERT_TRUE(answer.fact);
        EXPECT_EQ(answer.fact->owner, address_of("198.18.0.1"));
    }
}

TEST(Arp, OfOtherKindsOrCutIsNothing) {
    const Bytes request = test::from_hex("ffffffffffff 020000000099 0806 0001 0800 06 04 0001 020000000099 c6120001 000000000000 c6120002");
    EXPECT_TRUE(read_neighbor_message(request).question);
    for (std::size_t length = 0; length < request.size(); ++length) {
        EXPECT_FALSE(read_neighbor_message(std::span{request}.first(length)).question) << length;
    }
    for (const std::size_t byte : {14U, 15U, 16U, 17U, 18U, 19U, 20U}) {
        Bytes other = request;
        other[byte] ^= std::byte{0x10};
        EXPECT_FALSE(read_neighbor_message(other).question) << byte;
    }
}

TEST(NeighborDiscovery, QuestionByteByByte) {
    Bytes expected = icmpv6_frame(own_address, "ff02::1:ff00:1", "87000000 00000000 20010002000000000000000000000001 0101 020000000001");
    const Bytes link = test::from_hex("3333ff000001 020000000001");
    std::copy(link.begin(), link.end(), expected.begin());
    EXPECT_EQ(hex_of(write_question(without_vlan, address_of(gateway), address_of(own_address))), test::to_hex(expected));
    const NeighborFrame vlan_frame = write_question(with_vlan, address_of(gateway), address_of(own_address));
    EXPECT_EQ(vlan_frame.bytes, 90U);
    EXPECT_EQ(hex_of(vlan_frame).substr(24, 12), "8100006486dd");
    EXPECT_EQ(hex_of(vlan_frame).substr(36), test::to_hex(std::span{expected}.subspan(14)));
}

TEST(NeighborDiscovery, TheSolicitedNodeGroupHasTheLastThreeBytes) {
    const NeighborFrame frame = write_question(without_vlan, address_of("2001:2:0:8000::aabb:ccdd"), address_of(own_address));
    EXPECT_EQ(hex_of(frame).substr(0, 12), "3333ffbbccdd");
    EXPECT_EQ(hex_of(frame).substr(2 * 38, 32), "ff0200000000000000000001ffbbccdd");
}

TEST(NeighborDiscovery, AnswerByteByByte) {
    const NeighborQuestion question{.target = address_of(own_address), .asker = address_of(gateway), .asker_mac = gateway_mac};
    Bytes expected = icmpv6_frame(own_address, gateway, "88000000 60000000 20010002000000000000000000000002 0201 020000000001");
    const Bytes link = test::from_hex("020000000099 020000000001");
    std::copy(link.begin(), link.end(), expected.begin());
    EXPECT_EQ(hex_of(write_answer(without_vlan, question)), test::to_hex(expected));
}

TEST(NeighborDiscovery, AProbeForDuplicatesIsAnsweredToAllNodesUnsolicited) {
    const NeighborMessage probe = read_neighbor_message(icmpv6_frame("::", group, solicitation));
    ASSERT_TRUE(probe.question);
    Bytes expected = icmpv6_frame(own_address, "ff02::1", "88000000 20000000 20010002000000000000000000000002 0201 020000000001");
    const Bytes link = test::from_hex("333300000001 020000000001");
    std::copy(link.begin(), link.end(), expected.begin());
    EXPECT_EQ(hex_of(write_answer(without_vlan, *probe.question)), test::to_hex(expected));
}

TEST(NeighborDiscovery, SolicitationIsReadWithAndWithoutItsOption) {
    const NeighborMessage plain = read_neighbor_message(icmpv6_frame(gateway, group, solicitation));
    ASSERT_TRUE(plain.question);
    EXPECT_EQ(plain.question->target, address_of(own_address));
    EXPECT_EQ(plain.question->asker, address_of(gateway));
    EXPECT_EQ(plain.question->asker_mac, gateway_mac) << "the sender's Ethernet address";
    const NeighborMessage with_option =
        read_neighbor_message(icmpv6_frame(gateway, group, std::string{solicitation} + "0101 0200000000aa"));
    ASSERT_TRUE(with_option.question);
    EXPECT_EQ(net::to_text(with_option.question->asker_mac), "02:00:00:00:00:aa");
    const NeighborMessage behind_another =
        read_neighbor_message(icmpv6_frame(gateway, group, std::string{solicitation} + "0e01 000000000000 0101 0200000000ab"));
    ASSERT_TRUE(behind_another.question);
    EXPECT_EQ(net::to_text(behind_another.question->asker_mac), "02:00:00:00:00:ab");
}

TEST(NeighborDiscovery, AdvertisementIsAFact) {
    const std::string advertisement = "88000000 e0000000 20010002000000000000000000000001";
    const NeighborMessage message = read_neighbor_message(icmpv6_frame(gateway, own_address, advertisement + "0201 0200000000cc"));
    ASSERT_TRUE(message.fact);
    EXPECT_FALSE(message.question);
    EXPECT_EQ(message.fact->owner, address_of(gateway));
    EXPECT_EQ(net::to_text(message.fact->mac), "02:00:00:00:00:cc");
    EXPECT_EQ(read_neighbor_message(icmpv6_frame(gateway, own_address, advertisement)).fact->mac, gateway_mac);
}

/// RFC 4861 sections 4.6, 7.1.1 and 7.1.2: what must be silently discarded.
TEST(NeighborDiscovery, InvalidMessagesAreNothing) {
    const auto is_nothing = [](const Bytes& frame) {
        const NeighborMessage message = read_neighbor_message(frame);
        return !message.question && !message.fact;
    };
    EXPECT_TRUE(is_nothing(icmpv6_frame(gateway, group, solicitation, 254))) << "hop limit";
    EXPECT_TRUE(is_nothing(icmpv6_frame(gateway, group, "87010000 00000000 20010002000000000000000000000002"))) << "code";
    EXPECT_TRUE(is_nothing(icmpv6_frame(gateway, group, std::string{solicitation} + "0100 0200000000aa"))) << "option of length 0";
    EXPECT_TRUE(is_nothing(icmpv6_frame(gateway, group, std::string{solicitation} + "0101 0200000000aa 0e00 000000000000")))
        << "option of length 0 behind another";
    EXPECT_TRUE(is_nothing(icmpv6_frame(gateway, group, std::string{solicitation} + "0105 0200000000aa")))
        << "option longer than the message";
    EXPECT_TRUE(is_nothing(icmpv6_frame(gateway, group, "85000000 00000000 20010002000000000000000000000002"))) << "router solicitation";
    Bytes damaged = icmpv6_frame(gateway, group, solicitation);
    damaged[14 + 40 + 2] ^= std::byte{1};
    EXPECT_TRUE(is_nothing(damaged)) << "checksum";
    const Bytes whole = icmpv6_frame(gateway, group, std::string{solicitation} + "0101 0200000000aa");
    for (std::size_t length = 0; length < whole.size(); ++length) {
        EXPECT_TRUE(is_nothing({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)})) << length;
    }
    Bytes padded = whole;
    padded.resize(100);
    EXPECT_FALSE(is_nothing(padded)) << "bytes after the packet do not matter";
}

}  // namespace
}  // namespace gatemark::loop
