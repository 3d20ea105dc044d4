#pragma once

#include "io/dpdk_port.hpp"
#include "io/frame_pool.hpp"
#include "io/port.hpp"
#include "io/wire_format.hpp"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstddef>
#include <cstdint>
#include <span>

/// The hot path of DPDK ports: no virtual call, no allocation, no lock, no exception.
namespace gatemark::io {

/// One transmit queue of one port, for one thread. Slot s sends buffers of `pools[s]`.
class TransmitQueue {
public:
    using Buffer = rte_mbuf*;

    TransmitQueue(const DpdkPort& port, unsigned queue, std::span<FramePool> pools)
        : pools_{pools},
          packet_sender_{port.packet_sender(queue)},
          xdp_socket_{port.xdp_socket(queue)},
          accepted_{&port.accepted_frames(queue)},
          port_id_{port.port_id()},
          queue_{static_cast<std::uint16_t>(queue)} {}

    /// Model of TransmitsFrames. A buffer holds the slot's template, except for fields that were
    /// written when it was last sent; each send writes all fields that vary.
    [[nodiscard]] std::size_t acquire(std::size_t slot, std::span<Buffer> burst) noexcept { return pools_[slot].acquire(burst); }

    [[nodiscard]] static std::byte* bytes(Buffer buffer) noexcept { return rte_pktmbuf_mtod(buffer, std::byte*); }
    /// For frames of other lengths than their template's, which then has to be set again.
    static void resize(Buffer buffer, std::size_t bytes) noexcept {
        buffer->data_len = static_cast<std::uint16_t>(bytes);
        buffer->pkt_len = static_cast<std::uint32_t>(bytes);
    }

    [[nodiscard]] std::size_t send(std::span<Buffer> burst) noexcept {
        if (packet_sender_ != nullptr) {
            return packet_sender_->send(burst);
        }
        if (xdp_socket_ != nullptr) {
            return xdp_socket_->send(burst);
        }
        const std::size_t accepted = rte_eth_tx_burst(port_id_, queue_, burst.data(), static_cast<std::uint16_t>(burst.size()));
        accepted_->add(accepted);
        return accepted;
    }

    void release(std::span<Buffer> burst) noexcept { rte_pktmbuf_free_bulk(burst.data(), static_cast<unsigned>(burst.size())); }

private:
    std::span<FramePool> pools_;
    PacketSender* packet_sender_;
    XdpSocket* xdp_socket_;
    AcceptedFrames* accepted_;
    std::uint16_t port_id_, queue_;
};

/// One receive queue of one port, for one thread.
class ReceiveQueue {
public:
    using Buffer = rte_mbuf*;

    ReceiveQueue(const DpdkPort& port, unsigned queue)
        : packet_receiver_{port.packet_receiver(queue)},
          xdp_socket_{port.xdp_socket(queue)},
          clock_{port.receive_clock()},
          timestamp_field_{port.timestamp_field()},
          port_id_{port.port_id()},
          queue_{static_cast<std::uint16_t>(queue)} {}

    /// Model of ReceivesFrames. Every frame is contiguous, with its VLAN tags as on the wire.
    [[nodiscard]] std::size_t receive(std::span<Buffer> burst) noexcept {
        if (packet_receiver_ != nullptr) {
            return packet_receiver_->receive(burst);
        }
        if (xdp_socket_ != nullptr) {
            return xdp_socket_->receive(burst);
        }
        const std::size_t received = rte_eth_rx_burst(port_id_, queue_, burst.data(), static_cast<std::uint16_t>(burst.size()));
        bool plain = true;
        for (std::size_t i = 0; i < received; ++i) {
            plain &= burst[i]->nb_segs == 1 && (burst[i]->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0;
        }
        if (!plain) [[unlikely]] {
            for (const Buffer buffer : burst.first(received)) {
                restore_wire_format(*buffer);
            }
        }
        return received;
    }

    [[nodiscard]] static std::span<const std::byte> bytes(Buffer buffer) noexcept {
        return {rte_pktmbuf_mtod(buffer, const std::byte*), rte_pktmbuf_data_len(buffer)};
    }

    /// The hardware time stamp if the port has them; a frame without one then counts as arrived at
    /// time 0, before any frame was sent.
    [[nodiscard]] pace::Ticks arrival(Buffer buffer, pace::Ticks polled) const noexcept {
        if (clock_ == nullptr) [[likely]] {
            return polled;
        }
        const auto stamp = timestamp_field_.of(*buffer);
        return stamp ? clock_->to_tester(*stamp) : pace::Ticks{};
    }

    void release(std::span<Buffer> burst) noexcept { rte_pktmbuf_free_bulk(burst.data(), static_cast<unsigned>(burst.size())); }

private:
    PacketReceiver* packet_receiver_;
    XdpSocket* xdp_socket_;
    const ReceiveClock* clock_;
    TimestampField timestamp_field_;
    std::uint16_t port_id_, queue_;
};

static_assert(TransmitsFrames<TransmitQueue> && ReceivesFrames<ReceiveQueue>);

}  // namespace gatemark::io
