#pragma once

#include "base/divider.hpp"
#include "pace/flow_start.hpp"

#include <cstdint>
#include <optional>

namespace gatemark::pace {

/// Foreground and background traffic in one direction: frame i is foreground iff i mod n < m (RFC
/// 8219 section 5.3 shares).
///
/// Ports and addresses must not follow the index i: with n = 10 and a cycle of 10 ports every
/// background frame would have the same port. So each frame also has a number j within its class.
class Mix {
public:
    struct Place {
        bool foreground;
        std::uint64_t number_in_class;
    };

    constexpr Mix(std::uint32_t foreground_m, std::uint32_t foreground_n) noexcept
        : m_{foreground_m}, n_{foreground_n}, numbers_are_indexes_{foreground_m == foreground_n} {}
    explicit constexpr Mix(const FlowStart& flow_start) noexcept : m_{1}, n_{1}, flow_start_{flow_start} {}

    [[nodiscard]] constexpr Place place_of(std::uint64_t i) const noexcept {
        if (numbers_are_indexes_) {
            return {true, i};
        }
        if (flow_start_) [[unlikely]] {
            return {true, slot_of(i)};
        }
        const auto [cycle, position] = n_.divide(i);
        return position < m_ ? Place{true, cycle * m_ + position} : Place{false, cycle * (n_.divisor() - m_) + (position - m_)};
    }
    /// The number of foreground frames among frames 0 to count - 1.
    [[nodiscard]] constexpr std::uint64_t foreground_before(std::uint64_t count) const noexcept {
        const auto [cycle, position] = n_.divide(count);
        return cycle * m_ + (position < m_ ? position : m_);
    }
    /// Whether all frames are foreground, and each one's number is its index.
    [[nodiscard]] constexpr bool numbers_are_indexes() const noexcept { return numbers_are_indexes_; }
    [[nodiscard]] constexpr std::uint64_t m() const noexcept { return m_; }
    [[nodiscard]] constexpr std::uint64_t n() const noexcept { return n_.divisor(); }

private:
    /// Out of line, to keep the usual frame as cheap as it is without.
    [[nodiscard, gnu::noinline]] constexpr std::uint64_t slot_of(std::uint64_t i) const noexcept { return flow_start_->slot_of(i); }

    std::uint64_t m_;
    Divider n_;
    bool numbers_are_indexes_ = false;
    std::optional<FlowStart> flow_start_{};
};

consteval bool every_frame_has_one_place(std::uint32_t m, std::uint32_t n) {
    const Mix mix{m, n};
    std::uint64_t foreground = 0;
    for (std::uint64_t i = 0; i < 200; ++i) {
        const auto place = mix.place_of(i);
        if (place.foreground != (i % n < m) || place.number_in_class != (place.foreground ? foreground : i - foreground) ||
            mix.foreground_before(i) != foreground) {
            return false;
        }
        foreground += place.foreground ? 1 : 0;
    }
    return true;
}
static_assert(every_frame_has_one_place(1, 1) && every_frame_has_one_place(9, 10) && every_frame_has_one_place(2, 2) &&
              every_frame_has_one_place(0, 3));

}  // namespace gatemark::pace
