#include "io/packet_ring.hpp"

#include "base/bytes.hpp"
#include "net/headers.hpp"

#include <rte_mbuf.h>

#include <linux/if_packet.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace gatemark::io {

namespace {

/// The two addresses before a VLAN tag.
constexpr std::size_t before_tag_bytes = net::ethernet::type;

}  // namespace

tpacket2_hdr* PacketRingReader::slot(unsigned number) const noexcept {
    return reinterpret_cast<tpacket2_hdr*>(memory_ + static_cast<std::size_t>(number) * ring_.slot_bytes);
}

bool PacketRingReader::is_ready(unsigned number) const noexcept {
    // Pairs with the kernel's barrier after it has written the frame.
    return (std::atomic_ref<std::uint32_t>{slot(number)->tp_status}.load(std::memory_order_acquire) & TP_STATUS_USER) != 0;
}

void PacketRingReader::take(unsigned number, rte_mbuf& buffer) noexcept {
    tpacket2_hdr& header = *slot(number);
    const auto* const frame = reinterpret_cast<const std::byte*>(&header) + header.tp_mac;
    const bool with_vlan = (header.tp_status & TP_STATUS_VLAN_VALID) != 0 && header.tp_snaplen >= before_tag_bytes;
    const std::size_t tag_bytes = with_vlan ? net::ethernet::vlan_tag_bytes : 0;
    const std::size_t bytes = std::min<std::size_t>(header.tp_snaplen, rte_pktmbuf_tailroom(&buffer) - tag_bytes);
    auto* const to = rte_pktmbuf_mtod(&buffer, std::byte*);
    if (with_vlan) {  // the kernel removed the tag from the frame: put it back
        std::memcpy(to, frame, before_tag_bytes);
        const std::uint16_t type = (header.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0 ? header.tp_vlan_tpid : net::ethernet::type_vlan;
        store_big_endian(to + before_tag_bytes, type);
        store_big_endian(to + before_tag_bytes + 2, static_cast<std::uint16_t>(header.tp_vlan_tci));
        std::memcpy(to + before_tag_bytes + tag_bytes, frame + before_tag_bytes, bytes - before_tag_bytes);
    } else {
        std::memcpy(to, frame, bytes);
    }
    buffer.data_len = static_cast<std::uint16_t>(bytes + tag_bytes);
    buffer.pkt_len = buffer.data_len;
    // Pairs with the kernel's read of the slot before it writes the next frame there.
    std::atomic_ref<std::uint32_t>{header.tp_status}.store(TP_STATUS_KERNEL, std::memory_order_release);
}

std::size_t PacketRingReader::receive(std::span<rte_mbuf*> burst) noexcept {
    std::size_t ready = 0;
    for (unsigned number = next_; ready < burst.size() && ready < ring_.slots && is_ready(number); ++ready) {
        number = number + 1 == ring_.slots ? 0 : number + 1;
    }
    if (ready == 0 || rte_pktmbuf_alloc_bulk(pool_, burst.data(), static_cast<unsigned>(ready)) != 0) {
        return 0;
    }
    for (rte_mbuf* const buffer : burst.first(ready)) {
        take(next_, *buffer);
        next_ = next_ + 1 == ring_.slots ? 0 : next_ + 1;
    }
    return ready;
}

}  // namespace gatemark::io
