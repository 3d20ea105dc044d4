#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gatemark::fuzz {

/// Ends the program unless an invariant holds; the fuzzer then keeps the input.
inline void holds(bool condition, std::string_view invariant) {
    if (!condition) [[unlikely]] {
        std::fprintf(stderr, "violated: %.*s\n", static_cast<int>(invariant.size()), invariant.data());
        std::abort();
    }
}

}  // namespace gatemark::fuzz
