#include "record/arrival_bitmap.hpp"
#include "record/kept_frames.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace gatemark::record {
namespace {

TEST(ArrivalBitmap, SaysOnceThatAFrameIsNew) {
    ArrivalBitmap bitmap;
    bitmap.reset(130);
    for (const std::uint64_t index : {0U, 63U, 64U, 129U}) {
        EXPECT_FALSE(bitmap.arrived(index));
        EXPECT_TRUE(bitmap.mark(index));
        EXPECT_FALSE(bitmap.mark(index));
        EXPECT_TRUE(bitmap.arrived(index));
    }
    EXPECT_EQ(bitmap.word(0), 0x8000000000000001U);
    bitmap.reset(64);
    EXPECT_FALSE(bitmap.arrived(0));
    EXPECT_EQ(bitmap.frame_count(), 64U);
}

TEST(ArrivalBitmap, TwoReceiversMarkEachFrameOnce) {
    ArrivalBitmap bitmap;
    constexpr std::uint64_t frames = 200'000;
    bitmap.reset(frames);
    std::array<std::uint64_t, 2> found_new{};
    {
        const auto mark_all = [&](std::size_t receiver) {
            for (std::uint64_t i = 0; i < frames; ++i) {
                found_new[receiver] += bitmap.mark(receiver == 0 ? i : frames - 1 - i) ? 1 : 0;
            }
        };
        std::thread other{mark_all, 1U};
        mark_all(0);
        other.join();
    }
    EXPECT_EQ(found_new[0] + found_new[1], frames);
}

TEST(KeptFrames, KeepsTheFirstOfEachReasonAndNoMoreThanItsRoom) {
    KeptFrames kept{3, 2};
    const std::vector<std::byte> small(60, std::byte{1}), large(9216, std::byte{2});
    kept.keep(2, large);
    for (int i = 0; i < 5; ++i) {
        kept.keep(0, small);
    }
    std::multiset<std::pair<std::size_t, std::size_t>> found;
    kept.visit([&](const KeptFrames::Kept& frame) { found.emplace(frame.reason, frame.octets); });
    EXPECT_EQ(found, (std::multiset<std::pair<std::size_t, std::size_t>>{{0, 60}, {0, 60}, {2, KeptFrames::octets_max}}));
    kept.clear();
    kept.visit([](const KeptFrames::Kept&) { FAIL(); });
    KeptFrames none{1, 0};
    none.keep(0, small);
    none.visit([](const KeptFrames::Kept&) { FAIL(); });
}

}  // namespace
}  // namespace gatemark::record
