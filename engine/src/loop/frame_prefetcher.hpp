#pragma once

#include "frame/burst.hpp"

#include <algorithm>
#include <span>

namespace gatemark::loop {

/// Prefetches the frames of a burst, some at a time: all at once ahead of the work on another burst
/// gained nothing, a quarter between two pieces of that work did
/// (docs/how-to/benchmark-the-engine.md).
class FramePrefetcher {
public:
    FramePrefetcher() = default;
    explicit FramePrefetcher(std::span<const std::span<const std::byte>> frames) noexcept : frames_{frames} {}

    void prefetch_some() noexcept { prefetch(std::min(frames_.size(), frames_at_once)); }
    void prefetch_rest() noexcept { prefetch(frames_.size()); }

private:
    static constexpr std::size_t frames_at_once = frame::burst_frames_max / 4, line_bytes = 64;

    void prefetch(std::size_t count) noexcept {
        for (const std::span<const std::byte> frame : frames_.first(count)) {
            if (frame.size() <= line_bytes) {
                __builtin_prefetch(frame.data());
            } else {
                prefetch_lines(frame);
            }
        }
        frames_ = frames_.subspan(count);
    }
    /// To the second-level cache, because more lines can be on their way to it than to the first.
    /// For a lone line that gains almost nothing on an AMD Zen 4 (the same page).
    static void prefetch_lines(std::span<const std::byte> frame) noexcept {
        constexpr int read = 0, second_level = 2;
        for (std::size_t at = 0; at < frame.size(); at += line_bytes) {
            __builtin_prefetch(frame.data() + at, read, second_level);
        }
    }

    std::span<const std::span<const std::byte>> frames_;  ///< those not prefetched yet
};

}  // namespace gatemark::loop
