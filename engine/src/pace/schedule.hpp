#pragma once

#include "base/wide.hpp"
#include "pace/clock.hpp"

#include <cstdint>

namespace gatemark::pace {

/// When the frames `first`, `first + stride`, `first + 2 * stride`, ... of a direction are due: start + floor(i * ticks_per_second / rate).
/// The division's remainder is carried along, so the error stays below one tick for the whole trial; adding a rounded gap each time would
/// drift by up to one tick a frame. `stride` is the number of senders that share the direction.
class Schedule {
public:
    constexpr Schedule(Ticks start, std::uint64_t ticks_per_second, std::uint64_t frames_per_second, std::uint64_t first = 0,
                       std::uint64_t stride = 1) noexcept
        : due_{start.value + scaled(first, ticks_per_second, frames_per_second).quotient},
          gap_{scaled(stride, ticks_per_second, frames_per_second).quotient},
          gap_remainder_{scaled(stride, ticks_per_second, frames_per_second).remainder},
          rate_{frames_per_second},
          carried_{scaled(first, ticks_per_second, frames_per_second).remainder} {}

    [[nodiscard]] constexpr Ticks due() const noexcept { return due_; }
    constexpr void advance() noexcept {
        due_.value += gap_;
        carried_ += gap_remainder_;
        if (carried_ >= rate_) {
            carried_ -= rate_;
            ++due_.value;
        }
    }

private:
    struct Division {
        std::uint64_t quotient, remainder;
    };
    static constexpr Division scaled(std::uint64_t index, std::uint64_t ticks_per_second, std::uint64_t rate) noexcept {
        const Wide product = static_cast<Wide>(index) * ticks_per_second;
        return {static_cast<std::uint64_t>(product / rate), static_cast<std::uint64_t>(product % rate)};
    }

    Ticks due_;
    std::uint64_t gap_, gap_remainder_, rate_, carried_;
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

}  // namespace gatemark::pace
