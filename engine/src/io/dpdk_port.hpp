#pragma once

#include "base/result.hpp"
#include "io/kernel_interface.hpp"
#include "io/packet_receiver.hpp"
#include "io/packet_sender.hpp"
#include "io/port_name.hpp"
#include "io/receive_clock.hpp"
#include "io/unsent_frames.hpp"
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
    /// "left" or "right": for messages, and for the names of what the port owns.
    std::string side;
    PortName name;
    /// Queues in each direction.
    unsigned queues = 1;
    /// Frames that a receive or transmit ring holds; rounded up to a power of two where the driver
    /// wants one.
    unsigned ring_frames = 4096;
    /// Receive buffers of a queue beyond those, for a program that holds frames for a while.
    unsigned extra_frames = 0;
    /// Largest IP packet, in bytes.
    unsigned mtu = 1500;
    /// NUMA node of the pools; -1: that of the port.
    int socket = -1;
    /// How long to wait for the link. Only PCI and memif ports need to wait; the others have a link
    /// at once or never.
    std::chrono::milliseconds link_timeout{10'000};
    /// If false, a port without a link is opened as well, for a memif whose other end comes and
    /// goes.
    bool needs_link = true;
};

struct PortFacts {
    std::string port, driver;
    net::MacAddress mac{};
    int numa_node = -1;
    bool link_up = false;
    /// 0 if the driver does not know. Drivers of virtual ports report a fixed value.
    std::uint32_t link_mbps = 0;
    unsigned mtu = 0;
    /// Whether the hardware, not our poll, determines when a frame arrived.
    bool stamps_arrivals = false;
};

/// Rings that join two ports, freed with the second of them.
struct RingDeleter {
    void operator()(rte_ring* ring) const;
};
using OwnedRings = std::vector<std::unique_ptr<rte_ring, RingDeleter>>;

/// An open, started DPDK port with its buffer pools. Closed on destruction; no worker may use its
/// queues then.
class DpdkPort {
public:
    DpdkPort(DpdkPort&& other) noexcept;
    DpdkPort& operator=(DpdkPort&&) = delete;
    DpdkPort(const DpdkPort&) = delete;
    DpdkPort& operator=(const DpdkPort&) = delete;
    ~DpdkPort();

    [[nodiscard]] std::uint16_t port_id() const { return port_id_; }
    [[nodiscard]] const PortOptions& options() const { return options_; }
    /// Asks the driver for the current state of the link.
    [[nodiscard]] PortFacts facts() const;
    /// Frames that the transmit ring may hold back; a FramePool needs as many buffers, plus those
    /// in use. 0 where a sender of ours copies frames into the kernel.
    [[nodiscard]] unsigned transmit_ring_frames() const {
        return packet_senders_.empty() && xdp_sockets_.empty() ? transmit_ring_frames_ : 0;
    }
    /// Takes over a pool whose buffers this port sends: it must live until the port is closed,
    /// because rings may hold some of them until then.
    void adopt_pool(rte_mempool* pool) { pools_.push_back(pool); }
    /// The DPDK socket id for pools of this port.
    [[nodiscard]] int socket() const;
    /// Packet or XDP sockets that the driver opened.
    [[nodiscard]] const std::vector<LinkSocket>& kernel_sockets() const { return kernel_sockets_; }
    /// What the driver accepted from a queue; for the queue to add to.
    [[nodiscard]] AcceptedFrames& accepted_frames(unsigned queue) const { return accepted_[queue]; }
    /// Of all queues.
    [[nodiscard]] std::uint64_t accepted_frames() const;
    /// What sends the frames of a queue instead of the driver, or nullptr.
    [[nodiscard]] PacketSender* packet_sender(unsigned queue) const {
        return queue < packet_senders_.size() ? packet_senders_[queue].get() : nullptr;
    }

    /// What sends and receives the frames of a queue instead of the driver, or nullptr.
    [[nodiscard]] XdpSocket* xdp_socket(unsigned queue) const { return queue < xdp_sockets_.size() ? xdp_sockets_[queue].get() : nullptr; }

    /// nullptr where the hardware does not say when frames arrive.
    [[nodiscard]] ReceiveClock* receive_clock() const { return receive_clock_.get(); }
    [[nodiscard]] const TimestampField& timestamp_field() const { return timestamp_field_; }
    /// From now on takes the times of arrival from `field` of the buffers.
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
        : options_{std::move(options)},
          port_id_{port_id},
          accepted_{std::make_unique<AcceptedFrames[]>(options_.queues)},
          rings_{std::move(rings)} {}

    PortOptions options_;
    std::uint16_t port_id_;
    bool owns_ = true;
    unsigned transmit_ring_frames_ = 0;
    std::unique_ptr<AcceptedFrames[]> accepted_;
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

/// Opens any port except `ring`. DpdkEnvironment must be running; a PCI device must have been named
/// when it was started.
[[nodiscard]] Result<DpdkPort> open_port(const PortOptions& options);

/// Opens two ports joined by rings, one for each queue and direction: queue q of either port
/// receives what queue q of the other sends.
[[nodiscard]] Result<std::pair<DpdkPort, DpdkPort>> open_ring_pair(const PortOptions& left, const PortOptions& right);

/// The PCI addresses among the names, for EnvironmentOptions.
[[nodiscard]] std::vector<std::string> pci_addresses(const std::vector<PortName>& names);

/// Buffers that a pool keeps in the cache of a thread.
constexpr unsigned pool_cache_frames = 256;
/// Buffers of a pool beyond what rings hold: for bursts, and for the caches of the few threads that
/// may free buffers of one pool (sender, receivers at the far end of a ring), each filled up to 1.5
/// times its size.
constexpr unsigned pool_spare_frames = 8 * pool_cache_frames;

/// The pools that each queue sends from.
struct SendPools {
    std::size_t largest = 0;  ///< whose frames may have the port's MTU
    std::size_t small = 0;    ///< whose frames have at most `small_bytes`
    std::size_t small_bytes = 0;
};

/// A generous value for EnvironmentOptions::memory_mib: the receive pools of these ports plus the
/// pools to send from.
[[nodiscard]] std::size_t memory_needed_mib(const std::vector<PortOptions>& ports, const SendPools& pools);

/// Size of a receive or transmit buffer for frames of this MTU, without headroom: the packet, link
/// header, two VLAN tags and FCS.
[[nodiscard]] constexpr unsigned frame_bytes_max(unsigned mtu) { return mtu + 14 + 2 * 4 + 4; }

}  // namespace gatemark::io
