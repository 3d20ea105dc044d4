#include "enumerate/permutation.hpp"

#include "base/for_each_cpu.hpp"

#include <algorithm>
#include <array>

namespace gatemark::enumerate {

GATEMARK_FOR_EACH_CPU
bool Permutation::forward_all(Lanes numbers) const noexcept {
    const auto left_count = static_cast<std::uint32_t>(left_count_), right_count = static_cast<std::uint32_t>(right_count_.divisor());
    alignas(64) std::array<std::uint32_t, lanes> left, right;
    for (std::size_t i = 0; i < lanes; ++i) {
        const auto [quotient, remainder] = right_count_.divide(numbers[i]);
        left[i] = static_cast<std::uint32_t>(quotient);
        right[i] = static_cast<std::uint32_t>(remainder);
    }
    for (std::size_t round = 0; round < rounds; round += 2) {
        for (std::size_t i = 0; i < lanes; ++i) {
            left[i] = sum_below(left[i], mixed(right[i], round, left_count), left_count);
        }
        for (std::size_t i = 0; i < lanes; ++i) {
            right[i] = sum_below(right[i], mixed(left[i], round + 1, right_count), right_count);
        }
    }
    std::uint64_t largest = 0;
    for (std::size_t i = 0; i < lanes; ++i) {
        numbers[i] = std::uint64_t{left[i]} * right_count + right[i];
        largest = std::max(largest, numbers[i]);
    }
    return largest >= count_;
}

void Permutation::walk(std::span<std::uint64_t> numbers) const noexcept {
    for (std::uint64_t& number : numbers) {
        if (number >= count_) {
            number = at(number);
        }
    }
}

/// Fewer numbers than this are faster one by one.
constexpr std::size_t vectorised_min = 16;

void Permutation::put_at(std::span<std::uint64_t> places) const noexcept {
    for (; places.size() >= lanes; places = places.subspan(lanes)) {
        const Lanes numbers = places.first<lanes>();
        if (forward_all(numbers)) [[unlikely]] {
            walk(numbers);
        }
    }
    if (places.size() >= vectorised_min) {
        std::array<std::uint64_t, lanes> numbers{};
        std::ranges::copy(places, numbers.begin());
        if (forward_all(numbers)) {
            walk(std::span{numbers}.first(places.size()));
        }
        std::copy_n(numbers.begin(), places.size(), places.begin());
        return;
    }
    for (std::uint64_t& place : places) {
        place = at(place);
    }
}

}  // namespace gatemark::enumerate
