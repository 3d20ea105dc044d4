#pragma once

#include "enumerate/permutation.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

namespace gatemark::enumerate {

/// The order in which four-tuples are enumerated (RFC 9693 section 4.2).
enum class Order : std::uint8_t { increasing, decreasing, pseudorandom };

/// Every number of [0, count) exactly once, in one of three orders.
class Sequence {
public:
    constexpr Sequence(Order order, std::uint64_t count, std::uint64_t key) noexcept : order_{order}, permutation_{count, key} {}

    [[nodiscard]] constexpr std::uint64_t count() const noexcept { return permutation_.count(); }
    /// The number at place `i`, below count.
    [[nodiscard]] constexpr std::uint64_t at(std::uint64_t i) const noexcept {
        switch (order_) {
            case Order::increasing: return i;
            case Order::decreasing: return count() - 1 - i;
            case Order::pseudorandom: break;
        }
        return permutation_.at(i);
    }
    /// Replaces each place with the number at it, as `at` does for one place.
    void put_at(std::span<std::uint64_t> places) const noexcept {
        switch (order_) {
            case Order::increasing: break;
            case Order::decreasing:
                std::ranges::transform(places, places.begin(), [last = count() - 1](auto i) { return last - i; });
                break;
            case Order::pseudorandom: permutation_.put_at(places); break;
        }
    }
    /// The place of `number`, below count.
    [[nodiscard]] constexpr std::uint64_t place_of(std::uint64_t number) const noexcept {
        switch (order_) {
            case Order::increasing: return number;
            case Order::decreasing: return count() - 1 - number;
            case Order::pseudorandom: break;
        }
        return permutation_.place_of(number);
    }

private:
    Order order_;
    Permutation permutation_;
};

}  // namespace gatemark::enumerate
