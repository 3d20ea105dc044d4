#include "refdut/selector.hpp"

#include <cmath>

namespace gatemark::refdut {

namespace {

constexpr double two_to_the_64 = 18446744073709551616.0;

}  // namespace

Selector::Selector(const SelectorSpec& spec, std::uint64_t seed, std::uint64_t purpose) noexcept
    : spec_{spec},
      random_{seed, purpose},
      threshold_{spec.probability >= 1 || !(spec.probability > 0) ? 0 : static_cast<std::uint64_t>(spec.probability * two_to_the_64)},
      always_{spec.probability >= 1} {}

Selectors::Selectors(const std::vector<SelectorSpec>& specs, std::uint64_t seed, std::uint64_t purpose) {
    for (const SelectorSpec& spec : specs) {
        selectors_.emplace_back(spec, seed, purpose++);
    }
}

void Selectors::restart() noexcept {
    for (Selector& selector : selectors_) {
        selector.restart();
    }
}

}  // namespace gatemark::refdut
