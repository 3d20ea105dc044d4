#pragma once

#include "base/divider.hpp"
#include "base/random.hpp"

#include <cstdint>

namespace gatemark::frame {

enum class ValueMode : std::uint8_t { fixed, increasing, decreasing, pseudorandom };

/// An inclusive range of 16-bit values and the order in which frames take them.
struct ValueRange {
    ValueMode mode = ValueMode::fixed;
    std::uint16_t minimum = 0, maximum = 0;

    [[nodiscard]] constexpr std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(maximum) - minimum + 1; }
    friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

/// The value of frame number j: a pure function of j and, for pseudorandom values, of 32 uniform
/// bits (RFC 4814 section 3.2).
class ValueSequence {
public:
    ValueSequence() = default;
    explicit constexpr ValueSequence(ValueRange range) noexcept
        : range_{range}, count_{range.count()}, drawn_count_{range.mode == ValueMode::fixed ? 1 : range.count()} {}

    [[nodiscard]] constexpr std::uint16_t at(std::uint64_t j, std::uint32_t uniform) const noexcept {
        switch (range_.mode) {
            case ValueMode::increasing: return static_cast<std::uint16_t>(range_.minimum + count_.remainder(j));
            case ValueMode::decreasing: return static_cast<std::uint16_t>(range_.maximum - count_.remainder(j));
            case ValueMode::fixed:
            case ValueMode::pseudorandom: break;
        }
        return drawn(uniform);
    }
    /// The same if `counts()` is false: a fixed value is drawn from a range of one value.
    [[nodiscard]] constexpr std::uint16_t drawn(std::uint32_t uniform) const noexcept {
        return static_cast<std::uint16_t>(range_.minimum + scale_to(uniform, drawn_count_));
    }
    /// Whether frames take the values in turn.
    [[nodiscard]] constexpr bool counts() const noexcept {
        return range_.mode == ValueMode::increasing || range_.mode == ValueMode::decreasing;
    }

private:
    ValueRange range_{};
    Divider count_{1};
    std::uint32_t drawn_count_ = 1;
};

}  // namespace gatemark::frame
