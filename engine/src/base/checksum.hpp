#pragma once

#include "base/bytes.hpp"

#include <bit>
#include <cstdint>
#include <span>

namespace gatemark {

/// A one's complement sum of 16-bit words in the byte order of memory, not yet folded or
/// complemented. RFC 1071 section 2 (B): the sum of byte-swapped words is the byte-swapped sum, so
/// nothing needs to be swapped: what `fold` returns is stored as it is.
using Sum = std::uint64_t;

/// The sum of all words of `bytes`; an odd last byte is padded with zero (RFC 1071).
[[nodiscard]] inline Sum sum_of(std::span<const std::byte> bytes) noexcept {
    Sum sum = 0;
    std::size_t i = 0;
    for (; i + 4 <= bytes.size(); i += 4) {
        sum += load_raw<std::uint32_t>(bytes.data() + i);
    }
    if (i + 2 <= bytes.size()) {
        sum += load_raw<std::uint16_t>(bytes.data() + i);
        i += 2;
    }
    if (i < bytes.size()) {
        sum += std::to_integer<std::uint64_t>(bytes[i]);
    }
    return sum;
}

/// What one byte adds to a sum at an even offset (the first of its word) or an odd one.
[[nodiscard]] constexpr Sum sum_of_byte(std::uint8_t byte, std::size_t offset) noexcept {
    return static_cast<Sum>(byte) << (8 * (offset & 1));
}

/// Folds the carries back in until 16 bits are left. The upper half of x + rotate(x) is the sum of
/// both halves, and the carry out of the lower half is exactly the one to add. This takes half the
/// instructions of masks and shifts.
[[nodiscard]] constexpr std::uint16_t fold(Sum sum) noexcept {
    const auto half = static_cast<std::uint32_t>((sum + std::rotl(sum, 32)) >> 32);
    return static_cast<std::uint16_t>((half + std::rotl(half, 16)) >> 16);
}

/// The words of one number, for a sum of few numbers in 32 bits.
[[nodiscard]] constexpr std::uint32_t sum_of_words(std::uint32_t words) noexcept { return (words & 0xffff) + (words >> 16); }
/// Those of 64 bits, in two sums of 32 bits each.
[[nodiscard]] constexpr std::uint64_t sums_of_words(std::uint64_t words) noexcept {
    constexpr std::uint64_t every_other_word = 0x0000'ffff'0000'ffff;
    return (words & every_other_word) + (words >> 16 & every_other_word);
}

/// The IPv4 header checksum of a header whose words sum to `sum`. 0x0000 is a legal value here (RFC
/// 791) and is not replaced.
[[nodiscard]] constexpr std::uint16_t header_checksum(Sum sum) noexcept { return static_cast<std::uint16_t>(~fold(sum)); }

/// The UDP checksum: as above, but a computed zero is sent as all ones, over IPv4 (RFC 768) as over
/// IPv6 (RFC 8200 section 8.1).
[[nodiscard]] constexpr std::uint16_t udp_checksum(Sum sum) noexcept {
    const std::uint16_t checksum = header_checksum(sum);
    return checksum == 0 ? std::uint16_t{0xffff} : checksum;
}

/// Whether data that sum to `sum`, checksum field included, are intact (they must not be all zero):
/// the sum folds to all ones (RFC 1071 section 1), so it is a multiple of 65535. Multiplied by the
/// inverse of 65535 modulo 2^64, a multiple gives its quotient, and any other number something
/// larger: one multiplication and one comparison instead of a fold.
[[nodiscard]] constexpr bool is_intact(Sum sum) noexcept {
    constexpr std::uint64_t inverse_of_65535 = 0xfffe'fffe'fffe'ffff, largest_quotient = ~std::uint64_t{0} / 65535;
    static_assert(inverse_of_65535 * 65535 == 1);
    return sum * inverse_of_65535 <= largest_quotient;
}
static_assert(is_intact(0xffff) && is_intact(0x1'fffe) && is_intact(0xffff'0000) && is_intact(0xffff'ffff'ffff'ffff));
static_assert(!is_intact(1) && !is_intact(0xfffe) && !is_intact(0x1'0000) && !is_intact(0xffff'0001) && !is_intact(0xffff'ffff'ffff'fffe));

static_assert(fold(0) == 0 && fold(0xffff) == 0xffff && fold(0x1'0000) == 1 && fold(0xffff'0001) == 1 && fold(0xffff'ffff'0000'0001) == 1);
static_assert(fold(0xffff'ffff'ffff'ffff) == 0xffff);

}  // namespace gatemark
