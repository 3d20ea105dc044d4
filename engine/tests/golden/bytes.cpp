#include "golden/bytes.hpp"

namespace gatemark::test {

Bytes from_hex(std::string_view text) {
    Bytes bytes;
    std::string digits;
    for (const char c : text) {
        if (c == ' ') {
            continue;
        }
        digits += c;
        if (digits.size() == 2) {
            bytes.push_back(static_cast<std::byte>(std::stoul(digits, nullptr, 16)));
            digits.clear();
        }
    }
    return bytes;
}

std::string to_hex(std::span<const std::byte> bytes) {
    std::string text;
    for (const std::byte byte : bytes) {
        text += "0123456789abcdef"[std::to_integer<unsigned>(byte) / 16];
        text += "0123456789abcdef"[std::to_integer<unsigned>(byte) % 16];
    }
    return text;
}

Bytes counting(std::size_t count) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) {
        bytes[i] = static_cast<std::byte>(i % 256);
    }
    return bytes;
}

void append(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void append_16(Bytes& to, std::uint16_t value) {
    to.push_back(static_cast<std::byte>(value / 256));
    to.push_back(static_cast<std::byte>(value % 256));
}

std::uint16_t slow_sum(std::span<const std::byte> bytes) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
        const std::uint32_t high = std::to_integer<std::uint32_t>(bytes[i]),
                            low = i + 1 < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + 1]) : 0;
        sum += 256 * high + low;
        if (sum > 0xffff) {
            sum -= 0xffff;
        }
    }
    return static_cast<std::uint16_t>(sum);
}

std::uint16_t slow_checksum(std::span<const std::byte> bytes) { return static_cast<std::uint16_t>(0xffff - slow_sum(bytes)); }

}  // namespace gatemark::test
