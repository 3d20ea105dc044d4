#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace gatemark::control {

/// The message of that name in protocol/examples.
[[nodiscard]] inline nlohmann::json example(const std::string& name) {
    const std::filesystem::path path = std::filesystem::path{GATEMARK_PROTOCOL_EXAMPLES} / (name + ".json");
    std::ifstream file{path};
    EXPECT_TRUE(file.is_open()) << path;
    return nlohmann::json::parse(file, nullptr, false);
}

}  // namespace gatemark::control
