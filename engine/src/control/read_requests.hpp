#pragma once

#include "base/result.hpp"
#include "trial/requests.hpp"

#include <nlohmann/json_fwd.hpp>

/// From JSON to typed requests (protocol/README.md). Every problem is added to `errors`; if there
/// is any, the value must not be used.
namespace gatemark::control {

[[nodiscard]] trial::OpenRequest read_open_request(const nlohmann::json& message, Errors& errors);
[[nodiscard]] trial::LayoutRequest read_layout_request(const nlohmann::json& message, Errors& errors);
[[nodiscard]] trial::ResolveRequest read_resolve_request(const nlohmann::json& message, Errors& errors);
[[nodiscard]] trial::TrialRequest read_trial_request(const nlohmann::json& message, Errors& errors);
[[nodiscard]] trial::FramesRequest read_frames_request(const nlohmann::json& message, Errors& errors);

}  // namespace gatemark::control
