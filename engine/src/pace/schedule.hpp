#pragma once

#include "base/wide.hpp"
#include "pace/clock.hpp"
#include "pace/flow_start.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace gatemark::pace {

/// A load that changes once (RFC 2544 section 26.5): frame `frames_before` + j is due at `after` +
/// j / `frames_per_second`.
struct Step {
    std::uint64_t frames_before = 0;
    Ticks after{};
    std::uint64_t frames_per_second = 1;
};

/// Bursty traffic (RFC 2544 section 21): `frames` frames leave at `frames_per_second`, then nothing
/// until the next burst. Each burst starts when its first frame would be due without bursts, so the
/// load is the same in the long run.
struct BurstyTraffic {
    std::uint64_t frames = 1, frames_per_second = 1;
};

/// The load of one direction; it has a step, bursts, flows that start one after another, or none of
/// them.
struct Load {
    std::uint64_t frames_per_second = 1;  ///< of all flows together
    std::optional<Step> step{};
    std::optional<BurstyTraffic> bursts{};
    std::optional<FlowStart> flow_start{};
};

/// When the frames `first`, `first + stride`, `first + 2 * stride`, ... of a direction are due.
/// `stride` is the number of senders that share the direction.
///
/// A load is a sequence of segments, and the frames of a segment are evenly spaced: frame j of a
/// segment is due at its start + floor(j * ticks_per_second / rate). The remainder of the division
/// is carried over, so the error stays below one tick for the whole trial; adding a rounded gap
/// each time would drift by up to one tick per frame. While flows start one after another each
/// frame is a segment of its own, because of the empty slots between them.
class Schedule {
public:
    constexpr Schedule(const Load& load, Ticks start, std::uint64_t ticks_per_second, std::uint64_t first = 0,
                       std::uint64_t stride = 1) noexcept
        : load_{load}, start_{start}, ticks_per_second_{ticks_per_second}, first_{first}, stride_{stride} {}

    /// One frame of the sender. It is apart from the schedule so that a sender can look ahead and
    /// then stay where it was.
    class Position {
    public:
        [[nodiscard]] constexpr Ticks due() const noexcept { return due_; }

    private:
        friend class Schedule;
        Ticks due_{};
        std::uint64_t gap_ = 0, gap_remainder_ = 0, rate_ = 1, carried_ = 0;
        std::uint64_t frames_left_ = 0;   ///< of this sender in this segment
        std::uint64_t next_segment_ = 0;  ///< this sender's first frame after it
    };

    [[nodiscard]] constexpr Position begin() const noexcept { return at(first_); }

    constexpr void advance(Position& position) const noexcept {
        if (--position.frames_left_ == 0) [[unlikely]] {
            position = at(position.next_segment_);
            return;
        }
        position.due_.value += position.gap_;
        position.carried_ += position.gap_remainder_;
        if (position.carried_ >= position.rate_) {
            position.carried_ -= position.rate_;
            ++position.due_.value;
        }
    }

    /// Moves `position` past the frames that are due at `now`, but no more than `due` has room for;
    /// writes there when they were due, and returns how many they are.
    constexpr std::size_t take_due(Position& position, Ticks now, std::span<Ticks> due) const noexcept {
        std::size_t count = 0;
        for (; count < due.size() && position.due_ <= now; ++count) {
            due[count] = position.due_;
            advance(position);
        }
        return count;
    }

private:
    /// Frames `begin` to `end` - 1.
    struct Segment {
        std::uint64_t begin, end;
        Ticks start;
        std::uint64_t frames_per_second;
    };
    struct Division {
        std::uint64_t quotient, remainder;
    };

    /// How long `frames` frames take at `rate`, in ticks.
    [[nodiscard]] constexpr Division ticks_of(std::uint64_t frames, std::uint64_t rate) const noexcept {
        const Wide product = static_cast<Wide>(frames) * ticks_per_second_;
        return {static_cast<std::uint64_t>(product / rate), static_cast<std::uint64_t>(product % rate)};
    }

    [[nodiscard]] constexpr Segment segment_of(std::uint64_t frame) const noexcept {
        constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();
        if (load_.bursts) {
            const std::uint64_t begin = frame - frame % load_.bursts->frames;
            const Ticks start{start_.value + ticks_of(begin, load_.frames_per_second).quotient};
            return {begin, begin + load_.bursts->frames, start, load_.bursts->frames_per_second};
        }
        if (load_.step && frame >= load_.step->frames_before) {
            return {load_.step->frames_before, endless, {start_.value + load_.step->after.value}, load_.step->frames_per_second};
        }
        return {0, load_.step ? load_.step->frames_before : endless, start_, load_.frames_per_second};
    }

    [[nodiscard]] constexpr Position at(std::uint64_t frame) const noexcept {
        if (load_.flow_start) [[unlikely]] {
            return at_slot(frame, *load_.flow_start);
        }
        const Segment segment = segment_of(frame);
        const Division since_start = ticks_of(frame - segment.begin, segment.frames_per_second);
        const Division gap = ticks_of(stride_, segment.frames_per_second);
        Position position;
        position.due_.value = segment.start.value + since_start.quotient;
        position.gap_ = gap.quotient;
        position.gap_remainder_ = gap.remainder;
        position.rate_ = segment.frames_per_second;
        position.carried_ = since_start.remainder;
        position.frames_left_ = (segment.end - frame - 1) / stride_ + 1;
        position.next_segment_ = frame + position.frames_left_ * stride_;
        return position;
    }

    /// Out of line, to keep the usual frame as cheap as it is without.
    [[nodiscard, gnu::noinline]] constexpr Position at_slot(std::uint64_t frame, const FlowStart& flow_start) const noexcept {
        const Division since_start = ticks_of(flow_start.slot_of(frame), load_.frames_per_second);
        const Division gap = ticks_of(stride_, load_.frames_per_second);
        Position position;
        position.due_.value = start_.value + since_start.quotient;
        position.gap_ = gap.quotient;
        position.gap_remainder_ = gap.remainder;
        position.rate_ = load_.frames_per_second;
        position.carried_ = since_start.remainder;
        position.frames_left_ = frame < flow_start.ramp_frames() ? 1 : std::numeric_limits<std::uint64_t>::max();
        position.next_segment_ = frame + stride_;
        return position;
    }

    Load load_;
    Ticks start_;
    std::uint64_t ticks_per_second_, first_, stride_;
};

/// Whether the frames of a sender are due when `due_of` says so.
template <class DueOf>
consteval bool follows(const Load& load, std::uint64_t ticks_per_second, std::uint64_t first, std::uint64_t stride, DueOf due_of) {
    const Schedule schedule{load, Ticks{100}, ticks_per_second, first, stride};
    Schedule::Position position = schedule.begin();
    for (std::uint64_t i = first; i < 2000; i += stride) {
        if (position.due().value != 100 + due_of(i)) {
            return false;
        }
        schedule.advance(position);
    }
    return true;
}

consteval bool follows_the_formula(std::uint64_t ticks_per_second, std::uint64_t rate, std::uint64_t first, std::uint64_t stride) {
    return follows({.frames_per_second = rate}, ticks_per_second, first, stride,
                   [&](std::uint64_t i) { return i * ticks_per_second / rate; });
}
static_assert(follows_the_formula(2'500'000'001, 1'488'095, 0, 1));
static_assert(follows_the_formula(2'500'000'001, 1'488'095, 3, 4));
static_assert(follows_the_formula(1'000'000'000, 148'809'523, 1, 2));

consteval bool steps_as_specified(std::uint64_t frames_before, std::uint64_t first, std::uint64_t stride) {
    constexpr std::uint64_t ticks_per_second = 2'500'000'001, rate = 1'488'095, later_rate = 818'452, after = 1'000'000;
    const Load load{.frames_per_second = rate,
                    .step = Step{.frames_before = frames_before, .after = {after}, .frames_per_second = later_rate}};
    return follows(load, ticks_per_second, first, stride, [&](std::uint64_t i) {
        return i < frames_before ? i * ticks_per_second / rate : after + (i - frames_before) * ticks_per_second / later_rate;
    });
}
static_assert(steps_as_specified(595, 0, 1) && steps_as_specified(595, 3, 4) && steps_as_specified(596, 2, 3) &&
              steps_as_specified(0, 1, 2) && steps_as_specified(2, 3, 4));

consteval bool bursts_as_specified(std::uint64_t frames, std::uint64_t first, std::uint64_t stride) {
    constexpr std::uint64_t ticks_per_second = 2'500'000'001, rate = 148'809, burst_rate = 1'488'095;
    const Load load{.frames_per_second = rate, .bursts = BurstyTraffic{.frames = frames, .frames_per_second = burst_rate}};
    return follows(load, ticks_per_second, first, stride, [&](std::uint64_t i) {
        return i / frames * frames * ticks_per_second / rate + i % frames * ticks_per_second / burst_rate;
    });
}
static_assert(bursts_as_specified(16, 0, 1) && bursts_as_specified(16, 3, 4) && bursts_as_specified(16, 2, 3) &&
              bursts_as_specified(7, 6, 16) && bursts_as_specified(16, 0, 16) && bursts_as_specified(16, 20, 1) &&
              bursts_as_specified(1, 0, 1) && bursts_as_specified(1, 1, 2) && bursts_as_specified(3000, 1, 2));

consteval bool flows_start_as_specified(std::uint64_t flows, std::uint64_t rounds, std::uint64_t first, std::uint64_t stride) {
    constexpr std::uint64_t ticks_per_second = 2'500'000'001, rate = 148'809;
    const FlowStart start{flows, rounds};
    return follows({.frames_per_second = rate, .flow_start = start}, ticks_per_second, first, stride,
                   [&](std::uint64_t i) { return start.slot_of(i) * ticks_per_second / rate; });
}
static_assert(flows_start_as_specified(4, 10, 0, 1) && flows_start_as_specified(4, 10, 2, 3) && flows_start_as_specified(40, 1, 1, 2) &&
              flows_start_as_specified(1, 5, 0, 1));

}  // namespace gatemark::pace
