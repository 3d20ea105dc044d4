#include "base/bytes.hpp"

#include <gtest/gtest.h>

#include <array>

namespace gatemark {
namespace {

TEST(Bytes, BigEndianMeansTheMostSignificantByteFirst) {
    std::array<std::byte, 9> bytes{};
    store_big_endian(bytes.data() + 1, std::uint64_t{0x0102030405060708});
    for (unsigned i = 1; i < bytes.size(); ++i) {
        EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), i);
    }
    EXPECT_EQ(load_big_endian<std::uint64_t>(bytes.data() + 1), 0x0102030405060708U);
    EXPECT_EQ(load_big_endian<std::uint32_t>(bytes.data() + 3), 0x03040506U);
    EXPECT_EQ(load_big_endian<std::uint16_t>(bytes.data() + 7), 0x0708U);
    EXPECT_EQ(load_big_endian<std::uint8_t>(bytes.data() + 8), 8U);
}

TEST(Bytes, SwappingTwiceChangesNothing) {
    EXPECT_EQ(swap_bytes(std::uint8_t{0x12}), 0x12);
    EXPECT_EQ(swap_bytes(std::uint16_t{0x1234}), 0x3412);
    EXPECT_EQ(swap_bytes(swap_bytes(std::uint32_t{0x12345678})), 0x12345678U);
    EXPECT_EQ(swap_bytes(std::uint64_t{0xff}), 0xff00000000000000U);
}

}  // namespace
}  // namespace gatemark
