#pragma once

#include "base/result.hpp"
#include "net/address.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// What the kernel reports about an interface and about this process's packet and XDP sockets.
/// Control path only.
namespace gatemark::io {

struct KernelInterface {
    std::string name;
    int index = 0;
    /// Administratively up, and with a carrier as well.
    bool up = false, running = false;
    unsigned mtu = 0;
    net::MacAddress mac{};
    /// Kernel driver, such as "veth"; empty if unknown.
    std::string driver;
    /// Queues that both receive and send; 0 if unknown.
    unsigned queues = 0;

    [[nodiscard]] bool is_veth() const { return driver == "veth"; }
    /// Whether its frames go to another end on this machine: that of a veth, or the process that
    /// holds a tap. What the interface counts as dropped while sending, that end had no room for.
    [[nodiscard]] bool has_other_end() const { return is_veth() || driver == "tun"; }
};

/// Facts about interface `name`, or an Error if this network namespace has no such interface.
[[nodiscard]] Result<KernelInterface> find_kernel_interface(const std::string& name);

/// An address of one host that differs from this one.
[[nodiscard]] net::MacAddress another_address(net::MacAddress address);

/// The MAC address that a port on this interface sends from and receives at.
///
/// A packet socket gets a copy of each frame; the frame itself goes on into the kernel's IP input.
/// If it is addressed to the interface, the kernel looks a route up, on the CPU that delivered it,
/// which in a test bed of namespaces is the gateway's (docs/explanation/kernel-ports.md has the
/// cost). So on a veth or tap, which delivers frames to any address, the port uses another address
/// than the interface, and the kernel drops the frame at once, as it is for another host. Elsewhere
/// the port uses the interface's address, because switches and hypervisors may pass no other.
[[nodiscard]] net::MacAddress packet_port_address(const KernelInterface& interface);

/// Columns of /proc/self/net/dev, totals since the interface was created.
struct InterfaceCounters {
    std::uint64_t rx_dropped = 0, rx_fifo = 0, tx_dropped = 0, tx_fifo = 0;
};
[[nodiscard]] InterfaceCounters read_interface_counters(const std::string& name);

enum class LinkSocketFamily { packet, xdp };

/// A packet or XDP socket of this process, whichever library opened it; the descriptor is borrowed.
struct LinkSocket {
    int descriptor;
    LinkSocketFamily family;
    friend bool operator==(const LinkSocket&, const LinkSocket&) = default;
};

/// All of them. Comparing the lists from before and after a port is opened shows which belong to
/// the port (the kernel does not report the interface of an XDP socket).
[[nodiscard]] std::vector<LinkSocket> own_link_sockets();

/// Lifts the limit on bytes in flight of a packet socket; see the comment in kernel_interface.cpp.
void lift_send_limit(int descriptor);

/// 0 if this process may open a raw packet socket, else the errno.
[[nodiscard]] int try_packet_socket();

}  // namespace gatemark::io
