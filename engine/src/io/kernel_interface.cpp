#include "io/kernel_interface.hpp"

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace gatemark::io {
namespace {

/// A socket for ioctls on interfaces, closed at the end of the scope.
class ControlSocket {
public:
    ControlSocket() : descriptor_{socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)} {}
    ControlSocket(const ControlSocket&) = delete;
    ControlSocket& operator=(const ControlSocket&) = delete;
    ~ControlSocket() {
        if (descriptor_ >= 0) {
            close(descriptor_);
        }
    }
    [[nodiscard]] bool ask(unsigned long request, ifreq& about) const { return ioctl(descriptor_, request, &about) == 0; }

private:
    int descriptor_;
};

ifreq request_about(const std::string& name) {
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    return request;
}

std::string driver_of(const ControlSocket& control, const std::string& name) {
    ethtool_drvinfo information{};
    information.cmd = ETHTOOL_GDRVINFO;
    ifreq request = request_about(name);
    request.ifr_data = reinterpret_cast<char*>(&information);
    return control.ask(SIOCETHTOOL, request) ? std::string{information.driver} : std::string{};
}

unsigned queues_of(const ControlSocket& control, const std::string& name) {
    ethtool_channels channels{};
    channels.cmd = ETHTOOL_GCHANNELS;
    ifreq request = request_about(name);
    request.ifr_data = reinterpret_cast<char*>(&channels);
    return control.ask(SIOCETHTOOL, request) ? channels.combined_count + std::min(channels.rx_count, channels.tx_count) : 0;
}

int domain_of(int descriptor) {
    int domain = -1;
    socklen_t length = sizeof(domain);
    return getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 ? domain : -1;
}

}  // namespace

Result<KernelInterface> find_kernel_interface(const std::string& name) {
    const ControlSocket control;
    KernelInterface result;
    result.name = name;
    ifreq request = request_about(name);
    if (!control.ask(SIOCGIFINDEX, request)) {
        return Error{.what = "there is no interface \"" + name + "\" in this network namespace",
                     .where = "interface " + name,
                     .fix = "list them with `ip link`; start the engine in the namespace that holds the interface"};
    }
    result.index = request.ifr_ifindex;
    request = request_about(name);
    if (control.ask(SIOCGIFFLAGS, request)) {
        result.up = (request.ifr_flags & IFF_UP) != 0;
        result.running = (request.ifr_flags & IFF_RUNNING) != 0;
    }
    request = request_about(name);
    if (control.ask(SIOCGIFMTU, request)) {
        result.mtu = static_cast<unsigned>(request.ifr_mtu);
    }
    request = request_about(name);
    if (control.ask(SIOCGIFHWADDR, request)) {
        std::memcpy(result.mac.data(), request.ifr_hwaddr.sa_data, result.mac.size());
    }
    result.driver = driver_of(control, name);
    result.queues = queues_of(control, name);
    return result;
}

net::MacAddress another_address(net::MacAddress address) {
    address.front() = (address.front() | std::byte{0x02}) & ~net::group_bit;  // locally administered, of one host
    address.back() ^= std::byte{0x80};
    return address;
}

net::MacAddress packet_port_address(const KernelInterface& interface) {
    return interface.has_other_end() ? another_address(interface.mac) : interface.mac;
}

InterfaceCounters read_interface_counters(const std::string& name) {
    InterfaceCounters counters;
    std::ifstream table{"/proc/self/net/dev"};
    for (std::string line; std::getline(table, line);) {
        const std::size_t colon = line.find(':');
        const std::size_t start = line.find_first_not_of(' ');
        if (colon == std::string::npos || line.compare(start, colon - start, name) != 0) {
            continue;
        }
        // receive: bytes frames errors dropped fifo frame compressed multicast; transmit: bytes
        // frames errors dropped fifo ...
        std::istringstream columns{line.substr(colon + 1)};
        std::array<std::uint64_t, 13> values{};
        for (std::uint64_t& value : values) {
            columns >> value;
        }
        counters = {.rx_dropped = values[3], .rx_fifo = values[4], .tx_dropped = values[11], .tx_fifo = values[12]};
        break;
    }
    return counters;
}

std::vector<LinkSocket> own_link_sockets() {
    std::vector<LinkSocket> result;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd", ignored}) {
        const std::string text = entry.path().filename().string();
        int descriptor = -1;
        std::from_chars(text.data(), text.data() + text.size(), descriptor);
        const int domain = domain_of(descriptor);
        if (domain == AF_PACKET) {
            result.push_back({descriptor, LinkSocketFamily::packet});
        }
        if (domain == AF_XDP) {
            result.push_back({descriptor, LinkSocketFamily::xdp});
        }
    }
    return result;
}

void lift_send_limit(int descriptor) {
    // Each frame in flight is charged to the socket until the kernel on the other side has
    // processed it. With the default of 212,992 bytes a veth stops after about 280 frames, before
    // the gateway's input queue of 1000 is full: the gateway would never drop, and the Tester would
    // look slow.
    const int bytes = std::numeric_limits<int>::max() / 2;
    if (setsockopt(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0) {
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    }
}

int try_packet_socket() {
    const int descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (descriptor < 0) {
        return errno;
    }
    close(descriptor);
    return 0;
}

}  // namespace gatemark::io
