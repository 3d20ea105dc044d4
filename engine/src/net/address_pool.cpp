#include "net/address_pool.hpp"

namespace gatemark::net {

Result<AddressPool> AddressPool::make(const std::vector<Prefix>& prefixes, const std::string& where) {
    if (prefixes.empty()) {
        return Error{"the pool of public addresses is empty", where, "give the prefixes that the gateway translates to"};
    }
    AddressPool pool;
    pool.family_ = prefixes.front().address.family;
    for (const Prefix& prefix : prefixes) {
        if (prefix.address.family != pool.family_) {
            return Error{"the pool has addresses of both families", where, "give those of the Responder's side"};
        }
        for (const Block& block : pool.blocks_) {
            const Halves first = pool.read(prefix.address.bytes.data());
            const Address earlier = pool.at(block.number);
            if (prefix.contains(earlier) || (first.high == block.first.high && first.low - block.first.low < block.count)) {
                return Error{"prefixes of the pool overlap at " + to_text(prefix.address), where, "give each address once"};
            }
        }
        const auto bits = static_cast<unsigned>(8 * address_bytes(pool.family_)) - prefix.length;
        const std::uint64_t count = bits <= 40 ? std::uint64_t{1} << bits : count_limit + 1;
        if (pool.count_ + count > count_limit) {
            return Error{"the pool has more than 2^40 addresses", where, "give longer prefixes: those that the gateway uses"};
        }
        pool.blocks_.push_back({.first = pool.read(prefix.address.bytes.data()), .count = count, .number = pool.count_});
        pool.count_ += count;
    }
    return pool;
}

}  // namespace gatemark::net
