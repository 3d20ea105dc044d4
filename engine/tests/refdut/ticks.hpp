#pragma once

#include <cstdint>

/// Times in ticks of a clock that counts nanoseconds, as that of these tests does.
namespace gatemark::refdut {

inline constexpr std::uint64_t ms = 1'000'000, second = 1000 * ms;

}  // namespace gatemark::refdut
