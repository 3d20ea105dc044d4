#pragma once

#include "refdut/settings.hpp"

#include <string>

namespace gatemark::refdut {

/// Runs the gateway until SIGTERM, SIGINT, the command `stop` or the death of the parent. Prints
/// one line of JSON on `output` once it forwards. Returns the exit status; what went wrong is on
/// standard error.
[[nodiscard]] int run_gateway(const std::string& file, const Settings& settings, int output);

}  // namespace gatemark::refdut
