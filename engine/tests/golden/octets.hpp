#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Octets for tests, and the Internet checksum as RFC 1071 section 1 says it: slow and plain.
namespace gatemark::test {

using Octets = std::vector<std::byte>;

/// Takes hexadecimal digits; blanks are skipped.
[[nodiscard]] Octets from_hex(std::string_view text);
[[nodiscard]] std::string to_hex(std::span<const std::byte> octets);
/// Octets 00 01 02 ..., wrapping (RFC 2544 appendix C.2.6.4).
[[nodiscard]] Octets counting(std::size_t count);
void append(Octets& to, std::span<const std::byte> octets);
void append_16(Octets& to, std::uint16_t value);

/// The one's complement sum of 16-bit words in network order, carries folded in at each step.
[[nodiscard]] std::uint16_t slow_sum(std::span<const std::byte> octets);
/// As slow_sum, complemented; no value is replaced.
[[nodiscard]] std::uint16_t slow_checksum(std::span<const std::byte> octets);

}  // namespace gatemark::test
