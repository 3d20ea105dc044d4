#pragma once

#include "base/result.hpp"
#include "refdut/settings.hpp"

#include <string>
#include <string_view>
#include <variant>

namespace gatemark::refdut {

/// All settings, or all problems with them. `where` of an error is the key.
[[nodiscard]] std::variant<Settings, Errors> parse_settings(std::string_view toml);

/// The same from a file; `where` of an error is file and key.
[[nodiscard]] std::variant<Settings, Errors> read_settings(const std::string& path);

/// What cannot be changed while the gateway runs: ports, control socket, CPU, memory. Empty if
/// `wanted` can replace `running`.
[[nodiscard]] Errors what_needs_a_restart(const Settings& running, const Settings& wanted);

}  // namespace gatemark::refdut
