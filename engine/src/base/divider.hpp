#pragma once

#include "base/wide.hpp"

#include <cstdint>
#include <initializer_list>

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

/// The same for values v and divisors d with (v + 1) * d <= 2^64, without a remainder to correct.
class ShortDivider {
public:
    /// `divisor` is at least 1.
    explicit constexpr ShortDivider(std::uint64_t divisor = 1) noexcept : divisor_{divisor}, reciprocal_{~std::uint64_t{0} / divisor} {}

    [[nodiscard]] constexpr Divider::Parts divide(std::uint64_t value) const noexcept {
        // The reciprocal is r = (2^64 - e) / d with 1 <= e <= d, so (v + 1) * r / 2^64 is below (v
        // + 1) / d by (v + 1) * e / (d * 2^64): by more than 0 and at most 1 / d. There is no
        // integer between that and v / d.
        const auto quotient = static_cast<std::uint64_t>((static_cast<Wide>(value + 1) * reciprocal_) >> 64);
        return {quotient, value - quotient * divisor_};
    }
    [[nodiscard]] constexpr std::uint64_t divisor() const noexcept { return divisor_; }

private:
    std::uint64_t divisor_, reciprocal_;
};

consteval bool divides_exactly(std::uint64_t divisor) {
    const ShortDivider divider{divisor};
    const std::uint64_t largest = divisor == 1 ? ~std::uint64_t{0} - 1 : ~std::uint64_t{0} / divisor - 1;
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
              divides_exactly(65'536) && divides_exactly(1'048'576) && divides_exactly(1'048'583));

}  // namespace gatemark
