#include "base/checksum.hpp"

#include "golden/slow_packet.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gatemark {
namespace {

using test::Bytes;

TEST(Checksum, FollowsTheExampleOfRfc1071Section3) {
    const Bytes bytes = test::from_hex("0001f203f4f5f6f7");
    EXPECT_EQ(swap_bytes(fold(sum_of(bytes))), 0xddf2);
    EXPECT_EQ(swap_bytes(header_checksum(sum_of(bytes))), 0x220d);
}

TEST(Checksum, EqualsThePlainLoopForAnyLengthAndAlignment) {
    std::mt19937_64 random{1};
    Bytes bytes(700);
    for (auto& byte : bytes) {
        byte = static_cast<std::byte>(random());
    }
    for (std::size_t start = 0; start < 8; ++start) {
        for (std::size_t length = 0; length + start <= bytes.size(); length += 1 + length / 40) {
            const auto part = std::span{bytes}.subspan(start, length);
            ASSERT_EQ(swap_bytes(fold(sum_of(part))), test::slow_sum(part)) << start << " " << length;
        }
    }
}

TEST(Checksum, ManyCarriesAreFoldedIn) {
    const Bytes bytes(9216, std::byte{0xff});
    EXPECT_EQ(fold(sum_of(bytes)), 0xffff);
    EXPECT_EQ(fold(0), 0);
    EXPECT_EQ(fold(0x1'0000), 1);
    EXPECT_EQ(fold(0xffff'0001), 1);
    EXPECT_EQ(fold(0xffff'ffff'0000'0000), 0xffff);
}

TEST(Checksum, OneByteAddsToTheHalfOfItsWord) {
    for (std::size_t offset = 0; offset < 16; ++offset) {
        Bytes bytes(16, std::byte{0});
        bytes[offset] = std::byte{0xab};
        EXPECT_EQ(fold(sum_of_byte(0xab, offset)), fold(sum_of(bytes))) << offset;
    }
}

/// The words over which the UDP checksum of a packet with 18 counting bytes is taken, its field
/// being zero.
Bytes udp_words(const std::string& source, const std::string& destination, std::uint16_t source_port, std::uint16_t destination_port) {
    Bytes words;
    for (const std::string& text : {source, destination}) {
        const net::Address address = test::address_of(text);
        test::append(words, std::span{address.bytes}.first(net::address_bytes(address.family)));
    }
    for (const std::uint16_t word :
         {std::uint16_t{26}, std::uint16_t{17}, source_port, destination_port, std::uint16_t{26}, std::uint16_t{0}}) {
        test::append_16(words, word);
    }
    test::append(words, test::counting(18));
    return words;
}

TEST(Checksum, UdpZeroIsSentAsAllOnesInBothFamilies) {
    for (const Bytes& words : {udp_words("2001:2::2", "2001:2:0:8000::2", 63319, 7), udp_words("198.18.0.2", "198.19.0.2", 11064, 7)}) {
        EXPECT_EQ(test::slow_checksum(words), 0x0000);
        EXPECT_EQ(udp_checksum(sum_of(words)), 0xffff);
    }
    const Bytes next = udp_words("198.18.0.2", "198.19.0.2", 11063, 7);
    EXPECT_EQ(swap_bytes(udp_checksum(sum_of(next))), 1);
}

TEST(Checksum, HeaderZeroStaysZero) {
    Bytes header = test::from_hex("4500002e000000000a110000c6120102c6130102");
    const std::uint16_t checksum = test::slow_checksum(header);
    header[4] = static_cast<std::byte>(checksum / 256);  // an identification that fills the sum up to all ones
    header[5] = static_cast<std::byte>(checksum % 256);
    EXPECT_EQ(header_checksum(sum_of(header)), 0x0000);
    EXPECT_EQ(udp_checksum(sum_of(header)), 0xffff);
}

}  // namespace
}  // namespace gatemark
