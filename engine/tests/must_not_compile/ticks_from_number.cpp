// A bare number does not convert to Ticks: the unit must be stated.
#include "pace/clock.hpp"

namespace {

constexpr bool is_past(gatemark::pace::Ticks due) { return due <= gatemark::pace::Ticks{100}; }

#ifdef MUST_NOT_COMPILE
constexpr std::uint64_t number = 7;
static_assert(is_past(number));
#else
static_assert(is_past(gatemark::pace::Ticks{7}));
#endif

}  // namespace
