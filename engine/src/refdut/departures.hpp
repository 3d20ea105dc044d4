#pragma once

#include "refdut/counts.hpp"
#include "refdut/forwarding_port.hpp"
#include "refdut/hold_queue.hpp"
#include "refdut/impairment.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace gatemark::refdut {

/// A frame on its way out.
template <class Buffer>
struct Leaving {
    enum class Kind : std::uint8_t {
        test,       ///< a test frame
        copy,       ///< a copy of the test frame before it
        reordered,  ///< a test frame that waited until others had left
        cut_short,  ///< the same, but too few others came
    };
    Buffer buffer{};
    std::uint64_t arrival = 0, due = 0;  ///< ticks
    std::uint32_t epoch = 0;             ///< of the counts
    std::uint32_t by = 0;                ///< how many later frames must leave before it
    Kind kind = Kind::test;
    bool hairpinned = false;  ///< it leaves on the side that it came from
    Field field{};
    Fields reasons{};  ///< damaged if not empty
};

struct DepartureTimes {
    std::uint64_t late_ticks = 0;          ///< a departure later than this after it was due is counted as late
    std::uint64_t reorder_wait_ticks = 0;  ///< how long a frame waits to be overtaken
};

/// The output of one direction: frames held until they are due, frames that others must overtake,
/// bursts to the port, and the counts of what was handed over.
template <ForwardsFrames Port, class Clock>
class Departures {
public:
    using Buffer = typename Port::Buffer;
    using Frame = Leaving<Buffer>;
    using Kind = typename Frame::Kind;

    /// `back` is the port that the frames came from, for those that are hairpinned or damaged by
    /// wrong_port.
    Departures(std::size_t held_frames, Port& out, Port& back, DirectionCounts& counts, const Clock& clock, DepartureTimes times)
        : queue_{held_frames}, ports_{&out, &back}, counts_{counts}, clock_{clock}, times_{times} {
        overtaken_.reserve(overtaken_max);
    }

    /// Takes a frame that is due at frame.due; it leaves at the next `flush` if that is now.
    void take(Frame frame, std::uint64_t now, bool keep_order) noexcept {
        if (keep_order) {
            frame.due = std::max(frame.due, queue_.last_due());
        }
        frame.epoch = epoch_;
        if (frame.due <= now && queue_.empty() && frame.by == 0) {
            emit(frame);
            return;
        }
        if (queue_.full()) {
            drop(frame, OwnDrop::hold_full);
            return;
        }
        counts_[DirectionCount::held] += frame.kind == Kind::copy ? 0 : 1;
        queue_.push(frame.due, frame);
    }

    /// Releases the frames that are due.
    void depart(std::uint64_t now) noexcept {
        Frame frame;
        while (!queue_.empty() && queue_.pop_due(now, frame)) {
            if (frame.by > 0 && overtaken_.size() < overtaken_max) {
                overtaken_.push_back(frame);
                continue;
            }
            unhold(frame);
            if (frame.by > 0) {
                frame.kind = Kind::cut_short;
            }
            emit(frame);
        }
        if (!overtaken_.empty()) {
            give_up_waiting(now);
        }
    }

    /// Hands the released frames to the port.
    void flush() noexcept {
        for (std::size_t i = 0; i < ports_.size(); ++i) {
            if (batches_[i].size > 0) {
                send(i);
            }
        }
    }

    /// A reset: all frames that are held are lost.
    void drop_held() noexcept {
        Frame frame;
        while (queue_.pop_due(~std::uint64_t{0}, frame)) {
            unhold(frame);
            drop(frame, OwnDrop::reset);
        }
        for (const Frame& waiting : overtaken_) {
            unhold(waiting);
            drop(waiting, OwnDrop::reset);
        }
        overtaken_.clear();
    }

    /// The counts were reset: frames that are still held are in none of the new ones.
    void begin_epoch() noexcept { ++epoch_; }
    [[nodiscard]] std::size_t held() const noexcept { return queue_.size() + overtaken_.size(); }

private:
    static constexpr std::size_t batch_frames_max = 64, overtaken_max = 1024;
    struct Batch {
        std::array<Frame, batch_frames_max> frames;
        std::size_t size = 0;
    };

    void unhold(const Frame& frame) noexcept { counts_[DirectionCount::held] -= frame.epoch == epoch_ && frame.kind != Kind::copy ? 1 : 0; }

    void emit(const Frame& frame) noexcept {
        put(frame);
        if (frame.kind != Kind::copy && !overtaken_.empty() && !leaves_back(frame)) {
            count_overtaking();
        }
    }
    [[nodiscard]] static bool leaves_back(const Frame& frame) noexcept { return frame.hairpinned || frame.reasons.has(Field::wrong_port); }

    void put(const Frame& frame) noexcept {
        Batch& batch = batches_[leaves_back(frame) ? 1 : 0];
        batch.frames[batch.size++] = frame;
        if (batch.size == batch_frames_max) {
            send(leaves_back(frame) ? 1 : 0);
        }
    }

    /// One frame has left: frames that waited for it leave directly after it. These do not count
    /// for other waiting frames.
    void count_overtaking() noexcept {
        for (std::size_t i = 0; i < overtaken_.size();) {
            if (--overtaken_[i].by > 0) {
                ++i;
                continue;
            }
            Frame frame = overtaken_[i];
            overtaken_.erase(overtaken_.begin() + static_cast<std::ptrdiff_t>(i));
            unhold(frame);
            frame.kind = Kind::reordered;
            put(frame);
        }
    }

    void give_up_waiting(std::uint64_t now) noexcept {
        while (!overtaken_.empty() && now >= overtaken_.front().due + times_.reorder_wait_ticks) {
            Frame frame = overtaken_.front();
            overtaken_.erase(overtaken_.begin());
            unhold(frame);
            frame.kind = Kind::cut_short;
            put(frame);
        }
    }

    void send(std::size_t port) noexcept {
        Batch& batch = batches_[port];
        std::array<Buffer, batch_frames_max> buffers;
        for (std::size_t i = 0; i < batch.size; ++i) {
            buffers[i] = batch.frames[i].buffer;
        }
        const std::uint64_t handed_over = clock_.now().value;
        const std::size_t accepted = ports_[port]->send(std::span{buffers}.first(batch.size));
        for (std::size_t i = 0; i < accepted; ++i) {
            count(batch.frames[i], handed_over);
        }
        for (std::size_t i = accepted; i < batch.size; ++i) {
            drop(batch.frames[i], OwnDrop::transmit_full);
        }
        batch.size = 0;
    }

    void count(const Frame& frame, std::uint64_t handed_over) noexcept {
        if (frame.epoch != epoch_) {
            ++counts_[DirectionCount::carried_over];
            return;
        }
        if (frame.kind == Kind::copy) {
            ++counts_[DirectionCount::duplicated];
            return;
        }
        ++counts_[DirectionCount::forwarded];
        counts_[DirectionCount::hairpinned] += frame.hairpinned ? 1 : 0;
        if (!frame.reasons.none()) [[unlikely]] {
            count_damage(frame);
        }
        if (frame.kind != Kind::test) [[unlikely]] {
            ++(frame.kind == Kind::reordered ? counts_[DirectionCount::reordered] : counts_[DirectionCount::reorder_short]);
            return;  // its delay is that of those that overtook it
        }
        const std::uint64_t delay = handed_over - frame.arrival, late = handed_over - std::min(handed_over, frame.due);
        ++counts_.delay_samples;
        counts_.delay_sum += delay;
        counts_.delay_min = std::min(counts_.delay_min, delay);
        counts_.delay_max = std::max(counts_.delay_max, delay);
        counts_[DirectionCount::late] += late > times_.late_ticks ? 1 : 0;
        counts_.late_max = std::max(counts_.late_max, late);
    }

    void count_damage(const Frame& frame) noexcept {
        ++counts_.corrupted[frame.field];
        counts_.reasons.add(frame.reasons);
    }

    void drop(const Frame& frame, OwnDrop reason) noexcept {
        Buffer buffer = frame.buffer;
        ports_[0]->release(std::span{&buffer, 1});
        if (frame.epoch != epoch_) {
            ++counts_[DirectionCount::carried_over];
        } else if (frame.kind == Kind::copy) {
            ++counts_[DirectionCount::copies_failed];
        } else {
            counts_.drop(reason);
        }
    }

    HoldQueue<Frame> queue_;
    std::vector<Frame> overtaken_;  ///< due, in order, waiting for later frames to leave
    std::array<Port*, 2> ports_;
    std::array<Batch, 2> batches_{};
    DirectionCounts& counts_;
    const Clock& clock_;
    DepartureTimes times_;
    std::uint32_t epoch_ = 0;
};

}  // namespace gatemark::refdut
