#pragma once

#include "loop/task.hpp"
#include "pace/clock.hpp"
#include "record/late_bursts.hpp"
#include "record/lateness.hpp"

#include <atomic>
#include <cstdint>

namespace gatemark::loop {

/// Facts about one sender after its trial.
struct SendCounts {
    std::uint64_t offered_foreground = 0, offered_background = 0;  ///< frames that the port accepted
    std::uint64_t refused = 0;                                     ///< times that the port accepted less than it was given
    std::uint64_t offered_end = 0;                                 ///< every frame of this sender with a lower index was offered
    pace::Ticks last_handover{};                                   ///< when the last burst was handed to the port
    bool gave_up = false;
    record::LatenessHistogram lateness;
    record::LateBursts late_bursts;
};

/// What the control thread sees of any sender. Counts are relaxed atomics while the worker runs.
class SendingTask : public Task {
public:
    [[nodiscard]] bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }
    [[nodiscard]] std::uint64_t offered_so_far() const noexcept { return offered_so_far_.load(std::memory_order_relaxed); }
    /// Valid after the worker has left the trial.
    [[nodiscard]] const SendCounts& counts() const noexcept { return counts_; }
    /// Offers nothing more from the next poll on. The control thread may call it too, when another
    /// sender has spoiled the trial.
    void stop() noexcept { finished_.store(true, std::memory_order_release); }
    /// Releases buffers that the port never took. For the worker, or after the worker has left the
    /// trial.
    virtual void release_rest() noexcept = 0;

protected:
    SendCounts counts_;
    alignas(64) std::atomic<std::uint64_t> offered_so_far_{0};
    std::atomic<bool> finished_{false};
};

}  // namespace gatemark::loop
