#include "io/frame_pool.hpp"

#include "io/dpdk_environment.hpp"

#include <rte_errno.h>

#include <algorithm>

namespace gatemark::io {
namespace {

int register_generation_field() {
    constexpr rte_mbuf_dynfield field{
        .name = "gatemark_generation", .size = sizeof(std::uint32_t), .align = alignof(std::uint32_t), .flags = 0};
    return rte_mbuf_dynfield_register(&field);  // returns the same field each time
}

}  // namespace

Result<FramePool> FramePool::create(DpdkPort& port, const std::string& name, std::size_t bytes_max) {
    const int offset = register_generation_field();
    const unsigned frames = port.transmit_ring_frames() + pool_spare_frames;
    const auto data_room = static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + bytes_max);
    rte_mempool* const pool =
        offset < 0 ? nullptr : rte_pktmbuf_pool_create(name.c_str(), frames, pool_cache_frames, 0, data_room, pool_socket(port.socket()));
    if (pool == nullptr) {
        return Error{.what = std::string{"no memory for send buffers: "} + rte_strerror(rte_errno),
                     .where = port.options().side + " port " + port.options().name.text,
                     .fix = "give the engine more memory (huge pages), or fewer ring_frames or queues"};
    }
    port.adopt_pool(pool);
    const PortKind kind = port.options().name.kind;
    FramePool frame_pool{pool, pool->size, bytes_max, offset, kind == PortKind::pci || kind == PortKind::vdev};
    frame_pool.outdated_count_ = frame_pool.size_;  // memory starts as zero, so the first generation is 1
    return frame_pool;
}

void FramePool::set_template(std::span<const std::byte> frame) {
    template_.assign(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(std::min(frame.size(), bytes_max_)));
    frame_bytes_ = static_cast<std::uint32_t>(template_.size());
    ++generation_;
    std::vector<rte_mbuf*> free_buffers(size_);
    const std::size_t got = acquire_what_is_left(free_buffers);
    for (rte_mbuf* buffer : std::span{free_buffers}.first(got)) {
        fill(*buffer);
    }
    outdated_count_ = size_ - got;
    rte_mempool_put_bulk(pool_, reinterpret_cast<void**>(free_buffers.data()), static_cast<unsigned>(got));
}

std::size_t FramePool::acquire_what_is_left(std::span<rte_mbuf*> burst) noexcept {
    std::size_t got = 0;
    while (got < burst.size() && rte_mempool_get(pool_, reinterpret_cast<void**>(&burst[got])) == 0) {
        ++got;
    }
    return got;
}

void FramePool::refill_outdated(std::span<rte_mbuf*> burst) noexcept {
    for (rte_mbuf* buffer : burst) {
        if (generation_of(*buffer) == generation_) {
            continue;
        }
        fill(*buffer);
        --outdated_count_;
    }
}

}  // namespace gatemark::io
