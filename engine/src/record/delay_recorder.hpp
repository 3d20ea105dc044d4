#pragma once

#include "record/delay_histogram.hpp"
#include "record/delay_variation.hpp"
#include "record/tagged_delays.hpp"

#include <array>
#include <optional>
#include <span>

namespace gatemark::record {

/// What all receivers of one direction share.
struct DelayPlan {
    pace::Ticks timeout{std::numeric_limits<std::uint64_t>::max() >> 1};  ///< a frame that takes longer is late
    std::array<DelayWindow*, 2> windows{};                                ///< by class; nullptr: no delay variation
    TaggedDelays* tags = nullptr;                                         ///< nullptr: no frame is tagged
};

/// Delays of one class, as one receiver saw them.
struct ClassDelays {
    DelayHistogram all;               ///< of the correct frames that were in time
    std::uint64_t negative = 0;       ///< correct frames that seem to have arrived before they were sent: two clocks disagree
    std::uint64_t negative_tags = 0;  ///< the tagged ones among them
    pace::Ticks negative_maximum{};   ///< how long before it was sent one of them seems to have arrived, at most
    std::optional<DelayVariation> variation;

    void add(const ClassDelays& other) {
        all.add(other.all);
        negative += other.negative;
        negative_tags += other.negative_tags;
        negative_maximum = std::max(negative_maximum, other.negative_maximum);
        if (other.variation) {
            variation ? variation->add(*other.variation) : void(variation = other.variation);
        }
    }
};

/// Takes the delay of every correct frame of one class of a direction at one receiver. Negative
/// ones are counted but not used: as zeros they would pass for the shortest delay and spoil the
/// delay variation.
class ClassDelayRecorder {
public:
    ClassDelayRecorder(const DelayPlan& plan, std::size_t class_number)
        : timeout_{plan.timeout},
          longest_usual_{static_cast<std::int64_t>(std::min(plan.timeout.value, DelayHistogram::delay_limit - 1))},
          window_{plan.windows[class_number]},
          tags_{plan.tags},
          finder_{plan.tags == nullptr ? TagPlaces{} : plan.tags->places()} {
        if (window_ != nullptr) {
            delays_.variation.emplace();
        }
    }

    /// Takes a frame that arrived for the first time; returns whether it was in time.
    bool note(std::uint64_t index, std::uint64_t number_in_class, pace::Ticks sent, pace::Ticks arrived) noexcept {
        const pace::Ticks delay{arrived.value - sent.value};
        if (arrived < sent || delay > timeout_) [[unlikely]] {
            return note_unusual(index, sent, arrived);
        }
        delays_.all.add(delay);
        if (tags_ != nullptr) {
            if (const auto tag = finder_.find(index)) {
                tags_->note(*tag, delay);
            }
        }
        if (window_ != nullptr) {
            const auto differences = window_->put(number_in_class, delay);
            for (const auto& difference : {differences.to_before, differences.to_after}) {
                if (difference) {
                    delays_.variation->add(*difference);
                }
            }
        }
        return true;
    }
    /// The same for at most 32 frames that follow each other, from `first` on; returns how many
    /// were in time.
    std::size_t note_run(std::uint64_t first, std::span<const std::uint64_t> numbers, std::span<const pace::Ticks> sent,
                         std::span<const pace::Ticks> arrived) noexcept;
    [[nodiscard]] const ClassDelays& delays() const noexcept { return delays_; }

private:
    /// Notes nothing but delays, and these only if all are usual: neither negative nor late nor
    /// beyond the histogram. Else returns false.
    [[nodiscard]] bool note_all(std::span<const pace::Ticks> sent, std::span<const pace::Ticks> arrived) noexcept;
    [[nodiscard]] std::size_t note_each(std::uint64_t first, std::span<const std::uint64_t> numbers, std::span<const pace::Ticks> sent,
                                        std::span<const pace::Ticks> arrived) noexcept;
    static constexpr std::uint64_t told_max = std::uint64_t{1} << 53;  ///< ticks: a damaged time stamp may be anything

    [[gnu::noinline]] bool note_unusual(std::uint64_t index, pace::Ticks sent, pace::Ticks arrived) noexcept {
        if (arrived < sent) {
            ++delays_.negative;
            delays_.negative_maximum = std::max(delays_.negative_maximum, pace::Ticks{std::min(sent.value - arrived.value, told_max)});
            delays_.negative_tags += tags_ != nullptr && finder_.find(index) ? 1 : 0;
            return true;
        }
        return false;
    }

    pace::Ticks timeout_;
    std::int64_t longest_usual_;  ///< the longest delay, in ticks, that has a bucket and is in time
    DelayWindow* window_;
    TaggedDelays* tags_;
    TagFinder finder_;
    ClassDelays delays_;
};

/// The recorders of one direction's classes at one receiver.
class DelayRecorder {
public:
    explicit DelayRecorder(const DelayPlan& plan) : classes_{ClassDelayRecorder{plan, 0}, ClassDelayRecorder{plan, 1}} {}

    [[nodiscard]] ClassDelayRecorder& of_class(std::size_t class_number) noexcept { return classes_[class_number]; }
    [[nodiscard]] const ClassDelays& delays(std::size_t class_number) const noexcept { return classes_[class_number].delays(); }

private:
    std::array<ClassDelayRecorder, 2> classes_;
};

}  // namespace gatemark::record
