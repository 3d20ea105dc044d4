#include "record/identifications.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace gatemark::record {

namespace {

/// An IPv4 header of one of several pairs of hosts.
std::array<std::byte, net::ipv4::header_bytes> header(std::uint32_t pair, std::uint16_t identification) {
    std::array<std::byte, net::ipv4::header_bytes> ip{};
    store_big_endian(ip.data() + net::ipv4::identification, identification);
    store_big_endian(ip.data() + net::ipv4::destination, pair);
    return ip;
}

struct Counted {
    std::uint64_t frames, distinct;
    friend bool operator==(const Counted&, const Counted&) = default;
};

template <class Identification>
Counted counted(std::uint64_t frames, std::uint32_t pairs, const Identification& identification) {
    Identifications window = Identifications::of_translator();
    for (std::uint64_t i = 0; i < frames && window.wants_more(); ++i) {
        window.note(header(static_cast<std::uint32_t>(i % pairs), identification(i)).data(), i);
    }
    ClassCounts counts;
    window.count(counts);
    return {counts[Count::identifications], counts[Count::distinct_identifications]};
}

}  // namespace

TEST(Identifications, AreCountedForEachPairOfHosts) {
    const auto constant = [](std::uint64_t) { return std::uint16_t{99}; };
    const auto counter = [](std::uint64_t i) { return static_cast<std::uint16_t>(i); };
    EXPECT_EQ(counted(100, 1, constant), (Counted{100, 1}));
    EXPECT_EQ(counted(100, 1, counter), (Counted{100, 100}));
    EXPECT_EQ(counted(100'000, 1, counter), (Counted{256, 256})) << "a counter comes round";
    EXPECT_EQ(counted(100'000, 4, constant), (Counted{4 * 256, 4}));
    EXPECT_EQ(counted(100, 100, constant), (Counted{0, 0})) << "of one packet to each host nothing is known";
    const auto of_pair = [](std::uint64_t i) { return static_cast<std::uint16_t>(i / 10); };
    EXPECT_EQ(counted(100, 10, of_pair), (Counted{100, 100})) << "each pair has a counter of its own";
}

TEST(Identifications, OfRandomOnesFewComeAgain) {
    std::mt19937 random{4};
    const Counted drawn = counted(100'000, 64, [&](std::uint64_t) { return static_cast<std::uint16_t>(random()); });
    EXPECT_EQ(drawn.frames, 64U * 256);
    EXPECT_GT(drawn.distinct, drawn.frames - 64);
}

TEST(Identifications, APacketThatArrivesTwiceIsOne) {
    Identifications window = Identifications::of_translator();
    for (std::uint64_t i = 0; i < 100; ++i) {
        window.note(header(1, static_cast<std::uint16_t>(i / 2)).data(), i / 2);
    }
    ClassCounts counts;
    window.count(counts);
    EXPECT_EQ(counts[Count::identifications], 50U);
    EXPECT_EQ(counts[Count::distinct_identifications], 50U);
}

TEST(Identifications, NobodyElsesAreLookedAt) { EXPECT_FALSE(Identifications{}.wants_more()); }

}  // namespace gatemark::record
