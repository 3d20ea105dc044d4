#include "io/port_queues.hpp"

#include <rte_ethdev.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string_view>

namespace gatemark::io {

namespace {

/// RTE_PMD_RING_MAX_RX_RINGS, which the driver does not export.
constexpr unsigned ring_queues_max = 16;

int node_in(const std::string& device_folder) {
    int node = -1;
    std::ifstream file{device_folder + "/numa_node"};
    return file >> node ? node : -1;
}

}  // namespace

unsigned queues_of(const rte_eth_dev_info& information) noexcept {
    return information.driver_name == std::string_view{"net_e1000_em"}
               ? 1
               : std::min<unsigned>(information.max_rx_queues, information.max_tx_queues);
}

PortOffer offer_of(const PortName& name) {
    switch (name.kind) {
        case PortKind::pci:
            return {.spreads = true,
                    .queues_max = port_queues_max,
                    .numa_node = node_in("/sys/bus/pci/devices/" + name.argument),
                    .remark =
                        "fewer if the driver has fewer, one if it does not spread frames by address and port (RSS): known once the port is "
                        "open"};
        case PortKind::null: return {.spreads = true, .queues_max = port_queues_max, .remark = {}};
        case PortKind::ring: return {.spreads = true, .queues_max = ring_queues_max, .joined = true, .remark = {}};
        case PortKind::af_packet:
        case PortKind::af_xdp:
        case PortKind::tap:
            return {.numa_node = node_in("/sys/class/net/" + name.argument + "/device"),
                    .remark = "the kernel decides on which queue a frame arrives: one unless more are requested"};
        case PortKind::memif: return {.remark = "the other end decides how many there are: one unless more are requested"};
        case PortKind::pcap:
        case PortKind::vdev: break;
    }
    return {.remark = "one unless more are requested"};
}

PortOffer with_driver_limits(const PortName& name, PortOffer offer) {
    std::uint16_t port_id = 0;
    rte_eth_dev_info information{};
    if (name.kind != PortKind::pci || rte_eth_dev_get_port_by_name(name.argument.c_str(), &port_id) != 0 ||
        rte_eth_dev_info_get(port_id, &information) != 0) {
        return offer;
    }
    offer.queues_max = std::min(queues_of(information), port_queues_max);
    offer.spreads = offer.queues_max > 1 && (information.flow_type_rss_offloads & RTE_ETH_RSS_UDP) != 0;
    offer.remark = offer.spreads ? "" : "the driver does not spread frames by address and port (RSS): one unless more are requested";
    offer.counts_misses = information.driver_name != std::string_view{"net_virtio"};
    return offer;
}

}  // namespace gatemark::io
