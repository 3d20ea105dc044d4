#pragma once

#include "base/bytes.hpp"
#include "base/wide.hpp"
#include "refdut/nat_table.hpp"

#include <array>
#include <cstdint>

/// Hashes of what a NAT table looks for: 64-bit multiplications whose halves are folded together.
namespace gatemark::refdut {

[[nodiscard]] inline std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) noexcept {
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

[[nodiscard]] inline std::uint64_t hash_of(const std::array<std::byte, 16>& address, std::uint64_t salt) noexcept {
    return folded_product(load_raw<std::uint64_t>(address.data()) ^ 0xa0761d6478bd642f ^ salt,
                          load_raw<std::uint64_t>(address.data() + 8) ^ 0xe7037ed1a0b428db);
}

[[nodiscard]] inline std::uint32_t finish(std::uint64_t hash) noexcept {
    hash = folded_product(hash ^ 0x8ebc6af09c88c6e3, 0x589965cc75374cc3);
    return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

[[nodiscard]] inline std::uint32_t hash_of_pair(const NatEndpoint& first, const NatEndpoint& second) noexcept {
    return finish(hash_of(first.address, first.port) + 0x9e3779b97f4a7c15 * hash_of(second.address, std::uint64_t{second.port} << 32));
}

[[nodiscard]] inline std::uint32_t hash_of_mapping(const NatEndpoint& inside) noexcept {
    return finish(hash_of(inside.address, inside.port));
}

[[nodiscard]] inline std::uint32_t hash_of_outside(std::uint16_t pool_number, std::uint16_t pool_port, const NatEndpoint& remote) noexcept {
    const std::uint64_t pool = std::uint64_t{pool_number} << 16 | pool_port;
    return finish(hash_of(remote.address, std::uint64_t{remote.port} << 32 | pool));
}

}  // namespace gatemark::refdut
