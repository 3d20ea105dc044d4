#include "net/address_mapping.hpp"

#include <algorithm>

namespace gatemark::net {

namespace {

/// The positions of the four bytes of an IPv4 address in an IPv4-embedded IPv6 address (RFC 6052
/// section 2.2). Byte 8, bits 64 to 71, stays zero.
constexpr std::optional<std::array<std::size_t, 4>> embedded_positions(unsigned prefix_length) {
    switch (prefix_length) {
        case 32: return std::array<std::size_t, 4>{4, 5, 6, 7};
        case 40: return std::array<std::size_t, 4>{5, 6, 7, 9};
        case 48: return std::array<std::size_t, 4>{6, 7, 9, 10};
        case 56: return std::array<std::size_t, 4>{7, 9, 10, 11};
        case 64: return std::array<std::size_t, 4>{9, 10, 11, 12};
        case 96: return std::array<std::size_t, 4>{12, 13, 14, 15};
        default: return std::nullopt;
    }
}

/// Replaces the prefix `from` of `address` with `to` and keeps as many suffix bits as both families
/// have room for; the rest is zero.
Address with_prefix_replaced(const Address& address, const Prefix& from, const Prefix& to) {
    Address result = to.address;
    const unsigned suffix = std::min(static_cast<unsigned>(8 * address_bytes(from.address.family)) - from.length,
                                     static_cast<unsigned>(8 * address_bytes(to.address.family)) - to.length);
    for (unsigned i = 0; i < suffix; ++i) {
        set_bit(result, to.length + i, bit_of(address, from.length + i));
    }
    return result;
}

}  // namespace

Result<AddressMapping> AddressMapping::make(std::optional<Prefix> embedding, std::vector<ExplicitMapping> explicit_mappings) {
    if (embedding) {
        if (embedding->address.family != Family::ipv6 || !embedded_positions(embedding->length)) {
            return Error{"the translation prefix has " + std::to_string(embedding->length) + " bits", "translation.prefix",
                         "use an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits (RFC 6052 section 2.2)"};
        }
        if (embedding->address.bytes[8] != std::byte{0}) {
            return Error{"bits 64 to 71 of the translation prefix are not zero", "translation.prefix", "clear them (RFC 6052 section 2.2)"};
        }
    }
    for (const ExplicitMapping& mapping : explicit_mappings) {
        if (mapping.ipv4.address.family != Family::ipv4 || mapping.ipv6.address.family != Family::ipv6 ||
            32 - mapping.ipv4.length > 128 - mapping.ipv6.length) {
            return Error{"explicit address mapping " + to_text(mapping.ipv4.address) + " <-> " + to_text(mapping.ipv6.address) +
                             " cannot hold the IPv4 suffix",
                         "translation.eam",
                         "give an IPv4 and an IPv6 prefix whose IPv4 suffix is not longer than the IPv6 suffix (RFC 7757 section 3.1)"};
        }
    }
    AddressMapping result;
    result.embedding_ = embedding;
    result.by_ipv4_ = result.by_ipv6_ = std::move(explicit_mappings);
    std::stable_sort(result.by_ipv4_.begin(), result.by_ipv4_.end(),
                     [](const auto& a, const auto& b) { return a.ipv4.length > b.ipv4.length; });
    std::stable_sort(result.by_ipv6_.begin(), result.by_ipv6_.end(),
                     [](const auto& a, const auto& b) { return a.ipv6.length > b.ipv6.length; });
    return result;
}

std::optional<Address> AddressMapping::to_ipv6(const Address& ipv4) const {
    for (const ExplicitMapping& mapping : by_ipv4_) {
        if (mapping.ipv4.contains(ipv4)) {
            return with_prefix_replaced(ipv4, mapping.ipv4, mapping.ipv6);
        }
    }
    if (!embedding_) {
        return std::nullopt;
    }
    Address result = embedding_->address;
    const auto positions = *embedded_positions(embedding_->length);
    for (std::size_t i = 0; i < positions.size(); ++i) {
        result.bytes[positions[i]] = ipv4.bytes[i];
    }
    return result;
}

std::optional<Address> AddressMapping::to_ipv4(const Address& ipv6) const {
    for (const ExplicitMapping& mapping : by_ipv6_) {
        if (mapping.ipv6.contains(ipv6)) {
            return with_prefix_replaced(ipv6, mapping.ipv6, mapping.ipv4);
        }
    }
    if (!embedding_ || !embedding_->contains(ipv6)) {
        return std::nullopt;
    }
    Address result{.family = Family::ipv4, .bytes = {}};
    const auto positions = *embedded_positions(embedding_->length);
    for (std::size_t i = 0; i < positions.size(); ++i) {
        result.bytes[i] = ipv6.bytes[positions[i]];
    }
    return result;
}

std::optional<Address> AddressMapping::to(Family family, const Address& address) const {
    if (address.family == family) {
        return address;
    }
    return family == Family::ipv6 ? to_ipv6(address) : to_ipv4(address);
}

}  // namespace gatemark::net
