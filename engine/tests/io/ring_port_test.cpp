#include "environment.hpp"
#include "io/dpdk_environment.hpp"
#include "io/dpdk_queue.hpp"
#include "io/kernel_drops.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace gatemark::io {
namespace {

using test::port_options;

std::vector<std::byte> frame_of(std::size_t bytes, int value) { return std::vector<std::byte>(bytes, static_cast<std::byte>(value)); }

/// Two ring ports, left with one pool of frames.
class RingPort : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(test::start_environment());
        auto opened = open_ring_pair(port_options("left", "ring"), port_options("right", "ring"));
        ASSERT_EQ(error_of(opened), nullptr) << error_of(opened)->what;
        ports_.emplace(std::get<0>(std::move(opened)));
        for (DpdkPort* port : {&ports_->first, &ports_->second}) {
            auto pool = FramePool::create(*port, "frames " + port->options().side, 2048);
            ASSERT_EQ(error_of(pool), nullptr);
            pools_.push_back(std::get<FramePool>(std::move(pool)));
        }
    }

    std::optional<std::pair<DpdkPort, DpdkPort>> ports_;
    std::vector<FramePool> pools_;
};

std::size_t receive_all(ReceiveQueue& queue, std::vector<std::vector<std::byte>>* frames = nullptr) {
    std::array<rte_mbuf*, 32> burst{};
    std::size_t total = 0;
    while (const std::size_t received = queue.receive(burst)) {
        for (rte_mbuf* buffer : std::span{burst}.first(received)) {
            const auto bytes = ReceiveQueue::bytes(buffer);
            if (frames != nullptr) {
                frames->emplace_back(bytes.begin(), bytes.end());
            }
        }
        queue.release(std::span{burst}.first(received));
        total += received;
    }
    return total;
}

TEST_F(RingPort, MovesFramesBothWays) {
    std::array<std::pair<DpdkPort*, DpdkPort*>, 2> directions{std::pair{&ports_->first, &ports_->second},
                                                              std::pair{&ports_->second, &ports_->first}};
    for (std::size_t i = 0; i < directions.size(); ++i) {
        const auto frame = frame_of(60, 0x40 + static_cast<int>(i));
        pools_[i].set_template(frame);
        TransmitQueue transmit{*directions[i].first, 0, std::span{pools_}.subspan(i, 1)};
        ReceiveQueue receive{*directions[i].second, 0};
        std::array<rte_mbuf*, 32> burst{};
        ASSERT_EQ(transmit.acquire(0, burst), burst.size());
        TransmitQueue::bytes(burst[7])[10] = std::byte{0xff};
        ASSERT_EQ(transmit.send(burst), burst.size());
        std::vector<std::vector<std::byte>> arrived;
        ASSERT_EQ(receive_all(receive, &arrived), burst.size());
        EXPECT_EQ(arrived[0], frame);
        EXPECT_EQ(arrived[7][10], std::byte{0xff});
        EXPECT_EQ(arrived[7].size(), frame.size());
    }
}

TEST_F(RingPort, FullRingRefusesAndTheRestStaysWithTheSender) {
    pools_[0].set_template(frame_of(60, 1));
    TransmitQueue transmit{ports_->first, 0, pools_};
    ReceiveQueue receive{ports_->second, 0};
    DropReader drops{ports_->first};
    std::array<rte_mbuf*, 32> burst{};
    std::size_t accepted = 0;
    for (std::size_t sent = burst.size(); sent == burst.size(); accepted += sent) {
        ASSERT_EQ(transmit.acquire(0, burst), burst.size());
        sent = transmit.send(burst);
        transmit.release(std::span{burst}.subspan(sent));
    }
    EXPECT_EQ(accepted, 256U);
    EXPECT_EQ(receive_all(receive), accepted);
    EXPECT_EQ(drops.read()[OwnDrop::tx_errors], 0U);
    EXPECT_EQ(ports_->first.accepted_frames(), accepted);
}

TEST_F(RingPort, BuffersUnderWayKeepTheOldTemplateAndGetTheNewOneLater) {
    TransmitQueue transmit{ports_->first, 0, pools_};
    ReceiveQueue receive{ports_->second, 0};
    pools_[0].set_template(frame_of(60, 1));
    std::array<rte_mbuf*, 32> under_way{};
    ASSERT_EQ(transmit.acquire(0, under_way), under_way.size());
    ASSERT_EQ(transmit.send(under_way), under_way.size());

    pools_[0].set_template(frame_of(1500, 2));
    EXPECT_EQ(pools_[0].outdated_count(), under_way.size());
    std::vector<std::vector<std::byte>> arrived;
    receive_all(receive, &arrived);
    for (const auto& frame : arrived) {
        EXPECT_EQ(frame, frame_of(60, 1));
    }

    std::vector<rte_mbuf*> all(pools_[0].size());
    ASSERT_EQ(transmit.acquire(0, all), all.size());
    EXPECT_EQ(pools_[0].outdated_count(), 0U);
    for (rte_mbuf* buffer : all) {
        ASSERT_EQ(ReceiveQueue::bytes(buffer).size(), 1500U);
        ASSERT_EQ(buffer->pkt_len, 1500U);
        ASSERT_EQ(TransmitQueue::bytes(buffer)[1499], std::byte{2});
    }
    std::array<rte_mbuf*, 1> buffer{};
    EXPECT_EQ(transmit.acquire(0, buffer), 0U) << "more buffers than there are";
    transmit.release(all);
}

TEST_F(RingPort, RegisteredThreadsSendAndReceive) {
    pools_[0].set_template(frame_of(60, 1));
    constexpr std::size_t frames = 100'000;
    std::size_t sent = 0, received = 0;
    std::thread receiver{[&] {
        const RegisteredThread registered;
        EXPECT_TRUE(registered.registered());
        ReceiveQueue queue{ports_->second, 0};
        while (received < frames) {
            received += receive_all(queue);
        }  // the rest is in the ring by then
    }};
    std::thread sender{[&] {
        const RegisteredThread registered;
        TransmitQueue queue{ports_->first, 0, pools_};
        std::array<rte_mbuf*, 32> burst{};
        while (sent < frames) {
            const std::size_t got = queue.acquire(0, burst);
            const std::size_t accepted = queue.send(std::span{burst}.first(got));
            queue.release(std::span{burst}.first(got).subspan(accepted));
            sent += accepted;
        }
    }};
    sender.join();
    receiver.join();
    ReceiveQueue queue{ports_->second, 0};
    EXPECT_EQ(received + receive_all(queue), sent);
    // A device can be added while DPDK knows threads of ours.
    const auto null_port = open_port(port_options("left", "null"));
    EXPECT_EQ(error_of(null_port), nullptr);
}

TEST_F(RingPort, SplitFramesAndStrippedTagsAreRestored) {
    pools_[0].set_template(frame_of(60, 5));
    TransmitQueue transmit{ports_->first, 0, pools_};
    ReceiveQueue receive{ports_->second, 0};
    std::array<rte_mbuf*, 3> buffers{};
    ASSERT_EQ(transmit.acquire(0, buffers), buffers.size());
    TransmitQueue::bytes(buffers[1])[0] = std::byte{6};
    ASSERT_EQ(rte_pktmbuf_chain(buffers[0], buffers[1]), 0);
    buffers[2]->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
    buffers[2]->vlan_tci = 100;
    std::array<rte_mbuf*, 2> burst{buffers[0], buffers[2]};
    ASSERT_EQ(transmit.send(burst), 2U);
    std::vector<std::vector<std::byte>> arrived;
    ASSERT_EQ(receive_all(receive, &arrived), 2U);
    EXPECT_EQ(arrived[0].size(), 120U);
    EXPECT_EQ(arrived[0][60], std::byte{6});
    ASSERT_EQ(arrived[1].size(), 64U);
    EXPECT_EQ(arrived[1][12], std::byte{0x81});
    EXPECT_EQ(arrived[1][15], std::byte{100});
}

TEST_F(RingPort, OfASplitFrameTooLongForABufferTheBeginningArrives) {
    pools_[0].set_template(frame_of(1500, 5));
    TransmitQueue transmit{ports_->first, 0, pools_};
    ReceiveQueue receive{ports_->second, 0};
    std::array<rte_mbuf*, 9> buffers{};
    ASSERT_EQ(transmit.acquire(0, buffers), buffers.size());
    const auto room = static_cast<std::size_t>(rte_pktmbuf_data_len(buffers[0])) + rte_pktmbuf_tailroom(buffers[0]);
    for (std::size_t i = 1; i < buffers.size(); ++i) {
        ASSERT_EQ(rte_pktmbuf_chain(buffers[0], buffers[i]), 0);
    }
    ASSERT_EQ(transmit.send(std::span{buffers}.first(1)), 1U);
    std::vector<std::vector<std::byte>> arrived;
    ASSERT_EQ(receive_all(receive, &arrived), 1U);
    EXPECT_EQ(arrived[0].size(), room);
    EXPECT_LT(room, buffers.size() * 1500);
}

TEST_F(RingPort, ReportsFacts) {
    const PortFacts left = ports_->first.facts(), right = ports_->second.facts();
    EXPECT_EQ(left.driver, "net_ring");
    EXPECT_EQ(left.port, "ring");
    EXPECT_TRUE(left.link_up);
    EXPECT_NE(left.mac, right.mac);
}

TEST(RingPairs, OfSeveralQueuesDoNotMixThem) {
    ASSERT_TRUE(test::start_environment());
    PortOptions left = port_options("left", "ring"), right = port_options("right", "ring");
    left.queues = right.queues = 3;
    auto opened = open_ring_pair(left, right);
    ASSERT_EQ(error_of(opened), nullptr) << error_of(opened)->what;
    auto& [left_port, right_port] = std::get<0>(opened);
    auto pool = FramePool::create(left_port, "queues", 2048);
    auto& frames = std::get<FramePool>(pool);
    frames.set_template(frame_of(60, 0));
    for (std::uint16_t queue = 0; queue < 3; ++queue) {
        TransmitQueue transmit{left_port, queue, std::span{&frames, 1}};
        std::vector<rte_mbuf*> burst(queue + 1U);
        ASSERT_EQ(transmit.acquire(0, burst), burst.size());
        ASSERT_EQ(transmit.send(burst), burst.size());
    }
    for (std::uint16_t queue = 0; queue < 3; ++queue) {
        ReceiveQueue receive{right_port, queue};
        EXPECT_EQ(receive_all(receive), queue + 1U);
    }
}

}  // namespace
}  // namespace gatemark::io
