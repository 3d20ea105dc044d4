#pragma once

#include "base/paged_memory.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

namespace gatemark::refdut {

/// An open-addressing index from the hash of a key to the number of the record that holds the key:
/// 8 bytes a slot, linear probing, at most three quarters full, deletion by moving back what
/// follows, so that lookups do not slow down over time.
class HashIndex {
public:
    static constexpr std::uint32_t none = 0xffff'ffff;

    HashIndex() = default;
    /// Room for `count` numbers.
    explicit HashIndex(std::uint64_t count) : slots_{slots_for(count)}, mask_{static_cast<std::uint32_t>(slots_.size() - 1)} {}
    [[nodiscard]] static std::uint64_t bytes_for(std::uint64_t count) noexcept { return slots_for(count) * sizeof(Slot); }

    /// The number with this hash for which `matches(number)` is true, or `none`.
    template <class Matches>
    [[nodiscard]] std::uint32_t find(std::uint32_t hash, Matches&& matches) const noexcept {
        for (std::uint32_t at = hash & mask_;; at = (at + 1) & mask_) {
            const Slot& slot = slots_[at];
            if (slot.number_plus_one == 0) {
                return none;
            }
            if (slot.hash == hash && matches(slot.number_plus_one - 1)) {
                return slot.number_plus_one - 1;
            }
        }
    }
    void insert(std::uint32_t hash, std::uint32_t number) noexcept {
        std::uint32_t at = hash & mask_;
        while (slots_[at].number_plus_one != 0) {
            at = (at + 1) & mask_;
        }
        slots_[at] = {.hash = hash, .number_plus_one = number + 1};
    }
    /// The number must be present.
    void erase(std::uint32_t hash, std::uint32_t number) noexcept {
        std::uint32_t hole = hash & mask_;
        while (slots_[hole].number_plus_one != number + 1) {
            hole = (hole + 1) & mask_;
        }
        for (std::uint32_t at = (hole + 1) & mask_; slots_[at].number_plus_one != 0; at = (at + 1) & mask_) {
            // The entry at `at` may move into the hole if the hole is between its home slot and
            // `at`.
            if (((at - slots_[at].hash) & mask_) >= ((at - hole) & mask_)) {
                slots_[hole] = slots_[at];
                hole = at;
            }
        }
        slots_[hole] = {};
    }
    void clear() noexcept { std::memset(&slots_[0], 0, slots_.bytes()); }
    void prefetch(std::uint32_t hash) const noexcept { __builtin_prefetch(&slots_[hash & mask_]); }
    /// A number with this hash, most likely the one that `find` will return, or `none`.
    [[nodiscard]] std::uint32_t guess(std::uint32_t hash) const noexcept {
        return find(hash, [](std::uint32_t) { return true; });
    }
    [[nodiscard]] std::size_t bytes() const noexcept { return slots_.bytes(); }

private:
    struct Slot {
        std::uint32_t hash, number_plus_one;  ///< 0: empty
    };
    [[nodiscard]] static std::uint64_t slots_for(std::uint64_t count) noexcept { return std::bit_ceil(count + count / 3 + 8); }

    PagedMemory<Slot> slots_;
    std::uint32_t mask_ = 0;
};

}  // namespace gatemark::refdut
