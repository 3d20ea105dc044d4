#pragma once

#include <cstdint>

namespace gatemark::pace {

/// Ticks of the CycleClock per second, measured for 50 ms against the monotonic clock (good to a few in a million).
[[nodiscard]] std::uint64_t ticks_per_second();

}  // namespace gatemark::pace
