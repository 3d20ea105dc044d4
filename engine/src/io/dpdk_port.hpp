#pragma once

#include "base/result.hpp"
#include "io/kernel_interface.hpp"
#include "io/packet_receiver.hpp"
#include "io/packet_sender.hpp"
#include "io/port_name.hpp"
#include "io/receive_clock.hpp"
#include "io/xdp_socket.hpp"
#include "net/address.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct rte_mempool;
struct rte_ring;

namespace gatemark::io {

struct PortOptions {
    /// "left" or "right": for messages, and to name what the port owns.
    std::string side;
    PortName name;
    /// Queues in each direction.
    unsigned queues = 1;
    /// Frames that a receive or transmit ring holds; rounded up to a power of two where the driver wants one.
    unsigned ring_frames = 4096;
    /// Receive buffers of a queue beyond those, for whoever holds frames for a while.
    unsigned extra_frames = 0;
    /// Largest IP packet, bytes.
    unsigned mtu = 1500;
    /// NUMA node of the pools; -1: the port's own.
    int socket = -1;
    /// How long to wait for the link. Only PCI and memif ports need to wait; the others have it at once or never.
    std::chrono::milliseconds link_timeout{10'000};
    /// False: a port without a link is opened as well, for a memif whose other end comes and goes.
    bool needs_link = true;
};

struct PortFacts {
    std::string port, driver;
    net::MacAddress mac{};
    int numa_node = -1;
    bool link_up = false;
    /// 0 if the driver does not know. Drivers of virtual ports name a fixed figure.
    std::uint32_t link_mbps = 0;
    unsigned mtu = 0;
    /// Whether the hardware says when a frame arrived, and not our poll.
    bool stamps_arrivals = false;
};

/// Rings that join two ports, freed with the last of the two.
struct RingDeleter {
    void operator()(rte_ring* ring) const;
};
using OwnedRings = std::vector<std::unique_ptr<rte_ring, RingDeleter>>;

/// One opened, started DPDK port with the pools of its buffers. Closed on destruction; no worker may use its queues by then.
class DpdkPort {
public:
    DpdkPort(DpdkPort&& other) noexcept;
    DpdkPort& operator=(DpdkPort&&) = delete;
    DpdkPort(const DpdkPort&) = delete;
    DpdkPort& operator=(const DpdkPort&) = delete;
    ~DpdkPort();

    [[nodiscard]] std::uint16_t port_id() const { return port_id_; }
    [[nodiscard]] const PortOptions& options() const { return options_; }
    /// Asks the driver anew for the state of the link.
    [[nodiscard]] PortFacts facts() const;
    /// Frames that the transmit ring may hold back; a FramePool needs as many buffers, plus those in use.
    [[nodiscard]] unsigned transmit_ring_frames() const { return transmit_ring_frames_; }
    /// Takes over a pool whose buffers this port sends: it must live until the port is closed, as rings may hold some to the end.
    void adopt_pool(rte_mempool* pool) { pools_.push_back(pool); }
    /// NUMA node for pools of this port, as DPDK wants it.
    [[nodiscard]] int socket() const;
    /// Packet or XDP sockets that the driver opened.
    [[nodiscard]] const std::vector<LinkSocket>& kernel_sockets() const { return kernel_sockets_; }
    /// What sends the frames of a queue instead of the driver, or nullptr.
    [[nodiscard]] PacketSender* packet_sender(unsigned queue) const {
        return queue < packet_senders_.size() ? packet_senders_[queue].get() : nullptr;
    }

    /// What sends and receives the frames of a queue instead of the driver, or nullptr.
    [[nodiscard]] XdpSocket* xdp_socket(unsigned queue) const { return queue < xdp_sockets_.size() ? xdp_sockets_[queue].get() : nullptr; }

    /// nullptr where the hardware does not say when frames arrive.
    [[nodiscard]] ReceiveClock* receive_clock() const { return receive_clock_.get(); }
    [[nodiscard]] const TimestampField& timestamp_field() const { return timestamp_field_; }
    /// Takes the times of arrival from `field` of the buffers from now on.
    void stamp_arrivals(std::unique_ptr<ReceiveClock> clock, TimestampField field) {
        receive_clock_ = std::move(clock);
        timestamp_field_ = field;
    }

    /// What receives the frames of a queue instead of the driver, or nullptr.
    [[nodiscard]] PacketReceiver* packet_receiver(unsigned queue) const {
        return queue < packet_receivers_.size() ? packet_receivers_[queue].get() : nullptr;
    }

private:
    friend class PortOpener;
    DpdkPort(PortOptions options, std::uint16_t port_id, std::shared_ptr<OwnedRings> rings)
        : options_{std::move(options)}, port_id_{port_id}, rings_{std::move(rings)} {}

    PortOptions options_;
    std::uint16_t port_id_;
    bool owns_ = true;
    unsigned transmit_ring_frames_ = 0;
    std::vector<rte_mempool*> pools_;
    std::vector<LinkSocket> kernel_sockets_;
    std::vector<std::unique_ptr<PacketSender>> packet_senders_;
    std::vector<std::unique_ptr<PacketReceiver>> packet_receivers_;
    std::vector<std::unique_ptr<XdpSocket>> xdp_sockets_;
    std::unique_ptr<XdpRedirect> xdp_redirect_;
    std::unique_ptr<ReceiveClock> receive_clock_;
    TimestampField timestamp_field_;
    std::shared_ptr<OwnedRings> rings_;
};

/// Opens any port but `ring`. DpdkEnvironment must run; a PCI device must have been named to it.
[[nodiscard]] Result<DpdkPort> open_port(const PortOptions& options);

/// Two ports joined by rings, one for each queue and direction: what left's queue q sends, right's queue q receives, and back.
[[nodiscard]] Result<std::pair<DpdkPort, DpdkPort>> open_ring_pair(const PortOptions& left, const PortOptions& right);

/// PCI addresses among the names, for EnvironmentOptions.
[[nodiscard]] std::vector<std::string> pci_addresses(const std::vector<PortName>& names);

/// A generous figure for EnvironmentOptions::memory_mib: receive pools of these ports plus `frame_pools` pools to send from, each side.
[[nodiscard]] std::size_t memory_needed_mib(const std::vector<PortOptions>& ports, std::size_t frame_pools);

/// Bytes of a receive or transmit buffer for frames of this MTU, headroom excluded: link header, two VLAN tags and FCS beside the packet.
[[nodiscard]] constexpr unsigned frame_bytes_max(unsigned mtu) { return mtu + 14 + 2 * 4 + 4; }

}  // namespace gatemark::io
