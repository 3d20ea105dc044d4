#pragma once

#include "frame/address_field.hpp"

namespace gatemark::frame {

/// Writes the address of a customer edge and returns its share of a checksum.
inline Sum write_map_address(std::byte* field, Wide address) noexcept {
    const std::uint64_t high = swap_bytes(static_cast<std::uint64_t>(address >> 64)), low = swap_bytes(static_cast<std::uint64_t>(address));
    store_raw(field, high);
    store_raw(field + sizeof high, low);
    return (high & 0xffff'ffff) + (high >> 32) + (low & 0xffff'ffff) + (low >> 32);
}
/// Whether it is at `field`; `sum` is set to its share in any case.
inline bool is_map_address(const std::byte* field, Wide address, Sum& sum) noexcept {
    alignas(16) std::array<std::byte, 16> expected;
    sum = write_map_address(expected.data(), address);
    return ((load_raw<std::uint64_t>(field) ^ load_raw<std::uint64_t>(expected.data())) |
            (load_raw<std::uint64_t>(field + 8) ^ load_raw<std::uint64_t>(expected.data() + 8))) == 0;
}
inline Sum write_shared_address(std::byte* field, std::uint32_t address) noexcept {
    const std::uint32_t raw = swap_bytes(address);
    store_raw(field, raw);
    return raw;
}

/// The address of a customer edge: its MAP address, or the IPv4 address that it shares.
[[nodiscard]] AddressField edge_address(const std::shared_ptr<const CustomerEdges>& edges, net::Family family);

/// The IPv6 address under which a customer edge knows a host outside: by the default mapping rule
/// of its domain (RFC 7599 section 5.1), so it may differ from edge to edge.
[[nodiscard]] Result<AddressField> outside_address(const std::shared_ptr<const CustomerEdges>& edges, const HostSet& hosts,
                                                   const std::string& where);

}  // namespace gatemark::frame
