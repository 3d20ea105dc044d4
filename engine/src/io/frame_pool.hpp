#pragma once

#include "base/result.hpp"
#include "io/dpdk_port.hpp"

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace gatemark::io {

/// Buffers that all hold one template frame, for one sender. They are filled when the template is
/// set, not when a frame is sent: a send writes only what varies. A buffer in a ring is never
/// touched; it carries the number of the template it holds (its generation), and is refilled when
/// it comes back with an old number.
///
/// The generation is a dynamic field in the second cache line of the mbuf, which freeing a buffer
/// touches anyway; the private area would be in another line. It is not even read while every
/// buffer is known to be up to date. Consumers of the frames (the driver, or our own receiver
/// through a ring) may read and free them, but not change them. Tests check that the drivers of
/// virtual ports leave the mbuf alone; for other drivers, lengths and flags are set again at each
/// acquire.
class FramePool {
public:
    /// Buffers for frames of up to `bytes_max` bytes: as many as the port's transmit ring, a
    /// receiver's ring and the caches may hold.
    [[nodiscard]] static Result<FramePool> create(DpdkPort& port, const std::string& name, std::size_t bytes_max);

    /// Fills every free buffer with `frame` (without FCS). Call it while the sender is idle,
    /// preferably in the sender's thread: buffers in another thread's cache are filled later, one
    /// by one.
    void set_template(std::span<const std::byte> frame);

    /// Returns how many buffers it got: all, or those that are left.
    [[nodiscard]] std::size_t acquire(std::span<rte_mbuf*> burst) noexcept {
        const auto wanted = static_cast<unsigned>(burst.size());
        std::size_t got = wanted;
        if (rte_mempool_get_bulk(pool_, reinterpret_cast<void**>(burst.data()), wanted) != 0) [[unlikely]] {
            got = acquire_what_is_left(burst);
        }
        if (resets_fields_) {
            for (rte_mbuf* buffer : burst.first(got)) {
                make_sendable(*buffer);
            }
        }
        if (outdated_count_ != 0) [[unlikely]] {
            refill_outdated(burst.first(got));
        }
        return got;
    }

    [[nodiscard]] std::size_t size() const { return size_; }
    /// Buffers with an older template that have not come back yet.
    [[nodiscard]] std::size_t outdated_count() const { return outdated_count_; }

private:
    FramePool(rte_mempool* pool, std::size_t size, std::size_t bytes_max, int generation_offset, bool resets_fields)
        : pool_{pool}, size_{size}, bytes_max_{bytes_max}, generation_offset_{generation_offset}, resets_fields_{resets_fields} {}

    [[nodiscard]] std::uint32_t& generation_of(rte_mbuf& buffer) const noexcept {
        return *RTE_MBUF_DYNFIELD(&buffer, generation_offset_, std::uint32_t*);
    }

    /// Restores what a driver or a receiver may have changed in the first cache line. Freeing
    /// restores refcnt, nb_segs and next.
    void make_sendable(rte_mbuf& buffer) const noexcept {
        buffer.data_off = RTE_PKTMBUF_HEADROOM;
        buffer.ol_flags = 0;
        buffer.pkt_len = frame_bytes_;
        buffer.data_len = static_cast<std::uint16_t>(frame_bytes_);
    }

    void fill(rte_mbuf& buffer) const noexcept {
        make_sendable(buffer);
        std::memcpy(rte_pktmbuf_mtod(&buffer, void*), template_.data(), template_.size());
        generation_of(buffer) = generation_;
    }

    [[nodiscard, gnu::noinline]] std::size_t acquire_what_is_left(std::span<rte_mbuf*> burst) noexcept;
    [[gnu::noinline]] void refill_outdated(std::span<rte_mbuf*> burst) noexcept;

    rte_mempool* pool_;
    std::size_t size_, bytes_max_, outdated_count_ = 0;
    int generation_offset_;
    bool resets_fields_;
    std::uint32_t generation_ = 0, frame_bytes_ = 0;
    std::vector<std::byte> template_;
};

}  // namespace gatemark::io
