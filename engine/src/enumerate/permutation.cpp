#include "enumerate/permutation.hpp"

#include "base/for_each_cpu.hpp"

#include <algorithm>

namespace gatemark::enumerate {

GATEMARK_FOR_EACH_CPU
void Permutation::mix(Halves& halves) const noexcept {
    const auto left_count = static_cast<std::uint32_t>(left_count_), right_count = static_cast<std::uint32_t>(right_count_.divisor());
    for (std::size_t round = 0; round < rounds; round += 2) {
        for (std::size_t i = 0; i < lanes; ++i) {
            halves.left[i] = sum_below(halves.left[i], mixed(halves.right[i], round, left_count), left_count);
        }
        for (std::size_t i = 0; i < lanes; ++i) {
            halves.right[i] = sum_below(halves.right[i], mixed(halves.left[i], round + 1, right_count), right_count);
        }
    }
}

/// Fewer numbers than this are faster one by one.
constexpr std::size_t vectorised_min = 16;

void Permutation::put_at(std::span<std::uint64_t> places) const noexcept {
    for (std::size_t count = 0; places.size() >= vectorised_min; places = places.subspan(count)) {
        count = std::min(places.size(), lanes);
        Halves halves{};
        for (std::size_t i = 0; i < count; ++i) {
            const auto [left, right] = right_count_.divide(places[i]);
            halves.left[i] = static_cast<std::uint32_t>(left);
            halves.right[i] = static_cast<std::uint32_t>(right);
        }
        mix(halves);
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t number = halves.left[i] * right_count_.divisor() + halves.right[i];
            places[i] = number < count_ ? number : at(number);
        }
    }
    for (std::uint64_t& place : places) {
        place = at(place);
    }
}

}  // namespace gatemark::enumerate
