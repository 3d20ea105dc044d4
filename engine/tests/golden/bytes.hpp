#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Bytes for tests, and the Internet checksum as defined in RFC 1071 section 1, slow and simple.
namespace gatemark::test {

using Bytes = std::vector<std::byte>;

/// Takes hexadecimal digits; blanks are skipped.
[[nodiscard]] Bytes from_hex(std::string_view text);
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
/// Bytes 00 01 02 ..., wrapping (RFC 2544 appendix C.2.6.4).
[[nodiscard]] Bytes counting(std::size_t count);
void append(Bytes& to, std::span<const std::byte> bytes);
void append_16(Bytes& to, std::uint16_t value);

/// The one's complement sum of 16-bit words in network order, carries folded in at each step.
[[nodiscard]] std::uint16_t slow_sum(std::span<const std::byte> bytes);
/// As slow_sum, complemented; no value is replaced.
[[nodiscard]] std::uint16_t slow_checksum(std::span<const std::byte> bytes);

}  // namespace gatemark::test
