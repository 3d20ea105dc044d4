#pragma once

#include "base/result.hpp"
#include "io/xdp_ring.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct sockaddr_xdp;

namespace gatemark::io {

/// Sends and receives the frames of one queue of an af_xdp port on a veth by an AF_XDP socket of
/// its own in copy mode, instead of DPDK's driver.
///
/// An accepted frame is sent, or lost at the veth's other end and counted there, and nothing stays
/// in the ring: the kernel takes frames from it only during our kick, and has copied each one when
/// the kick returns. DPDK's driver counts frames as sent that wait in its ring, allows at most 280
/// in flight, so that a gateway's input queue of 1000 never fills, and its ring becomes
/// inconsistent when frames are dropped (docs/explanation/kernel-ports.md). The kernel does less
/// per frame than for sendmmsg(): no message to read, no headers to parse.
///
/// One thread may send while another one receives.
class XdpSocket {
public:
    /// `pool` gives the buffers for received frames, of at most `frame_bytes`; `ring_frames` is a
    /// power of two.
    [[nodiscard]] static Result<std::unique_ptr<XdpSocket>> open(const std::string& interface, unsigned queue, unsigned ring_frames,
                                                                 unsigned frame_bytes, rte_mempool* pool);

    XdpSocket(const XdpSocket&) = delete;
    XdpSocket& operator=(const XdpSocket&) = delete;
    ~XdpSocket();

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

    /// Frees the buffers of the frames accepted, a prefix of `burst`, and returns their number.
    /// Never waits.
    [[nodiscard]] std::size_t send(std::span<rte_mbuf*> burst) noexcept;
    /// As `XdpReader` does.
    [[nodiscard]] std::size_t receive(std::span<rte_mbuf*> burst) noexcept { return reader_.receive(burst); }

private:
    /// The most frames that the kernel takes from the ring in one kick.
    static constexpr unsigned batch_frames_max = 32;

    /// A ring, and where it is mapped.
    template <class Entry>
    struct MappedRing : XdpRing<Entry> {
        void* mapping = nullptr;
        std::size_t mapping_bytes = 0;
    };

    XdpSocket(int descriptor, unsigned ring_frames, unsigned frame_bytes, rte_mempool* pool);
    /// Sets the socket up; returns the errno of what failed, or 0.
    [[nodiscard]] int set_up(int interface_index, unsigned queue);
    [[nodiscard]] int make_rings();
    [[nodiscard]] bool bind_to(const sockaddr_xdp& address) const;
    template <class Entry, class Offsets>
    [[nodiscard]] bool map_ring(MappedRing<Entry>& ring, const Offsets& offsets, std::uint64_t page_offset);

    [[nodiscard]] std::size_t send_batch(std::span<rte_mbuf*> batch) noexcept;
    /// Has the kernel take what the transmit ring holds; false if some frames are left.
    [[nodiscard]] bool kick_until_empty() noexcept;
    /// Invalidates what the kernel left in the transmit ring, so that it is never sent.
    void withdraw_left_frames() noexcept;

    int descriptor_;
    unsigned ring_frames_, received_bytes_max_, chunk_bytes_;
    rte_mempool* pool_;
    /// `ring_frames_` chunks to receive into, then `batch_frames_max` to send from.
    std::byte* memory_ = nullptr;
    std::uint32_t sent_ = 0;  ///< frames that the kernel took; they complete when the other side has processed them
    MappedRing<xdp_desc> transmit_;
    MappedRing<std::uint64_t> completion_;
    MappedRing<xdp_desc> receive_;
    MappedRing<std::uint64_t> fill_;
    alignas(64) XdpReader reader_;  // used by another thread
};

/// Has the kernel redirect all frames that arrive at an interface to the AF_XDP sockets of its
/// queues, for the lifetime of this object.
class XdpRedirect {
public:
    [[nodiscard]] static Result<std::unique_ptr<XdpRedirect>> attach(const std::string& interface, std::span<const int> sockets);

    XdpRedirect(const XdpRedirect&) = delete;
    XdpRedirect& operator=(const XdpRedirect&) = delete;
    ~XdpRedirect();

private:
    XdpRedirect() = default;
    /// Attaches the program; returns the errno of what failed, or 0.
    [[nodiscard]] int set_up(int interface_index, std::span<const int> sockets);

    int map_ = -1, program_ = -1, link_ = -1;
};

}  // namespace gatemark::io
