#include "golden/octets.hpp"

namespace gatemark::test {

Octets from_hex(std::string_view text) {
    Octets octets;
    std::string digits;
    for (const char c : text) {
        if (c == ' ') {
            continue;
        }
        digits += c;
        if (digits.size() == 2) {
            octets.push_back(static_cast<std::byte>(std::stoul(digits, nullptr, 16)));
            digits.clear();
        }
    }
    return octets;
}

std::string to_hex(std::span<const std::byte> octets) {
    std::string text;
    for (const std::byte octet : octets) {
        text += "0123456789abcdef"[std::to_integer<unsigned>(octet) / 16];
        text += "0123456789abcdef"[std::to_integer<unsigned>(octet) % 16];
    }
    return text;
}

Octets counting(std::size_t count) {
    Octets octets(count);
    for (std::size_t i = 0; i < count; ++i) {
        octets[i] = static_cast<std::byte>(i % 256);
    }
    return octets;
}

void append(Octets& to, std::span<const std::byte> octets) { to.insert(to.end(), octets.begin(), octets.end()); }

void append_16(Octets& to, std::uint16_t value) {
    to.push_back(static_cast<std::byte>(value / 256));
    to.push_back(static_cast<std::byte>(value % 256));
}

std::uint16_t slow_sum(std::span<const std::byte> octets) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < octets.size(); i += 2) {
        const std::uint32_t high = std::to_integer<std::uint32_t>(octets[i]),
                            low = i + 1 < octets.size() ? std::to_integer<std::uint32_t>(octets[i + 1]) : 0;
        sum += 256 * high + low;
        if (sum > 0xffff) {
            sum -= 0xffff;
        }
    }
    return static_cast<std::uint16_t>(sum);
}

std::uint16_t slow_checksum(std::span<const std::byte> octets) { return static_cast<std::uint16_t>(0xffff - slow_sum(octets)); }

}  // namespace gatemark::test
