#pragma once

#include "base/checksum.hpp"
#include "base/result.hpp"
#include "net/address.hpp"

#include <optional>
#include <span>
#include <vector>

namespace gatemark::net {

/// The public addresses of a gateway, numbered consecutively: prefixes of one family, one after the
/// other. A 40-bit number identifies an address of either family, so a state table entry takes 8
/// bytes for IPv6 as well as for IPv4.
class AddressPool {
public:
    static constexpr std::uint64_t count_limit = std::uint64_t{1} << 40;

    AddressPool() = default;
    /// Prefixes must be of one family, not overlap and hold at most `count_limit` addresses
    /// together.
    [[nodiscard]] static Result<AddressPool> make(const std::vector<Prefix>& prefixes, const std::string& where);

    [[nodiscard]] Family family() const noexcept { return family_; }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

    /// The number of the address at `field`; none if it is not in the pool.
    [[nodiscard]] std::optional<std::uint64_t> number_of(const std::byte* field) const noexcept {
        const Halves halves = read(field);
        for (const Block& block : blocks_) {
            if (halves.high == block.first.high && halves.low - block.first.low < block.count) {
                return block.number + (halves.low - block.first.low);
            }
        }
        return std::nullopt;
    }
    /// Puts the number of the address at `offset` of each frame, up to the first whose address is
    /// not in the pool. Returns how many it has put.
    std::size_t put_numbers(std::span<const std::byte* const> frames, std::size_t offset, std::span<std::uint64_t> numbers) const noexcept {
        return family_ == Family::ipv4 ? put_numbers<Family::ipv4>(frames, offset, numbers)
                                       : put_numbers<Family::ipv6>(frames, offset, numbers);
    }
    /// Writes address `number` (below count) and returns its share of a checksum.
    Sum write(std::byte* field, std::uint64_t number) const noexcept {
        const Block* block = blocks_.data();
        while (number - block->number >= block->count) {
            ++block;
        }
        const std::uint64_t low = block->first.low + (number - block->number);
        if (family_ == Family::ipv4) {
            const auto raw = swap_bytes(static_cast<std::uint32_t>(low));
            store_raw(field, raw);
            return raw;
        }
        const std::uint64_t raw_high = swap_bytes(block->first.high), raw_low = swap_bytes(low);
        store_raw(field, raw_high);
        store_raw(field + 8, raw_low);
        return (raw_high & 0xffff'ffff) + (raw_high >> 32) + (raw_low & 0xffff'ffff) + (raw_low >> 32);
    }
    [[nodiscard]] Address at(std::uint64_t number) const noexcept {
        Address address{.family = family_, .bytes = {}};
        write(address.bytes.data(), number);
        return address;
    }
    friend bool operator==(const AddressPool&, const AddressPool&) = default;

private:
    /// An address as two numbers; IPv4 uses the low half only.
    struct Halves {
        std::uint64_t high = 0, low = 0;
        friend bool operator==(const Halves&, const Halves&) = default;
    };
    /// A prefix. Its host part has at most 40 bits, so only the low half varies.
    struct Block {
        Halves first;
        std::uint64_t count = 0, number = 0;
        friend bool operator==(const Block&, const Block&) = default;
    };

    template <Family family>
    [[nodiscard]] static Halves read_of(const std::byte* field) noexcept {
        if constexpr (family == Family::ipv4) {
            return {0, load_big_endian<std::uint32_t>(field)};
        } else {
            return {load_big_endian<std::uint64_t>(field), load_big_endian<std::uint64_t>(field + 8)};
        }
    }
    [[nodiscard]] Halves read(const std::byte* field) const noexcept {
        return family_ == Family::ipv4 ? read_of<Family::ipv4>(field) : read_of<Family::ipv6>(field);
    }

    template <Family family>
    std::size_t put_numbers(std::span<const std::byte* const> frames, std::size_t offset, std::span<std::uint64_t> numbers) const noexcept {
        const Block first = blocks_.front();  // nearly always all of them: it stays in registers
        for (std::size_t k = 0; k < frames.size(); ++k) {
            const Halves halves = read_of<family>(frames[k] + offset);
            const std::uint64_t place = halves.low - first.first.low;
            if (halves.high == first.first.high && place < first.count) [[likely]] {
                numbers[k] = place;  // the first block begins with number 0
            } else if (const auto number = number_of(frames[k] + offset)) {
                numbers[k] = *number;
            } else {
                return k;
            }
        }
        return frames.size();
    }

    Family family_ = Family::ipv4;
    std::uint64_t count_ = 0;
    std::vector<Block> blocks_;
};

}  // namespace gatemark::net
