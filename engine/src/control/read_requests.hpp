#pragma once

#include "base/result.hpp"
#include "trial/requests.hpp"

#include <nlohmann/json_fwd.hpp>

/// From JSON to typed requests (protocol/README.md). Every problem is added to `errors`; if there
/// is any, the value must not be used.
namespace gatemark::control {

/// For a request that has no keys of its own: hello, link, connections, close.
void read_bare_request(const nlohmann::json& message, Errors& errors);
[[nodiscard]] trial::OpenRequest read_open_request(const nlohmann::json& message, Errors& errors);
[[nodiscard]] trial::LayoutRequest read_layout_request(const nlohmann::json& message, Errors& errors);
[[nodiscard]] trial::ResolveRequest read_resolve_request(const nlohmann::json& message, Errors& errors);
[[nodiscard]] trial::TrialRequest read_trial_request(const nlohmann::json& message, Errors& errors);
[[nodiscard]] trial::ExchangeRequest read_exchange_request(const nlohmann::json& message, Errors& errors);
[[nodiscard]] trial::FramesRequest read_frames_request(const nlohmann::json& message, Errors& errors);

}  // namespace gatemark::control
