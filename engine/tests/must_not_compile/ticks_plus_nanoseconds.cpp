// Only pace/tick_scale.hpp combines ticks of the Tester's clock with human time.
#include "pace/tick_scale.hpp"

namespace {

constexpr gatemark::pace::TickScale scale{2'000'000'000};
constexpr gatemark::pace::Ticks now{100};
constexpr std::chrono::nanoseconds wait{50};

#ifdef MUST_NOT_COMPILE
constexpr auto later = now + wait;
#else
constexpr gatemark::pace::Ticks later{now.value + scale.ticks(wait).value};
static_assert(later.value == 200);
#endif

}  // namespace
