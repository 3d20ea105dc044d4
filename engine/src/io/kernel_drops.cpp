#include "io/kernel_drops.hpp"

#include "io/kernel_interface.hpp"

#include <rte_ethdev.h>

#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <sys/socket.h>

#include <algorithm>

namespace gatemark::io {
namespace {

std::uint64_t packet_socket_drops(int descriptor) {
    tpacket_stats statistics{};
    socklen_t length = sizeof(statistics);
    return getsockopt(descriptor, SOL_PACKET, PACKET_STATISTICS, &statistics, &length) == 0 ? statistics.tp_drops : 0;
}

xdp_statistics xdp_socket_statistics(int descriptor) {
    xdp_statistics statistics{};
    socklen_t length = sizeof(statistics);
    if (getsockopt(descriptor, SOL_XDP, XDP_STATISTICS, &statistics, &length) != 0) {
        return {};
    }
    return statistics;
}

}  // namespace

DropReader::DropReader(const DpdkPort& port) : port_{port}, unsent_{sending()} {
    if (is_kernel_interface(port.options().name.kind)) {
        const auto interface = find_kernel_interface(port.options().name.argument);
        const auto* const kernel_interface = std::get_if<KernelInterface>(&interface);
        has_other_end_ = kernel_interface != nullptr && kernel_interface->has_other_end();
    }
    start_ = totals();
}

OwnDrops DropReader::read() {
    OwnDrops drops = totals().since(start_);
    // Only a card counts apart from its driver.
    drops[OwnDrop::tx_unsent] = port_.options().name.kind == PortKind::pci ? unsent_.update([this] { return sending(); }) : 0;
    return drops;
}

OwnDrops DropReader::totals() {
    OwnDrops drops;
    add_driver_counts(drops);
    add_socket_counts(drops);
    add_interface_counts(drops);
    return drops;
}

void DropReader::add_driver_counts(OwnDrops& drops) const {
    rte_eth_stats statistics{};
    if (rte_eth_stats_get(port_.port_id(), &statistics) != 0) {
        return;
    }
    drops[OwnDrop::rx_missed] = statistics.imissed;
    drops[OwnDrop::rx_no_buffer] = statistics.rx_nombuf;
    drops[OwnDrop::rx_errors] = statistics.ierrors;
    const PortKind kind = port_.options().name.kind;
    // Both count frames that they refused; the sender still has those, so they are not lost.
    const bool counts_refusals = kind == PortKind::af_xdp || kind == PortKind::tap;
    if (!counts_refusals) {
        drops[OwnDrop::tx_errors] = statistics.oerrors;
    }
}

UnsentFrames::Counts DropReader::sending() const {
    const std::uint64_t accepted = port_.accepted_frames();  // before the card's, so that a frame sent between both is not missing
    rte_eth_stats statistics{};
    if (rte_eth_stats_get(port_.port_id(), &statistics) != 0) {
        return {};
    }
    return {.accepted = accepted, .sent = statistics.opackets + statistics.oerrors};
}

void DropReader::add_socket_counts(OwnDrops& drops) {
    for (const LinkSocket& socket : port_.kernel_sockets()) {
        if (socket.family == LinkSocketFamily::packet) {
            packet_socket_drops_ += packet_socket_drops(socket.descriptor);
        } else {
            const xdp_statistics statistics = xdp_socket_statistics(socket.descriptor);
            // rx_dropped is the driver's imissed and contains rx_fill_ring_empty_descs;
            // only a full receive ring is counted nowhere else.
            drops[OwnDrop::rx_missed] += port_.xdp_socket(0) != nullptr ? statistics.rx_dropped : 0;
            drops[OwnDrop::socket_drops] += statistics.rx_ring_full;
            drops[OwnDrop::tx_errors] += statistics.tx_invalid_descs;
        }
    }
    drops[OwnDrop::socket_drops] += packet_socket_drops_;
}

void DropReader::add_interface_counts(OwnDrops& drops) const {
    const PortKind kind = port_.options().name.kind;
    if (!is_kernel_interface(kind)) {
        return;
    }
    const InterfaceCounters interface = read_interface_counters(port_.options().name.argument);
    const std::uint64_t received = interface.rx_dropped + interface.rx_fifo;
    const std::uint64_t sent = interface.tx_dropped + interface.tx_fifo;
    if (kind == PortKind::tap) {
        // The interface is the gateway's end: what it could not send we did not read in time, and
        // what it could not receive it had no room for.
        drops[OwnDrop::interface_rx_dropped] = sent;
        drops.peer_queue_drops = received;
        return;
    }
    // A veth also counts what the XDP socket refused.
    const std::uint64_t counted_already = kind == PortKind::af_xdp ? drops[OwnDrop::socket_drops] + drops[OwnDrop::rx_missed] : 0;
    drops[OwnDrop::interface_rx_dropped] = received - std::min(received, counted_already);
    (has_other_end_ ? drops.peer_queue_drops : drops[OwnDrop::interface_tx_dropped]) = sent;
}

}  // namespace gatemark::io
