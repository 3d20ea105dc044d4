#include "io/kernel_interface.hpp"
#include "veth.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace gatemark::io {
namespace {

using namespace test;

/// IPv4 packets that this namespace's kernel began to process and refused for their header. Those
/// of udp_frame() are such, and nobody else's.
std::uint64_t packets_in_kernel() {
    std::ifstream table{"/proc/self/net/snmp"};
    std::string line;
    std::uint64_t refused = 0;
    for (int ip_lines = 0; std::getline(table, line);) {
        if (line.starts_with("Ip: ") && ++ip_lines == 2) {  // the first names the columns: Forwarding DefaultTTL InReceives InHdrErrors
            std::sscanf(line.c_str(), "Ip: %*u %*u %*u %lu", &refused);
        }
    }
    return refused;
}

using KernelInterfaces = OnVeth;

TEST_F(KernelInterfaces, OfAVethLeaveFramesForThePortToThePort) {
    ASSERT_NO_FATAL_FAILURE(open_ports("af_packet"));
    const std::uint64_t before = packets_in_kernel();
    constexpr std::uint64_t count = 192;  // fits into the ring
    EXPECT_GE(send_frames(sender(), count, receiver().facts().mac), count);
    EXPECT_GE(receive_until_silence(receiver(), count), count);
    EXPECT_EQ(packets_in_kernel() - before, 0U) << "the kernel also received them";
    std::string address_of_kernel;
    std::ifstream{"/sys/class/net/" + veth().right + "/address"} >> address_of_kernel;
    EXPECT_EQ(send_some(sender(), udp_frame(net::parse_mac(address_of_kernel).value())), 32U);
    EXPECT_TRUE(come_to_hold([before] { return packets_in_kernel() - before >= 32; })) << "those for the kernel are seen";
}

TEST(KernelInterfaceAddresses, AreTheirOwnUnlessTheyHaveAnotherEndHere) {
    const net::MacAddress device_mac{std::byte{0x00}, std::byte{0x1b}, std::byte{0x21}, std::byte{0x01}, std::byte{0x02}, std::byte{0x03}};
    KernelInterface interface;
    interface.mac = device_mac;
    interface.driver = "ixgbe";
    EXPECT_EQ(packet_port_address(interface), device_mac);
    const net::MacAddress apart{std::byte{0x02}, std::byte{0x1b}, std::byte{0x21}, std::byte{0x01}, std::byte{0x02}, std::byte{0x83}};
    for (const char* const driver : {"veth", "tun"}) {
        interface.driver = driver;
        EXPECT_EQ(packet_port_address(interface), apart) << driver;
    }
}

TEST_F(KernelInterfaces, ThatAreDownOrTooSmallAreErrors) {
    PortOptions jumbo = left_options("af_packet");
    jumbo.mtu = 9000;
    const auto too_small = open_port(jumbo);
    ASSERT_NE(error_of(too_small), nullptr);
    EXPECT_EQ(error_of(too_small)->fix, "ip link set " + veth().left + " mtu 9000");
    ASSERT_NO_FATAL_FAILURE(set_mtu(9000));
    {
        const auto fits = open_port(jumbo);
        EXPECT_EQ(error_of(fits), nullptr) << error_of(fits)->what;
    }
    PortOptions xdp = left_options("af_xdp");
    xdp.mtu = 3507;
    const auto too_large = open_port(xdp);
    ASSERT_NE(error_of(too_large), nullptr);
    EXPECT_EQ(error_of(too_large)->what, "XDP on a veth takes packets of at most 3506 octets, 3507 are needed");
    xdp.mtu = 1500;
    const auto peer_too_large = open_port(xdp);
    ASSERT_NE(error_of(peer_too_large), nullptr) << "a veth takes XDP only if a frame of its other end fits into a page";
    EXPECT_NE(error_of(peer_too_large)->fix.find("MTU"), std::string::npos) << error_of(peer_too_large)->fix;
    ASSERT_EQ(std::system(("ip link set " + veth().right + " mtu 3506").c_str()), 0);
    xdp.mtu = 3506;
    {
        const auto largest = open_port(xdp);
        EXPECT_EQ(error_of(largest), nullptr) << error_of(largest)->what;
    }
    xdp.queues = 2;
    const auto too_few_queues = open_port(xdp);
    ASSERT_NE(error_of(too_few_queues), nullptr);
    EXPECT_EQ(error_of(too_few_queues)->what, "2 queues requested, but the interface has 1");
    EXPECT_EQ(error_of(too_few_queues)->where, "left port af_xdp:" + veth().left);
    const std::string remedy = error_of(too_few_queues)->fix.substr(0, error_of(too_few_queues)->fix.find(','));
    EXPECT_EQ(remedy, "ethtool -L " + veth().left + " rx 2 tx 2");
    if (std::system(remedy.c_str()) == 0) {
        const auto enough_queues = open_port(xdp);
        EXPECT_EQ(error_of(enough_queues), nullptr) << error_of(enough_queues)->what;
    }
    ASSERT_EQ(std::system(("ip link set " + veth().left + " down").c_str()), 0);
    const auto down = open_port(jumbo);
    ASSERT_NE(error_of(down), nullptr);
    EXPECT_EQ(error_of(down)->fix, "ip link set " + veth().left + " up");
}

}  // namespace
}  // namespace gatemark::io
