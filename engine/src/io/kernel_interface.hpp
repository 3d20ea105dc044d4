#pragma once

#include "base/result.hpp"
#include "net/address.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// What this kernel says about one of its interfaces and about this process's packet and XDP sockets. Control path only.
namespace gatemark::io {

struct KernelInterface {
    std::string name;
    int index = 0;
    /// Administratively up; and whether there is a carrier as well.
    bool up = false, running = false;
    unsigned mtu = 0;
    net::MacAddress mac{};
    /// Kernel driver, such as "veth"; empty if it does not say.
    std::string driver;
    /// Queues that both receive and send; 0 if the driver does not say.
    unsigned queues = 0;
};

/// Facts about `name`; an Error if there is no such interface in this network namespace.
[[nodiscard]] Result<KernelInterface> find_kernel_interface(const std::string& name);

/// The address under which a packet socket on this interface sends and is answered to.
///
/// A packet socket gets a copy; the frame itself goes on into this kernel's own IP input. If it is addressed to the interface, a route is
/// looked up for each, on the CPU that delivered it, the gateway's in a test bed of namespaces: 256,000 instead of 328,000 frames/s
/// are received (docs/explanation/kernel-ports.md), 0.86 microseconds a frame. So on a veth, which delivers whatever the address, the
/// port has another address than the interface: the kernel drops a frame for another host at once. Elsewhere it has the interface's own,
/// as switches and hypervisors may let no other pass.
[[nodiscard]] net::MacAddress packet_port_address(const KernelInterface& interface);

/// Columns of /proc/self/net/dev, totals since the interface was made.
struct InterfaceCounters {
    std::uint64_t rx_dropped = 0, rx_fifo = 0, tx_dropped = 0, tx_fifo = 0;
};
[[nodiscard]] InterfaceCounters read_interface_counters(const std::string& name);

enum class LinkSocketFamily { packet, xdp };

/// A packet or XDP socket of this process, opened by whichever library; the descriptor is borrowed.
struct LinkSocket {
    int descriptor;
    LinkSocketFamily family;
    friend bool operator==(const LinkSocket&, const LinkSocket&) = default;
};

/// All of them. Comparing the lists before and after a port is opened tells which are the port's (the kernel does not say which
/// interface an XDP socket is bound to).
[[nodiscard]] std::vector<LinkSocket> own_link_sockets();

/// Lets a packet socket have any number of bytes under way, see the comment in kernel_interface.cpp.
void lift_send_limit(int descriptor);

/// 0, or the errno with which this process was refused a raw packet socket.
[[nodiscard]] int try_packet_socket();

}  // namespace gatemark::io
