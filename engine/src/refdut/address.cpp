#include "refdut/address.hpp"

#include "base/bytes.hpp"

#include <algorithm>

namespace gatemark::refdut {

namespace {

constexpr Ipv6Number all_ones = ~Ipv6Number{0};

/// The number whose highest `count` bits are set.
constexpr Ipv6Number top_ones(unsigned count) noexcept { return count == 0 ? Ipv6Number{0} : all_ones << (128 - count); }

Ipv4Number ipv4_of(const net::Address& address) noexcept { return load_big_endian<std::uint32_t>(address.bytes.data()); }

}  // namespace

Ipv6Number load_ipv6(const std::byte* bytes) noexcept {
    return static_cast<Ipv6Number>(load_big_endian<std::uint64_t>(bytes)) << 64 | load_big_endian<std::uint64_t>(bytes + 8);
}

void store_ipv6(std::byte* bytes, Ipv6Number number) noexcept {
    store_big_endian(bytes, static_cast<std::uint64_t>(number >> 64));
    store_big_endian(bytes + 8, static_cast<std::uint64_t>(number));
}

bool stays_on_link(const std::byte* address, net::Family family) noexcept {
    const auto word = load_big_endian<std::uint32_t>(address);
    if (family == net::Family::ipv4) {
        return word >> 28 == 0xe || word == 0xffff'ffff || word >> 24 == 0 || word >> 24 == 127 || word >> 16 == 0xa9fe;
    }
    return word >> 24 == 0xff || word >> 22 == 0x3fa || load_ipv6(address) <= 1;
}

EmbeddingPrefix::EmbeddingPrefix(const net::Prefix& prefix) noexcept
    : prefix_{load_ipv6(prefix.address.bytes.data()) & top_ones(prefix.length)}, length_{prefix.length} {}

// Bits 64 to 71 stay zero, so up to length 64 the IPv4 address has one part above them (64 - length
// bits) and one below.

Ipv6Number EmbeddingPrefix::embed(Ipv4Number ipv4) const noexcept {
    if (length_ == 96) {
        return prefix_ | ipv4;
    }
    const unsigned above = 64 - length_, below = 32 - above;
    const Ipv6Number high = above == 0 ? Ipv6Number{0} : Ipv6Number{ipv4 >> below} << 64;
    const Ipv6Number low = below == 0 ? Ipv6Number{0} : Ipv6Number{ipv4 & (0xffff'ffffU >> above)} << (56 - below);
    return prefix_ | high | low;
}

std::optional<Ipv4Number> EmbeddingPrefix::extract(Ipv6Number ipv6) const noexcept {
    if ((ipv6 & top_ones(length_)) != prefix_) {
        return std::nullopt;
    }
    if (length_ == 96) {
        return static_cast<Ipv4Number>(ipv6);
    }
    const unsigned above = 64 - length_, below = 32 - above;
    const auto top_half = static_cast<std::uint64_t>(ipv6 >> 64), bottom_half = static_cast<std::uint64_t>(ipv6) << 8;
    // NOLINTNEXTLINE(clang-analyzer-core.BitwiseShift): 64 is the longest of RFC 6052 but 96
    const std::uint64_t high = above == 0 ? 0 : (top_half & (~std::uint64_t{0} >> length_)) << below;
    const std::uint64_t low = below == 0 ? 0 : bottom_half >> (64 - below);
    return static_cast<Ipv4Number>(high | low);
}

AddressMap::AddressMap(const std::optional<net::Prefix>& pref64, const std::vector<EamEntry>& eam) {
    for (const EamEntry& entry : eam) {
        const unsigned suffix_bits = 32 - entry.ipv4.length;
        const Ipv6Number mask6 = top_ones(entry.ipv6.length);
        const auto mask4 = static_cast<Ipv4Number>(top_ones(entry.ipv4.length) >> 96);
        by_ipv4_.push_back({.ipv4 = ipv4_of(entry.ipv4.address) & mask4,
                            .ipv4_mask = mask4,
                            .ipv6 = load_ipv6(entry.ipv6.address.bytes.data()) & mask6,
                            .ipv6_mask = mask6,
                            .suffix_bits = suffix_bits,
                            .shift = 128 - entry.ipv6.length - suffix_bits});
    }
    by_ipv6_ = by_ipv4_;
    std::stable_sort(by_ipv4_.begin(), by_ipv4_.end(), [](const Entry& a, const Entry& b) { return a.ipv4_mask > b.ipv4_mask; });
    std::stable_sort(by_ipv6_.begin(), by_ipv6_.end(), [](const Entry& a, const Entry& b) { return a.ipv6_mask > b.ipv6_mask; });
    if (pref64) {
        embedding_.emplace(*pref64);
    }
}

std::optional<Ipv6Number> AddressMap::to_ipv6(Ipv4Number ipv4) const noexcept {
    for (const Entry& entry : by_ipv4_) {
        if ((ipv4 & entry.ipv4_mask) == entry.ipv4) {
            // `check` refuses ::/0, so this shifts by less than 128
            return entry.ipv6 | (Ipv6Number{ipv4 & ~entry.ipv4_mask} << entry.shift);
        }
    }
    return embedding_ ? std::optional{embedding_->embed(ipv4)} : std::nullopt;
}

const AddressMap::Entry* AddressMap::entry_of(Ipv6Number ipv6) const noexcept {
    const auto match =
        std::find_if(by_ipv6_.begin(), by_ipv6_.end(), [&](const Entry& entry) { return (ipv6 & entry.ipv6_mask) == entry.ipv6; });
    return match == by_ipv6_.end() ? nullptr : &*match;
}

std::optional<Ipv4Number> AddressMap::to_ipv4(Ipv6Number ipv6) const noexcept {
    if (const Entry* const entry = entry_of(ipv6)) {
        const auto suffix = static_cast<Ipv4Number>((ipv6 & ~entry->ipv6_mask) >> entry->shift);
        return entry->ipv4 | (suffix & ~entry->ipv4_mask);
    }
    return embedding_ ? embedding_->extract(ipv6) : std::nullopt;
}

bool AddressMap::only_embedded(Ipv6Number ipv6) const noexcept {
    return entry_of(ipv6) == nullptr && embedding_ && embedding_->extract(ipv6).has_value();
}

}  // namespace gatemark::refdut
