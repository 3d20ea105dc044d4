#pragma once

#include "base/result.hpp"
#include "pace/tick_scale.hpp"
#include "refdut/counts.hpp"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>

namespace gatemark::refdut {

/// The answer to `counts`. `receive_missed`: frames lost before the gateway saw them, by side.
/// Reasons, fields and drops that were not counted are left out.
[[nodiscard]] nlohmann::json write_counts(const Snapshot& snapshot, const std::array<std::uint64_t, 2>& receive_missed,
                                          const pace::TickScale& scale);

[[nodiscard]] nlohmann::json write_errors(const Errors& errors);

}  // namespace gatemark::refdut
