#pragma once

#include <cstdint>

namespace gatemark::record {

/// How many receivers record a direction at the same time. One needs no atomic operations of reading and writing, which take some 20 cycles
/// each on an Intel Xeon (bench/record_bench.cpp).
enum class Receivers : std::uint8_t { one, many };

}  // namespace gatemark::record
