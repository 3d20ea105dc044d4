#pragma once

#include "base/result.hpp"
#include "pace/tick_scale.hpp"
#include "trial/frame_preview.hpp"
#include "trial/report.hpp"
#include "trial/tester.hpp"

#include <nlohmann/json.hpp>

/// From facts to JSON (protocol/README.md): integers, strings, booleans, lists and objects only.
namespace gatemark::control {

[[nodiscard]] nlohmann::json to_json(const Errors& errors);
[[nodiscard]] nlohmann::json to_json(const io::PortFacts& facts);
[[nodiscard]] nlohmann::json to_json(const trial::Layout& layout);
[[nodiscard]] nlohmann::json to_json(const trial::Progress& progress);
/// `scale` converts the lateness histogram's buckets.
[[nodiscard]] nlohmann::json to_json(const trial::TrialReport& report, const pace::TickScale& scale);
[[nodiscard]] nlohmann::json to_json(const trial::ExchangeReport& report);
[[nodiscard]] nlohmann::json to_json(const state::Behaviour& behaviour);
[[nodiscard]] nlohmann::json to_json(const std::vector<trial::PreviewedFrame>& frames);

}  // namespace gatemark::control
