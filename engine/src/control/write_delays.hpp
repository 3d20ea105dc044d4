#pragma once

#include "pace/tick_scale.hpp"
#include "trial/report.hpp"

#include <nlohmann/json.hpp>

namespace gatemark::control {

/// The `delay` object of one class (docs/reference/counters.md).
[[nodiscard]] nlohmann::json delay_json(const trial::ClassReport& report, bool with_histograms, const pace::TickScale& scale);

/// The round-trip times of an echo trial as RTT.
[[nodiscard]] nlohmann::json round_trips_json(const record::RoundTrips& round_trips, std::uint64_t requests, const pace::TickScale& scale);

}  // namespace gatemark::control
