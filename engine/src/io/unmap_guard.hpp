#pragma once

#include <atomic>
#include <cstdint>

namespace gatemark::io {

/// Keeps memory mapped for as long as a polling thread may be inside a driver's burst function.
///
/// When the other end of a memif goes away, DPDK's interrupt thread marks the port as unconnected
/// and unmaps the shared rings. A thread that was preempted in the middle of a burst then resumes
/// in memory that is gone (DPDK 22.11; it caused segmentation faults on a busy machine). A program
/// that links this file has its own munmap(), which waits until the polling thread has completed
/// its round; from then on the driver sees the mark and leaves the rings alone.
class UnmapGuard {
public:
    /// Created by the polling thread; at most one per process at a time.
    UnmapGuard();
    UnmapGuard(const UnmapGuard&) = delete;
    UnmapGuard& operator=(const UnmapGuard&) = delete;
    ~UnmapGuard();
    /// Call it between two rounds of polls, when no burst function is running in this thread.
    void came_round() noexcept { rounds.store(rounds.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

    /// Release in came_round pairs with acquire in munmap(); 0 while no thread polls.
    static inline std::atomic<std::uint64_t> rounds{0};
};

}  // namespace gatemark::io
