#pragma once

#include "base/paged_memory.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

namespace gatemark::record {

/// One bit for every frame of a direction: has it arrived? Exact counts of distinct frames and duplicates, and the place of every loss; a
/// duplicate can never stand in for a lost frame. 60 s at 10 million frames/s take 75 MB.
class ArrivalBitmap {
public:
    /// Keeps the memory it has, so a campaign's trials pay for it once. Throws std::bad_alloc.
    void reset(std::uint64_t frame_count) {
        const auto words = static_cast<std::size_t>((frame_count + 63) / 64);
        frame_count_ = 0;
        if (words > words_.size()) {
            words_ = {};
            words_ = PagedMemory<std::uint64_t>{words};
        } else if (words != 0) {
            std::memset(words_.data(), 0, words * sizeof(std::uint64_t));
        }
        frame_count_ = frame_count;
    }

    /// Marks frame `index` (below the frame count) and says whether it was new. Several receivers may mark at the same time.
    bool mark(std::uint64_t index) noexcept {
        const std::uint64_t bit = std::uint64_t{1} << (index % 64);
        std::atomic_ref<std::uint64_t> word{words_[static_cast<std::size_t>(index / 64)]};
        // Relaxed: only this word is shared; the counts are read after the workers have left the trial.
        return (word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
    }
    [[nodiscard]] bool arrived(std::uint64_t index) const noexcept {
        return (words_[static_cast<std::size_t>(index / 64)] >> (index % 64) & 1U) != 0;
    }
    /// The 64 frames from 64 * word; bits behind the last frame are zero.
    [[nodiscard]] std::uint64_t word(std::uint64_t word) const noexcept { return words_[static_cast<std::size_t>(word)]; }
    [[nodiscard]] std::uint64_t frame_count() const noexcept { return frame_count_; }

private:
    std::uint64_t frame_count_ = 0;
    PagedMemory<std::uint64_t> words_;
};

}  // namespace gatemark::record
