#include "environment.hpp"
#include "io/dpdk_queue.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>

namespace gatemark::io {
namespace {

using test::port_options;

TEST(OpenPort, NullTakesEverythingAndGivesNothing) {
    ASSERT_TRUE(test::start_environment());
    auto opened = open_port(port_options("left", "null"));
    ASSERT_EQ(error_of(opened), nullptr) << error_of(opened)->what;
    auto& port = std::get<DpdkPort>(opened);
    auto pool = FramePool::create(port, "to null", 2048);
    auto& frames = std::get<FramePool>(pool);
    frames.set_template(std::vector<std::byte>(60));
    TransmitQueue transmit{port, 0, std::span{&frames, 1}};
    ReceiveQueue receive{port, 0};
    std::array<rte_mbuf*, 32> burst{};
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(transmit.acquire(0, burst), burst.size());
        ASSERT_EQ(transmit.send(burst), burst.size());
    }
    EXPECT_EQ(receive.receive(burst), 0U);
}

TEST(OpenPort, DriversLeaveSentBuffersAsTheyWere) {
    ASSERT_TRUE(test::start_environment());
    for (const char* text : {"null", "pcap:/dev/null", "vdev:net_null99"}) {
        auto opened = open_port(port_options("left", text));
        ASSERT_EQ(error_of(opened), nullptr) << error_of(opened)->what;
        test::expect_sent_buffers_unchanged(std::get<DpdkPort>(opened));
    }
}

TEST(OpenPort, DevicesOfUnknownDriversGetTheirFieldsReset) {
    ASSERT_TRUE(test::start_environment());
    auto opened = open_port(port_options("left", "vdev:net_null98"));
    auto pool = FramePool::create(std::get<DpdkPort>(opened), "reset", 2048);
    auto& frames = std::get<FramePool>(pool);
    frames.set_template(std::vector<std::byte>(100));
    std::vector<rte_mbuf*> all(frames.size());
    ASSERT_EQ(frames.acquire(all), all.size());
    for (rte_mbuf* buffer : all) {
        rte_pktmbuf_adj(buffer, 14);
        buffer->ol_flags = RTE_MBUF_F_RX_VLAN;
        rte_pktmbuf_free(buffer);
    }
    ASSERT_EQ(frames.acquire(all), all.size());
    for (rte_mbuf* buffer : all) {
        ASSERT_EQ(ReceiveQueue::bytes(buffer).size(), 100U);
        ASSERT_EQ(buffer->data_off, RTE_PKTMBUF_HEADROOM);
        ASSERT_EQ(buffer->ol_flags, 0U);
    }
    rte_pktmbuf_free_bulk(all.data(), static_cast<unsigned>(all.size()));
}

TEST(OpenPort, CaptureFileHoldsWhatWasSentAndGivesWhatItHolds) {
    ASSERT_TRUE(test::start_environment());
    const auto folder = std::filesystem::temp_directory_path() / ("gatemark-io-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    const std::string first = folder / "first.pcap", second = folder / "second.pcap";
    std::vector<std::byte> frame(1514);
    for (std::size_t i = 0; i < frame.size(); ++i) {
        frame[i] = static_cast<std::byte>(i);
    }
    {
        auto opened = open_port(port_options("left", "pcap:" + first));
        ASSERT_EQ(error_of(opened), nullptr) << error_of(opened)->what;
        auto& port = std::get<DpdkPort>(opened);
        auto pool = FramePool::create(port, "to pcap", 2048);
        std::get<FramePool>(pool).set_template(frame);
        TransmitQueue transmit{port, 0, std::span{&std::get<FramePool>(pool), 1}};
        std::array<rte_mbuf*, 3> burst{};
        ASSERT_EQ(transmit.acquire(0, burst), 3U);
        ASSERT_EQ(transmit.send(burst), 3U);
    }
    {
        auto opened = open_port(port_options("right", "pcap:" + second + ",rx=" + first));
        ASSERT_EQ(error_of(opened), nullptr) << error_of(opened)->what;
        ReceiveQueue receive{std::get<DpdkPort>(opened), 0};
        std::array<rte_mbuf*, 8> burst{};
        ASSERT_EQ(receive.receive(burst), 3U);
        const auto bytes = ReceiveQueue::bytes(burst[2]);
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), frame.begin(), frame.end()));
        receive.release(std::span{burst}.first(3));
    }
    std::filesystem::remove_all(folder);
}

TEST(OpenPort, NamesThePciDevicesAndEstimatesMemory) {
    const PortOptions null_port = port_options("left", "null");
    const PortOptions pci_port = port_options("right", "pci:0000:01:00.0");
    EXPECT_EQ(pci_addresses({null_port.name, pci_port.name}), std::vector<std::string>{"0000:01:00.0"});
    PortOptions many = null_port;
    many.queues = 8;
    many.ring_frames = 4096;
    const std::size_t largest_only = memory_needed_mib({many}, {.largest = 4});
    EXPECT_GT(largest_only, 8 * 4096 * 2048 * 4 / 1'000'000U);
    EXPECT_LT(largest_only, 2000U);
    EXPECT_LT(memory_needed_mib({many}, {.largest = 2, .small = 2, .small_bytes = 128}), largest_only);
    many.name = port_options("left", "af_packet:any").name;
    EXPECT_LT(memory_needed_mib({many}, {.largest = 4}), largest_only / 2) << "the kernel holds the frames of its rings";
}

TEST(OpenPort, JumboFramesFitTheBuffers) {
    ASSERT_TRUE(test::start_environment());
    PortOptions left = port_options("left", "ring"), right = port_options("right", "ring");
    left.mtu = right.mtu = 9216;
    const auto opened = open_ring_pair(left, right);
    EXPECT_EQ(error_of(opened), nullptr) << error_of(opened)->what;
}

TEST(OpenPort, ErrorsSayWhatWhereAndHowToFix) {
    ASSERT_TRUE(test::start_environment());
    const struct {
        const char* text;
        unsigned queues;
        const char* what;
    } cases[] = {
        {"af_packet:no-such-if", 1, "no interface"},
        {"af_xdp:no-such-if", 1, "no interface"},
        {"ring", 1, "both sides"},
        {"pci:ffff:ff:1f.7", 1, "no DPDK driver"},
        {"pcap:/no/such/folder/x", 1, "could not make"},
        {"pcap:x,rx=/no/such/file", 1, "no file"},
        {"vdev:net_nosuchdriver0", 1, "could not make"},
    };
    for (const auto& each : cases) {
        PortOptions options = port_options("left", each.text);
        options.queues = each.queues;
        const auto opened = open_port(options);
        const Error* const error = error_of(opened);
        ASSERT_NE(error, nullptr) << each.text;
        EXPECT_NE(error->what.find(each.what), std::string::npos) << each.text << ": " << error->what;
        EXPECT_NE(error->where.find(each.text), std::string::npos);
        EXPECT_FALSE(error->fix.empty());
    }
}

/// Its arguments are longer than the 128 characters that rte_dev_probe() would take.
TEST(OpenPort, AMemifMayHaveALongPath) {
    ASSERT_TRUE(test::start_environment());
    const std::string folder =
        std::filesystem::temp_directory_path() / ("gatemark-io-test-of-a-path-that-is-long-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    PortOptions options = port_options("left", "memif:" + folder + "/of-the-socket.sock,role=server");
    options.needs_link = false;
    {
        const auto opened = open_port(options);
        EXPECT_EQ(error_of(opened), nullptr) << error_of(opened)->what;
    }
    std::filesystem::remove_all(folder);
}

TEST(OpenPort, MoreQueuesThanTheDriverHasIsAnError) {
    ASSERT_TRUE(test::start_environment());
    PortOptions options = port_options("left", "pcap:/dev/null");
    options.queues = 4;
    const auto opened = open_port(options);
    ASSERT_NE(error_of(opened), nullptr);
    EXPECT_NE(error_of(opened)->what.find("the driver has 1"), std::string::npos) << error_of(opened)->what;
}

}  // namespace
}  // namespace gatemark::io
