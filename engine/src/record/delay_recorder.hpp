#pragma once

#include "record/delay_histogram.hpp"
#include "record/delay_variation.hpp"
#include "record/tagged_delays.hpp"

#include <array>
#include <optional>

namespace gatemark::record {

/// What all receivers of one direction share.
struct DelayPlan {
    pace::Ticks earliest{};                                               ///< no frame of the trial was sent before
    pace::Ticks timeout{std::numeric_limits<std::uint64_t>::max() >> 1};  ///< a frame that takes longer is late
    std::array<DelayWindow*, 2> windows{};                                ///< by class; nullptr: no delay variation
    TaggedDelays* tags = nullptr;                                         ///< nullptr: no frame is tagged
};

/// Delays of one class, as one receiver saw them.
struct ClassDelays {
    DelayHistogram all;               ///< of the correct frames that came in time
    std::uint64_t negative = 0;       ///< correct frames that seem to have arrived before they were sent: two clocks disagree
    std::uint64_t impossible = 0;     ///< correct frames that seem to have been sent before the trial: a time stamp was damaged
    std::uint64_t negative_tags = 0;  ///< tagged ones among the negative
    std::optional<DelayVariation> variation;

    void add(const ClassDelays& other) {
        all.add(other.all);
        negative += other.negative;
        impossible += other.impossible;
        negative_tags += other.negative_tags;
        if (other.variation) {
            variation ? variation->add(*other.variation) : void(variation = other.variation);
        }
    }
};

/// Takes the delay of every correct frame of one direction at one receiver. Samples that cannot be are counted and used for nothing: set to
/// zero they would pass for the shortest delay and spoil the delay variation.
class DelayRecorder {
public:
    explicit DelayRecorder(const DelayPlan& plan) : plan_{plan}, finder_{plan.tags == nullptr ? TagPlaces{} : plan.tags->places()} {
        for (std::size_t i = 0; i < 2; ++i) {
            if (plan.windows[i] != nullptr) {
                classes_[i].variation.emplace();
            }
        }
    }

    /// Takes a frame that arrived for the first time; returns whether it came in time.
    bool note(std::size_t class_number, std::uint64_t index, std::uint64_t number_in_class, pace::Ticks sent,
              pace::Ticks arrived) noexcept {
        ClassDelays& delays = classes_[class_number];
        if (arrived < sent) [[unlikely]] {
            ++delays.negative;
            delays.negative_tags += plan_.tags != nullptr && finder_.find(index) ? 1 : 0;
            return true;
        }
        if (sent < plan_.earliest) [[unlikely]] {
            ++delays.impossible;
            return true;
        }
        const pace::Ticks delay{arrived.value - sent.value};
        if (delay > plan_.timeout) [[unlikely]] {
            return false;
        }
        delays.all.add(delay);
        if (plan_.tags != nullptr) {
            if (const auto tag = finder_.find(index)) {
                plan_.tags->note(*tag, delay);
            }
        }
        if (delays.variation) {
            const auto differences = plan_.windows[class_number]->put(number_in_class, delay);
            for (const auto& difference : {differences.to_before, differences.to_after}) {
                if (difference) {
                    delays.variation->add(*difference);
                }
            }
        }
        return true;
    }
    [[nodiscard]] const ClassDelays& delays(std::size_t class_number) const noexcept { return classes_[class_number]; }

private:
    DelayPlan plan_;
    TagFinder finder_;
    std::array<ClassDelays, 2> classes_;
};

}  // namespace gatemark::record
