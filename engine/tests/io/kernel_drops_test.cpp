#include "io/kernel_drops.hpp"
#include "environment.hpp"
#include "io/dpdk_queue.hpp"
#include "io/kernel_interface.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace gatemark::io {
namespace {

using test::port_options;

/// A veth pair in this namespace, gone at the end of the scope.
class VethPair {
public:
    VethPair() : left{"gm-e-l" + std::to_string(getpid() % 100000)}, right{"gm-e-r" + std::to_string(getpid() % 100000)} {
        made = run("ip link add " + left + " type veth peer name " + right);
        for (const std::string& end : {left, right}) {
            made = made && run("sysctl -qw net.ipv6.conf." + end + ".disable_ipv6=1") && run("ip link set " + end + " up");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    VethPair(const VethPair&) = delete;
    VethPair& operator=(const VethPair&) = delete;
    ~VethPair() { static_cast<void>(run("ip link del " + left + " 2>/dev/null")); }

    std::string left, right;
    bool made = false;

private:
    static bool run(const std::string& command) { return std::system(command.c_str()) == 0; }
};

constexpr net::MacAddress some_host{std::byte{0x02}, std::byte{0x02}, std::byte{0x02}, std::byte{0x02}, std::byte{0x02}, std::byte{0x02}};

std::vector<std::byte> udp_frame(const net::MacAddress& destination) {
    std::vector<std::byte> frame(60);
    std::ranges::copy(destination, frame.begin());
    frame[6] = std::byte{0x02};
    frame[12] = std::byte{0x08};
    frame[14] = std::byte{0x45};
    return frame;
}

/// Sends at least `count` frames as fast as the port takes them; returns how many it accepted.
std::uint64_t send_frames(DpdkPort& port, std::uint64_t count, const net::MacAddress& destination = some_host) {
    auto pool = FramePool::create(port, "drops " + std::to_string(port.port_id()), 2048);
    auto& frames = std::get<FramePool>(pool);
    frames.set_template(udp_frame(destination));
    TransmitQueue transmit{port, 0, std::span{&frames, 1}};
    std::array<rte_mbuf*, 32> burst{};
    std::uint64_t sent = 0;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (sent < count && std::chrono::steady_clock::now() < deadline) {
        const std::size_t got = transmit.acquire(0, burst);
        const std::size_t accepted = transmit.send(std::span{burst}.first(got));
        transmit.release(std::span{burst}.first(got).subspan(accepted));
        sent += accepted;
    }
    return sent;
}

/// Offers 32 frames once; returns how many the port accepted.
std::size_t send_some(DpdkPort& port, std::size_t octets = 60) {
    auto pool = FramePool::create(port, "some " + std::to_string(port.port_id()) + "." + std::to_string(std::rand()), octets);
    auto& frames = std::get<FramePool>(pool);
    std::vector<std::byte> frame = udp_frame(some_host);
    frame.resize(octets);
    frames.set_template(frame);
    TransmitQueue transmit{port, 0, std::span{&frames, 1}};
    std::array<rte_mbuf*, 32> burst{};
    const std::size_t got = transmit.acquire(0, burst);
    const std::size_t accepted = transmit.send(std::span{burst}.first(got));
    transmit.release(std::span{burst}.first(got).subspan(accepted));
    return accepted;
}

std::uint64_t receive_until_silence(const DpdkPort& port) {
    ReceiveQueue receive{port, 0};
    std::array<rte_mbuf*, 32> burst{};
    std::uint64_t received = 0;
    auto last = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - last < std::chrono::milliseconds{100}) {
        const std::size_t got = receive.receive(burst);
        receive.release(std::span{burst}.first(got));
        received += got;
        if (got != 0) {
            last = std::chrono::steady_clock::now();
        }
    }
    return received;
}

std::string text_of(const OwnDrops& drops) {
    return "missed " + std::to_string(drops.rx_missed) + " no buffer " + std::to_string(drops.rx_no_buffer) + " rx errors " +
           std::to_string(drops.rx_errors) + " tx errors " + std::to_string(drops.tx_errors) + " socket " +
           std::to_string(drops.socket_drops) + " interface rx " + std::to_string(drops.interface_rx_dropped) + " interface tx " +
           std::to_string(drops.interface_tx_dropped) + " peer queue " + std::to_string(drops.peer_queue_drops);
}

std::uint64_t sum_of_receiving(const OwnDrops& drops) {
    return drops.rx_missed + drops.rx_no_buffer + drops.rx_errors + drops.socket_drops + drops.interface_rx_dropped;
}

class KernelDrops : public testing::TestWithParam<const char*> {};

TEST_P(KernelDrops, EveryFrameThatAFullReceiveRingLostIsCounted) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "making a veth pair needs root";
    }
    const std::string kind = GetParam();
    ASSERT_TRUE(test::start_environment());
    const VethPair veth;
    if (!veth.made) {
        GTEST_SKIP() << "this kernel lets us make no veth pair";
    }
    PortOptions left_options = port_options("left", kind + ":" + veth.left);
    left_options.ring_frames = 4096;
    auto left = open_port(left_options);
    auto right = open_port(port_options("right", kind + ":" + veth.right));
    ASSERT_EQ(error_of(left), nullptr) << error_of(left)->what;
    ASSERT_EQ(error_of(right), nullptr) << error_of(right)->what;
    auto& sender = std::get<DpdkPort>(left);
    auto& receiver = std::get<DpdkPort>(right);
    static_cast<void>(receive_until_silence(receiver));
    DropReader sender_drops{sender}, receiver_drops{receiver};

    const std::uint64_t sent = send_frames(sender, 10'000);  // nobody reads meanwhile
    const std::uint64_t received = receive_until_silence(receiver);
    const OwnDrops at_sender = sender_drops.read(), at_receiver = receiver_drops.read();
    std::cout << "sent " << sent << " received " << received << "\n  sender: " << text_of(at_sender)
              << "\n  receiver: " << text_of(at_receiver) << '\n';
    EXPECT_GE(sent, 10'000U);
    EXPECT_GT(received, 0U);
    EXPECT_LT(received, sent);
    EXPECT_EQ(sent, received + sum_of_receiving(at_receiver)) << text_of(at_receiver);
    EXPECT_EQ(at_sender.tx_errors + at_sender.interface_tx_dropped, 0U) << text_of(at_sender);
    EXPECT_EQ(receiver_drops.read().socket_drops, at_receiver.socket_drops) << "reading must not lose what was read";
    test::expect_sent_buffers_unchanged(sender);
}

INSTANTIATE_TEST_SUITE_P(Sockets, KernelDrops, testing::Values("af_packet", "af_xdp"));

TEST_P(KernelDrops, FramesThatTheOtherEndOfAVethHadNoRoomForAreCountedOnce) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "making a veth pair needs root";
    }
    ASSERT_TRUE(test::start_environment());
    const VethPair veth;
    // With GRO frames wait there in a queue of 256. A thread empties it, which has to wait for ours, on the same processor.
    const std::string thread = ("napi/" + veth.right).substr(0, 15);
    const std::string slow = "ethtool -K " + veth.left + " tso off >/dev/null && ethtool -K " + veth.right +
                             " gro on >/dev/null && echo 1 > /sys/class/net/" + veth.right + "/threaded && for p in $(pgrep -x " + thread +
                             "); do taskset -p 1 $p >/dev/null; done";
    if (!veth.made || std::system(slow.c_str()) != 0) {
        GTEST_SKIP() << "this kernel lets us make no such veth pair";
    }
    auto left = open_port(port_options("left", std::string{GetParam()} + ":" + veth.left));
    ASSERT_EQ(error_of(left), nullptr) << error_of(left)->what;
    auto& sender = std::get<DpdkPort>(left);
    static_cast<void>(receive_until_silence(sender));
    const auto arrived = [&veth] {
        std::uint64_t count = 0;
        std::ifstream{"/sys/class/net/" + veth.right + "/statistics/rx_packets"} >> count;
        return count;
    };
    DropReader drops{sender};
    const std::uint64_t before = arrived();
    cpu_set_t usable, first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_getaffinity(0, sizeof(usable), &usable);
    sched_setaffinity(0, sizeof(first), &first);
    const std::uint64_t sent = send_frames(sender, 500'000);
    sched_setaffinity(0, sizeof(usable), &usable);
    static_cast<void>(receive_until_silence(sender));
    const OwnDrops lost = drops.read();
    std::cout << "sent " << sent << " arrived " << arrived() - before << ", " << text_of(lost) << '\n';
    EXPECT_GE(sent, 500'000U);
    EXPECT_GT(lost.peer_queue_drops, 0U);
    EXPECT_EQ(sent, arrived() - before + lost.peer_queue_drops) << text_of(lost);
    EXPECT_EQ(lost.tx_errors + lost.interface_tx_dropped, 0U) << text_of(lost);
    test::expect_sent_buffers_unchanged(sender);
}

TEST(XdpSockets, LeaveNoProgramAndTakeUpWhereTheyLeftOffWhenTheLinkReturns) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "making a veth pair needs root";
    }
    ASSERT_TRUE(test::start_environment());
    const VethPair veth;
    if (!veth.made) {
        GTEST_SKIP() << "this kernel lets us make no veth pair";
    }
    for (int round = 0; round < 2; ++round) {  // the second finds the interface as the first did
        auto left = open_port(port_options("left", "af_xdp:" + veth.left));
        auto right = open_port(port_options("right", "af_xdp:" + veth.right));
        ASSERT_EQ(error_of(left), nullptr) << error_of(left)->what;
        ASSERT_EQ(error_of(right), nullptr) << error_of(right)->what;
        auto& sender = std::get<DpdkPort>(left);
        auto& receiver = std::get<DpdkPort>(right);
        DropReader drops{sender};
        static_cast<void>(receive_until_silence(receiver));
        ASSERT_EQ(std::system(("ip link set " + veth.left + " down").c_str()), 0);
        EXPECT_EQ(send_some(sender), 0U) << "nothing is sent on a link that is down, and nothing is kept for later";
        ASSERT_EQ(std::system(("ip link set " + veth.left + " up").c_str()), 0);
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
        EXPECT_EQ(receive_until_silence(receiver), 0U);
        EXPECT_EQ(send_some(sender), 32U);
        EXPECT_EQ(receive_until_silence(receiver), 32U);
        EXPECT_EQ(drops.read().tx_errors, 32U) << "the frames that were withdrawn show, so that nobody takes the trial for good";
    }
}

TEST(XdpSockets, FramesTooLongForTheBuffersAreCounted) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "making a veth pair needs root";
    }
    ASSERT_TRUE(test::start_environment());
    const VethPair veth;
    if (!veth.made || std::system(("ip link set " + veth.left + " mtu 3506 && ip link set " + veth.right + " mtu 3506").c_str()) != 0) {
        GTEST_SKIP() << "this kernel lets us make no veth pair";
    }
    PortOptions left_options = port_options("left", "af_xdp:" + veth.left), right_options = port_options("right", "af_xdp:" + veth.right);
    left_options.mtu = 3506;
    right_options.mtu = 2000;
    auto left = open_port(left_options);
    auto right = open_port(right_options);
    ASSERT_EQ(error_of(left), nullptr) << error_of(left)->what;
    ASSERT_EQ(error_of(right), nullptr) << error_of(right)->what;
    auto& receiver = std::get<DpdkPort>(right);
    static_cast<void>(receive_until_silence(receiver));
    DropReader drops{receiver};
    EXPECT_EQ(send_some(std::get<DpdkPort>(left), frame_octets_max(2000)), 32U);
    EXPECT_EQ(receive_until_silence(receiver), 32U);
    EXPECT_EQ(send_some(std::get<DpdkPort>(left), frame_octets_max(2000) + 1), 32U);
    EXPECT_EQ(receive_until_silence(receiver), 0U);
    EXPECT_EQ(sum_of_receiving(drops.read()), 32U) << text_of(drops.read());
}

TEST(PacketSockets, OfAFrameTooLongForTheBuffersTheBeginningArrives) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "making a veth pair needs root";
    }
    ASSERT_TRUE(test::start_environment());
    const VethPair veth;
    if (!veth.made || std::system(("ip link set " + veth.left + " mtu 3506 && ip link set " + veth.right + " mtu 3506").c_str()) != 0) {
        GTEST_SKIP() << "this kernel lets us make no veth pair";
    }
    PortOptions left_options = port_options("left", "af_packet:" + veth.left);
    left_options.mtu = 3506;
    const PortOptions right_options = port_options("right", "af_packet:" + veth.right);
    auto left = open_port(left_options);
    auto right = open_port(right_options);
    ASSERT_EQ(error_of(left), nullptr) << error_of(left)->what;
    ASSERT_EQ(error_of(right), nullptr) << error_of(right)->what;
    auto& receiver = std::get<DpdkPort>(right);
    static_cast<void>(receive_until_silence(receiver));
    DropReader drops{receiver};
    ASSERT_EQ(send_some(std::get<DpdkPort>(left), 3500), 32U);
    ReceiveQueue receive{receiver, 0};
    std::array<rte_mbuf*, 32> burst{};
    std::size_t arrived = 0;
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{2};
         std::chrono::steady_clock::now() < end && arrived < 32;) {
        const std::size_t got = receive.receive(burst);
        for (const rte_mbuf* const frame : std::span{burst}.first(got)) {
            EXPECT_GT(frame->data_len, frame_octets_max(right_options.mtu)) << "it could pass for a frame of a length that was expected";
            EXPECT_LT(frame->data_len, 3500);
        }
        receive.release(std::span{burst}.first(got));
        arrived += got;
    }
    EXPECT_EQ(arrived, 32U);
    EXPECT_EQ(sum_of_receiving(drops.read()), 0U) << text_of(drops.read());
}

/// IPv4 packets that this namespace's kernel began to process.
std::uint64_t packets_in_kernel() {
    std::ifstream table{"/proc/self/net/snmp"};
    std::string line;
    std::uint64_t received = 0;
    for (int ip_lines = 0; std::getline(table, line);) {
        if (line.starts_with("Ip: ") && ++ip_lines == 2) {  // the first names the columns: Forwarding DefaultTTL InReceives
            std::sscanf(line.c_str(), "Ip: %*u %*u %lu", &received);
        }
    }
    return received;
}

TEST(KernelInterfaces, OfAVethLeaveFramesForThePortToThePort) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "making a veth pair needs root";
    }
    ASSERT_TRUE(test::start_environment());
    const VethPair veth;
    if (!veth.made) {
        GTEST_SKIP() << "this kernel lets us make no veth pair";
    }
    auto left = open_port(port_options("left", "af_packet:" + veth.left));
    auto right = open_port(port_options("right", "af_packet:" + veth.right));
    ASSERT_EQ(error_of(left), nullptr) << error_of(left)->what;
    ASSERT_EQ(error_of(right), nullptr) << error_of(right)->what;
    auto& receiver = std::get<DpdkPort>(right);
    static_cast<void>(receive_until_silence(receiver));
    const std::uint64_t before = packets_in_kernel();
    constexpr std::uint64_t count = 192;  // fits into the ring
    EXPECT_GE(send_frames(std::get<DpdkPort>(left), count, receiver.facts().mac), count);
    EXPECT_GE(receive_until_silence(receiver), count);
    EXPECT_LT(packets_in_kernel() - before, count / 2) << "the kernel also received them; other traffic alone is not that much";
}

TEST(KernelInterfaces, HaveTheirOwnAddressUnlessTheyAreVeth) {
    const net::MacAddress own{std::byte{0x00}, std::byte{0x1b}, std::byte{0x21}, std::byte{0x01}, std::byte{0x02}, std::byte{0x03}};
    KernelInterface interface;
    interface.mac = own;
    interface.driver = "ixgbe";
    EXPECT_EQ(packet_port_address(interface), own);
    const net::MacAddress apart{std::byte{0x02}, std::byte{0x1b}, std::byte{0x21}, std::byte{0x01}, std::byte{0x02}, std::byte{0x83}};
    interface.driver = "veth";
    EXPECT_EQ(packet_port_address(interface), apart);
}

TEST(KernelInterfaces, ThatAreDownOrTooSmallAreErrors) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "making a veth pair needs root";
    }
    ASSERT_TRUE(test::start_environment());
    const VethPair veth;
    if (!veth.made) {
        GTEST_SKIP() << "this kernel lets us make no veth pair";
    }
    PortOptions jumbo = port_options("left", "af_packet:" + veth.left);
    jumbo.mtu = 9000;
    const auto too_small = open_port(jumbo);
    ASSERT_NE(error_of(too_small), nullptr);
    EXPECT_EQ(error_of(too_small)->fix, "ip link set " + veth.left + " mtu 9000");
    ASSERT_EQ(std::system(("ip link set " + veth.left + " mtu 9000 && ip link set " + veth.right + " mtu 9000").c_str()), 0);
    {
        const auto fits = open_port(jumbo);
        EXPECT_EQ(error_of(fits), nullptr) << error_of(fits)->what;
    }
    PortOptions xdp = port_options("left", "af_xdp:" + veth.left);
    xdp.mtu = 3507;
    const auto too_large = open_port(xdp);
    ASSERT_NE(error_of(too_large), nullptr);
    EXPECT_EQ(error_of(too_large)->what, "XDP on a veth takes packets of at most 3506 octets, 3507 are needed");
    xdp.mtu = 1500;
    const auto peer_too_large = open_port(xdp);
    ASSERT_NE(error_of(peer_too_large), nullptr) << "a veth takes XDP only if a frame of its other end fits into a page";
    EXPECT_NE(error_of(peer_too_large)->fix.find("MTU"), std::string::npos) << error_of(peer_too_large)->fix;
    ASSERT_EQ(std::system(("ip link set " + veth.right + " mtu 3506").c_str()), 0);
    xdp.mtu = 3506;
    {
        const auto largest = open_port(xdp);
        EXPECT_EQ(error_of(largest), nullptr) << error_of(largest)->what;
    }
    xdp.queues = 2;
    const auto too_few_queues = open_port(xdp);
    ASSERT_NE(error_of(too_few_queues), nullptr);
    EXPECT_EQ(error_of(too_few_queues)->what, "2 queues asked for, but the interface has 1");
    EXPECT_EQ(error_of(too_few_queues)->where, "left port af_xdp:" + veth.left);
    const std::string remedy = error_of(too_few_queues)->fix.substr(0, error_of(too_few_queues)->fix.find(','));
    EXPECT_EQ(remedy, "ethtool -L " + veth.left + " rx 2 tx 2");
    if (std::system(remedy.c_str()) == 0) {
        const auto enough_queues = open_port(xdp);
        EXPECT_EQ(error_of(enough_queues), nullptr) << error_of(enough_queues)->what;
    }
    ASSERT_EQ(std::system(("ip link set " + veth.left + " down").c_str()), 0);
    const auto down = open_port(jumbo);
    ASSERT_NE(error_of(down), nullptr);
    EXPECT_EQ(error_of(down)->fix, "ip link set " + veth.left + " up");
}

}  // namespace
}  // namespace gatemark::io
