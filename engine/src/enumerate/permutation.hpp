#pragma once

#include "base/divider.hpp"
#include "base/random.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace gatemark::enumerate {

/// The sum of two numbers below `limit`, modulo it.
template <class Number>
constexpr Number sum_below(Number a, Number b, Number limit) noexcept {
    const Number sum = a + b;
    return sum >= limit ? sum - limit : sum;
}

/// A keyed bijection of [0, count): every number once, in an order that looks random, without an
/// array. The place of any number and the number at any place are computed on their own, so 1.6
/// billion connections need no more memory or set-up time than ten.
///
/// A Feistel network over Z_a x Z_b with a * b just above count (Black and Rogaway, "Ciphers with
/// arbitrary finite domains"): the few values at or above count are permuted again until they fall
/// below it (cycle walking). If both halves were powers of two, up to three quarters of all values
/// would need that.
class Permutation {
public:
    static constexpr std::uint64_t count_limit = std::uint64_t{1} << 40;

    /// `count` is 1 to `count_limit`.
    constexpr Permutation(std::uint64_t count, std::uint64_t key) noexcept
        : count_{count}, left_count_{square_root_above(count)}, right_count_{(count + left_count_ - 1) / left_count_} {
        for (std::size_t round = 0; round < rounds; ++round) {
            keys_[round] = RandomSequence{key, round}.at(0);
        }
    }

    [[nodiscard]] constexpr std::uint64_t count() const noexcept { return count_; }

    /// The number at place `i`, below count.
    [[nodiscard]] constexpr std::uint64_t at(std::uint64_t i) const noexcept {
        do {
            i = forward(i);
        } while (i >= count_);
        return i;
    }
    /// Replaces each place with the number at it, as `at` does for one place, but several together.
    void put_at(std::span<std::uint64_t> places) const noexcept;
    /// The place of `number`, below count.
    [[nodiscard]] constexpr std::uint64_t place_of(std::uint64_t number) const noexcept {
        do {
            number = backward(number);
        } while (number >= count_);
        return number;
    }

private:
    static constexpr std::size_t rounds = 4, lanes = 32;  // the frames of a burst

    using Lanes = std::span<std::uint64_t, lanes>;
    /// `forward` of each of them, in place. Returns whether any is not below count.
    [[nodiscard]] bool forward_all(Lanes numbers) const noexcept;
    /// Walks on from those that are not below count.
    void walk(std::span<std::uint64_t> numbers) const noexcept;

    static constexpr std::uint64_t square_root_above(std::uint64_t count) noexcept {
        std::uint64_t low = 1, high = std::uint64_t{1} << 20;
        while (low < high) {
            const std::uint64_t middle = (low + high) / 2;
            if (middle * middle >= count) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

    [[nodiscard]] constexpr std::uint64_t forward(std::uint64_t number) const noexcept {
        auto [left, right] = right_count_.divide(number);
        for (std::size_t round = 0; round < rounds; round += 2) {
            left = sum_below<std::uint64_t>(left, mixed(right, round, left_count_), left_count_);
            right = sum_below<std::uint64_t>(right, mixed(left, round + 1, right_count_.divisor()), right_count_.divisor());
        }
        return left * right_count_.divisor() + right;
    }
    [[nodiscard]] constexpr std::uint64_t backward(std::uint64_t number) const noexcept {
        auto [left, right] = right_count_.divide(number);
        for (std::size_t round = rounds; round > 0; round -= 2) {
            right = difference_below(right, mixed(left, round - 1, right_count_.divisor()), right_count_.divisor());
            left = difference_below(left, mixed(right, round - 2, left_count_), left_count_);
        }
        return left * right_count_.divisor() + right;
    }

    /// Maps a half to a value below `limit` that depends on the round's key. Folding the halves of
    /// one wide product would save a multiplication, but fails the chi-square test in
    /// permutation_test.
    [[nodiscard]] constexpr std::uint32_t mixed(std::uint64_t half, std::size_t round, std::uint64_t limit) const noexcept {
        std::uint64_t x = (half + keys_[round]) * 0xbf58476d1ce4e5b9;
        x ^= x >> 32;
        x *= 0x94d049bb133111eb;
        return scale_to(static_cast<std::uint32_t>(x >> 32), static_cast<std::uint32_t>(limit));
    }
    static constexpr std::uint64_t difference_below(std::uint64_t a, std::uint64_t b, std::uint64_t limit) noexcept {
        return a >= b ? a - b : a + limit - b;
    }

    std::uint64_t count_, left_count_;
    ShortDivider right_count_;
    std::array<std::uint64_t, rounds> keys_{};
};

consteval bool is_a_bijection(std::uint64_t count) {
    const Permutation permutation{count, 7};
    std::array<bool, 128> visited{};
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t number = permutation.at(i);
        if (number >= count || visited[number] || permutation.place_of(number) != i) {
            return false;
        }
        visited[number] = true;
    }
    return true;
}
static_assert(is_a_bijection(1) && is_a_bijection(2) && is_a_bijection(3) && is_a_bijection(97) && is_a_bijection(128));

}  // namespace gatemark::enumerate
