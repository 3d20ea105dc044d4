#include "refdut/packet.hpp"

#include "refdut/checksum.hpp"
#include "refdut/packets.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gatemark::refdut {
namespace {

using test::Bytes;

constexpr const char* without_vlan = "020000000002 020000000001 0800 0102030405";
constexpr const char* with_vlan = "020000000002 020000000001 8100 e005 0800 0102030405";

TEST(RefdutPacket, TakesAwayAddsAndChangesTheVlanTag) {
    for (const auto& [headroom, tailroom] : {std::pair{4U, 0U}, std::pair{0U, 4U}}) {
        Buffer buffer{test::from_hex(with_vlan), headroom, tailroom};
        EXPECT_EQ(vlan_of(buffer.packet), 5);
        EXPECT_TRUE(set_vlan(buffer.packet, 9));
        EXPECT_EQ(test::to_hex(buffer.frame()), test::to_hex(test::from_hex("020000000002 020000000001 8100 e009 0800 0102030405")));
        EXPECT_TRUE(set_vlan(buffer.packet, std::nullopt));
        EXPECT_EQ(test::to_hex(buffer.frame()), test::to_hex(test::from_hex(without_vlan)));
        EXPECT_EQ(vlan_of(buffer.packet), std::nullopt);
        EXPECT_TRUE(set_vlan(buffer.packet, std::nullopt));
        EXPECT_TRUE(buffer.is_sound());
    }
    Buffer in_tail{test::from_hex(without_vlan), 0, 4};
    EXPECT_TRUE(set_vlan(in_tail.packet, 5));
    EXPECT_EQ(test::to_hex(in_tail.frame()), test::to_hex(test::from_hex("020000000002 020000000001 8100 0005 0800 0102030405")));
    Buffer full{test::from_hex(without_vlan), 3, 3};
    EXPECT_FALSE(set_vlan(full.packet, 5));
    EXPECT_EQ(test::to_hex(full.frame()), test::to_hex(test::from_hex(without_vlan)));
}

TEST(RefdutChecksum, GivesTheExampleOfRfc1624) {
    OnesSum change;
    change.take_away(0x5555);
    change.add(std::uint32_t{0x3285});
    EXPECT_EQ(updated(0xdd2f, change), 0x0000);
}

TEST(RefdutChecksum, AgreesWithTheSlowSumAndWithItselfAfterAChange) {
    std::mt19937 random{5};
    for (int i = 0; i < 2000; ++i) {
        Bytes bytes(random() % 100);
        for (std::byte& byte : bytes) {
            byte = random() % 3 == 0 ? std::byte{0xff} : static_cast<std::byte>(random());
        }
        OnesSum sum;
        sum.add(bytes.data(), bytes.size());
        ASSERT_EQ(checksum_of(sum), test::slow_checksum(bytes));
        if (bytes.size() < 8) {
            continue;
        }
        OnesSum change;
        change.take_away(bytes.data() + 4, 4);
        bytes[5] ^= std::byte{0x5a};
        bytes[6] = std::byte{0};
        change.add(bytes.data() + 4, 4);
        ASSERT_EQ(updated(checksum_of(sum), change), test::slow_checksum(bytes));
    }
    EXPECT_EQ(as_udp(0), 0xffff);
    EXPECT_EQ(as_udp(1), 1);
}

}  // namespace
}  // namespace gatemark::refdut
