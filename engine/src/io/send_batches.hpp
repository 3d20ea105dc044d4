#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace gatemark::io {

/// Hands a burst to send_batch(frames) in batches, until one is not accepted completely. Frees the
/// buffers of the frames accepted, a prefix of `burst`, and returns their number.
template <class SendBatch>
[[nodiscard]] std::size_t send_in_batches(std::span<rte_mbuf*> burst, std::size_t batch_frames_max, const SendBatch& send_batch) noexcept {
    std::size_t accepted = 0;
    while (accepted < burst.size()) {
        const auto batch = burst.subspan(accepted, std::min(batch_frames_max, burst.size() - accepted));
        const std::size_t sent = send_batch(batch);
        accepted += sent;
        if (sent < batch.size()) {
            break;
        }
    }
    rte_pktmbuf_free_bulk(burst.data(), static_cast<unsigned>(accepted));
    return accepted;
}

}  // namespace gatemark::io
