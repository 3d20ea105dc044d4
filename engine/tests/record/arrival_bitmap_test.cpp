#include "record/arrival_bitmap.hpp"
#include "record/kept_frames.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

namespace gatemark::record {
namespace {

class ArrivalBitmapOf : public testing::TestWithParam<Receivers> {};
INSTANTIATE_TEST_SUITE_P(Receivers, ArrivalBitmapOf, testing::Values(Receivers::one, Receivers::many),
                         [](const auto& test) { return test.param == Receivers::one ? "One" : "Many"; });

TEST_P(ArrivalBitmapOf, SaysOnceThatAFrameIsNew) {
    ArrivalBitmap bitmap;
    bitmap.reset(130, GetParam());
    for (const std::uint64_t index : {0U, 63U, 64U, 129U}) {
        EXPECT_FALSE(bitmap.arrived(index));
        EXPECT_TRUE(bitmap.mark(index));
        EXPECT_FALSE(bitmap.mark(index));
        EXPECT_TRUE(bitmap.arrived(index));
    }
    EXPECT_EQ(bitmap.words_of(0)[0], 0x8000000000000001U);
    bitmap.reset(64, GetParam());
    EXPECT_FALSE(bitmap.arrived(0));
    EXPECT_EQ(bitmap.frame_count(), 64U);
}

TEST_P(ArrivalBitmapOf, MarksARunAsItsFramesOneByOne) {
    constexpr std::uint64_t frames = 2 * ArrivalBitmap::block_frames;
    ArrivalBitmap runs, single;
    for (std::uint64_t first = ArrivalBitmap::block_frames - 70; first < ArrivalBitmap::block_frames + 70; ++first) {
        for (std::size_t count = 1; count <= 32; ++count) {
            runs.reset(frames, GetParam());
            single.reset(frames, GetParam());
            for (const std::uint64_t before : {first - 1, first + count / 3, first + count - 1, first + count}) {
                if (before % 3 != 0) {
                    runs.mark(before);
                    single.mark(before);
                }
            }
            std::uint32_t is_new = 0;
            for (std::size_t i = 0; i < count; ++i) {
                is_new |= std::uint32_t{single.mark(first + i)} << i;
            }
            ASSERT_EQ(runs.mark_run(first, count), is_new) << first << " " << count;
            for (std::uint64_t i = first - 2; i < first + 40; ++i) {
                ASSERT_EQ(runs.arrived(i), single.arrived(i)) << i;
            }
        }
    }
}

/// Frames of the previous trial must not be taken for frames of this one, whether this one has
/// frames there or not.
TEST_P(ArrivalBitmapOf, ATrialBeginsWithoutAnyFrameOfTheTrialsBefore) {
    constexpr std::uint64_t frames = 3 * ArrivalBitmap::block_frames + 100;
    ArrivalBitmap bitmap;
    for (const std::uint64_t step : {1, 7, 4000, 20'000, 2, 1}) {
        bitmap.reset(frames, GetParam());
        for (std::uint64_t i = 0; i < frames; i += step) {
            ASSERT_TRUE(bitmap.mark(i)) << step;
        }
        for (std::uint64_t i = 0; i < frames; ++i) {
            ASSERT_EQ(bitmap.arrived(i), i % step == 0) << step;
        }
    }
}

/// A block that is known to be full is not read again, so it must be full, and of this trial.
TEST_P(ArrivalBitmapOf, ABlockIsSeenFullOnlyIfAllItsFramesHaveArrived) {
    constexpr std::uint64_t frames = ArrivalBitmap::block_frames, blocks = ArrivalBitmap::look_behind + 3;
    ArrivalBitmap bitmap;
    for (const std::uint64_t lost : {blocks * frames, frames - 1, frames, 2 * frames + 77}) {
        bitmap.reset(blocks * frames, GetParam());
        for (std::uint64_t i = 0; i < blocks * frames; ++i) {
            if (i != lost) {
                bitmap.mark(i);
                bitmap.mark(i);  // a duplicate completes nothing
            }
        }
        for (std::uint64_t block = 0; block < blocks; ++block) {
            EXPECT_EQ(bitmap.known_full(block), block < 3 && block != lost / frames) << lost;
        }
    }
    bitmap.reset(blocks * frames, GetParam());
    bitmap.mark(ArrivalBitmap::look_behind * frames);
    EXPECT_FALSE(bitmap.known_full(0)) << "it was full in the trial before";
}

TEST_P(ArrivalBitmapOf, ABlockThatIsFullTooLateIsLookedThroughAfterwards) {
    constexpr std::uint64_t frames = ArrivalBitmap::block_frames;
    ArrivalBitmap bitmap;
    constexpr std::uint64_t all = (ArrivalBitmap::look_behind + 1) * frames;
    bitmap.reset(all, GetParam());
    for (std::uint64_t i = all; i-- > 0;) {
        bitmap.mark(i);
    }
    EXPECT_FALSE(bitmap.known_full(0));
    EXPECT_EQ(std::ranges::count(bitmap.words_of(0), ArrivalBitmap::full_word), static_cast<long>(ArrivalBitmap::block_words));
}

/// Both threads clear and fill the same blocks, each from its end of the trial, so both begin
/// blocks at the same time, in one trial after another.
TEST(ArrivalBitmap, TwoReceiversMarkEachFrameOnce) {
    ArrivalBitmap bitmap;
    constexpr std::uint64_t frames = 2 * ArrivalBitmap::look_behind * ArrivalBitmap::block_frames;
    for (int trial = 0; trial < 10; ++trial) {
        bitmap.reset(frames);
        std::array<std::uint64_t, 2> found_new{};
        {
            const auto mark_all = [&](std::size_t receiver) {
                for (std::uint64_t i = 0; i < frames; ++i) {
                    const std::uint64_t next = i % 2 == receiver ? i : i ^ 1U;
                    found_new[receiver] += bitmap.mark(trial % 2 == 0 || receiver == 0 ? next : frames - 1 - i) ? 1 : 0;
                }
            };
            std::thread other{mark_all, 1U};
            mark_all(0);
            other.join();
        }
        ASSERT_EQ(found_new[0] + found_new[1], frames);
        for (std::uint64_t i = 0; i < frames; ++i) {
            ASSERT_TRUE(bitmap.arrived(i));
        }
    }
}

TEST(KeptFrames, KeepsTheFirstOfEachReasonAndNoMoreThanItsRoom) {
    KeptFrames kept{3, 2};
    const std::vector<std::byte> small(60, std::byte{1}), large(9216, std::byte{2});
    kept.keep(2, large);
    for (int i = 0; i < 5; ++i) {
        kept.keep(0, small);
    }
    std::multiset<std::pair<std::size_t, std::size_t>> visited;
    kept.visit([&](const KeptFrames::Kept& frame) { visited.emplace(frame.reason, frame.bytes); });
    EXPECT_EQ(visited, (std::multiset<std::pair<std::size_t, std::size_t>>{{0, 60}, {0, 60}, {2, KeptFrames::bytes_max}}));
    kept.clear();
    kept.visit([](const KeptFrames::Kept&) { FAIL(); });
    KeptFrames none{1, 0};
    none.keep(0, small);
    none.visit([](const KeptFrames::Kept&) { FAIL(); });
}

}  // namespace
}  // namespace gatemark::record
