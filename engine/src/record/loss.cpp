#include "record/loss.hpp"

#include "base/wide.hpp"

#include <algorithm>
#include <bit>

namespace gatemark::record {

namespace {

/// Calls take(first, missing) for each 64 frames from `first` on, below `end`, of which any are
/// missing.
template <class Take>
void for_missing(const ArrivalBitmap& arrivals, std::uint64_t end, Take&& take) {
    for (std::uint64_t first_of_block = 0; first_of_block < end; first_of_block += ArrivalBitmap::block_frames) {
        const std::uint64_t block = first_of_block / ArrivalBitmap::block_frames;
        if (arrivals.known_full(block)) {
            continue;
        }
        std::uint64_t first = first_of_block;
        for (const std::uint64_t word : arrivals.words_of(block)) {
            if (word != ArrivalBitmap::full_word && first < end) {
                take(first, ~word);
            }
            first += ArrivalBitmap::word_frames;
        }
    }
}

/// Calls take(first, length) for each run of ones, from the lowest bit of a word on.
template <class Take>
void for_runs(std::uint64_t word, Take&& take) {
    while (word != 0) {
        const auto first = static_cast<unsigned>(std::countr_zero(word));
        const auto length = static_cast<unsigned>(std::countr_one(word >> first));
        take(first, length);
        word = first + length == ArrivalBitmap::word_frames ? 0 : word >> (first + length) << (first + length);
    }
}

/// Adds lost frames of one class in order of their index.
class LossRecorder {
public:
    LossRecorder(LossFacts& facts, std::uint64_t frame_count) : facts_{facts}, frame_count_{frame_count} {}

    /// Adds `length` lost frames with consecutive indexes and consecutive numbers in the class.
    void add(std::uint64_t index, std::uint64_t number_in_class, std::uint64_t length) {
        if (facts_.lost == 0) {
            facts_.first_index = index;
        }
        if (continues_at(number_in_class)) {
            run_length_ += length;
            if (facts_.runs <= LossFacts::runs_kept) {
                facts_.first_runs.back().length += length;
            }
        } else {
            run_length_ = length;
            if (++facts_.runs <= LossFacts::runs_kept) {
                facts_.first_runs.push_back({index, length});
            }
        }
        facts_.lost += length;
        facts_.longest_run = std::max(facts_.longest_run, run_length_);
        facts_.last_index = index + length - 1;
        last_number_ = number_in_class + length - 1;
        add_to_slices(index, length);
    }

    /// Adds the `missing` frames among 64 frames from `first` on, in a direction that has no other
    /// class. If every other frame is lost, this is much faster than one run after another
    /// (bench/record_bench.cpp).
    void add_word(std::uint64_t first, std::uint64_t missing) {
        if (facts_.runs <= LossFacts::runs_kept || missing == ~std::uint64_t{0} || slice_end(first) < first + 64) {
            add_runs(first, missing);
            return;
        }
        const bool continues = (missing & 1U) != 0 && continues_at(first);
        const auto count = static_cast<std::uint64_t>(std::popcount(missing));
        const auto runs = static_cast<std::uint64_t>(std::popcount(missing & ~(missing << 1U)));
        facts_.lost += count;
        facts_.by_slice[slice_] += count;
        facts_.runs += runs - (continues ? 1 : 0);
        const auto at_start = static_cast<std::uint64_t>(std::countr_one(missing));
        const auto at_end = static_cast<std::uint64_t>(std::countl_one(missing));
        facts_.longest_run = std::max({facts_.longest_run, longest_in(missing), continues ? run_length_ + at_start : 0});
        run_length_ = at_end;  // used only if it is not zero
        last_number_ = facts_.last_index = first + 63 - static_cast<std::uint64_t>(std::countl_zero(missing));
    }

private:
    [[nodiscard]] bool continues_at(std::uint64_t number_in_class) const { return facts_.lost != 0 && number_in_class == last_number_ + 1; }

    void add_runs(std::uint64_t first, std::uint64_t missing) {
        for_runs(missing, [&](unsigned start, unsigned length) { add(first + start, first + start, length); });
    }

    [[nodiscard]] static std::uint64_t longest_in(std::uint64_t missing) {
        std::uint64_t longest = 0;
        for (; missing != 0; missing &= missing << 1U) {  // each run gets shorter by one
            ++longest;
        }
        return longest;
    }

    void add_to_slices(std::uint64_t index, std::uint64_t length) {
        for (const std::uint64_t end = index + length; index < end;) {
            const std::uint64_t part = std::min(end, slice_end(index)) - index;
            facts_.by_slice[slice_] += part;
            index += part;
        }
    }

    /// Moves `slice_` to that of `index`, and returns the first index after it.
    std::uint64_t slice_end(std::uint64_t index) {
        while (index >= slice_end_) {
            ++slice_;
            slice_end_ = end_of(slice_);
        }
        return slice_end_;
    }

    /// The smallest index with index * slices / frame_count > slice.
    [[nodiscard]] std::uint64_t end_of(std::size_t slice) const {
        const Wide scaled = static_cast<Wide>(slice + 1) * frame_count_;
        return static_cast<std::uint64_t>((scaled + LossFacts::slices - 1) / LossFacts::slices);
    }

    LossFacts& facts_;
    std::uint64_t frame_count_, last_number_ = 0, run_length_ = 0;
    std::size_t slice_ = 0;
    std::uint64_t slice_end_ = end_of(0);
};

/// Determines which of the missing frames were offered, and their class.
class LossFinder {
public:
    LossFinder(LossByClass& losses, std::uint64_t frame_count, const pace::Mix& mix, std::span<const std::uint64_t> offered_end)
        : foreground_{losses.foreground, frame_count}, background_{losses.background, frame_count}, mix_{mix}, offered_end_{offered_end} {
        const auto [all_offered_end, some_offered_end] = std::ranges::minmax(offered_end);
        end_ = std::min(frame_count, some_offered_end);
        all_offered_end_ = std::min(frame_count, all_offered_end);
    }
    /// No frame from this index on was lost.
    [[nodiscard]] std::uint64_t end() const { return end_; }

    /// Takes the `missing` frames among 64 frames from `first` on.
    void take(std::uint64_t first, std::uint64_t missing) {
        if (mix_.m() == mix_.n() && first + ArrivalBitmap::word_frames <= all_offered_end_) {
            foreground_.add_word(first, missing);
            return;
        }
        for (; missing != 0; missing &= missing - 1) {
            const std::uint64_t index = first + static_cast<std::uint64_t>(std::countr_zero(missing));
            if (index < end_ && index < offered_end_[static_cast<std::size_t>(index % offered_end_.size())]) {
                const auto place = mix_.place_of(index);
                (place.foreground ? foreground_ : background_).add(index, place.number_in_class, 1);
            }
        }
    }

private:
    LossRecorder foreground_, background_;
    const pace::Mix& mix_;
    std::span<const std::uint64_t> offered_end_;
    std::uint64_t end_ = 0, all_offered_end_ = 0;
};

/// Keeps the longest of the runs that it is given in order.
class LongestRuns {
public:
    /// Takes `length` lost frames from `index` on.
    void add(std::uint64_t index, std::uint64_t length) {
        if (current_.length != 0 && current_.index + current_.length == index) {
            current_.length += length;
            return;
        }
        keep_current();
        current_ = {index, length};
    }
    [[nodiscard]] std::vector<LossFacts::Run> take() {
        keep_current();
        std::ranges::sort(runs_, std::ranges::less{}, &LossFacts::Run::index);
        return std::move(runs_);
    }
    /// No run that is shorter than this, and ends, is kept.
    [[nodiscard]] std::uint64_t shortest_kept() const { return runs_.size() < longest_runs_kept ? 0 : runs_.front().length; }

private:
    static bool is_longer(const LossFacts::Run& a, const LossFacts::Run& b) { return a.length > b.length; }

    void keep_current() {
        if (current_.length == 0 || (runs_.size() == longest_runs_kept && current_.length <= runs_.front().length)) {
            return;
        }
        if (runs_.size() == longest_runs_kept) {
            std::ranges::pop_heap(runs_, is_longer);
            runs_.pop_back();
        }
        runs_.push_back(current_);
        std::ranges::push_heap(runs_, is_longer);
    }

    std::vector<LossFacts::Run> runs_;  ///< a heap, the shortest in front
    LossFacts::Run current_{0, 0};
};

}  // namespace

std::vector<LossFacts::Run> find_longest_runs(const ArrivalBitmap& arrivals, std::span<const std::uint64_t> offered_end) {
    LongestRuns runs;
    const std::uint64_t end = std::min(arrivals.frame_count(), *std::ranges::min_element(offered_end));
    for_missing(arrivals, end, [&](std::uint64_t first, std::uint64_t missing) {
        const std::uint64_t frames = end - first;
        const std::uint64_t offered = frames >= ArrivalBitmap::word_frames ? ~std::uint64_t{0} : (std::uint64_t{1} << frames) - 1;
        for_runs(missing & offered, [&](unsigned start, unsigned length) {
            if (length > runs.shortest_kept() || start == 0 || start + length == ArrivalBitmap::word_frames) {
                runs.add(first + start, length);
            }
        });
    });
    return runs.take();
}

LossByClass find_losses(const ArrivalBitmap& arrivals, const pace::Mix& mix, std::span<const std::uint64_t> offered_end) {
    LossByClass losses;
    LossFinder finder{losses, arrivals.frame_count(), mix, offered_end};
    for_missing(arrivals, finder.end(), [&](std::uint64_t first, std::uint64_t missing) { finder.take(first, missing); });
    return losses;
}

LossFacts find_losses_among(const ArrivalBitmap& arrivals, std::uint64_t end, const std::function<bool(std::uint64_t)>& was_offered) {
    LossFacts losses;
    LossRecorder recorder{losses, arrivals.frame_count()};
    end = std::min(end, arrivals.frame_count());
    for_missing(arrivals, end, [&](std::uint64_t first, std::uint64_t missing) {
        for (; missing != 0; missing &= missing - 1) {
            const std::uint64_t index = first + static_cast<std::uint64_t>(std::countr_zero(missing));
            if (index < end && was_offered(index)) {
                recorder.add(index, index, 1);
            }
        }
    });
    return losses;
}

}  // namespace gatemark::record
