#include "net/address_pool.hpp"

#include <gtest/gtest.h>

namespace gatemark::net {
namespace {

Result<AddressPool> make(const std::vector<std::string>& texts) {
    std::vector<Prefix> prefixes;
    for (const std::string& text : texts) {
        prefixes.push_back(parse_prefix(text).value());
    }
    return AddressPool::make(prefixes, "pool");
}

std::optional<std::uint64_t> number_of(const AddressPool& pool, const std::string& text) {
    return pool.number_of(parse_address(text).value().bytes.data());
}

TEST(AddressPool, NumbersItsAddressesThrough) {
    const auto pool = std::get<AddressPool>(make({"198.19.0.1/32", "203.0.113.0/24", "192.0.2.4/30"}));
    EXPECT_EQ(pool.count(), 261U);
    EXPECT_EQ(number_of(pool, "198.19.0.1"), 0U);
    EXPECT_EQ(number_of(pool, "203.0.113.0"), 1U);
    EXPECT_EQ(number_of(pool, "203.0.113.255"), 256U);
    EXPECT_EQ(number_of(pool, "192.0.2.7"), 260U);
    for (const char* stranger : {"198.19.0.0", "198.19.0.2", "203.0.112.255", "203.0.114.0", "192.0.2.3", "192.0.2.8", "0.0.0.0"}) {
        EXPECT_EQ(number_of(pool, stranger), std::nullopt) << stranger;
    }
    for (std::uint64_t number = 0; number < pool.count(); ++number) {
        EXPECT_EQ(pool.number_of(pool.at(number).bytes.data()), number);
    }
}

TEST(AddressPool, HoldsIpv6AddressesInFortyBits) {
    const auto pool = std::get<AddressPool>(make({"2001:2:0:8000::1/128", "2001:2:0:8001:ffff:ff00::/89"}));
    EXPECT_EQ(pool.count(), 1 + (std::uint64_t{1} << 39));
    EXPECT_EQ(number_of(pool, "2001:2:0:8000::1"), 0U);
    EXPECT_EQ(number_of(pool, "2001:2:0:8001:ffff:ff7f:ffff:ffff"), std::uint64_t{1} << 39);
    EXPECT_EQ(number_of(pool, "2001:2:0:8001:ffff:ff80::"), std::nullopt);
    EXPECT_EQ(number_of(pool, "2001:2:0:8002:ffff:ff00::"), std::nullopt);
    EXPECT_EQ(to_text(pool.at(std::uint64_t{1} << 39)), "2001:2:0:8001:ffff:ff7f:ffff:ffff");
}

TEST(AddressPool, ReturnsTheShareOfAnAddressInAChecksum) {
    for (const auto& pool : {std::get<AddressPool>(make({"203.0.113.0/24"})), std::get<AddressPool>(make({"2001:db8:ffff:fff0::/120"}))}) {
        for (std::uint64_t number = 0; number < pool.count(); ++number) {
            std::array<std::byte, 16> field{};
            const Sum sum = pool.write(field.data(), number);
            EXPECT_EQ(fold(sum), fold(sum_of(field)));
        }
    }
}

TEST(AddressPool, RefusesWhatCannotBeNumbered) {
    for (const auto& texts : std::vector<std::vector<std::string>>{{},
                                                                   {"198.19.0.1/32", "2001:2::1/128"},
                                                                   {"198.19.0.0/24", "198.19.0.7/32"},
                                                                   {"198.19.0.7/32", "198.19.0.0/24"},
                                                                   {"2001:2::/87"},
                                                                   {"2001:2:0:1::/88", "2001:2:0:2::/128"}}) {
        EXPECT_NE(error_of(make(texts)), nullptr);
    }
    EXPECT_EQ(error_of(make({"2001:2:0:1::/88"})), nullptr);
}

}  // namespace
}  // namespace gatemark::net
