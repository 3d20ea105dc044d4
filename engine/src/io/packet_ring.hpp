#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

struct rte_mbuf;
struct rte_mempool;
struct tpacket2_hdr;

namespace gatemark::io {

struct PacketRing {
    unsigned slots = 4096, slot_bytes = 2048;
};

/// Reads the slots of a packet socket's ring (TPACKET_V2) in turn. It needs no socket: what
/// fills the ring writes the status of a slot last.
class PacketRingReader {
public:
    /// `memory` holds the ring's slots; `pool` gives the buffers. Both outlive this.
    PacketRingReader(PacketRing ring, std::byte* memory, rte_mempool* pool) noexcept : ring_{ring}, memory_{memory}, pool_{pool} {}

    /// Copies frames out of the ring, with their VLAN tags, and returns their number. Frames that
    /// find no buffer stay in the ring. Of a frame that is longer than a buffer only the beginning
    /// is returned. That is still longer than any expected frame, so the frame is counted as
    /// faulty, not as lost.
    [[nodiscard]] std::size_t receive(std::span<rte_mbuf*> burst) noexcept;

private:
    [[nodiscard]] tpacket2_hdr* slot(unsigned number) const noexcept;
    [[nodiscard]] bool is_ready(unsigned number) const noexcept;
    /// Copies one ready slot into `buffer` and returns the slot to the kernel.
    void take(unsigned number, rte_mbuf& buffer) noexcept;

    PacketRing ring_;
    std::byte* memory_;
    rte_mempool* pool_;
    unsigned next_ = 0;
};

}  // namespace gatemark::io
