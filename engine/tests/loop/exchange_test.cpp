#include "loop/exchange.hpp"

#include "golden/bytes.hpp"
#include "io/memory_port.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

namespace gatemark::loop {
namespace {

struct ExchangeClock {
    const std::uint64_t* ticks;
    [[nodiscard]] pace::Ticks now() const noexcept { return {*ticks}; }
};

using MemoryListSender = FrameListSender<io::MemoryTransmitQueue, ExchangeClock>;
using MemoryKeeper = FrameKeeper<io::MemoryReceiveQueue, ExchangeClock>;
using Frames = std::vector<std::vector<std::byte>>;

constexpr std::size_t slot = 1;

std::vector<std::byte> frame_of(std::size_t bytes, unsigned char filling) { return std::vector<std::byte>(bytes, std::byte{filling}); }

class FrameListSenderTest : public testing::Test {
protected:
    FrameListSenderTest() { queue_.set_template(slot, frame_of(100, 0)); }
    [[nodiscard]] MemoryListSender sender(const Frames& frames, std::uint64_t interval) {
        return MemoryListSender{frames, queue_, slot, {interval}, ExchangeClock{&now_}};
    }

    std::uint64_t now_ = 1000;
    io::MemoryWire wire_;
    io::MemoryTransmitQueue queue_{wire_};
};

TEST_F(FrameListSenderTest, SendsEachFrameAsItIsAtItsTime) {
    const Frames frames{frame_of(60, 1), frame_of(100, 2), frame_of(61, 3)};
    MemoryListSender list = sender(frames, 10);
    now_ = 5000;  // it begins when it is first asked, not when it is made
    EXPECT_TRUE(list.poll());
    EXPECT_FALSE(list.poll()) << "the second one is due later";
    now_ = 5010;
    EXPECT_TRUE(list.poll());
    now_ = 5019;
    EXPECT_FALSE(list.poll());
    now_ = 5020;
    EXPECT_TRUE(list.poll());
    now_ = 9000;
    EXPECT_FALSE(list.poll()) << "there are no more";
    EXPECT_EQ(list.sent(), 3U);
    EXPECT_EQ((Frames{wire_.frames.begin(), wire_.frames.end()}), frames);
}

TEST_F(FrameListSenderTest, AFrameThatThePortDoesNotTakeIsTriedAgain) {
    const Frames frames{frame_of(60, 1), frame_of(60, 2)};
    MemoryListSender list = sender(frames, 0);
    wire_.capacity = 1;
    EXPECT_TRUE(list.poll());
    for (int i = 0; i < 10'000; ++i) {
        EXPECT_FALSE(list.poll());
    }
    EXPECT_EQ(list.sent(), 1U);
    wire_.capacity = 2;
    EXPECT_TRUE(list.poll()) << "buffers of frames that were not taken were given back";
    EXPECT_EQ((Frames{wire_.frames.begin(), wire_.frames.end()}), frames);
}

class FrameKeeperTest : public testing::Test {
protected:
    void receive(std::vector<std::byte> frame, std::uint64_t at) {
        now_ = at;
        wire_.frames.push_back(std::move(frame));
        EXPECT_TRUE(keeper_.poll());
    }

    std::uint64_t now_ = 0;
    io::MemoryWire wire_;
    io::MemoryReceiveQueue queue_{wire_};
    NeighborMailbox mailbox_;
    MemoryKeeper keeper_{queue_, mailbox_, ExchangeClock{&now_}};
};

TEST_F(FrameKeeperTest, KeepsWhateverArrives) {
    const Frames frames{frame_of(0, 0), frame_of(1, 9), frame_of(60, 1), frame_of(1514, 2)};
    std::uint64_t at = 7;
    for (const auto& frame : frames) {
        receive(frame, at++);
    }
    ASSERT_EQ(keeper_.kept().size(), 4U);
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const auto bytes = keeper_.bytes_of(keeper_.kept()[i]);
        EXPECT_EQ((std::vector<std::byte>{bytes.begin(), bytes.end()}), frames[i]);
        EXPECT_EQ(keeper_.kept()[i].arrived.value, 7 + i);
    }
}

TEST_F(FrameKeeperTest, QuestionsOfNeighboursGoToTheResponder) {
    std::vector<std::byte> question =
        test::from_hex("ffffffffffff 020000000099 0806 0001 0800 06 04 0001 020000000099 c6120001 000000000000 c6120002");
    question.resize(60);
    receive(question, 1);
    EXPECT_TRUE(keeper_.kept().empty());
    EXPECT_EQ(mailbox_.size(), 1U);
}

TEST_F(FrameKeeperTest, CountsWhatItHasNoRoomFor) {
    for (std::size_t i = 0; i < MemoryKeeper::frames_max + 3; ++i) {
        receive(frame_of(60, 1), 1);
    }
    EXPECT_EQ(keeper_.kept().size(), MemoryKeeper::frames_max);
    EXPECT_EQ(keeper_.not_kept(), 3U);
}

TEST_F(FrameKeeperTest, LargeFramesFillTheRoomSooner) {
    const std::size_t whole = MemoryKeeper::store_bytes / 9014;
    for (std::size_t i = 0; i < whole + 2; ++i) {
        receive(frame_of(9014, 1), 1);
    }
    EXPECT_EQ(keeper_.kept().size(), whole);
    EXPECT_EQ(keeper_.not_kept(), 2U);
}

}  // namespace
}  // namespace gatemark::loop
