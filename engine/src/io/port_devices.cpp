#include "io/port_devices.hpp"

#include "io/kernel_interface.hpp"

#include <rte_mbuf_core.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace gatemark::io {
namespace {

/// What the kernel writes in front of each frame in a ring slot (TPACKET2_HDRLEN, alignment, room
/// for the link header).
constexpr unsigned packet_slot_header_bytes = 96;
constexpr unsigned packet_slot_bytes_min = 2048;
/// The largest MTU of a veth's other end with which Linux 6.18 attaches an XDP program: frame,
/// headroom and metadata must fit into a page.
constexpr unsigned veth_xdp_mtu_max = 3506;
constexpr unsigned memif_ring_exponent_max = 14;

std::string memif_arguments(const PortOptions& options) {
    const std::size_t comma = options.name.argument.find(',');
    const std::string role = comma == std::string::npos ? "role=client" : options.name.argument.substr(comma + 1);
    const unsigned exponent =
        std::min(static_cast<unsigned>(std::bit_width(std::bit_ceil(options.ring_frames))) - 1, memif_ring_exponent_max);
    return "socket=" + options.name.argument.substr(0, comma) + ",socket-abstract=no," + role + ",rsize=" + std::to_string(exponent) +
           ",bsize=" + std::to_string(std::max(packet_slot_bytes_min, std::bit_ceil(frame_bytes_max(options.mtu))));
}

std::string pcap_arguments(const PortOptions& options) {
    const std::size_t comma = options.name.argument.find(",rx=");
    std::string arguments = "tx_pcap=" + options.name.argument.substr(0, comma);
    if (comma != std::string::npos) {
        arguments += ",rx_pcap=" + options.name.argument.substr(comma + 4);
    }
    return arguments;
}

std::optional<Error> what_is_wrong_with_the_interface(const PortOptions& options) {
    const std::string& name = options.name.argument;
    const auto result = find_kernel_interface(name);
    if (const auto* const error = std::get_if<Error>(&result)) {
        return Error{.what = error->what, .where = where_of(options), .fix = error->fix};
    }
    const auto& interface = std::get<KernelInterface>(result);
    if (!interface.up) {
        return Error{.what = "the interface is down", .where = where_of(options), .fix = "ip link set " + name + " up"};
    }
    if (interface.mtu < options.mtu) {
        return Error{.what = "the interface takes packets of at most " + std::to_string(interface.mtu) + " octets, " +
                             std::to_string(options.mtu) + " are needed",
                     .where = where_of(options),
                     .fix = "ip link set " + name + " mtu " + std::to_string(options.mtu)};
    }
    if (options.name.kind == PortKind::af_xdp && interface.is_veth() && options.mtu > veth_xdp_mtu_max) {
        return Error{.what = "XDP on a veth takes packets of at most " + std::to_string(veth_xdp_mtu_max) + " octets, " +
                             std::to_string(options.mtu) + " are needed",
                     .where = where_of(options),
                     .fix = "use af_packet, or a smaller mtu"};
    }
    if (options.name.kind == PortKind::af_xdp && interface.queues != 0 && interface.queues < options.queues) {
        const std::string wanted = std::to_string(options.queues), had = std::to_string(interface.queues);
        const std::string numbers = interface.is_veth() ? " rx " + wanted + " tx " + wanted : " combined " + wanted;
        return Error{.what = wanted + " queues requested, but the interface has " + had,
                     .where = where_of(options),
                     .fix = "ethtool -L " + name + numbers + ", or set queues to " + had};
    }
    if (const int reason = try_packet_socket(); reason != 0) {
        return Error{.what = std::string{"may not send and receive raw frames: "} + std::strerror(reason),
                     .where = where_of(options),
                     .fix = "run as root, or give the engine CAP_NET_RAW (and CAP_NET_ADMIN, CAP_IPC_LOCK)"};
    }
    return std::nullopt;
}

}  // namespace

std::string where_of(const PortOptions& options) { return options.side + " port " + options.name.text; }

unsigned packet_slot_bytes(unsigned mtu) {
    return std::max(packet_slot_bytes_min, std::bit_ceil(frame_bytes_max(mtu) + packet_slot_header_bytes));
}

unsigned receive_data_room(const PortOptions& options) {
    const unsigned frame = options.name.kind == PortKind::af_packet ? packet_slot_bytes(options.mtu) : frame_bytes_max(options.mtu);
    return RTE_PKTMBUF_HEADROOM + std::max(frame, 2048U);
}

bool copies_frames(const PortName& name) {
    if (name.kind != PortKind::af_xdp) {
        return name.kind == PortKind::af_packet;
    }
    const auto interface = find_kernel_interface(name.argument);
    return std::holds_alternative<KernelInterface>(interface) && std::get<KernelInterface>(interface).is_veth();
}

Device virtual_device(const PortOptions& options) {
    static unsigned number = 0;
    const auto device = [&](const std::string& driver, const std::string& arguments) {
        return Device{.name = driver + std::to_string(number++), .arguments = arguments};
    };
    const std::string& argument = options.name.argument;
    if (copies_frames(options.name)) {
        // io/packet_sender.hpp, io/packet_receiver.hpp and io/xdp_socket.hpp do the work and
        // explain why; the port needs a device for its port number.
        return device("net_null", "no-rx=1");
    }
    switch (options.name.kind) {
        // Busy polling would cost a system call for each empty poll.
        case PortKind::af_xdp:
            return device("net_af_xdp",
                          "iface=" + argument + ",start_queue=0,queue_count=" + std::to_string(options.queues) + ",busy_budget=0");
        case PortKind::tap: return device("net_tap", "iface=" + argument);
        case PortKind::memif: return device("net_memif", memif_arguments(options));
        case PortKind::null: return device("net_null", "no-rx=1");
        case PortKind::pcap: return device("net_pcap", pcap_arguments(options));
        case PortKind::vdev: {
            const std::size_t comma = std::min(argument.find(','), argument.size());
            return Device{.name = argument.substr(0, comma), .arguments = argument.substr(std::min(comma + 1, argument.size()))};
        }
        case PortKind::af_packet:
        case PortKind::pci:
        case PortKind::ring: break;  // not created by name
    }
    return Device{};
}

std::optional<Error> what_prevents_opening(const PortOptions& options) {
    switch (options.name.kind) {
        case PortKind::af_packet:
        case PortKind::af_xdp: return what_is_wrong_with_the_interface(options);
        case PortKind::ring:
            return Error{.what = "ring joins both sides and cannot be used on one side only",
                         .where = where_of(options),
                         .fix = "set the other port to ring as well"};
        case PortKind::pcap:
            if (const std::size_t comma = options.name.argument.find(",rx=");
                comma != std::string::npos && !std::filesystem::exists(options.name.argument.substr(comma + 4))) {
                return Error{.what = "there is no file " + options.name.argument.substr(comma + 4),
                             .where = where_of(options),
                             .fix = "name a capture file after rx="};
            }
            break;
        case PortKind::pci:
        case PortKind::tap:
        case PortKind::memif:
        case PortKind::null:
        case PortKind::vdev: break;
    }
    return std::nullopt;
}

std::string device_remedy(const PortOptions& options) {
    switch (options.name.kind) {
        case PortKind::af_packet: return "read the engine's messages; rings need locked memory (ulimit -l unlimited) and CAP_NET_RAW";
        case PortKind::af_xdp:
            return "read the engine's messages; install librte-net-af-xdp, run as root, give the interface as many queues (ethtool -L), or "
                   "use af_packet";
        case PortKind::tap: return "run as root; /dev/net/tun must exist and the name be free";
        case PortKind::memif: return "install librte-net-memif; the folder of the socket must exist and be writable";
        case PortKind::pcap: return "install librte-net-pcap; the folder of the file must exist and be writable";
        case PortKind::pci:
        case PortKind::ring:
        case PortKind::null:
        case PortKind::vdev: break;
    }
    return "read the engine's messages";
}

std::string queue_remedy(const PortOptions& options) {
    return options.name.kind == PortKind::af_xdp
               ? "no other program may use XDP on this interface, which must have as many queues (ethtool -l); run as root; or use "
                 "af_packet"
               : "use fewer queues or ring_frames";
}

}  // namespace gatemark::io
