#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace gatemark {

/// The name of an enumerator as the source spells it; empty if no enumerator has the value.
template <auto value>
[[nodiscard]] consteval std::string_view enumerator_name() {
    const std::string_view text{
        __PRETTY_FUNCTION__};  // "... value = gatemark::frame::Fault::length; ..." or "... value = (gatemark::frame::Fault)64]"
    const std::size_t begin = text.find("value = ") + std::string_view{"value = "}.size();
    const std::string_view qualified = text.substr(begin, text.find_first_of(";]", begin) - begin);
    return qualified.front() == '(' ? std::string_view{} : qualified.substr(qualified.rfind("::") + 2);
}

/// Of enumerators that are numbered from 0 without gaps, at most 64.
template <class Enum>
inline constexpr auto names_and_end = []<std::size_t... number>(std::index_sequence<number...>) {
    return std::array{enumerator_name<static_cast<Enum>(number)>()...};
}(std::make_index_sequence<65>{});

template <class Enum>
inline constexpr std::size_t count_of =
    static_cast<std::size_t>(std::ranges::find(names_and_end<Enum>, std::string_view{}) - names_and_end<Enum>.begin());

/// The names of all enumerators: what messages call them. Each is stated once, where it is
/// declared.
template <class Enum>
inline constexpr auto names_of = [] {
    std::array<std::string_view, count_of<Enum>> names;
    std::copy_n(names_and_end<Enum>.begin(), names.size(), names.begin());
    return names;
}();

template <class Enum>
[[nodiscard]] constexpr std::string_view name_of(Enum enumerator) noexcept {
    return names_of<Enum>[static_cast<std::size_t>(enumerator)];
}

}  // namespace gatemark
