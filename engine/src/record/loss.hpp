#pragma once

#include "pace/mix.hpp"
#include "record/arrival_bitmap.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace gatemark::record {

/// Where the frames of one class of one direction were lost. Indexes are those of the direction.
struct LossFacts {
    static constexpr std::size_t slices = 100, runs_kept = 16;
    struct Run {
        std::uint64_t index, length;
    };
    std::uint64_t lost = 0, runs = 0, longest_run = 0, first_index = 0, last_index = 0;
    std::vector<Run> first_runs;                   ///< at most `runs_kept`
    std::array<std::uint64_t, slices> by_slice{};  ///< lost frames in each hundredth of the trial
};

struct LossByClass {
    LossFacts foreground, background;
};

/// Derives the losses of a direction from its bitmap. Its frames were sent by `offered_end.size()`
/// senders in turn; sender s offered its frames with an index below offered_end[s]; a frame that
/// was never offered was not lost. A run is a series of consecutive frames of one class that were
/// all lost.
[[nodiscard]] LossByClass find_losses(const ArrivalBitmap& arrivals, const pace::Mix& mix, std::span<const std::uint64_t> offered_end);

/// The same for frames of one class below index `end` that were not offered in the order of their
/// indexes: `was_offered` says which ones were.
[[nodiscard]] LossFacts find_losses_among(const ArrivalBitmap& arrivals, std::uint64_t end,
                                          const std::function<bool(std::uint64_t index)>& was_offered);

/// The longest series of consecutive frames of a direction, of whatever class, that were all lost:
/// at most `longest_runs_kept`, in order of their indexes.
inline constexpr std::size_t longest_runs_kept = 64;
[[nodiscard]] std::vector<LossFacts::Run> find_longest_runs(const ArrivalBitmap& arrivals, std::span<const std::uint64_t> offered_end);

}  // namespace gatemark::record
