#pragma once

#include "io/dpdk_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace gatemark::io {

/// A frame in its buffer, with the free bytes before and after it.
struct FrameInBuffer {
    std::byte* begin;
    std::size_t bytes, headroom, tailroom;
};

/// One queue of one port, for one thread that changes received frames and sends them out again,
/// here or on another port. Buffers come from the receive pool of the port that a frame arrived at,
/// so the pool needs an extra buffer for every frame that may be held (PortOptions::extra_frames).
/// Not for `ring` ports, whose buffers belong to the sender at the other end.
class ForwardQueue {
public:
    using Buffer = rte_mbuf*;

    ForwardQueue(const DpdkPort& port, unsigned queue)
        : receive_{port, queue},
          packet_sender_{port.packet_sender(queue)},
          xdp_socket_{port.xdp_socket(queue)},
          port_id_{port.port_id()},
          queue_{static_cast<std::uint16_t>(queue)} {}

    /// Every frame is contiguous, with its VLAN tags as on the wire.
    [[nodiscard]] std::size_t receive(std::span<Buffer> burst) noexcept { return receive_.receive(burst); }

    [[nodiscard]] static FrameInBuffer frame(Buffer buffer) noexcept {
        return {.begin = rte_pktmbuf_mtod(buffer, std::byte*),
                .bytes = rte_pktmbuf_data_len(buffer),
                .headroom = rte_pktmbuf_headroom(buffer),
                .tailroom = rte_pktmbuf_tailroom(buffer)};
    }
    /// Sets the position of the frame in the buffer. Also needed for a frame that is sent
    /// unchanged, because it clears the driver's offload flags.
    static void set_frame(Buffer buffer, const std::byte* begin, std::size_t bytes) noexcept {
        buffer->data_off = static_cast<std::uint16_t>(begin - static_cast<const std::byte*>(buffer->buf_addr));
        buffer->data_len = static_cast<std::uint16_t>(bytes);
        buffer->pkt_len = static_cast<std::uint32_t>(bytes);
        buffer->ol_flags = 0;
    }
    /// Another buffer of the same pool with the same frame, or nullptr if the pool is empty.
    [[nodiscard]] static Buffer copy(Buffer buffer) noexcept {
        rte_mbuf* const other = rte_pktmbuf_alloc(buffer->pool);
        if (other != nullptr) {
            const FrameInBuffer from = frame(buffer);
            auto* const to = static_cast<std::byte*>(other->buf_addr) + buffer->data_off;
            std::memcpy(to, from.begin, from.bytes);
            set_frame(other, to, from.bytes);
        }
        return other;
    }

    /// Hands over a prefix of `burst` and returns its length. The rest stays with the caller.
    [[nodiscard]] std::size_t send(std::span<Buffer> burst) noexcept {
        if (packet_sender_ != nullptr) {
            return packet_sender_->send(burst);
        }
        if (xdp_socket_ != nullptr) {
            return xdp_socket_->send(burst);
        }
        return rte_eth_tx_burst(port_id_, queue_, burst.data(), static_cast<std::uint16_t>(burst.size()));
    }
    void release(std::span<Buffer> burst) noexcept { rte_pktmbuf_free_bulk(burst.data(), static_cast<unsigned>(burst.size())); }

    /// Stops the port, which returns the buffers of its rings. For ports that send each other's
    /// buffers: stop both, then close them.
    static void rest(DpdkPort& port) { rte_eth_dev_stop(port.port_id()); }

private:
    ReceiveQueue receive_;
    PacketSender* packet_sender_;
    XdpSocket* xdp_socket_;
    std::uint16_t port_id_, queue_;
};

}  // namespace gatemark::io
