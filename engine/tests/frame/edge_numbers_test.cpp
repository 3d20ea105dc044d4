#include "frame/edge_numbers.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gatemark::frame {
namespace {

net::MapDomain domain_of(unsigned ipv4_bits, unsigned ea_bits, unsigned psid_offset = 0) {
    return net::MapDomain{
        net::MapDomain::Parameters{.ipv6_bits = 40, .ipv4_bits = ipv4_bits, .ea_bits = ea_bits, .psid_offset = psid_offset}};
}

TEST(EdgeNumbers, OfAWholeDomainAreItsValues) {
    const EdgeNumbers numbers{domain_of(24, 16), 0, {}};
    EXPECT_TRUE(numbers.is_identity());
    EXPECT_EQ(numbers.count(), 65536U);
    for (const std::uint64_t value : {0U, 1U, 0x1234U, 0xffffU}) {
        EXPECT_EQ(numbers.value_of(value), value);
        EXPECT_EQ(numbers.number_of(value), value);
    }
}

/// Against a list of the values that are left.
TEST(EdgeNumbers, LeaveNoGapForWhatIsLeftOut) {
    std::mt19937_64 random{3};
    for (int round = 0; round < 500; ++round) {
        const auto ea_bits = static_cast<unsigned>(random() % 11);
        const auto ipv4_bits = static_cast<unsigned>(20 + random() % 13);
        const net::MapDomain domain = domain_of(ipv4_bits, ea_bits);
        const auto psids = std::uint64_t{1} << domain.ea_psid_bits();
        const auto lowest_psid = static_cast<std::uint32_t>(random() % psids);
        std::vector<EdgeNumbers::Range> ranges(random() % 5);
        for (auto& [first, last] : ranges) {
            first = random() % domain.ea_values();
            last = std::min(first + random() % 40, domain.ea_values() - 1);
        }
        std::vector<std::uint64_t> left;
        for (std::uint64_t value = 0; value < domain.ea_values(); ++value) {
            const bool out = std::ranges::any_of(ranges, [&](const auto& range) { return value >= range.first && value <= range.last; });
            if (!out && value % psids >= lowest_psid) {
                left.push_back(value);
            }
        }
        const EdgeNumbers numbers{domain, lowest_psid, ranges};
        ASSERT_EQ(numbers.count(), left.size()) << round;
        for (std::uint64_t value = 0, number = 0; value < domain.ea_values(); ++value) {
            const bool stays = number < left.size() && left[number] == value;
            ASSERT_EQ(numbers.number_of(value), stays ? std::optional{number} : std::nullopt) << round << " " << value;
            if (stays) {
                ASSERT_EQ(numbers.value_of(number++), value) << round;
            }
        }
    }
}

TEST(EdgeNumbers, CountTheLargestDomain) {
    const net::MapDomain domain = domain_of(0, 48);
    const EdgeNumbers numbers{domain, 1, {{.first = 0, .last = 0xffff}, {.first = 0xffff'ffff'0000, .last = 0xffff'ffff'ffff}}};
    EXPECT_EQ(numbers.count(), 0xffff'fffeULL * 0xffff);
    EXPECT_EQ(numbers.value_of(0), 0x1'0001U);
    EXPECT_EQ(numbers.value_of(numbers.count() - 1), 0xffff'fffe'ffffU);
    EXPECT_EQ(numbers.number_of(0xffff'fffe'ffff), numbers.count() - 1);
}

}  // namespace
}  // namespace gatemark::frame
