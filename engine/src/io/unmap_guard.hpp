#pragma once

#include <atomic>
#include <cstdint>

namespace gatemark::io {

/// Keeps memory mapped for as long as a polling thread may be inside a driver's burst function.
///
/// When the other end of a memif goes away, DPDK's interrupt thread marks the port as unconnected and unmaps the shared rings. A thread
/// that polls the port without pause, and was stopped by the scheduler within a burst, then wakes up in memory that is gone (DPDK
/// 22.11; seen as segmentation faults on a busy machine). A program that links this file has its own munmap(), which waits until the
/// polling thread has come round once more; from then on the driver sees the mark and leaves the rings alone.
class UnmapGuard {
public:
    /// To be made by the polling thread, one in a process at a time.
    UnmapGuard();
    UnmapGuard(const UnmapGuard&) = delete;
    UnmapGuard& operator=(const UnmapGuard&) = delete;
    ~UnmapGuard();
    /// To be called between two rounds of polls: no burst function is running in this thread.
    void came_round() noexcept { rounds.store(rounds.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

    /// Release in came_round pairs with acquire in munmap(); 0 while nobody polls.
    static inline std::atomic<std::uint64_t> rounds{0};
};

}  // namespace gatemark::io
