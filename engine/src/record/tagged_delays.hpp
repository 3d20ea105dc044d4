#pragma once

#include "base/wide.hpp"
#include "pace/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace gatemark::record {

/// Which frames of a direction carry a tag (RFC 8219 section 7.2): number k of `count` is frame
/// first + floor(k * (frames - first) / count), so they are spread evenly over the time after
/// `first`. Nothing in the frame marks them; both ends compute which they are.
struct TagPlaces {
    std::uint64_t first = 0, frames = 1, count = 1;  ///< count <= frames - first

    [[nodiscard]] constexpr std::uint64_t index_of(std::uint64_t k) const noexcept {
        return first + static_cast<std::uint64_t>(static_cast<Wide>(k) * (frames - first) / count);
    }
    /// The lowest k whose frame is at or after `index`; `count` if there is none.
    [[nodiscard]] constexpr std::uint64_t not_before(std::uint64_t index) const noexcept {
        if (index <= first) {
            return 0;
        }
        const Wide scaled = static_cast<Wide>(index - first) * count + (frames - first) - 1;
        return std::min(static_cast<std::uint64_t>(scaled / (frames - first)), count);
    }
};

/// Finds out whether a frame is tagged. For an untagged frame close to the one before it, this
/// takes two comparisons.
class TagFinder {
public:
    explicit TagFinder(const TagPlaces& places) noexcept : places_{places} { move_to(0); }

    [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t index) noexcept {
        if (index > before_ && index < at_) [[likely]] {
            return std::nullopt;
        }
        move_to(places_.not_before(index));
        return index == at_ ? std::optional{k_} : std::nullopt;
    }

private:
    /// Sets the gap that ends with tag k.
    void move_to(std::uint64_t k) noexcept {
        k_ = k;
        at_ = k < places_.count ? places_.index_of(k) : places_.frames;
        before_ = k == 0 ? 0 : places_.index_of(k - 1);
    }

    TagPlaces places_;
    std::uint64_t k_ = 0, before_ = 0, at_ = 0;  ///< frames between `before_` and `at_` carry no tag
};

/// The exact delay of every tagged frame of a direction. Several receivers may write, each tag
/// once.
class TaggedDelays {
public:
    static constexpr std::uint64_t missing = std::numeric_limits<std::uint64_t>::max();

    /// Bytes that `reset` and `tag_facts` would take in addition to those that are held.
    [[nodiscard]] std::uint64_t growth(std::uint64_t count) const noexcept {
        constexpr std::uint64_t copies = 2;  // one grows while the other is still there
        return (count > delays_.capacity() ? count : 0) * sizeof(std::uint64_t) + copies * count * sizeof(std::uint64_t);
    }

    /// Throws std::bad_alloc.
    void reset(const TagPlaces& places) {
        places_ = places;
        delays_.assign(static_cast<std::size_t>(places.count), missing);
    }
    [[nodiscard]] const TagPlaces& places() const noexcept { return places_; }
    void note(std::uint64_t k, pace::Ticks delay) noexcept { delays_[static_cast<std::size_t>(k)] = delay.value; }
    /// nullopt if the frame was lost, faulty or too late, or if its delay makes no sense.
    [[nodiscard]] std::optional<pace::Ticks> delay(std::uint64_t k) const noexcept {
        const std::uint64_t value = delays_[static_cast<std::size_t>(k)];
        return value == missing ? std::nullopt : std::optional{pace::Ticks{value}};
    }

private:
    TagPlaces places_;
    std::vector<std::uint64_t> delays_;
};

/// Typical and worst case latency (RFC 8219 section 7.2): median and 99.9th percentile over all
/// tags (RFC 2330 section 11.3), where a missing tag ranks above every delay. nullopt if the
/// percentile falls on a missing tag.
struct TagFacts {
    std::uint64_t count = 0, received = 0;
    std::optional<pace::Ticks> median, p999;
};

/// `delays` are those of the tags that arrived, in any order, out of `count` tags.
[[nodiscard]] inline TagFacts tag_facts(std::vector<std::uint64_t> delays, std::uint64_t count) {
    std::sort(delays.begin(), delays.end());
    TagFacts facts{.count = count, .received = delays.size(), .median = {}, .p999 = {}};
    const auto of_rank = [&](std::uint64_t rank) {
        return rank == 0 || rank > delays.size() ? std::nullopt : std::optional{pace::Ticks{delays[static_cast<std::size_t>(rank - 1)]}};
    };
    facts.p999 = of_rank((count * 999 + 999) / 1000);
    facts.median = of_rank((count + 1) / 2);
    if (const auto upper = of_rank(count / 2 + 1); count % 2 == 0 && facts.median) {
        facts.median = upper ? std::optional{pace::Ticks{facts.median->value + (upper->value - facts.median->value) / 2}} : std::nullopt;
    }
    return facts;
}

}  // namespace gatemark::record
