#pragma once

#include "base/result.hpp"

namespace gatemark::refdut {

/// For people, on standard error.
void print_errors(const Errors& errors);

}  // namespace gatemark::refdut
