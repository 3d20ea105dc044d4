#pragma once

#include <string>
#include <variant>
#include <vector>

namespace gatemark {

/// One problem: what is wrong, where, and how to fix it. Control path only.
struct Error {
    std::string what, where, fix;
    friend bool operator==(const Error&, const Error&) = default;
};

/// All problems of a request, reported together, before the first frame.
using Errors = std::vector<Error>;

/// A value, or the reason why there is none (GCC 12 has no std::expected).
template <class T>
using Result = std::variant<T, Error>;

template <class T>
[[nodiscard]] const Error* error_of(const Result<T>& result) {
    return std::get_if<Error>(&result);
}

}  // namespace gatemark
