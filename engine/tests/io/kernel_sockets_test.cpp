#include "veth.hpp"

/// What sockets on a kernel's interface do with single frames.
namespace gatemark::io {
namespace {

using namespace test;

using KernelSockets = OnVethOfKind;

INSTANTIATE_TEST_SUITE_P(Sockets, KernelSockets, testing::Values("af_packet", "af_xdp"));

TEST_P(KernelSockets, ATagStandsInTheFrameThatArrives) {
    ASSERT_NO_FATAL_FAILURE(open_ports(GetParam()));
    std::vector<std::byte> frame = udp_frame();
    const std::array<std::byte, 4> tag{std::byte{0x81}, std::byte{0x00}, std::byte{0xa0}, std::byte{0x07}};  // priority 5, VLAN 7
    frame.insert(frame.begin() + 12, tag.begin(), tag.end());
    ASSERT_EQ(send_some(sender(), frame), 32U);
    const auto arrived = receive_frames(receiver(), 32);
    ASSERT_EQ(arrived.size(), 32U);
    EXPECT_EQ(arrived.front(), frame);
    EXPECT_EQ(arrived.back(), frame);
}

using XdpSockets = OnVeth;

TEST_F(XdpSockets, LeaveNoProgramAndTakeUpWhereTheyLeftOffWhenTheLinkReturns) {
    for (int round = 0; round < 2; ++round) {  // the second finds the interface as the first did
        ASSERT_NO_FATAL_FAILURE(open_ports("af_xdp"));
        ASSERT_NO_FATAL_FAILURE(set_link(false));
        EXPECT_EQ(send_some(sender(), udp_frame()), 0U) << "nothing is sent on a link that is down, and nothing is kept for later";
        ASSERT_NO_FATAL_FAILURE(set_link(true));
        EXPECT_EQ(receive_until_silence(receiver()), 0U);
        EXPECT_EQ(send_some(sender(), udp_frame()), 32U);
        EXPECT_EQ(receive_until_silence(receiver(), 32), 32U);
        EXPECT_EQ(sender_drops()[OwnDrop::tx_errors], 32U)
            << "the frames that were withdrawn show, so that nobody takes the trial for good";
    }
}

TEST_F(XdpSockets, FramesTooLongForTheBuffersAreCounted) {
    ASSERT_NO_FATAL_FAILURE(set_mtu(3506));
    PortOptions left = left_options("af_xdp"), right = right_options("af_xdp");
    left.mtu = 3506;
    right.mtu = 2000;
    ASSERT_NO_FATAL_FAILURE(open_ports(left, right));
    EXPECT_EQ(send_some(sender(), udp_frame(some_host, frame_bytes_max(2000))), 32U);
    EXPECT_EQ(receive_until_silence(receiver(), 32), 32U);
    EXPECT_EQ(send_some(sender(), udp_frame(some_host, frame_bytes_max(2000) + 1)), 32U);
    EXPECT_EQ(receive_until_silence(receiver()), 0U);
    EXPECT_TRUE(come_to_hold([this] { return sum_of_receiving(receiver_drops()) >= 32; }));
    EXPECT_EQ(sum_of_receiving(receiver_drops()), 32U) << text_of(receiver_drops());
}

using PacketSockets = OnVeth;

TEST_F(PacketSockets, OfAFrameTooLongForTheBuffersTheBeginningArrives) {
    ASSERT_NO_FATAL_FAILURE(set_mtu(3506));
    PortOptions left = left_options("af_packet");
    left.mtu = 3506;
    const PortOptions right = right_options("af_packet");
    ASSERT_NO_FATAL_FAILURE(open_ports(left, right));
    ASSERT_EQ(send_some(sender(), udp_frame(some_host, 3500)), 32U);
    const auto arrived = receive_frames(receiver(), 32);
    EXPECT_EQ(arrived.size(), 32U);
    for (const auto& frame : arrived) {
        EXPECT_GT(frame.size(), frame_bytes_max(right.mtu)) << "it could pass for a frame of a length that was expected";
        EXPECT_LT(frame.size(), 3500U);
    }
    EXPECT_EQ(sum_of_receiving(receiver_drops()), 0U) << text_of(receiver_drops());
}

}  // namespace
}  // namespace gatemark::io
