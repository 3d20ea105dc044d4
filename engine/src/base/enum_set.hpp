#pragma once

#include "base/names.hpp"

#include <bit>
#include <cstdint>
#include <initializer_list>

namespace gatemark {

/// A set of enumerators.
template <class Enum>
class EnumSet {
public:
    static_assert(count_of<Enum> <= 64);

    constexpr EnumSet() noexcept = default;
    constexpr EnumSet(std::initializer_list<Enum> elements) noexcept {
        for (const Enum element : elements) {
            add(element);
        }
    }
    constexpr void add(Enum element) noexcept { bits_ |= bit(element); }
    constexpr void add_if(bool condition, Enum element) noexcept {
        bits_ |= static_cast<std::uint64_t>(condition) << static_cast<unsigned>(element);
    }
    constexpr void add(const EnumSet& others) noexcept { bits_ |= others.bits_; }
    [[nodiscard]] constexpr bool has(Enum element) const noexcept { return (bits_ & bit(element)) != 0; }
    [[nodiscard]] constexpr bool none() const noexcept { return bits_ == 0; }
    /// Calls `visit` with each element, in the order of the enumerators.
    template <class Visitor>
    constexpr void visit(Visitor&& visit) const noexcept {
        for (std::uint64_t rest = bits_; rest != 0; rest &= rest - 1) {
            visit(static_cast<Enum>(std::countr_zero(rest)));
        }
    }
    friend constexpr bool operator==(const EnumSet&, const EnumSet&) = default;

private:
    [[nodiscard]] static constexpr std::uint64_t bit(Enum element) noexcept { return std::uint64_t{1} << static_cast<unsigned>(element); }

    std::uint64_t bits_ = 0;
};

}  // namespace gatemark
