#include "refdut/b4_set.hpp"

#include "refdut/nat_hash.hpp"

namespace gatemark::refdut {

std::uint32_t B4Set::number_of(const Bytes& address) noexcept {
    const std::uint32_t hash = finish(hash_of(address, 0));
    const std::uint32_t known = index_.find(hash, [&](std::uint32_t number) { return addresses_[number] == address; });
    if (known != HashIndex::none) {
        return known;
    }
    if (size_ == addresses_.size()) {
        return none;
    }
    addresses_[size_] = address;
    index_.insert(hash, size_);
    return size_++;
}

void B4Set::clear() noexcept {
    if (size_ > 0) {
        index_.clear();
        size_ = 0;
    }
}

}  // namespace gatemark::refdut
