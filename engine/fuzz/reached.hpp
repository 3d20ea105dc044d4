#pragma once

#include "base/counts.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gatemark::fuzz {

template <class Name, std::size_t count>
constexpr std::array<std::string_view, count> names_of_these(const std::array<Name, count>& names) {
    std::array<std::string_view, count> list;
    std::ranges::transform(names, list.begin(), [](Name name) { return name_of(name); });
    return list;
}

/// What inputs reach of a list of names: reasons, kinds, outcomes. To the fuzzer each is a place of
/// the code, so it looks for inputs that reach another one: code that sets a bit without a branch
/// shows it nothing. With GATEMARK_FUZZ_REACHED in the environment, the end of the program prints
/// which names were reached and which were missed.
class Reached {
public:
    /// `groups`: how many kinds of input there are that may reach each name; the fuzzer looks for
    /// each name in each of them.
    Reached(std::string_view what, std::span<const std::string_view> names, std::size_t groups = 1);
    ~Reached();
    Reached(const Reached&) = delete;
    Reached& operator=(const Reached&) = delete;

    void note(std::size_t name, std::size_t group = 0) noexcept;
    template <class Name>
        requires std::is_enum_v<Name>
    void note(Name name, std::size_t group = 0) noexcept {
        note(static_cast<std::size_t>(name), group);
    }

    /// Notes those of `names` that are counted; they are all names of this.
    template <class Name, std::size_t count>
    void note_counted(const std::array<Name, count>& names, const Counts<Name>& counts, std::size_t group = 0) noexcept {
        for (std::size_t i = 0; i < count; ++i) {
            if (counts[names[i]] != 0) {
                note(i, group);
            }
        }
    }
    template <class Name>
    void note_counted(const Counts<Name>& counts, std::size_t group = 0) noexcept {
        counts.visit([&](Name name, std::uint64_t count) {
            if (count != 0) {
                note(name, group);
            }
        });
    }

private:
    std::string_view what_;
    std::span<const std::string_view> names_;
    std::size_t first_;  ///< of our counters
    std::vector<bool> reached_;
};

}  // namespace gatemark::fuzz
