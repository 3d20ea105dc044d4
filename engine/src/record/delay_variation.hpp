#pragma once

#include "record/delay_histogram.hpp"
#include "record/receivers.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace gatemark::record {

/// Delays of the latest frames of one class of one direction, by their number. Computes the
/// differences between neighbours in sending order, in whatever order they arrive (RFC 8219 section
/// 7.3.2, RFC 5481 section 4.1). Takes 8 MiB. Frames that arrive more than a million frames apart
/// have no difference.
class DelayWindow {
public:
    static constexpr std::uint64_t frames = std::uint64_t{1} << 20;

    /// The differences that a frame completes: its delay minus that of the frame before it, and the
    /// delay of the frame after it minus its own.
    struct Differences {
        std::optional<std::int64_t> to_before, to_after;
    };

    /// Bytes that `reset` would take in addition to those that are held.
    [[nodiscard]] std::uint64_t growth() const noexcept { return slots_.empty() ? frames * sizeof(Slot) : 0; }

    /// Throws std::bad_alloc.
    void reset(Receivers receivers = Receivers::many) {
        slots_.assign(frames, 0);
        receivers_ = receivers;
    }

    [[nodiscard]] Differences put(std::uint64_t number, pace::Ticks delay) noexcept {
        const Slot entry = make(number, delay);
        store(number, entry);
        Differences differences;
        if (number != 0) {
            if (const auto before = load(number - 1); before && claim(number, entry)) {
                differences.to_before = difference(delay, *before);
            }
        }
        if (const auto after = load(number + 1); after && claim(number + 1, make(number + 1, *after))) {
            differences.to_after = difference(*after, delay);
        }
        return differences;
    }

private:
    /// 20 bits, never zero, that distinguish the number from others with the same slot; 1 bit: the
    /// pair with the frame before is taken; 43 bits of delay.
    using Slot = std::uint64_t;
    static constexpr unsigned delay_bits = 43;
    static constexpr Slot taken = Slot{1} << delay_bits;
    static constexpr std::uint64_t delay_mask = taken - 1;

    static Slot make(std::uint64_t number, pace::Ticks delay) noexcept {
        return ((number / frames + 1) << (delay_bits + 1)) | std::min(delay.value, delay_mask);
    }
    [[nodiscard]] std::atomic_ref<Slot> slot(std::uint64_t number) noexcept {
        return std::atomic_ref{slots_[static_cast<std::size_t>(number % frames)]};
    }
    void store(std::uint64_t number, Slot value) noexcept {
        slot(number).store(value, receivers_ == Receivers::one ? std::memory_order_relaxed : std::memory_order_seq_cst);
    }
    [[nodiscard]] std::optional<pace::Ticks> load(std::uint64_t number) noexcept {
        const Slot value = slot(number).load();
        const bool is_this = value >> (delay_bits + 1) == number / frames + 1;
        return is_this ? std::optional{pace::Ticks{value & delay_mask}} : std::nullopt;
    }
    /// A single receiver sees each pair once, at the later of its two frames. If two receivers each
    /// see the other's frame, one of them gets the pair. Both loads above follow both stores in the
    /// total order of sequentially consistent operations, so at least one of them sees it.
    [[nodiscard]] bool claim(std::uint64_t number, Slot untaken) noexcept {
        return receivers_ == Receivers::one || claim_shared(number, untaken);
    }
    [[gnu::noinline]] bool claim_shared(std::uint64_t number, Slot untaken) noexcept {
        return slot(number).compare_exchange_strong(untaken, untaken | taken);
    }
    static std::int64_t difference(pace::Ticks later, pace::Ticks earlier) noexcept {
        return static_cast<std::int64_t>(later.value) - static_cast<std::int64_t>(earlier.value);
    }

    std::vector<Slot> slots_;
    Receivers receivers_ = Receivers::many;
};
static_assert((std::uint64_t{1} << 36) / DelayWindow::frames + 1 < (std::uint64_t{1} << 20), "the frames of the longest trial fit");

/// Differences of delays, of either sign. Extremes are exact, percentiles as good as those of the
/// histograms.
class DelayVariation {
public:
    void add(std::int64_t difference) noexcept {
        if (difference < 0) {
            below_zero_.add({static_cast<std::uint64_t>(-difference)});
        } else {
            from_zero_.add({static_cast<std::uint64_t>(difference)});
        }
    }
    void add(const DelayVariation& other) noexcept {
        below_zero_.add(other.below_zero_);
        from_zero_.add(other.from_zero_);
    }
    [[nodiscard]] std::uint64_t pairs() const noexcept { return below_zero_.samples() + from_zero_.samples(); }
    /// Of at least one pair.
    [[nodiscard]] std::int64_t minimum() const noexcept {
        return below_zero_.samples() != 0 ? -signed_of(below_zero_.maximum()) : signed_of(from_zero_.minimum());
    }
    [[nodiscard]] std::int64_t maximum() const noexcept {
        return from_zero_.samples() != 0 ? signed_of(from_zero_.maximum()) : -signed_of(below_zero_.minimum());
    }
    /// The difference of this rank, 1 <= rank <= pairs(), the most negative first.
    [[nodiscard]] std::int64_t of_rank(std::uint64_t rank) const noexcept {
        const std::uint64_t negative = below_zero_.samples();
        return rank <= negative ? -signed_of(below_zero_.of_rank(negative - rank + 1)) : signed_of(from_zero_.of_rank(rank - negative));
    }
    /// Calls visit(difference, count), the most negative first.
    template <class Visit>
    void visit(Visit&& visit) const {
        std::vector<std::pair<std::int64_t, std::uint64_t>> negative;
        below_zero_.visit([&](pace::Ticks size, std::uint64_t count) { negative.emplace_back(-signed_of(size), count); });
        for (auto entry = negative.rbegin(); entry != negative.rend(); ++entry) {
            visit(entry->first, entry->second);
        }
        from_zero_.visit([&](pace::Ticks size, std::uint64_t count) { visit(signed_of(size), count); });
    }

private:
    static std::int64_t signed_of(pace::Ticks ticks) noexcept { return static_cast<std::int64_t>(ticks.value); }

    DelayHistogram below_zero_, from_zero_;  ///< by their size
};

}  // namespace gatemark::record
