#include "refdut/map_rule.hpp"

#include "base/bytes.hpp"

#include <algorithm>

namespace gatemark::refdut {

namespace {

constexpr unsigned psid_field_bits = 16, address_bits = 128;  // RFC 7597 section 6
constexpr std::size_t ipv4_field_byte = 10, psid_field_byte = 14;

/// Bit 0 is the highest of the first byte.
bool bit_at(const AddressBytes& from, unsigned at) noexcept {
    return (from[at / 8] & std::byte{0x80} >> static_cast<int>(at % 8)) != std::byte{0};
}

void flip_bit(AddressBytes& in, unsigned at) noexcept { in[at / 8] ^= std::byte{0x80} >> static_cast<int>(at % 8); }

void copy_bits(const AddressBytes& from, unsigned from_at, AddressBytes& to, unsigned to_at, unsigned count) noexcept {
    for (unsigned i = 0; i < count; ++i) {
        if (bit_at(from, from_at + i) != bit_at(to, to_at + i)) {
            flip_bit(to, to_at + i);
        }
    }
}

bool has_prefix(const AddressBytes& address, const net::Prefix& prefix) noexcept {
    const unsigned whole = prefix.length / 8;
    if (!std::equal(address.begin(), address.begin() + whole, prefix.address.bytes.begin())) {
        return false;
    }
    for (unsigned i = 8 * whole; i < prefix.length; ++i) {
        if (bit_at(address, i) != bit_at(prefix.address.bytes, i)) {
            return false;
        }
    }
    return true;
}

}  // namespace

MapRule::MapRule(const MapRuleSpec& spec) noexcept
    : spec_{spec},
      suffix_bits_{spec.suffix_bits()},
      psid_bits_{spec.ea_bits == 0 ? spec.psid_bits : spec.embedded_psid_bits()},
      suffix_at_{spec.in_identifier ? unsigned{8 * ipv4_field_byte} + spec.ipv4.length : spec.ipv6.length},
      psid_at_{spec.in_identifier ? address_bits - psid_bits_ : suffix_at_ + suffix_bits_},
      dmr_{spec.dmr ? std::optional<EmbeddingPrefix>{*spec.dmr} : std::nullopt} {}

bool MapRule::has_ipv6(const AddressBytes& address) const noexcept { return has_prefix(address, spec_.ipv6); }
bool MapRule::has_ipv4(const AddressBytes& address) const noexcept { return has_prefix(address, spec_.ipv4); }

MapCustomer MapRule::customer_of(const AddressBytes& ipv6) const noexcept {
    MapCustomer customer{.ipv4 = spec_.ipv4.address.bytes, .psid = spec_.psid};
    copy_bits(ipv6, suffix_at_, customer.ipv4, spec_.ipv4.length, suffix_bits_);
    if (spec_.ea_bits > 0) {
        AddressBytes psid{};
        copy_bits(ipv6, psid_at_, psid, psid_field_bits - psid_bits_, psid_bits_);
        customer.psid = load_big_endian<std::uint16_t>(psid.data());
    }
    return customer;
}

MapCustomer MapRule::customer_at(const AddressBytes& ipv4, std::uint16_t port) const noexcept {
    MapCustomer customer{.ipv4 = spec_.ipv4.address.bytes, .psid = spec_.psid};
    copy_bits(ipv4, spec_.ipv4.length, customer.ipv4, spec_.ipv4.length, suffix_bits_);
    if (spec_.ea_bits > 0) {
        customer.psid = ports_of(customer).psid_at(port);
    }
    return customer;
}

AddressBytes MapRule::address_of(const MapCustomer& customer) const noexcept {
    AddressBytes address{}, psid{};
    store_big_endian(psid.data(), customer.psid);
    std::copy_n(customer.ipv4.begin(), 4, address.begin() + ipv4_field_byte);
    std::copy_n(psid.begin(), 2, address.begin() + psid_field_byte);
    // A prefix of more than 64 bits goes over the interface identifier.
    copy_bits(spec_.ipv6.address.bytes, 0, address, 0, spec_.ipv6.length);
    copy_bits(customer.ipv4, spec_.ipv4.length, address, suffix_at_, suffix_bits_);
    if (spec_.ea_bits > 0) {
        copy_bits(psid, psid_field_bits - psid_bits_, address, psid_at_, psid_bits_);
    }
    return address;
}

std::optional<MapCustomer> MapRule::neighbour_of(MapCustomer customer, bool other_ipv4) const noexcept {
    if (spec_.embedded_psid_bits() > 0 && !other_ipv4) {
        customer.psid ^= 1U;
        return customer;
    }
    if (suffix_bits_ == 0) {
        return std::nullopt;
    }
    flip_bit(customer.ipv4, spec_.ipv4.length + suffix_bits_ - 1);
    return customer;
}

AddressBytes MapRule::embedded(const AddressBytes& ipv4) const noexcept {
    AddressBytes address{};
    store_ipv6(address.data(), dmr_->embed(load_big_endian<Ipv4Number>(ipv4.data())));
    return address;
}

std::optional<AddressBytes> MapRule::extracted(const AddressBytes& ipv6) const noexcept {
    const auto ipv4 = dmr_->extract(load_ipv6(ipv6.data()));
    if (!ipv4) {
        return std::nullopt;
    }
    AddressBytes address{};
    store_big_endian(address.data(), *ipv4);
    return address;
}

}  // namespace gatemark::refdut
