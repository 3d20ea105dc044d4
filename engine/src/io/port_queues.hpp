#pragma once

#include "io/port_name.hpp"

#include <string>

struct rte_eth_dev_info;

namespace gatemark::io {

/// What can be known about a port before it is opened: how many queues it offers, and its NUMA
/// node.
struct PortOffer {
    /// Whether arriving frames are spread over its queues without further setup. Only then does it
    /// have several queues by default.
    bool spreads = false;
    /// Queues of its driver, as far as known.
    unsigned queues_max = 64;
    /// The other port must have the same number.
    bool joined = false;
    /// NUMA node; -1 if it has none: a virtual port is where its users are.
    int numa_node = -1;
    /// Why there is one queue by default, or what is still unknown.
    std::string remark;
    /// Whether the driver counts frames that find its ring full. Where it does not, a frame that we
    /// were too slow for looks like one that the gateway lost.
    bool counts_misses = true;
};

/// The maximum number of queues of a port.
constexpr unsigned port_queues_max = 64;

/// How many queues a driver has to send and to receive on. That of e1000 and e1000e says two for
/// cards that have one: what is sent on the second is lost, as if by the gateway.
[[nodiscard]] unsigned queues_of(const rte_eth_dev_info& information) noexcept;

/// Reads what the kernel knows about the device. Opens nothing.
[[nodiscard]] PortOffer offer_of(const PortName& name);

/// `offer` completed by the driver, once DPDK runs and knows the device; only a PCI port has
/// something to add.
[[nodiscard]] PortOffer with_driver_limits(const PortName& name, PortOffer offer);

}  // namespace gatemark::io
