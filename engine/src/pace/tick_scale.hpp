#pragma once

#include "base/wide.hpp"
#include "pace/clock.hpp"

#include <chrono>

namespace gatemark::pace {

/// Converts between clock ticks and human time. Exact to one unit, because the product has 128
/// bits.
class TickScale {
public:
    explicit constexpr TickScale(std::uint64_t ticks_per_second) noexcept : ticks_per_second_{ticks_per_second} {}
    [[nodiscard]] constexpr std::uint64_t ticks_per_second() const noexcept { return ticks_per_second_; }
    [[nodiscard]] constexpr Ticks ticks(std::chrono::nanoseconds time) const noexcept {
        return {static_cast<std::uint64_t>(static_cast<Wide>(time.count()) * ticks_per_second_ / 1'000'000'000)};
    }
    [[nodiscard]] constexpr std::chrono::nanoseconds time(Ticks ticks) const noexcept {
        return std::chrono::nanoseconds{static_cast<std::int64_t>(static_cast<Wide>(ticks.value) * 1'000'000'000 / ticks_per_second_)};
    }

private:
    std::uint64_t ticks_per_second_;
};

}  // namespace gatemark::pace
