#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gatemark {

static_assert(std::endian::native == std::endian::little, "checksums are summed in host order; port bytes.hpp and checksum.hpp first");

template <std::unsigned_integral T>
[[nodiscard]] constexpr T swap_bytes(T value) noexcept {
    if constexpr (sizeof(T) == 1) {
        return value;
    } else if constexpr (sizeof(T) == 2) {
        return __builtin_bswap16(value);
    } else if constexpr (sizeof(T) == 4) {
        return __builtin_bswap32(value);
    } else {
        return __builtin_bswap64(value);
    }
}

/// Reads the value at `from` in the byte order of memory; `from` may be unaligned.
template <std::unsigned_integral T>
[[nodiscard]] inline T load_raw(const std::byte* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <std::unsigned_integral T>
inline void store_raw(std::byte* to, T value) noexcept {
    std::memcpy(to, &value, sizeof value);
}

template <std::unsigned_integral T>
[[nodiscard]] inline T load_big_endian(const std::byte* from) noexcept {
    return swap_bytes(load_raw<T>(from));
}

template <std::unsigned_integral T>
inline void store_big_endian(std::byte* to, T value) noexcept {
    store_raw(to, swap_bytes(value));
}

}  // namespace gatemark
