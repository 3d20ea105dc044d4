#pragma once

#include "base/paged_memory.hpp"
#include "refdut/hash_index.hpp"

#include <array>
#include <cstdint>

namespace gatemark::refdut {

/// The B4s of an AFTR (RFC 6333 section 5): each address has a number, in the order in which they
/// came, so that an inside endpoint has room for it. None is forgotten before all are.
class B4Set {
public:
    using Bytes = std::array<std::byte, 16>;
    static constexpr std::uint32_t size_max = std::uint32_t{1} << 20, none = 0xffff'ffff;

    /// Of none.
    B4Set() = default;
    /// The memory for `capacity` of them is taken here.
    explicit B4Set(std::uint32_t capacity) : addresses_(capacity), index_{capacity} {}

    /// Of an address that may be new; `none` if there are too many.
    [[nodiscard]] std::uint32_t number_of(const Bytes& address) noexcept;
    [[nodiscard]] const Bytes& address_of(std::uint32_t number) const noexcept { return addresses_[number]; }
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
    void clear() noexcept;

private:
    PagedMemory<Bytes> addresses_;
    HashIndex index_;
    std::uint32_t size_ = 0;
};

}  // namespace gatemark::refdut
