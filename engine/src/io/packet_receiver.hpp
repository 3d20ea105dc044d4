#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct rte_mbuf;
struct rte_mempool;
struct tpacket2_hdr;

namespace gatemark::io {

struct PacketRing {
    unsigned slots = 4096, slot_bytes = 2048;
};

/// Receives the frames of an af_packet port from a packet socket's memory-mapped ring (TPACKET_V2),
/// instead of DPDK's driver.
///
/// The driver puts every socket into a fanout group with PACKET_FANOUT_FLAG_DEFRAG, even for one
/// queue: the kernel then reassembles IPv4 fragments before we see them, so a gateway that
/// fragments our frames would pass for one that forwards them whole. The group also costs a flow
/// hash per frame, on the core that does the gateway's work.
class PacketReceiver {
public:
    /// `group` joins the receivers of one port's queues: the kernel spreads flows over them. 0 for
    /// a single queue. `pool` gives the buffers.
    [[nodiscard]] static Result<std::unique_ptr<PacketReceiver>> open(const std::string& interface, PacketRing ring, std::uint16_t group,
                                                                      rte_mempool* pool);

    PacketReceiver(const PacketReceiver&) = delete;
    PacketReceiver& operator=(const PacketReceiver&) = delete;
    ~PacketReceiver();

    /// Copies frames out of the ring, with their VLAN tags, and returns their number. Frames that
    /// find no buffer stay in the ring. Of a frame that is longer than a buffer only the beginning
    /// is returned. That is still longer than any expected frame, so the frame is counted as
    /// faulty, not as lost.
    [[nodiscard]] std::size_t receive(std::span<rte_mbuf*> burst) noexcept;

private:
    PacketReceiver(int descriptor, PacketRing ring, rte_mempool* pool);
    /// Sets the socket up; returns the errno of what failed, or 0.
    [[nodiscard]] int set_up(int interface_index, std::uint16_t group);
    [[nodiscard]] tpacket2_hdr* slot(unsigned number) const noexcept;
    [[nodiscard]] bool is_ready(unsigned number) const noexcept;
    /// Copies one ready slot into `buffer` and returns the slot to the kernel.
    void take(unsigned number, rte_mbuf& buffer) noexcept;

    int descriptor_;
    PacketRing ring_;
    rte_mempool* pool_;
    std::byte* memory_ = nullptr;
    unsigned next_ = 0;
};

}  // namespace gatemark::io
