#pragma once

#include "base/paged_memory.hpp"
#include "record/receivers.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>

namespace gatemark::record {

/// One bit for every frame of a direction: has it arrived? This gives exact counts of distinct
/// frames and of duplicates, and the index of every lost frame; a duplicate can never make up for a
/// loss. 60 s at 10 million frames/s take 75 MB.
///
/// Clearing and searching that much memory takes as long as everything else between two trials, so
/// both are done during the trial, block by block: when the first frame of a block arrives, the
/// block is cleared, and the one `look_behind` blocks earlier is examined. By then it is nearly
/// always full, although one queue may lag another by thousands of frames, and it is still in the
/// cache.
class ArrivalBitmap {
public:
    static constexpr std::uint64_t word_frames = 64, block_words = 64, block_frames = word_frames * block_words;
    static constexpr std::uint64_t full_word = ~std::uint64_t{0};
    static constexpr std::uint64_t look_behind = 64;

    /// Bytes that `reset` would take in addition to those that are held.
    [[nodiscard]] std::uint64_t growth(std::uint64_t frame_count) const noexcept {
        const std::uint64_t blocks = blocks_of(frame_count), held = blocks_.size();
        return blocks > held ? (blocks - held) * (block_words * sizeof(std::uint64_t) + sizeof(Block)) : 0;
    }

    /// Keeps its memory, so the trials of a campaign allocate once. Throws std::bad_alloc.
    void reset(std::uint64_t frame_count, Receivers receivers = Receivers::many) {
        const auto blocks = static_cast<std::size_t>(blocks_of(frame_count));
        frame_count_ = 0;
        if (blocks > blocks_.size()) {
            words_ = {};
            blocks_ = {};
            words_ = PagedMemory<std::uint64_t>{blocks * block_words};
            blocks_ = PagedMemory<Block>{blocks};
        }
        ++trial_;
        receivers_ = receivers;
        frame_count_ = frame_count;
    }

    /// Marks frame `index` (below the frame count) and returns whether it was new.
    bool mark(std::uint64_t index) noexcept {
        if (receivers_ == Receivers::many) {
            return mark_shared(index);
        }
        const std::uint64_t bit = std::uint64_t{1} << (index % word_frames);
        std::uint64_t& word = word_of(index);
        const bool is_new = (word & bit) == 0;
        word |= bit;
        return is_new;
    }

    /// The same for frames `first` to `first` + `count` - 1, at most 32; returns a bit for each
    /// that was new.
    [[nodiscard]] std::uint32_t mark_run(std::uint64_t first, std::size_t count) noexcept {
        const std::uint64_t run = (std::uint64_t{1} << count) - 1;
        const unsigned shift = first % word_frames;
        const std::uint64_t before = mark_bits(first, run << shift) >> shift;
        if (shift + count <= word_frames) {
            return static_cast<std::uint32_t>(run & ~before);
        }
        const unsigned in_first = word_frames - shift;
        const std::uint64_t after = mark_bits(first + in_first, run >> in_first) << in_first;
        return static_cast<std::uint32_t>(run & ~(before | after));
    }

    // Valid after the receivers have left the trial.
    [[nodiscard]] bool arrived(std::uint64_t index) const noexcept {
        return (words_of(index / block_frames)[static_cast<std::size_t>(index / word_frames % block_words)] >> (index % word_frames) &
                1U) != 0;
    }
    /// The frames of a block; bits after the last frame are zero.
    [[nodiscard]] std::span<const std::uint64_t, block_words> words_of(std::uint64_t block) const noexcept {
        static constexpr std::array<std::uint64_t, block_words> none{};
        const bool is_of_trial = blocks_[static_cast<std::size_t>(block)].begun_in == trial_;
        return std::span<const std::uint64_t, block_words>{is_of_trial ? &words_[first_word(block)] : none.data(), block_words};
    }
    /// Whether the block is known to be full; if not, it may be full all the same.
    [[nodiscard]] bool known_full(std::uint64_t block) const noexcept { return blocks_[static_cast<std::size_t>(block)].full_in == trial_; }
    [[nodiscard]] std::uint64_t frame_count() const noexcept { return frame_count_; }

private:
    struct Block {
        std::uint64_t begun_in = 0;  ///< the trial whose frames the words hold; `being_cleared` while a receiver clears them
        std::uint64_t full_in = 0;   ///< the trial in which it was found full
    };
    static constexpr std::uint64_t being_cleared = ~std::uint64_t{0};

    [[nodiscard]] static std::uint64_t blocks_of(std::uint64_t frame_count) noexcept {
        return (frame_count + block_frames - 1) / block_frames;
    }

    /// Sets bits of the word of a frame and returns those that were set before.
    std::uint64_t mark_bits(std::uint64_t index, std::uint64_t bits) noexcept {
        std::uint64_t& word = word_of(index);
        if (receivers_ == Receivers::many) {
            return std::atomic_ref{word}.fetch_or(bits, std::memory_order_relaxed) & bits;  // as in mark_shared
        }
        const std::uint64_t before = word & bits;
        word |= bits;
        return before;
    }

    /// Out of line, so that the path of a single receiver needs fewer registers.
    [[gnu::noinline]] bool mark_shared(std::uint64_t index) noexcept {
        const std::uint64_t bit = std::uint64_t{1} << (index % word_frames);
        // Relaxed: only this word is shared; the counts are read after the workers have left the
        // trial.
        return (std::atomic_ref{word_of(index)}.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
    }

    /// The word of a frame, in a block that has begun.
    [[gnu::always_inline]] std::uint64_t& word_of(std::uint64_t index) noexcept {
        const std::uint64_t block = index / block_frames;
        // Acquire: a thread that sees the block begun in this trial sees it cleared.
        if (std::atomic_ref{blocks_[static_cast<std::size_t>(block)].begun_in}.load(std::memory_order_acquire) != trial_) [[unlikely]] {
            begin(block);
        }
        return words_[static_cast<std::size_t>(index / word_frames)];
    }

    [[nodiscard]] static std::size_t first_word(std::uint64_t block) noexcept { return static_cast<std::size_t>(block * block_words); }

    /// Clears a block for this trial; returns once it is clear, no matter which receiver did it.
    [[gnu::noinline, gnu::cold]] void begin(std::uint64_t block) noexcept {
        const std::atomic_ref begun_in{blocks_[static_cast<std::size_t>(block)].begun_in};
        std::uint64_t before = begun_in.load(std::memory_order_relaxed);
        if (before == trial_ || before == being_cleared ||
            !begun_in.compare_exchange_strong(before, being_cleared, std::memory_order_relaxed)) {
            while (begun_in.load(std::memory_order_acquire) != trial_) {}
            return;
        }
        std::memset(&words_[first_word(block)], 0, block_words * sizeof(std::uint64_t));
        begun_in.store(trial_, std::memory_order_release);
        if (block >= look_behind) {
            look_at(block - look_behind);
        }
    }

    void look_at(std::uint64_t block) noexcept {
        Block& earlier = blocks_[static_cast<std::size_t>(block)];
        if (std::atomic_ref{earlier.begun_in}.load(std::memory_order_acquire) != trial_) {
            return;
        }
        std::uint64_t all = full_word;
        for (std::size_t i = 0; i < block_words; ++i) {
            all &= std::atomic_ref{words_[first_word(block) + i]}.load(std::memory_order_relaxed);
        }
        if (all == full_word) {
            earlier.full_in = trial_;  // only the receiver that began the later block writes it
        }
    }

    std::uint64_t frame_count_ = 0, trial_ = 0;
    Receivers receivers_ = Receivers::many;
    PagedMemory<std::uint64_t> words_;
    PagedMemory<Block> blocks_;
};

}  // namespace gatemark::record
