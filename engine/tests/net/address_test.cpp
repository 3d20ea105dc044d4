#include "net/address.hpp"

#include <gtest/gtest.h>

namespace gatemark::net {
namespace {

TEST(Address, ReadsAndWritesBothFamilies) {
    const auto ipv4 = parse_address("198.18.0.2");
    ASSERT_TRUE(ipv4);
    EXPECT_EQ(ipv4->family, Family::ipv4);
    EXPECT_EQ(std::to_integer<int>(ipv4->bytes[0]), 198);
    EXPECT_EQ(ipv4->bytes[4], std::byte{0});
    EXPECT_EQ(to_text(*ipv4), "198.18.0.2");
    const auto ipv6 = parse_address("2001:2:0:8000::2");
    ASSERT_TRUE(ipv6);
    EXPECT_EQ(ipv6->family, Family::ipv6);
    EXPECT_EQ(std::to_integer<int>(ipv6->bytes[6]), 0x80);
    EXPECT_EQ(to_text(*ipv6), "2001:2:0:8000::2");
    EXPECT_EQ(parse_address("::"), (Address{.family = Family::ipv6, .bytes = {}}));
}

TEST(Address, AnythingElseIsNone) {
    for (const char* const text : {"", " ", "198.18.0", "198.18.0.256", "198.18.0.2 ", "198.18.0.2/24", "2001:2:::1", "2001:2::g",
                                   "1.2.3.4.5", "localhost", "fe80::1%eth0"}) {
        EXPECT_FALSE(parse_address(text)) << text;
    }
    EXPECT_FALSE(parse_address(std::string{"198.18.0.2\0", 11}));
    EXPECT_FALSE(parse_address(std::string{"2001:2::2\0x", 11}));
}

TEST(Prefix, TakesEveryLengthWhoseLowerBitsAreZero) {
    EXPECT_EQ(parse_prefix("0.0.0.0/0")->length, 0U);
    EXPECT_EQ(parse_prefix("198.18.0.0/15")->length, 15U);
    EXPECT_EQ(parse_prefix("198.18.0.2/32")->length, 32U);
    EXPECT_EQ(parse_prefix("2001:2:0:6400::/96")->length, 96U);
    EXPECT_EQ(parse_prefix("2001:2::1/128")->length, 128U);
    for (const char* const text :
         {"198.18.0.2", "198.18.0.2/", "198.18.0.3/31", "198.18.0.0/33", "198.18.0.0/-1", "198.18.0.0/+8", "198.18.0.0/8x",
          "198.18.0.0/ 15", "2001:2::1/127", "2001:2::/129", "/64", "2001:2::/4294967296", "2001:2::/64/64"}) {
        EXPECT_FALSE(parse_prefix(text)) << text;
    }
}

TEST(Prefix, ContainsWhatSharesItsBits) {
    const Prefix prefix = *parse_prefix("198.18.0.0/15");
    EXPECT_TRUE(prefix.contains(*parse_address("198.19.255.255")));
    EXPECT_FALSE(prefix.contains(*parse_address("198.20.0.0")));
    EXPECT_FALSE(prefix.contains(*parse_address("198.17.255.255")));
    EXPECT_FALSE(prefix.contains(*parse_address("c612::")));
    EXPECT_TRUE(parse_prefix("::/0")->contains(*parse_address("ffff::")));
    EXPECT_TRUE(parse_prefix("2001:2::1/128")->contains(*parse_address("2001:2::1")));
    EXPECT_FALSE(parse_prefix("2001:2::1/128")->contains(*parse_address("2001:2::")));
}

TEST(Bits, AreCountedFromTheMostSignificant) {
    Address address = *parse_address("128.0.0.1");
    EXPECT_TRUE(bit_of(address, 0));
    EXPECT_FALSE(bit_of(address, 1));
    EXPECT_TRUE(bit_of(address, 31));
    set_bit(address, 0, false);
    set_bit(address, 15, true);
    EXPECT_EQ(to_text(address), "0.1.0.1");
}

TEST(MacAddress, ReadsSixPairsOfDigits) {
    EXPECT_EQ(to_text(*parse_mac("02:00:00:Ab:cd:EF")), "02:00:00:ab:cd:ef");
    for (const char* const text : {"", "02:00:00:00:00", "02:00:00:00:00:0", "02-00-00-00-00-01", "02:00:00:00:00:0g", "2:0:0:0:0:1:00000",
                                   "02:00:00:00:00:01:", "-2:00:00:00:00:01"}) {
        EXPECT_FALSE(parse_mac(text)) << text;
    }
}

}  // namespace
}  // namespace gatemark::net
