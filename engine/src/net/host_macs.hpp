#pragma once

#include "base/random.hpp"
#include "net/address.hpp"

#include <array>
#include <cstdint>

namespace gatemark::net {

/// The MAC addresses of the emulated hosts of one port by the pattern of RFC 4814 section 4.2,
/// (RR & 0xFC):PP:PP:RR:RR:RR, where PP:PP is the port's number from 1 on and RR is random.
///
/// A keyed bijection of the 30 random bits, so no two hosts of a port share an address and nothing
/// is kept for a host: a balanced Feistel network whose round functions depend on seed and port.
class HostMacs {
public:
    static constexpr unsigned bits = 30;

    constexpr HostMacs(std::uint64_t seed, std::uint16_t port_number) noexcept : port_number_{port_number} {
        for (std::size_t round = 0; round < rounds; ++round) {
            keys_[round] = RandomSequence{seed, purpose + port_number}.at(round);
        }
    }

    /// The address of a host by its number, below 2^30.
    [[nodiscard]] constexpr MacAddress at(std::uint32_t host) const noexcept {
        const std::uint32_t random = permuted(host);
        const auto byte = [](std::uint32_t value) { return static_cast<std::byte>(value & 0xff); };
        return {byte(random >> 24 << 2), byte(port_number_ >> 8U), byte(port_number_), byte(random >> 16), byte(random >> 8), byte(random)};
    }

    friend bool operator==(const HostMacs&, const HostMacs&) = default;

private:
    static constexpr std::size_t rounds = 4;
    static constexpr unsigned half_bits = bits / 2;
    static constexpr std::uint32_t half_mask = (1U << half_bits) - 1;
    static constexpr std::uint64_t purpose = 0x4d41'4300'0000;  ///< apart from those of streams, which are below 2^16

    [[nodiscard]] constexpr std::uint32_t permuted(std::uint32_t host) const noexcept {
        std::uint32_t left = host >> half_bits & half_mask, right = host & half_mask;
        for (const std::uint64_t key : keys_) {
            const std::uint32_t mixed = left ^ static_cast<std::uint32_t>(mix_bits(key + right) >> (64 - half_bits));
            left = right;
            right = mixed;
        }
        return left << half_bits | right;
    }

    std::uint16_t port_number_;
    std::array<std::uint64_t, rounds> keys_{};
};

}  // namespace gatemark::net
