#pragma once

#include "base/wide.hpp"

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace gatemark {

/// Exact division of any 64-bit number by a divisor chosen at run time, by one multiplication: a
/// 64-bit division is slow, and every frame needs one or two.
class Divider {
public:
    struct Parts {
        std::uint64_t quotient, remainder;
    };

    /// `divisor` is at least 1.
    explicit constexpr Divider(std::uint64_t divisor = 1) noexcept : divisor_{divisor}, reciprocal_{~std::uint64_t{0} / divisor} {}

    [[nodiscard]] constexpr Parts divide(std::uint64_t value) const noexcept {
        // floor((2^64-1)/d) underestimates 1/d, so the quotient is short by 2 at most.
        auto quotient = static_cast<std::uint64_t>((static_cast<Wide>(value) * reciprocal_) >> 64);
        std::uint64_t remainder = value - quotient * divisor_;
        while (remainder >= divisor_) {
            remainder -= divisor_;
            ++quotient;
        }
        return {quotient, remainder};
    }
    [[nodiscard]] constexpr std::uint64_t remainder(std::uint64_t value) const noexcept { return divide(value).remainder; }
    [[nodiscard]] constexpr std::uint64_t divisor() const noexcept { return divisor_; }

private:
    std::uint64_t divisor_, reciprocal_;
};

/// The same for values below 2^48 and divisors up to 2^32, without a remainder to correct. It works
/// in double precision, since no vector instruction gives the upper half of a 64-bit product: so a
/// loop over several values becomes one of vectors on every CPU.
class ShortDivider {
public:
    static constexpr std::uint64_t value_limit = std::uint64_t{1} << 48;

    /// `divisor` is at least 1.
    explicit constexpr ShortDivider(std::uint64_t divisor = 1) noexcept
        : divisor_{divisor}, reciprocal_{1.0 / static_cast<double>(divisor)} {}

    [[nodiscard]] constexpr Divider::Parts divide(std::uint64_t value) const noexcept {
        // (v + 1/2) / d - 1/2 is at least 1 / 2d away from the middle between two integers, and the
        // nearest one is floor(v / d). Reciprocal, product and difference err by at most 2^-53 of
        // v / d each: by less than 3 * 2^-5 / d together. So rounding finds the right integer.
        const double half_more = std::bit_cast<double>(value | exponent_of_integers) - (0x1p52 - 0.5);
        const double nearest = half_more * reciprocal_ - 0.5 + rounds_to_integer;
        const std::uint64_t quotient = std::bit_cast<std::uint64_t>(nearest) - std::bit_cast<std::uint64_t>(rounds_to_integer);
        // 32 bits suffice for what is below 2^32, and vectors multiply them at once.
        return {quotient, static_cast<std::uint32_t>(value) - static_cast<std::uint32_t>(quotient) * static_cast<std::uint32_t>(divisor_)};
    }
    [[nodiscard]] constexpr std::uint64_t divisor() const noexcept { return divisor_; }

private:
    static_assert(std::numeric_limits<double>::is_iec559);
    /// Of 2^52, whose last bits then are an integer; and a number that has no bits behind the
    /// binary point and, with any quotient added, keeps its exponent.
    static constexpr std::uint64_t exponent_of_integers = std::bit_cast<std::uint64_t>(0x1p52);
    static constexpr double rounds_to_integer = 0x1.8p52;

    std::uint64_t divisor_;
    double reciprocal_;
};

consteval bool divides_exactly(std::uint64_t divisor) {
    const ShortDivider divider{divisor};
    const std::uint64_t largest = ShortDivider::value_limit - 1;
    for (std::uint64_t i = 0; i < 40; ++i) {
        for (const std::uint64_t value : {i, largest - i, largest / divisor * divisor - i, largest / 3 + i}) {
            if (const auto [quotient, remainder] = divider.divide(value); quotient != value / divisor || remainder != value % divisor) {
                return false;
            }
        }
    }
    return true;
}
static_assert(divides_exactly(1) && divides_exactly(2) && divides_exactly(3) && divides_exactly(40'000) && divides_exactly(65'535) &&
              divides_exactly(65'536) && divides_exactly(1'048'576) && divides_exactly(1'048'583) && divides_exactly(4'294'967'296));

}  // namespace gatemark
