#pragma once

#include "frame/stream.hpp"
#include "io/port.hpp"
#include "loop/task.hpp"
#include "pace/clock.hpp"
#include "pace/mix.hpp"
#include "pace/schedule.hpp"
#include "record/lateness.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <concepts>

namespace gatemark::loop {

/// Facts about one sender after its trial.
struct SendCounts {
    std::uint64_t offered_foreground = 0, offered_background = 0;  ///< frames that the port accepted
    std::uint64_t refused = 0;                                     ///< times that the port accepted less than it was given
    std::uint64_t offered_end = 0;                                 ///< every frame of this sender with a lower index was offered
    pace::Ticks last_handover{};                                   ///< when the last burst was handed to the port
    bool gave_up = false;
    record::LatenessHistogram lateness;
};

struct SenderPlan {
    std::uint64_t frame_count = 0;        ///< of the whole direction
    std::uint64_t first = 0, stride = 1;  ///< this sender takes frames first, first + stride, ...
    pace::Schedule schedule;
    pace::Mix mix;
    pace::Ticks give_up_lateness{};
    const frame::Stream* foreground = nullptr;  ///< absent if the mix has none
    const frame::Stream* background = nullptr;
    std::size_t foreground_slot = 0, background_slot = 1;  ///< template slots of the queue
};

/// What the control thread sees of any sender. Counts are relaxed atomics while the worker runs.
class SendingTask : public Task {
public:
    [[nodiscard]] bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }
    [[nodiscard]] std::uint64_t offered_so_far() const noexcept { return offered_so_far_.load(std::memory_order_relaxed); }
    /// Valid after the worker has left the trial.
    [[nodiscard]] const SendCounts& counts() const noexcept { return counts_; }
    /// Offers nothing more from the next poll on. The control thread may call it too, when another
    /// sender has spoiled the trial.
    void stop() noexcept { finished_.store(true, std::memory_order_release); }
    /// Releases buffers that the port never took. For the worker, or after the worker has left the
    /// trial.
    virtual void release_rest() noexcept = 0;

protected:
    SendCounts counts_;
    alignas(64) std::atomic<std::uint64_t> offered_so_far_{0};
    std::atomic<bool> finished_{false};
};

/// Writes the foreground of a sender whose frames depend on their number alone.
class StreamWriter {
public:
    explicit StreamWriter(const frame::Stream* stream) noexcept : stream_{stream} {}

    /// Called before the frames of a burst are written. For an Initiator, replaces each frame's
    /// number with its connection, and writes the number of the connection's four-tuple to
    /// `tuples`; for a stream with a rule, writes there what the rule needs.
    void prepare(std::span<std::uint64_t> numbers, std::span<std::uint64_t> tuples) const noexcept {
        if (stream_->role() != frame::Role::initiator) {
            if (stream_->has_rule()) {
                stream_->prepare_by_rule(numbers, tuples);
            }
            return;
        }
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] = tuples[i] = stream_->connection_of(numbers[i]);
        }
        stream_->connections().put_tuples(tuples);
    }
    void write(std::byte* bytes, std::uint64_t number, std::uint64_t tuple, std::uint64_t index, pace::Ticks now) const noexcept {
        if (!stream_->draws() && stream_->has_rule()) {
            stream_->write_by_rule(bytes, number, tuple, index, now);
            return;
        }
        // Stream::values calls a function unless all values are drawn; this also inlines those of
        // an Initiator (bench/instructions.py, send_phase_1).
        const bool initiates = stream_->role() == frame::Role::initiator;
        const frame::FrameValues values = stream_->draws() ? stream_->drawn_values(number)
                                          : initiates      ? stream_->values_of(number, stream_->connections().space().tuple(tuple))
                                                           : stream_->other_values(number);
        frame::write_frame(stream_->sent(), bytes, values, stream_->id(), index, now);
    }

private:
    const frame::Stream* stream_;
};

/// Offers the frames of one direction; each poll offers those that are due. That is one frame at
/// low rates, and a longer burst only where this core needs it to keep up, so there is no burst
/// size to choose. Frames that the port has no room for are offered again later, and the lateness
/// is recorded. Does not allocate, lock, log or throw: whatever goes wrong shows in the counts.
template <io::TransmitsFrames Queue, pace::TickClock Clock, class Foreground = StreamWriter>
class Sender final : public SendingTask {
public:
    Sender(const SenderPlan& plan, Queue& queue, const Clock& clock, Foreground foreground)
        : plan_{plan},
          queue_{queue},
          clock_{clock},
          foreground_{foreground},
          background_{plan.background},
          position_{plan.schedule.begin()},
          next_{plan.first},
          is_special_{(plan.foreground != nullptr && plan.foreground->is_special()) ||
                      (plan.background != nullptr && plan.background->is_special())} {
        counts_.offered_end = plan.first;
    }
    /// For a writer that needs nothing but the stream.
    template <std::constructible_from<const frame::Stream*> Writer = Foreground>
    Sender(const SenderPlan& plan, Queue& queue, const Clock& clock) : Sender{plan, queue, clock, Writer{plan.foreground}} {}

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
    /// Acquires a buffer for each frame that is due and writes what varies; returns false if no
    /// frame is due or buffers are short.
    bool prepare(pace::Ticks now) noexcept {
        if (next_ >= plan_.frame_count) {
            stop();
            return false;
        }
        std::size_t due = 0, foreground = 0;
        pace::Schedule::Position position = position_;
        for (; due < burst_frames_max && next_ + due * plan_.stride < plan_.frame_count && position.due() <= now; ++due) {
            due_[due] = position.due();
            places_[due] = plan_.mix.place_of(next_ + due * plan_.stride);
            foreground += places_[due].foreground ? 1 : 0;
            plan_.schedule.advance(position);
        }
        if (due == 0) {
            return false;
        }
        if (!take_buffers(foreground, due - foreground)) {
            give_up_if_hopeless({now.value - due_[0].value});
            return false;
        }
        position_ = position;
        write(due, foreground, now);
        return true;
    }

    /// All or nothing: if buffers are short, all the frames stay due.
    bool take_buffers(std::size_t foreground, std::size_t background) noexcept {
        const auto foreground_span = std::span{taken_}.first(foreground);
        const auto background_span = std::span{taken_}.subspan(foreground, background);
        const std::size_t got_foreground = foreground == 0 ? 0 : queue_.acquire(plan_.foreground_slot, foreground_span);
        const std::size_t got_background = background == 0 ? 0 : queue_.acquire(plan_.background_slot, background_span);
        if (got_foreground == foreground && got_background == background) {
            return true;
        }
        queue_.release(foreground_span.first(got_foreground));
        queue_.release(background_span.first(got_background));
        ++counts_.refused;
        return false;
    }

    void write(std::size_t due, std::size_t foreground_count, pace::Ticks now) noexcept {
        std::size_t next_foreground = 0, next_background = foreground_count;
        foreground_mask_ = 0;
        for (std::size_t k = 0; k < due; ++k) {
            numbers_[next_foreground] = places_[k].number_in_class;
            next_foreground += places_[k].foreground ? 1 : 0;
        }
        if (foreground_count != 0) {
            foreground_.prepare(std::span{numbers_}.first(foreground_count), std::span{tuples_}.first(foreground_count));
        }
        next_foreground = 0;
        for (std::size_t k = 0; k < due; ++k) {
            const auto& place = places_[k];
            buffers_[k] = taken_[place.foreground ? next_foreground : next_background++];
            foreground_mask_ |= static_cast<std::uint32_t>(place.foreground) << k;
            const std::uint64_t index = next_ + k * plan_.stride;
            if (place.foreground) {
                foreground_.write(Queue::bytes(buffers_[k]), numbers_[next_foreground], tuples_[next_foreground], index, now);
                ++next_foreground;
            } else {
                background_.write(Queue::bytes(buffers_[k]), place.number_in_class, 0, index, now);
            }
        }
        if (is_special_) [[unlikely]] {
            write_special(due);
        }
        next_ += due * plan_.stride;
        ready_ = due;
        sent_ = 0;
    }

    /// Once a burst and out of line, so that the usual frame pays nothing for it.
    [[gnu::noinline]] void write_special(std::size_t due) noexcept {
        for (std::size_t k = 0, next_foreground = 0; k < due; ++k) {
            const auto& place = places_[k];
            const frame::Stream& stream = place.foreground ? *plan_.foreground : *plan_.background;
            const std::uint64_t number = place.foreground ? numbers_[next_foreground++] : place.number_in_class;
            if (stream.is_special()) {
                stream.write_special(Queue::bytes(buffers_[k]), stream.values_of_prepared(number));
            }
        }
    }

    /// Reads the clock again, so that a stall since `prepare` counts as lateness of this burst,
    /// even if it is the last one.
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
        if (sent_ == ready_ && next_ >= plan_.frame_count) {
            stop();
        } else {
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
    Foreground foreground_;
    StreamWriter background_;
    pace::Schedule::Position position_;  ///< of frame `next_`
    std::uint64_t next_;
    bool is_special_;  ///< of a stream whose frames need a second step
    std::size_t ready_ = 0, sent_ = 0;
    std::uint32_t foreground_mask_ = 0;
    std::array<typename Queue::Buffer, burst_frames_max> taken_{}, buffers_{};
    std::array<pace::Ticks, burst_frames_max> due_{};
    std::array<pace::Mix::Place, burst_frames_max> places_{};
    std::array<std::uint64_t, burst_frames_max> numbers_{}, tuples_{};  ///< of the foreground, as prepared by its writer
};

}  // namespace gatemark::loop
