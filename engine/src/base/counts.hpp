#pragma once

#include "base/enum_set.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

namespace gatemark {

/// A counter for each enumerator, with its name: a new counter is a new enumerator.
template <class Enum>
class Counts {
public:
    [[nodiscard]] constexpr std::uint64_t& operator[](Enum counter) noexcept { return counts_[static_cast<std::size_t>(counter)]; }
    [[nodiscard]] constexpr std::uint64_t operator[](Enum counter) const noexcept { return counts_[static_cast<std::size_t>(counter)]; }
    [[nodiscard]] constexpr std::uint64_t sum() const noexcept { return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0}); }

    constexpr void add(const Counts& others) noexcept {
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            counts_[i] += others.counts_[i];
        }
    }
    constexpr void add(const EnumSet<Enum>& set) noexcept {
        set.visit([this](Enum counter) { ++(*this)[counter]; });
    }
    /// What was counted since `before`.
    [[nodiscard]] constexpr Counts since(const Counts& before) const noexcept {
        Counts counted;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            counted.counts_[i] = counts_[i] - std::min(counts_[i], before.counts_[i]);
        }
        return counted;
    }
    /// Calls `visit(counter, count)` for each.
    template <class Visitor>
    void visit(Visitor&& visit) const {
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            visit(static_cast<Enum>(i), counts_[i]);
        }
    }
    friend constexpr bool operator==(const Counts&, const Counts&) = default;

private:
    std::array<std::uint64_t, count_of<Enum>> counts_{};
};

}  // namespace gatemark
