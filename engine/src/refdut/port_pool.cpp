#include "refdut/port_pool.hpp"

#include "base/bytes.hpp"
#include "base/wide.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace gatemark::refdut {

namespace {

constexpr std::size_t words_of_address = 65536 / 64;

Wide as_number(const PortPool::Bytes& address) noexcept {
    return static_cast<Wide>(load_big_endian<std::uint64_t>(address.data())) << 64 | load_big_endian<std::uint64_t>(address.data() + 8);
}

/// An IPv4 address is in the first four bytes.
unsigned host_shift(const net::Prefix& prefix) noexcept { return prefix.address.family == net::Family::ipv4 ? 96 : 0; }

}  // namespace

PortPool::PortPool(const NatPool& pool) : port_min_{pool.port_min}, port_max_{pool.port_max} {
    for (const net::Prefix& prefix : pool.prefixes) {
        const auto bits = static_cast<unsigned>(8 * net::address_bytes(prefix.address.family)) - prefix.length;
        const std::size_t room = addresses_max - count_;
        const auto count = static_cast<std::uint32_t>(std::min(room, bits < 32 ? std::size_t{1} << bits : room));
        parts_.push_back({.prefix = prefix, .first = count_, .count = count});
        count_ += count;
    }
    constexpr std::size_t touched_max = 4096;  // addresses; 8 kB each
    using Bits = PagedMemory<std::uint64_t>;
    taken_ = Bits{count_ * words_of_address, count_ > touched_max ? Bits::Touch::later : Bits::Touch::now};
    taken_of_.assign(count_, 0);
    usable_.assign(words_of_address, 0);
    for (std::uint32_t port = port_min_; port <= port_max_; ++port) {
        if (!pool.port_set || pool.port_set->has(static_cast<std::uint16_t>(port))) {
            usable_[port / 64] |= std::uint64_t{1} << port % 64;
            ++usable_count_;
        }
    }
}

std::optional<std::uint16_t> PortPool::number_of(const Bytes& address) const noexcept {
    for (const Part& part : parts_) {
        const Wide offset = (as_number(address) - as_number(part.prefix.address.bytes)) >> host_shift(part.prefix);
        if (offset < part.count) {
            return static_cast<std::uint16_t>(part.first + static_cast<std::uint32_t>(offset));
        }
    }
    return std::nullopt;
}

PortPool::Bytes PortPool::address_of(std::uint16_t number) const noexcept {
    Bytes address{};
    for (const Part& part : parts_) {
        if (number - part.first < part.count) {
            const Wide value = as_number(part.prefix.address.bytes) + (static_cast<Wide>(number - part.first) << host_shift(part.prefix));
            store_big_endian(address.data(), static_cast<std::uint64_t>(value >> 64));
            store_big_endian(address.data() + 8, static_cast<std::uint64_t>(value));
            break;
        }
    }
    return address;
}

std::optional<PortPool::Place> PortPool::take(Place first) noexcept {
    for (std::uint32_t i = 0; i < count_; ++i) {
        const auto address = static_cast<std::uint16_t>((first.address + i) % count_);
        if (const auto port = take_port({.address = address, .port = first.port})) {
            return Place{.address = address, .port = *port};
        }
    }
    return std::nullopt;
}

std::optional<std::uint16_t> PortPool::take_port(Place first) noexcept {
    if (taken_of_[first.address] >= usable_count_) {
        return std::nullopt;
    }
    std::uint32_t port = first.port < port_min_ || first.port > port_max_ ? port_min_ : first.port;
    for (;;) {
        std::uint64_t& taken = taken_[first.address * words_of_address + port / 64];
        const std::uint64_t free = usable_[port / 64] & ~taken & (~std::uint64_t{0} << port % 64);
        const std::uint32_t free_port = port / 64 * 64 + static_cast<std::uint32_t>(std::countr_zero(free));
        if (free != 0) {
            taken |= std::uint64_t{1} << free_port % 64;
            ++taken_of_[first.address];
            return static_cast<std::uint16_t>(free_port);
        }
        port = port / 64 * 64 + 64;
        port = port > port_max_ ? port_min_ : port;
    }
}

void PortPool::release(Place place) noexcept {
    taken_[place.address * words_of_address + place.port / 64] &= ~(std::uint64_t{1} << place.port % 64);
    --taken_of_[place.address];
}

void PortPool::release_all() noexcept {
    for (std::uint32_t address = 0; address < count_; ++address) {
        if (std::exchange(taken_of_[address], 0) != 0) {
            std::memset(&taken_[address * words_of_address], 0, words_of_address * sizeof(std::uint64_t));
        }
    }
}

}  // namespace gatemark::refdut
