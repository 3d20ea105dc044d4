#pragma once

#include "base/result.hpp"
#include "io/packet_ring.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace gatemark::io {

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

    /// See PacketRingReader.
    [[nodiscard]] std::size_t receive(std::span<rte_mbuf*> burst) noexcept { return reader_.receive(burst); }

private:
    PacketReceiver(int descriptor, PacketRing ring, rte_mempool* pool);
    /// Sets the socket up; returns the errno of what failed, or 0.
    [[nodiscard]] int set_up(int interface_index, std::uint16_t group);

    int descriptor_;
    PacketRing ring_;
    rte_mempool* pool_;
    std::byte* memory_ = nullptr;
    PacketRingReader reader_;
};

}  // namespace gatemark::io
