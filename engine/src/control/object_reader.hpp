#pragma once

#include "base/result.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>

namespace gatemark::control {

using Json = nlohmann::json;

/// Reads one JSON object strictly: every problem is added to `errors` with its path, and unknown
/// keys are problems too. A missing or invalid value is replaced by a harmless one, so that reading
/// continues and finds further problems.
class ObjectReader {
public:
    ObjectReader(const Json& value, std::string where, Errors& errors) : value_{value}, where_{std::move(where)}, errors_{errors} {
        if (!value_.is_object()) {
            problem("", "is not an object", "send {...}");
        }
    }
    // NOLINTNEXTLINE(bugprone-exception-escape): only running out of memory throws here
    ~ObjectReader() {
        if (!value_.is_object()) {
            return;
        }
        for (const auto& [key, unused] : value_.items()) {
            if (!asked_.contains(key)) {
                problem(key, "is not known here", "leave it out");
            }
        }
    }
    ObjectReader(const ObjectReader&) = delete;
    ObjectReader& operator=(const ObjectReader&) = delete;

    [[nodiscard]] std::uint64_t integer(const std::string& key, std::uint64_t minimum, std::uint64_t maximum) {
        const Json* const value = find(key);
        if (value == nullptr || !value->is_number_unsigned() || value->get<std::uint64_t>() < minimum ||
            value->get<std::uint64_t>() > maximum) {
            problem(key, "is not a whole number of " + std::to_string(minimum) + " to " + std::to_string(maximum), "send one");
            return minimum;
        }
        return value->get<std::uint64_t>();
    }
    [[nodiscard]] std::string text(const std::string& key) {
        const Json* const value = find(key);
        if (value == nullptr || !value->is_string()) {
            problem(key, "is not a string", "send one");
            return {};
        }
        return value->get<std::string>();
    }
    [[nodiscard]] bool boolean(const std::string& key) {
        const Json* const value = find(key);
        if (value == nullptr || !value->is_boolean()) {
            problem(key, "is neither true nor false", "send one of them");
            return false;
        }
        return value->get<bool>();
    }
    /// A list, or an empty one.
    [[nodiscard]] const Json& list(const std::string& key) {
        static const Json empty = Json::array();
        const Json* const value = find(key);
        if (value == nullptr || !value->is_array()) {
            problem(key, "is not a list", "send [...]");
            return empty;
        }
        return *value;
    }
    /// The value, or nullptr if the key is missing or null.
    [[nodiscard]] const Json* optional(const std::string& key) {
        const Json* const value = find(key);
        return value == nullptr || value->is_null() ? nullptr : value;
    }
    /// The value; a missing one is a problem.
    [[nodiscard]] const Json& required(const std::string& key) {
        static const Json null;
        const Json* const value = find(key);
        if (value == nullptr) {
            problem(key, "is missing", "send it");
            return null;
        }
        return *value;
    }
    void problem(const std::string& key, const std::string& what, const std::string& fix) {
        errors_.push_back({(key.empty() ? "the value" : "`" + key + "`") + " " + what, path(key), fix});
    }
    [[nodiscard]] std::string path(const std::string& key) const {
        return key.empty() ? where_ : where_.empty() ? key : where_ + "." + key;
    }

private:
    const Json* find(const std::string& key) {
        asked_.insert(key);
        if (!value_.is_object()) {
            return nullptr;
        }
        const auto value = value_.find(key);
        return value == value_.end() ? nullptr : &*value;
    }

    const Json& value_;
    std::string where_;
    Errors& errors_;
    std::set<std::string> asked_;
};

}  // namespace gatemark::control
