#include "veth.hpp"

#include <sched.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

namespace gatemark::io {
namespace {

using namespace test;

using KernelDrops = OnVethOfKind;

INSTANTIATE_TEST_SUITE_P(Sockets, KernelDrops, testing::Values("af_packet", "af_xdp"));

TEST_P(KernelDrops, EveryFrameThatAFullReceiveRingLostIsCounted) {
    PortOptions left = left_options(GetParam());
    left.ring_frames = 4096;
    ASSERT_NO_FATAL_FAILURE(open_ports(left, right_options(GetParam())));
    const std::uint64_t sent = send_frames(sender(), 10'000);  // and reads none of them
    std::uint64_t received = receive_until_silence(receiver());
    OwnDrops at_receiver = receiver_drops();
    const bool all = come_to_hold([&] {  // the kernel may be late with a frame, and with a count
        received += received + sum_of_receiving(at_receiver) < sent ? receive_until_silence(receiver()) : 0;
        at_receiver = receiver_drops();
        return received + sum_of_receiving(at_receiver) >= sent;
    });
    const OwnDrops at_sender = sender_drops();
    std::cout << "sent " << sent << " received " << received << "\n  sender: " << text_of(at_sender)
              << "\n  receiver: " << text_of(at_receiver) << '\n';
    EXPECT_GE(sent, 10'000U);
    EXPECT_GT(received, 0U);
    EXPECT_LT(received, sent);
    EXPECT_TRUE(all);
    EXPECT_EQ(sent, received + sum_of_receiving(at_receiver)) << text_of(at_receiver);
    EXPECT_EQ(at_sender[OwnDrop::tx_errors] + at_sender[OwnDrop::interface_tx_dropped], 0U) << text_of(at_sender);
    EXPECT_EQ(receiver_drops()[OwnDrop::socket_drops], at_receiver[OwnDrop::socket_drops]) << "reading must not lose what was read";
    expect_sent_buffers_unchanged(sender());
}

TEST_P(KernelDrops, FramesThatTheOtherEndOfAVethHadNoRoomForAreCountedOnce) {
    // With GRO frames wait there in a queue of 256. A thread empties it, which has to wait for
    // ours: on the same CPU, and idle there.
    const std::string thread = ("napi/" + veth().right).substr(0, 15);  // a kernel may cut it there, or let the number of the queue follow
    const std::string slow = "ethtool -K " + veth().left + " tso off >/dev/null && ethtool -K " + veth().right +
                             " gro on >/dev/null && echo 1 > /sys/class/net/" + veth().right + "/threaded && found=$(pgrep ^" + thread +
                             ") && for p in $found; do taskset -p 1 $p >/dev/null && chrt -i -p 0 $p; done";
    if (std::system(slow.c_str()) != 0) {
        GTEST_SKIP() << "this kernel lets us make no such veth pair";
    }
    auto left = open_port(left_options(GetParam()));
    ASSERT_EQ(error_of(left), nullptr) << error_of(left)->what;
    auto& port = std::get<DpdkPort>(left);
    static_cast<void>(receive_until_silence(port));
    const auto arrived = [this] {
        std::uint64_t count = 0;
        std::ifstream{"/sys/class/net/" + veth().right + "/statistics/rx_packets"} >> count;
        return count;
    };
    DropReader drops{port};
    const std::uint64_t before = arrived();
    cpu_set_t usable, first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_getaffinity(0, sizeof(usable), &usable);
    sched_setaffinity(0, sizeof(first), &first);
    const std::uint64_t sent = send_frames(port, 500'000);
    sched_setaffinity(0, sizeof(usable), &usable);
    static_cast<void>(receive_until_silence(port));
    const OwnDrops lost = drops.read();
    EXPECT_TRUE(come_to_hold([&] { return arrived() - before + lost.peer_queue_drops >= sent; })) << "the last 256 wait for an idle CPU";
    std::cout << "sent " << sent << " arrived " << arrived() - before << ", " << text_of(lost) << '\n';
    EXPECT_GE(sent, 500'000U);
    EXPECT_GT(lost.peer_queue_drops, 0U);
    EXPECT_EQ(sent, arrived() - before + lost.peer_queue_drops) << text_of(lost);
    EXPECT_EQ(lost[OwnDrop::tx_errors] + lost[OwnDrop::interface_tx_dropped], 0U) << text_of(lost);
    expect_sent_buffers_unchanged(port);
}

}  // namespace
}  // namespace gatemark::io
