#pragma once

#include <cstdint>

namespace gatemark::record {

/// How many receivers record a direction at the same time. A single one needs no atomic
/// read-modify-write operations, which are expensive (bench/record_bench.cpp).
enum class Receivers : std::uint8_t { one, many };

}  // namespace gatemark::record
