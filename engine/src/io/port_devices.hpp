#pragma once

#include "base/result.hpp"
#include "io/dpdk_port.hpp"

#include <optional>
#include <string>

/// The DPDK device arguments of each kind of port, and the checks before it is opened. Used by
/// dpdk_port.cpp only.
namespace gatemark::io {

struct Device {
    std::string name;
    /// key=value,... as rte_vdev_init takes it.
    std::string arguments;
};

/// The port, as messages name it.
[[nodiscard]] std::string where_of(const PortOptions& options);

/// Whether sockets of ours work in place of a driver, and copy each frame from and to the kernel:
/// packet sockets, and XDP sockets of a veth.
[[nodiscard]] bool copies_frames(const PortName& name);

[[nodiscard]] Device virtual_device(const PortOptions& options);

/// Problems that we can explain better than the driver: no such interface, interface down, missing
/// privileges, MTU.
[[nodiscard]] std::optional<Error> what_prevents_opening(const PortOptions& options);

[[nodiscard]] std::string device_remedy(const PortOptions& options);
[[nodiscard]] std::string queue_remedy(const PortOptions& options);

/// Size of a slot in a packet socket's ring: a power of two that holds the frame and the kernel's
/// header.
[[nodiscard]] unsigned packet_slot_bytes(unsigned mtu);

/// Data room of a receive buffer, headroom included.
[[nodiscard]] unsigned receive_data_room(const PortOptions& options);

}  // namespace gatemark::io
