#include "loop/neighbor_messages.hpp"
#include "loop/receiver.hpp"

#include "frame/streams.hpp"
#include "io/memory_port.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace gatemark::loop {
namespace {

using record::Count, record::ForeignFrame;
using test::Gateway, test::Bytes;

/// Everything that reads received bytes, fed from heap buffers of exactly the frame's size, so that
/// the address sanitizer detects any read beyond it.
class HostileFrames : public testing::Test {
protected:
    static constexpr std::uint64_t frame_count = 1000;

    HostileFrames() {
        for (std::size_t i = 0; i < test::all_gateways.size(); ++i) {
            const auto traffic_class = i % 2 == 0 ? frame::signature::TrafficClass::foreground : frame::signature::TrafficClass::background;
            const auto direction = i / 2 == 0 ? frame::signature::Direction::forward : frame::signature::Direction::reverse;
            streams_.push_back(test::make_stream(test::request_for(test::all_gateways[i], 120), {}, traffic_class, direction));
        }
        ReceiverPlan plan{.trial_id = test::trial_id(), .directions = {}, .kept_frames_max = 3};
        for (std::size_t direction = 0; direction < 2; ++direction) {
            arrivals_[direction].reset(frame_count);
            plan.directions[direction] = {.active = true,
                                          .arrives_here = true,
                                          .frame_count = frame_count,
                                          .mix = pace::Mix{1, 2},
                                          .streams = {&streams_[2 * direction], &streams_[2 * direction + 1]},
                                          .arrivals = &arrivals_[direction]};
        }
        receiver_ = std::make_unique<Receiver<io::MemoryReceiveQueue>>(plan, queue_, mailbox_);
    }

    void feed(std::span<const std::byte> bytes) {
        const auto exact = std::make_unique<std::byte[]>(bytes.size());
        std::copy(bytes.begin(), bytes.end(), exact.get());
        const std::span<const std::byte> frame{exact.get(), bytes.size()};
        const frame::Arrival arrival = frame::classify(frame, test::trial_id());
        if (arrival.kind == frame::ArrivalKind::ours) {
            for (const frame::Stream& stream : streams_) {
                (void)frame::verify(frame, arrival, stream, stream.values(3));
            }
        }
        (void)read_neighbor_message(frame);
        io::MemoryFrame received(bytes.begin(), bytes.end());
        received.shrink_to_fit();
        wire_.frames.push_back(std::move(received));
        receiver_->poll();
        mailbox_.take([](const NeighborMailbox::Letter& letter) {
            (void)read_neighbor_message(letter.frame());
            return true;
        });
        ++fed_;
    }

    /// Every arrival is counted in exactly one place.
    void expect_balance() const {
        std::uint64_t counted = receiver_->foreign().counts.sum();
        for (const std::uint64_t count : receiver_->foreign().icmp) {
            counted += count;
        }
        for (const auto direction : {frame::signature::Direction::forward, frame::signature::Direction::reverse}) {
            for (const auto traffic_class : {frame::signature::TrafficClass::foreground, frame::signature::TrafficClass::background}) {
                const record::ClassCounts& counts = receiver_->counts(direction, traffic_class);
                counted += counts[Count::received] + counts[Count::faulty] + counts[Count::duplicate] + counts.faults[frame::Fault::index] +
                           counts.faults[frame::Fault::mark];
            }
        }
        EXPECT_EQ(counted, fed_);
    }

    [[nodiscard]] Bytes valid_frame(std::uint64_t index) const {
        const std::size_t which = random_word() % 4;
        const Bytes sent = test::sent_frame(streams_[which], index / 2, index / 2 * 2 + which % 2);
        return random_word() % 4 == 0 ? sent : test::write_packet(test::forwarded(sent, test::all_gateways[which]));
    }
    std::uint32_t random_word() const { return static_cast<std::uint32_t>(random_()); }

    std::vector<frame::Stream> streams_;
    std::array<record::ArrivalBitmap, 2> arrivals_;
    io::MemoryWire wire_;
    io::MemoryReceiveQueue queue_{wire_};
    NeighborMailbox mailbox_;
    std::unique_ptr<Receiver<io::MemoryReceiveQueue>> receiver_;
    mutable std::mt19937 random_{8};
    std::uint64_t fed_ = 0;
};

TEST_F(HostileFrames, RandomBytesOfEveryLength) {
    for (int round = 0; round < 30; ++round) {
        for (std::size_t length = 0; length <= 200; ++length) {
            Bytes bytes(length);
            for (auto& byte : bytes) {
                byte = static_cast<std::byte>(random_word());
            }
            feed(bytes);
        }
    }
    expect_balance();
}

TEST_F(HostileFrames, RandomBytesBehindPlausibleHeaders) {
    const std::array<const char*, 12> starts{"0800",
                                             "080045",
                                             "0800450000000000 0000 0011",
                                             "08004f0000000000 0000 0011",
                                             "0800450000000000 0000 0001",
                                             "86dd60",
                                             "86dd600000000000 11",
                                             "86dd600000000000 2c",
                                             "86dd600000200020 3aff",
                                             "86dd600000000000 00",
                                             "81000064 0800 45",
                                             "0806 0001 0800 0604 0001"};
    for (int round = 0; round < 4; ++round) {
        for (const char* const start : starts) {
            for (std::size_t length = 12; length <= 150; ++length) {
                Bytes bytes = test::counting(12);
                test::append(bytes, test::from_hex(start));
                while (bytes.size() < length) {
                    bytes.push_back(static_cast<std::byte>(random_word()));
                }
                bytes.resize(length);
                feed(bytes);
            }
        }
    }
    expect_balance();
}

TEST_F(HostileFrames, ValidFramesCutAtEveryLength) {
    for (std::uint64_t index = 0; index < 16; ++index) {
        const Bytes frame = valid_frame(index);
        for (std::size_t length = 0; length <= frame.size(); ++length) {
            feed(std::span{frame}.first(length));
        }
    }
    expect_balance();
}

TEST_F(HostileFrames, ValidFramesWithAFewBytesChanged) {
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        Bytes frame = valid_frame(i % frame_count);
        for (std::uint32_t changes = random_word() % 4; changes > 0; --changes) {
            const std::size_t at = random_word() % (random_word() % 2 == 0 ? frame.size() : 60);
            frame[at] = random_word() % 3 == 0 ? std::byte{0xff} : static_cast<std::byte>(random_word());
        }
        if (random_word() % 4 == 0) {
            frame.resize(random_word() % (frame.size() + 20));
        }
        feed(frame);
    }
    expect_balance();
    EXPECT_GT(receiver_->counts(frame::signature::Direction::forward, frame::signature::TrafficClass::foreground)[Count::received], 0U);
    EXPECT_GT(receiver_->foreign()[ForeignFrame::foreign], 0U);
}

}  // namespace
}  // namespace gatemark::loop
