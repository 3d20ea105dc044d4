#include "io/memory_port.hpp"

#include <gtest/gtest.h>

#include <array>

namespace gatemark::io {
namespace {

constexpr std::array template_frame{std::byte{1}, std::byte{2}, std::byte{3}};

TEST(MemoryPort, MovesFramesThatStartAsTheTemplate) {
    MemoryWire wire;
    MemoryTransmitQueue transmit{wire};
    MemoryReceiveQueue receive{wire};
    transmit.set_template(0, template_frame);
    std::array<MemoryFrame*, 2> burst{};
    ASSERT_EQ(transmit.acquire(0, burst), 2U);
    MemoryTransmitQueue::bytes(burst[1])[0] = std::byte{9};
    ASSERT_EQ(transmit.send(burst), 2U);

    std::array<MemoryFrame*, 8> arrived{};
    ASSERT_EQ(receive.receive(arrived), 2U);
    EXPECT_EQ(MemoryReceiveQueue::bytes(arrived[0])[0], std::byte{1});
    EXPECT_EQ(MemoryReceiveQueue::bytes(arrived[1])[0], std::byte{9});
    EXPECT_EQ(MemoryReceiveQueue::bytes(arrived[1])[2], std::byte{3});
    receive.release(std::span{arrived}.first(2));
    ASSERT_EQ(transmit.acquire(0, burst), 2U);
    EXPECT_EQ(MemoryTransmitQueue::bytes(burst[0])[0], std::byte{1});
    transmit.release(burst);
}

TEST(MemoryPort, RefusesWhatItMustRefuse) {
    MemoryWire wire{.frames = {}, .capacity = 3};
    MemoryTransmitQueue transmit{wire, 5};
    transmit.set_template(0, template_frame);
    std::array<MemoryFrame*, 6> burst{};
    ASSERT_EQ(transmit.acquire(0, burst), 5U);
    transmit.accept_at_most(2);
    EXPECT_EQ(transmit.send(std::span{burst}.first(5)), 2U);
    EXPECT_EQ(transmit.send(std::span{burst}.subspan(2, 3)), 1U);  // the wire is full
    transmit.release(std::span{burst}.subspan(3, 2));
}

}  // namespace
}  // namespace gatemark::io
