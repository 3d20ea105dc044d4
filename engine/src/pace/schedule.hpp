#pragma once

#include "base/wide.hpp"
#include "pace/clock.hpp"

#include <cstdint>
#include <limits>

namespace gatemark::pace {

/// When the frames `first`, `first + stride`, `first + 2 * stride`, ... of a direction are due:
/// start + floor(i * ticks_per_second / rate). The remainder of the division is carried over, so
/// the error stays below one tick for the whole trial; adding a rounded gap each time would drift
/// by up to one tick per frame. `stride` is the number of senders that share the direction.
class Schedule {
public:
    constexpr Schedule(Ticks start, std::uint64_t ticks_per_second, std::uint64_t frames_per_second, std::uint64_t first = 0,
                       std::uint64_t stride = 1) noexcept
        : line_{start, ticks_per_second, frames_per_second, first, stride}, later_{line_} {}

    /// A load that changes once: the first `frames_before` frames of this sender follow `before`,
    /// the others `after`.
    constexpr Schedule(const Schedule& before, std::uint64_t frames_before, const Schedule& after) noexcept
        : line_{frames_before == 0 ? after.line_ : before.line_},
          later_{after.line_},
          frames_left_{frames_before == 0 ? endless : frames_before} {}

    [[nodiscard]] constexpr Ticks due() const noexcept { return line_.due; }
    constexpr void advance() noexcept {
        if (--frames_left_ == 0) [[unlikely]] {
            line_ = later_;
            frames_left_ = endless;
        } else {
            line_.advance();
        }
    }

private:
    static constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();

    struct Line {
        constexpr Line(Ticks start, std::uint64_t ticks_per_second, std::uint64_t frames_per_second, std::uint64_t first,
                       std::uint64_t stride) noexcept
            : due{start.value + scaled(first, ticks_per_second, frames_per_second).quotient},
              gap{scaled(stride, ticks_per_second, frames_per_second).quotient},
              gap_remainder{scaled(stride, ticks_per_second, frames_per_second).remainder},
              rate{frames_per_second},
              carried{scaled(first, ticks_per_second, frames_per_second).remainder} {}

        constexpr void advance() noexcept {
            due.value += gap;
            carried += gap_remainder;
            if (carried >= rate) {
                carried -= rate;
                ++due.value;
            }
        }

        Ticks due;
        std::uint64_t gap, gap_remainder, rate, carried;
    };
    struct Division {
        std::uint64_t quotient, remainder;
    };
    static constexpr Division scaled(std::uint64_t index, std::uint64_t ticks_per_second, std::uint64_t rate) noexcept {
        const Wide product = static_cast<Wide>(index) * ticks_per_second;
        return {static_cast<std::uint64_t>(product / rate), static_cast<std::uint64_t>(product % rate)};
    }

    Line line_, later_;
    std::uint64_t frames_left_ = endless;
};

/// The load of one direction, possibly with a step (RFC 2544 section 26.5): frames before frame
/// `frames_before` are due at the first rate from the start on, frame `frames_before` + j at start
/// + `after` + j / `later_rate`.
struct Load {
    std::uint64_t frames_per_second = 1;
    std::uint64_t frames_before = std::numeric_limits<std::uint64_t>::max();
    Ticks after{};
    std::uint64_t later_rate = 1;

    /// The schedule of the sender that takes frames first, first + stride, ...
    [[nodiscard]] constexpr Schedule schedule(Ticks start, std::uint64_t ticks_per_second, std::uint64_t first = 0,
                                              std::uint64_t stride = 1) const noexcept {
        const Schedule before{start, ticks_per_second, frames_per_second, first, stride};
        if (frames_before == std::numeric_limits<std::uint64_t>::max()) {
            return before;
        }
        const std::uint64_t own_before = first >= frames_before ? 0 : (frames_before - first + stride - 1) / stride;
        const Ticks step{start.value + after.value};
        return {before, own_before, Schedule{step, ticks_per_second, later_rate, first + own_before * stride - frames_before, stride}};
    }
};

consteval bool follows_the_formula(std::uint64_t ticks_per_second, std::uint64_t rate, std::uint64_t first, std::uint64_t stride) {
    Schedule schedule{Ticks{100}, ticks_per_second, rate, first, stride};
    for (std::uint64_t i = first; i < 2000; i += stride) {
        if (schedule.due().value != 100 + i * ticks_per_second / rate) {
            return false;
        }
        schedule.advance();
    }
    return true;
}
static_assert(follows_the_formula(2'500'000'001, 1'488'095, 0, 1));
static_assert(follows_the_formula(2'500'000'001, 1'488'095, 3, 4));
static_assert(follows_the_formula(1'000'000'000, 148'809'523, 1, 2));

consteval bool steps_as_specified(std::uint64_t frames_before, std::uint64_t first, std::uint64_t stride) {
    constexpr std::uint64_t ticks_per_second = 2'500'000'001, rate = 1'488'095, later_rate = 818'452, after = 1'000'000;
    Schedule schedule = Load{rate, frames_before, {after}, later_rate}.schedule(Ticks{100}, ticks_per_second, first, stride);
    for (std::uint64_t i = first; i < 2000; i += stride) {
        const std::uint64_t due =
            i < frames_before ? 100 + i * ticks_per_second / rate : 100 + after + (i - frames_before) * ticks_per_second / later_rate;
        if (schedule.due().value != due) {
            return false;
        }
        schedule.advance();
    }
    return true;
}
static_assert(steps_as_specified(595, 0, 1) && steps_as_specified(595, 3, 4) && steps_as_specified(596, 2, 3) &&
              steps_as_specified(0, 1, 2) && steps_as_specified(2, 3, 4));

}  // namespace gatemark::pace
