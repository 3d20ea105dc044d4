#pragma once

#include "loop/receiver_plan.hpp"
#include "loop/receiving_task.hpp"

#include <array>
#include <bit>
#include <optional>
#include <span>

namespace gatemark::loop {

/// Frames of one class in a burst that follow each other without a gap.
struct FrameRun {
    std::uint64_t first = 0;  ///< the index of the first one
    std::size_t count = 0;
    std::uint32_t is_new = 0, is_faulty = 0;  ///< a bit for each of them
    std::array<pace::Ticks, frame::burst_frames_max> sent{}, arrived{};
};

/// Records the frames of one class of one direction at one receiver: which arrived, in what order,
/// and how long they took.
class ClassRecording {
public:
    /// `direction` and `delays` outlive this; `delays` is nullptr if no frames arrive here.
    ClassRecording(const ExpectedDirection& direction, record::ClassDelayRecorder* delays) noexcept
        : direction_{&direction}, delays_{delays} {}

    /// Records a frame that arrived where it should; returns whether it counts as received.
    bool record(std::uint64_t index, std::uint64_t number_in_class, const frame::Faults& faults, pace::Ticks sent,
                pace::Ticks arrived) noexcept {
        return record_marked(index, number_in_class, direction_->arrivals->mark(index), !faults.none(), sent, arrived);
    }

    /// Whether a run may begin with this index: there is a single sender, and no frame with a
    /// higher index has arrived before.
    [[nodiscard]] bool may_record_run(std::uint64_t first) const noexcept {
        return direction_->senders.divisor() == 1 && first >= counts_.highest_index[0];
    }
    /// Marks the frames of a run as arrived, which tells which of them are new.
    void mark_run(FrameRun& run) noexcept { run.is_new = direction_->arrivals->mark_run(run.first, run.count); }
    /// `record` for the frames of a run in turn, which are marked already. `numbers` are those in
    /// the class.
    void record_run(const FrameRun& run, std::span<const std::uint64_t> numbers) noexcept {
        if (run.is_faulty == 0 && static_cast<std::size_t>(std::popcount(run.is_new)) == run.count) [[likely]] {
            counts_.highest_index[0] = run.first + run.count - 1;
            const std::size_t in_time = delays_->note_run(run.first, numbers, std::span{run.sent}.first(run.count), run.arrived);
            counts_[record::Count::received] += in_time;
            counts_[record::Count::late] += run.count - in_time;
            return;
        }
        for (std::size_t k = 0; k < run.count; ++k) {
            (void)record_marked(run.first + k, numbers[k], (run.is_new >> k & 1U) != 0, (run.is_faulty >> k & 1U) != 0, run.sent[k],
                                run.arrived[k]);
        }
    }

    [[nodiscard]] record::ClassCounts& counts() noexcept { return counts_; }
    [[nodiscard]] const record::ClassCounts& counts() const noexcept { return counts_; }

private:
    bool record_marked(std::uint64_t index, std::uint64_t number_in_class, bool is_new, bool is_faulty, pace::Ticks sent,
                       pace::Ticks arrived) noexcept {
        if (!is_new) {
            ++counts_[record::Count::duplicate];
            return false;
        }
        counts_.note_order(index, direction_->sender_of(index));
        if (is_faulty) {
            ++counts_[record::Count::faulty];
            return false;
        }
        if (!delays_->note(index, number_in_class, sent, arrived)) {
            ++counts_[record::Count::late];
            return false;
        }
        ++counts_[record::Count::received];
        return true;
    }

    const ExpectedDirection* direction_;
    record::ClassDelayRecorder* delays_;
    record::ClassCounts counts_;
};

/// Everything that one receiver records.
class Recording {
public:
    /// `plan` outlives this.
    explicit Recording(const ReceiverPlan& plan)
        : delays_{delays_of(plan.directions[0]), delays_of(plan.directions[1])},
          classes_{classes_of(plan, 0), classes_of(plan, 1)},
          kept_{static_cast<std::size_t>(KeptReason::count), plan.kept_frames_max} {}

    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    [[nodiscard]] ClassRecording& of_class(std::size_t direction_number, std::size_t class_number) noexcept {
        return classes_[direction_number][class_number];
    }
    [[nodiscard]] const ClassRecording& of_class(std::size_t direction_number, std::size_t class_number) const noexcept {
        return classes_[direction_number][class_number];
    }
    /// nullptr for a direction whose frames do not arrive here.
    [[nodiscard]] const record::DelayRecorder* delays(std::size_t direction_number) const noexcept {
        return delays_[direction_number] ? &*delays_[direction_number] : nullptr;
    }
    [[nodiscard]] record::ForeignCounts& foreign() noexcept { return foreign_; }
    [[nodiscard]] const record::ForeignCounts& foreign() const noexcept { return foreign_; }
    [[nodiscard]] record::KeptFrames& kept() noexcept { return kept_; }
    [[nodiscard]] const record::KeptFrames& kept() const noexcept { return kept_; }
    /// Of all directions and classes.
    [[nodiscard]] std::uint64_t received() const noexcept {
        const auto of = [this](std::size_t direction, std::size_t number) {
            return classes_[direction][number].counts()[record::Count::received];
        };
        return of(0, 0) + of(0, 1) + of(1, 0) + of(1, 1);
    }

private:
    using Classes = std::array<ClassRecording, 2>;  ///< foreground, background

    [[nodiscard]] static std::optional<record::DelayRecorder> delays_of(const ExpectedDirection& direction) {
        return direction.active && direction.arrives_here ? std::optional<record::DelayRecorder>{direction.delays} : std::nullopt;
    }
    [[nodiscard]] Classes classes_of(const ReceiverPlan& plan, std::size_t direction_number) noexcept {
        const auto of_class = [&](std::size_t class_number) {
            auto& delays = delays_[direction_number];
            return ClassRecording{plan.directions[direction_number], delays ? &delays->of_class(class_number) : nullptr};
        };
        return {of_class(0), of_class(1)};
    }

    std::array<std::optional<record::DelayRecorder>, 2> delays_;  ///< by direction
    std::array<Classes, 2> classes_;                              ///< by direction
    record::ForeignCounts foreign_;
    record::KeptFrames kept_;
};

}  // namespace gatemark::loop
