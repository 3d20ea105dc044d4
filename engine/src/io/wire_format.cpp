#include "io/wire_format.hpp"

#include <rte_ether.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gatemark::io {

namespace {

void join_pieces(rte_mbuf& frame) noexcept {
    rte_mbuf* const rest = frame.next;
    for (const rte_mbuf* piece = rest; piece != nullptr; piece = piece->next) {
        const auto bytes = std::min(piece->data_len, rte_pktmbuf_tailroom(&frame));
        std::copy_n(rte_pktmbuf_mtod(piece, const std::byte*), bytes, rte_pktmbuf_mtod_offset(&frame, std::byte*, frame.data_len));
        frame.data_len = static_cast<std::uint16_t>(frame.data_len + bytes);
    }
    frame.next = nullptr;
    frame.nb_segs = 1;
    frame.pkt_len = frame.data_len;
    rte_pktmbuf_free(rest);
}

}  // namespace

void restore_wire_format(rte_mbuf& frame) noexcept {
    join_pieces(frame);
    if ((frame.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0) {
        rte_mbuf* with_vlan = &frame;
        (void)rte_vlan_insert(&with_vlan);  // cannot fail: only we hold buffers of our receive pools, and they have headroom
    }
}

}  // namespace gatemark::io
