#include "io/xdp_ring.hpp"

#include <rte_mbuf.h>

#include <linux/if_xdp.h>

#include <algorithm>
#include <cstring>

namespace gatemark::io {

std::size_t XdpReader::readable(const xdp_desc& descriptor, const rte_mbuf& buffer) const noexcept {
    if (descriptor.addr > memory_.bytes || descriptor.len > memory_.bytes - descriptor.addr) {
        return 0;
    }
    return std::min<std::size_t>(descriptor.len, rte_pktmbuf_tailroom(&buffer));
}

std::size_t XdpReader::receive(std::span<rte_mbuf*> burst) noexcept {
    const std::uint32_t first = received_.consumed();
    const std::uint32_t ready = std::min(received_.produced() - first, received_.size);
    const std::uint32_t count = std::min(static_cast<std::uint32_t>(burst.size()), ready);
    if (count == 0 || rte_pktmbuf_alloc_bulk(pool_, burst.data(), count) != 0) {
        return 0;
    }
    const std::uint32_t filled = fill_.produced();
    for (std::uint32_t i = 0; i < count; ++i) {
        const xdp_desc descriptor = received_.at(first + i);
        rte_mbuf& buffer = *burst[i];
        const std::size_t bytes = readable(descriptor, buffer);
        if (bytes != 0) {
            std::memcpy(rte_pktmbuf_mtod(&buffer, std::byte*), memory_.begin + descriptor.addr, bytes);
        }
        buffer.data_len = static_cast<std::uint16_t>(bytes);
        buffer.pkt_len = buffer.data_len;
        fill_.at(filled + i) = descriptor.addr & ~std::uint64_t{memory_.chunk_bytes - 1};
    }
    fill_.produce_until(filled + count);
    received_.consume_until(first + count);
    return count;
}

}  // namespace gatemark::io
