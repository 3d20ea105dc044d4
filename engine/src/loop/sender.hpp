#pragma once

#include "frame/stream_writer.hpp"
#include "io/port.hpp"
#include "loop/sending_task.hpp"
#include "pace/clock.hpp"
#include "pace/mix.hpp"
#include "pace/schedule.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <optional>
#include <span>
#include <utility>

namespace gatemark::loop {

struct SenderPlan {
    std::uint64_t frame_count = 0;        ///< of the whole direction
    std::uint64_t first = 0, stride = 1;  ///< this sender takes frames first, first + stride, ...
    pace::Schedule schedule;
    pace::Mix mix;
    pace::Ticks late{};  ///< a burst that is later than this is kept; no more than `give_up_lateness`
    pace::Ticks give_up_lateness{};
    const frame::Stream* foreground = nullptr;  ///< absent if the mix has none
    const frame::Stream* background = nullptr;
    std::size_t foreground_slot = 0, background_slot = 1;  ///< template slots of the queue
};

/// Offers the frames of one direction; each poll offers those that are due. That is one frame at
/// low rates, and a longer burst only where this core needs it to keep up, so there is no burst
/// size to choose. Frames that the port has no room for are offered again later, and the lateness
/// is recorded. Does not allocate, lock, log or throw: whatever goes wrong shows in the counts.
template <io::TransmitsFrames Queue, pace::TickClock Clock, class Foreground = frame::StreamWriter>
class Sender final : public SendingTask {
public:
    /// `foreground` writes the frames of that class, if the mix has any.
    Sender(const SenderPlan& plan, Queue& queue, const Clock& clock, std::optional<Foreground> foreground)
        : plan_{plan},
          queue_{queue},
          clock_{clock},
          foreground_writer_{std::move(foreground)},
          position_{plan.schedule.begin()},
          next_{plan.first},
          left_{plan.first < plan.frame_count ? (plan.frame_count - plan.first - 1) / plan.stride + 1 : 0} {
        counts_.offered_end = plan.first;
        if (plan.background != nullptr) {
            background_writer_.emplace(*plan.background);
        }
    }
    /// For a writer that needs nothing but the stream.
    template <std::constructible_from<const frame::Stream&> Writer = Foreground>
    Sender(const SenderPlan& plan, Queue& queue, const Clock& clock)
        : Sender{plan, queue, clock, plan.foreground != nullptr ? std::optional<Foreground>{Writer{*plan.foreground}} : std::nullopt} {}

    bool poll() noexcept override {
        if (finished_.load(std::memory_order_relaxed)) {
            return false;
        }
        const pace::Ticks now = clock_.now();
        if (sent_ == ready_ && !prepare(now)) {
            return false;
        }
        hand_over();
        return true;
    }

    void release_rest() noexcept override {
        queue_.release(std::span{buffers_}.subspan(sent_, ready_ - sent_));
        sent_ = ready_;
    }

private:
    /// Acquires a buffer for each frame that is due and writes what varies in it. Returns false if
    /// no frame is due or buffers are short.
    bool prepare(pace::Ticks now) noexcept {
        if (left_ == 0) {
            stop();
            return false;
        }
        pace::Schedule::Position position = position_;
        const std::size_t room = std::min<std::uint64_t>(left_, frame::burst_frames_max);
        const std::size_t due = plan_.schedule.take_due(position, now, std::span{due_}.first(room));
        if (due == 0) {
            return false;
        }
        if (!(plan_.mix.numbers_are_indexes() ? acquire_foreground(due) : acquire_mixed(due))) {
            give_up_if_hopeless({now.value - due_[0].value});
            return false;
        }
        position_ = position;
        if (foreground_.count != 0) {
            foreground_writer_->write(foreground_, now);
        }
        if (background_.count != 0) {
            background_writer_->write(background_, now);
        }
        next_ += due * plan_.stride;
        left_ -= due;
        ready_ = due;
        sent_ = 0;
        return true;
    }

    /// Acquires buffers for the frames that are due, all of the foreground. All or nothing: if
    /// buffers are short, all the frames stay due.
    bool acquire_foreground(std::size_t due) noexcept {
        const auto buffers = std::span{buffers_}.first(due);
        if (!acquire_all(plan_.foreground_slot, buffers)) {
            return false;
        }
        for (std::size_t k = 0; k < due; ++k) {
            foreground_.numbers[k] = foreground_.indexes[k] = next_ + k * plan_.stride;
        }
        for (std::size_t k = 0; k < due; ++k) {
            foreground_.frames[k] = Queue::bytes(buffers[k]);
        }
        foreground_.count = due;
        foreground_mask_ = ~std::uint32_t{0};
        return true;
    }
    /// The same for frames of both classes, or whose numbers in the class differ from their
    /// indexes.
    [[gnu::noinline]] bool acquire_mixed(std::size_t due) noexcept {
        foreground_.count = background_.count = 0;
        foreground_mask_ = 0;
        for (std::size_t k = 0; k < due; ++k) {
            const std::uint64_t index = next_ + k * plan_.stride;
            const auto place = plan_.mix.place_of(index);
            frame::BurstFrames& of_class = place.foreground ? foreground_ : background_;
            of_class.indexes[of_class.count] = index;
            of_class.numbers[of_class.count++] = place.number_in_class;
            foreground_mask_ |= static_cast<std::uint32_t>(place.foreground) << k;
        }
        const auto foreground = std::span{acquired_}.first(foreground_.count);
        const auto background = std::span{acquired_}.subspan(foreground_.count, background_.count);
        if (!acquire_all(plan_.foreground_slot, foreground)) {
            return false;
        }
        if (!acquire_all(plan_.background_slot, background)) {
            queue_.release(foreground);
            return false;
        }
        std::size_t next_foreground = 0, next_background = 0;
        for (std::size_t k = 0; k < due; ++k) {
            const bool is_foreground = (foreground_mask_ >> k & 1U) != 0;
            buffers_[k] = is_foreground ? foreground[next_foreground] : background[next_background];
            (is_foreground ? foreground_.frames[next_foreground++] : background_.frames[next_background++]) = Queue::bytes(buffers_[k]);
        }
        return true;
    }
    bool acquire_all(std::size_t slot, std::span<typename Queue::Buffer> wanted) noexcept {
        const std::size_t got = wanted.empty() ? 0 : queue_.acquire(slot, wanted);
        if (got == wanted.size()) {
            return true;
        }
        queue_.release(wanted.first(got));
        ++counts_.refused;
        return false;
    }

    /// Gives the port what it has not yet accepted of the burst. Reads the clock again, so that a
    /// stall since `prepare` counts as lateness of this burst, even if it is the last one.
    void hand_over() noexcept {
        const pace::Ticks now = clock_.now();
        const pace::Ticks lateness{now.value - due_[sent_].value};
        const std::size_t accepted = queue_.send(std::span{buffers_}.subspan(sent_, ready_ - sent_));
        if (accepted != 0) {
            const std::uint32_t accepted_mask = static_cast<std::uint32_t>(((std::uint64_t{1} << accepted) - 1) << sent_);
            const auto foreground = static_cast<std::uint64_t>(std::popcount(foreground_mask_ & accepted_mask));
            counts_.offered_foreground += foreground;
            counts_.offered_background += accepted - foreground;
            counts_.offered_end += accepted * plan_.stride;
            counts_.last_handover = now;
            counts_.lateness.add(lateness);
            sent_ += accepted;
            offered_so_far_.store(counts_.offered_foreground + counts_.offered_background, std::memory_order_relaxed);
        }
        if (sent_ != ready_) {
            ++counts_.refused;
        }
        const bool is_last = sent_ == ready_ && left_ == 0;
        if (lateness > plan_.late) [[unlikely]] {
            keep_late(lateness, accepted, is_last);
        }
        if (is_last) {
            stop();
        }
    }

    [[gnu::noinline]] void keep_late(pace::Ticks lateness, std::size_t accepted, bool is_last) noexcept {
        if (accepted != 0) {
            counts_.late_bursts.add({counts_.offered_end - accepted * plan_.stride, counts_.offered_end, lateness});
        }
        if (!is_last) {
            give_up_if_hopeless(lateness);
        }
    }

    /// A Tester that is this late cannot complete a valid trial: stop now, and report it.
    void give_up_if_hopeless(pace::Ticks lateness) noexcept {
        if (lateness > plan_.give_up_lateness) {
            counts_.gave_up = true;
            stop();
        }
    }

    SenderPlan plan_;
    Queue& queue_;
    const Clock& clock_;
    std::optional<Foreground> foreground_writer_;
    std::optional<frame::StreamWriter> background_writer_;
    pace::Schedule::Position position_;  ///< of frame `next_`
    std::uint64_t next_;
    std::uint64_t left_;                 ///< frames of this sender, from `next_` on
    std::size_t ready_ = 0, sent_ = 0;   ///< frames of the burst that are written; those of them that the port has accepted
    std::uint32_t foreground_mask_ = 0;  ///< a bit for each frame of the burst
    frame::BurstFrames foreground_, background_;
    std::array<typename Queue::Buffer, frame::burst_frames_max> acquired_{}, buffers_{};
    std::array<pace::Ticks, frame::burst_frames_max> due_{};
};

}  // namespace gatemark::loop
