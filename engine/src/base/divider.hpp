#pragma once

#include "base/wide.hpp"

#include <cstdint>

namespace gatemark {

/// Exact division of any 64-bit number by a divisor chosen at run time, by one multiplication instead of a division
/// (a 64-bit division costs 20-40 cycles, and every frame needs one or two).
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

}  // namespace gatemark
