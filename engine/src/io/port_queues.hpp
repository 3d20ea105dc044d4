#pragma once

#include "io/port_name.hpp"

#include <string>

namespace gatemark::io {

/// What can be known of a port before it is opened: how many queues it has for the asking, and where it is.
struct PortOffer {
    /// Whether arriving frames are spread over its queues without more: only then are there several unless somebody asks.
    bool spreads = false;
    /// Queues that its driver has, as far as it is known.
    unsigned queues_max = 64;
    /// The other port must have as many.
    bool joined = false;
    /// NUMA node, -1 if it has none: a virtual port lies where its users are.
    int numa_node = -1;
    /// Why there is one queue unless more are asked for, or what is still unknown.
    std::string remark;
};

/// Queues that a port may have, whoever asks.
constexpr unsigned port_queues_max = 64;

/// Reads what the kernel tells of the device. Opens nothing.
[[nodiscard]] PortOffer offer_of(const PortName& name);

/// `offer` with what the driver says, once DPDK runs and knows the device; only a PCI port has more to tell.
[[nodiscard]] PortOffer with_driver_limits(const PortName& name, PortOffer offer);

}  // namespace gatemark::io
