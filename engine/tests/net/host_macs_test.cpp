#include "net/host_macs.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace gatemark::net {
namespace {

std::uint64_t number_of(const MacAddress& mac) {
    std::uint64_t number = 0;
    for (const std::byte byte : mac) {
        number = number << 8 | std::to_integer<std::uint64_t>(byte);
    }
    return number;
}

TEST(HostMacs, FollowThePatternOfRfc4814) {
    for (const std::uint16_t port : {std::uint16_t{1}, std::uint16_t{2}, std::uint16_t{0x1234}}) {
        const HostMacs macs{7, port};
        for (std::uint32_t host = 0; host < 100'000; ++host) {
            const MacAddress mac = macs.at(host);
            ASSERT_EQ(mac[0] & std::byte{0x03}, std::byte{0}) << "a group's, or locally administered";
            ASSERT_EQ(std::to_integer<unsigned>(mac[1]) << 8 | std::to_integer<unsigned>(mac[2]), port);
        }
    }
}

/// Hosts next to each other, and hosts that differ in the upper bits of their numbers only.
TEST(HostMacs, NoTwoHostsOfAPortShareOne) {
    const HostMacs macs{42, 1};
    std::vector<std::uint64_t> numbers;
    for (std::uint32_t host = 0; host < 1U << 20; ++host) {
        numbers.push_back(number_of(macs.at(host)));
    }
    for (std::uint32_t host = 1; host < 1U << 10; ++host) {
        numbers.push_back(number_of(macs.at(host << 20)));
    }
    std::sort(numbers.begin(), numbers.end());
    EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
}

TEST(HostMacs, AreTheSameEachTimeAndOthersWithAnotherSeedOrPort) {
    unsigned same_seed = 0, same_port = 0;
    for (std::uint32_t host = 0; host < 1000; ++host) {
        EXPECT_EQ((HostMacs{42, 1}.at(host)), (HostMacs{42, 1}.at(host)));
        same_seed += HostMacs{42, 1}.at(host) == HostMacs{43, 1}.at(host) ? 1U : 0U;
        const MacAddress left = HostMacs{42, 1}.at(host), right = HostMacs{42, 2}.at(host);
        same_port += std::equal(left.begin() + 3, left.end(), right.begin() + 3) ? 1U : 0U;
    }
    EXPECT_EQ(same_seed, 0U);
    EXPECT_LT(same_port, 3U);
}

/// Each of the 30 random bits is set in about half of the addresses: within five standard
/// deviations.
TEST(HostMacs, TheRandomBitsAreEven) {
    const HostMacs macs{1, 1};
    constexpr unsigned hosts = 100'000;
    std::array<unsigned, 48> set{};
    for (std::uint32_t host = 0; host < hosts; ++host) {
        const std::uint64_t number = number_of(macs.at(host));
        for (unsigned bit = 0; bit < set.size(); ++bit) {
            set[bit] += static_cast<unsigned>(number >> bit & 1U);
        }
    }
    unsigned even = 0;
    for (const unsigned count : set) {
        even += count > hosts / 2 - 800 && count < hosts / 2 + 800 ? 1U : 0U;
    }
    EXPECT_EQ(even, HostMacs::bits);
}

}  // namespace
}  // namespace gatemark::net
