#include "refdut/nat_table.hpp"

#include "base/bytes.hpp"
#include "refdut/nat_hash.hpp"

#include <algorithm>
#include <utility>

namespace gatemark::refdut {

namespace {

constexpr unsigned tick_shift = 16;  // ns
constexpr std::uint64_t token_price = 1'000'000'000;
constexpr std::size_t examined_when_full = 256, owners_examined = 4096;
constexpr std::size_t b4_at = 12;  ///< in the 16 bytes of an inside IPv4 address

}  // namespace

NatTable::Storage::Storage(std::uint64_t capacity_)
    : capacity{capacity_},
      records(capacity_),
      mappings(capacity_ + 1),  // a changed mapping is created before the old one is removed
      by_inside{capacity_},
      by_outside{capacity_},
      mapping_by_inside{capacity_} {}

NatTable::NatTable(const NatPool& pool, const NatLimits& limits)
    : pool_{pool}, is_dependent_{pool.mapping == MappingKind::endpoint_dependent}, limits_{limits}, storage_{limits.capacity} {
    if (pool.behind_b4s) {
        b4s_ = B4Set{B4Set::size_max};
    }
    tokens_ = limits.establishment_burst * token_price;
    rebuild_wheel(0);
}

std::uint64_t NatTable::ticks_of(std::uint64_t now_ns) noexcept {
    if (!start_ns_) {
        start_ns_ = now_ns;
        tokens_at_ns_ = now_ns;
    }
    return (now_ns - *start_ns_) >> tick_shift;
}

NatTable::Lookup NatTable::from_inside(const NatEndpoint& inside, const NatEndpoint& remote, std::uint64_t now_ns) noexcept {
    const std::uint32_t hash = hash_of_pair(inside, remote);
    const std::uint64_t now = ticks_of(now_ns);
    const Connection known = storage_.by_inside.find(hash, [&](std::uint32_t number) {
        const Record& record = storage_.records[number];
        return record.inside == inside.address && record.remote == remote.address && record.inside_port == inside.port &&
               record.remote_port == remote.port;
    });
    if (known != none) {
        Record& record = storage_.records[known];
        if (!is_expired(record, now)) [[likely]] {
            record.used_at = static_cast<std::uint32_t>(now);
            return {.outcome = Outcome::known, .connection = known};
        }
        remove(known);
        ++counters_[NatCount::expired];
    }
    return establish(inside, remote, hash, now_ns);
}

NatTable::Connection NatTable::from_outside(const NatEndpoint& remote, const NatEndpoint& pool, std::uint64_t now_ns) noexcept {
    const auto address = pool_.number_of(pool.address);
    if (!address) {
        return none;
    }
    const std::uint64_t now = ticks_of(now_ns);
    const Connection known = find_outside({.address = *address, .port = pool.port}, remote);
    if (known == none) {
        return none;
    }
    Record& record = storage_.records[known];
    if (is_expired(record, now)) {
        remove(known);
        ++counters_[NatCount::expired];
        return none;
    }
    record.used_at = static_cast<std::uint32_t>(now);
    return known;
}

NatTable::Connection NatTable::find_outside(PortPool::Place pool, const NatEndpoint& remote) const noexcept {
    return storage_.by_outside.find(hash_of_outside(pool.address, pool.port, remote), [&](std::uint32_t number) {
        const Record& record = storage_.records[number];
        return record.pool_number == pool.address && record.pool_port == pool.port && record.remote_port == remote.port &&
               record.remote == remote.address;
    });
}

NatTable::Clue NatTable::clue_from_inside(const NatEndpoint& inside, const NatEndpoint& remote) const noexcept {
    const Clue clue{.where = Clue::Where::inside, .hash = hash_of_pair(inside, remote)};
    storage_.by_inside.prefetch(clue.hash);
    return clue;
}

NatTable::Clue NatTable::clue_from_outside(const NatEndpoint& remote, const NatEndpoint& pool) const noexcept {
    const auto address = pool_.number_of(pool.address);
    if (!address) {
        return {};
    }
    const Clue clue{.where = Clue::Where::outside, .hash = hash_of_outside(*address, pool.port, remote)};
    storage_.by_outside.prefetch(clue.hash);
    return clue;
}

void NatTable::fetch(const Clue& clue) const noexcept {
    if (clue.where == Clue::Where::nowhere) {
        return;
    }
    const std::uint32_t number = (clue.where == Clue::Where::inside ? storage_.by_inside : storage_.by_outside).guess(clue.hash);
    if (number != HashIndex::none) {
        __builtin_prefetch(&storage_.records[number], 1);
    }
}

std::optional<NatEndpoint> NatTable::behind_b4(NatEndpoint inside, const std::array<std::byte, 16>& b4) noexcept {
    const std::uint32_t number = b4s_.number_of(b4);
    if (number == B4Set::none) {
        return std::nullopt;
    }
    store_big_endian(inside.address.data() + b4_at, number);
    return inside;
}

std::uint32_t NatTable::b4_number_of(Connection connection) const noexcept {
    return load_big_endian<std::uint32_t>(storage_.records[connection].inside.data() + b4_at);
}

const std::array<std::byte, 16>& NatTable::b4_of(Connection connection) const noexcept { return b4s_.address_of(b4_number_of(connection)); }

std::optional<std::array<std::byte, 16>> NatTable::another_b4(Connection connection) const noexcept {
    return b4s_.size() < 2 ? std::nullopt : std::optional{b4s_.address_of((b4_number_of(connection) + 1) % b4s_.size())};
}

NatEndpoint NatTable::inside_of(Connection connection) const noexcept {
    const Record& record = storage_.records[connection];
    return {.address = record.inside, .port = record.inside_port};
}

NatEndpoint NatTable::pool_of(Connection connection) const noexcept {
    const Record& record = storage_.records[connection];
    return {.address = pool_.address_of(record.pool_number), .port = record.pool_port};
}

NatEndpoint NatTable::remote_of(Connection connection) const noexcept {
    const Record& record = storage_.records[connection];
    return {.address = record.remote, .port = record.remote_port};
}

/// A token bucket in integers: exact for any rate. True if a connection may be created.
bool NatTable::refill_tokens(std::uint64_t now_ns) noexcept {
    const std::uint64_t rate = limits_.establishment_per_second;
    if (rate == 0) {
        return true;
    }
    const std::uint64_t most = limits_.establishment_burst * token_price, elapsed = now_ns - std::min(now_ns, tokens_at_ns_);
    tokens_at_ns_ = now_ns;
    const bool brings_all = elapsed > (most - std::min(tokens_, most)) / rate;
    tokens_ = brings_all ? most : tokens_ + elapsed * rate;
    return tokens_ >= token_price;
}

NatTable::Lookup NatTable::establish(const NatEndpoint& inside, const NatEndpoint& remote, std::uint32_t hash,
                                     std::uint64_t now_ns) noexcept {
    const std::uint64_t now = ticks_of(now_ns);
    if (size_ >= limits_.capacity) {
        expire(now_ns, examined_when_full);
    }
    const bool full = size_ >= limits_.capacity;
    if (full && limits_.overflow == Overflow::forward_untranslated) {
        ++counters_[NatCount::untranslated];
        return {.outcome = Outcome::untranslated};
    }
    if (full && limits_.overflow != Overflow::evict_oldest) {
        ++counters_[NatCount::refused];
        return {.outcome = limits_.overflow == Overflow::refuse ? Outcome::refused : Outcome::dropped};
    }
    if (!refill_tokens(now_ns)) {
        ++counters_[NatCount::rate_limited];
        return {.outcome = Outcome::rate_limited};
    }
    if (full) {
        remove(oldest_);
        ++counters_[NatCount::evicted];
    }
    const std::uint32_t mapping_number = is_dependent_ ? make_mapping(inside, remote, wanted_place(inside)) : mapping_of(inside);
    if (mapping_number == nil) {
        ++counters_[NatCount::pool_exhausted];
        return {.outcome = Outcome::pool_exhausted};
    }
    tokens_ -= limits_.establishment_per_second == 0 ? 0 : token_price;
    Mapping& mapping = storage_.mappings[mapping_number];
    ++mapping.connections;
    const Connection connection = take_record();
    storage_.records[connection] = {.inside = inside.address,
                                    .remote = remote.address,
                                    .inside_port = inside.port,
                                    .remote_port = remote.port,
                                    .pool_port = mapping.pool_port,
                                    .pool_number = mapping.pool_number,
                                    .mapping = mapping_number,
                                    .used_at = static_cast<std::uint32_t>(now),
                                    .older = nil,
                                    .newer = nil,
                                    .wheel_back = nil,
                                    .wheel_next = nil};
    storage_.by_inside.insert(hash, connection);
    storage_.by_outside.insert(hash_of_outside(mapping.pool_number, mapping.pool_port, remote), connection);
    link_age(connection);
    link_wheel(connection, now);
    ++size_;
    ++counters_[NatCount::created];
    return {.outcome = Outcome::created, .connection = connection};
}

std::uint32_t NatTable::take_record() noexcept {
    if (free_record_ == nil) {
        return fresh_record_++;
    }
    const std::uint32_t record = free_record_;
    free_record_ = storage_.records[record].newer;
    return record;
}

void NatTable::remove(Connection connection) noexcept {
    Record& record = storage_.records[connection];
    const NatEndpoint inside = inside_of(connection), remote = remote_of(connection);
    storage_.by_inside.erase(hash_of_pair(inside, remote), connection);
    storage_.by_outside.erase(hash_of_outside(record.pool_number, record.pool_port, remote), connection);
    unlink_age(record);
    unlink_wheel(record);
    release_mapping(record.mapping);
    record.newer = free_record_;
    free_record_ = connection;
    --size_;
}

PortPool::Place NatTable::wanted_place(const NatEndpoint& inside) const noexcept {
    return {.address = static_cast<std::uint16_t>(finish(hash_of(inside.address, 0)) % pool_.addresses()), .port = inside.port};
}

/// The mapping of an inside endpoint, created if there is none; nil if the pool has no port for it.
std::uint32_t NatTable::mapping_of(const NatEndpoint& inside) noexcept {
    const std::uint32_t known = storage_.mapping_by_inside.find(hash_of_mapping(inside), [&](std::uint32_t number) {
        const Mapping& mapping = storage_.mappings[number];
        return mapping.inside == inside.address && mapping.inside_port == inside.port;
    });
    if (known != HashIndex::none) {
        return known;
    }
    const std::uint32_t new_mapping = make_mapping(inside, {}, wanted_place(inside));
    if (new_mapping != nil) {
        storage_.mapping_by_inside.insert(hash_of_mapping(inside), new_mapping);
    }
    return new_mapping;
}

std::optional<PortPool::Place> NatTable::free_place(const NatEndpoint& remote, PortPool::Place first) const noexcept {
    for (std::uint32_t i = 0; i < pool_.addresses(); ++i) {
        PortPool::Place place{.address = static_cast<std::uint16_t>((first.address + i) % pool_.addresses()), .port = first.port};
        for (std::uint32_t k = 0; k <= pool_.ports(); ++k) {  // `first.port` may be none of them
            if (pool_.has_port(place.port) && find_outside(place, remote) == none) {
                return place;
            }
            place.port = pool_.port_after(place.port);
        }
    }
    return std::nullopt;
}

std::uint32_t NatTable::make_mapping(const NatEndpoint& inside, const NatEndpoint& remote, PortPool::Place first) noexcept {
    const auto place = is_dependent_ ? free_place(remote, first) : pool_.take(first);
    if (!place) {
        return nil;
    }
    std::uint32_t number = free_mapping_;
    if (number == nil) {
        number = fresh_mapping_++;
    } else {
        free_mapping_ = storage_.mappings[number].next_free;
    }
    storage_.mappings[number] = {.inside = inside.address,
                                 .inside_port = inside.port,
                                 .pool_port = place->port,
                                 .pool_number = place->address,
                                 .detached = is_dependent_,
                                 .connections = 0,
                                 .next_free = nil};
    return number;
}

void NatTable::release_mapping(std::uint32_t number) noexcept {
    Mapping& mapping = storage_.mappings[number];
    if (--mapping.connections != 0) {
        return;
    }
    if (!mapping.detached) {
        storage_.mapping_by_inside.erase(hash_of_mapping({.address = mapping.inside, .port = mapping.inside_port}), number);
    }
    if (!is_dependent_) {
        pool_.release({.address = mapping.pool_number, .port = mapping.pool_port});
    }
    mapping.next_free = free_mapping_;
    free_mapping_ = number;
}

bool NatTable::change_mapping(Connection connection) noexcept {
    Record& record = storage_.records[connection];
    const NatEndpoint remote = remote_of(connection);
    const std::uint16_t before = changed_to_.value_or(record.pool_port);
    const std::uint32_t new_mapping =
        make_mapping(inside_of(connection), remote, {.address = record.pool_number, .port = pool_.port_after(before)});
    if (new_mapping == nil) {
        return false;
    }
    Mapping& mapping = storage_.mappings[new_mapping];
    changed_to_ = mapping.pool_port;
    mapping.detached = true;
    mapping.connections = 1;
    storage_.by_outside.erase(hash_of_outside(record.pool_number, record.pool_port, remote), connection);
    release_mapping(record.mapping);
    record.mapping = new_mapping;
    record.pool_number = mapping.pool_number;
    record.pool_port = mapping.pool_port;
    storage_.by_outside.insert(hash_of_outside(record.pool_number, record.pool_port, remote), connection);
    return true;
}

NatTable::Connection NatTable::another_owner(Connection connection) const noexcept {
    const NatEndpoint remote = remote_of(connection), inside = inside_of(connection);
    std::uint32_t older = storage_.records[connection].older, newer = storage_.records[connection].newer;
    for (std::size_t i = 0; i < owners_examined; ++i) {
        for (std::uint32_t* const at : {&older, &newer}) {
            if (*at == nil) {
                continue;
            }
            if (remote_of(*at) == remote && inside_of(*at) != inside) {
                return *at;
            }
            *at = at == &older ? storage_.records[*at].older : storage_.records[*at].newer;
        }
    }
    return none;
}

void NatTable::link_age(Connection connection) noexcept {
    Record& record = storage_.records[connection];
    record.older = newest_;
    record.newer = nil;
    (newest_ == nil ? oldest_ : storage_.records[newest_].newer) = connection;
    newest_ = connection;
}

void NatTable::unlink_age(const Record& record) noexcept {
    (record.older == nil ? oldest_ : storage_.records[record.older].newer) = record.newer;
    (record.newer == nil ? newest_ : storage_.records[record.newer].older) = record.older;
}

/// Puts the connection where it is examined next: into the time slot in which it expires if it is
/// not used again.
void NatTable::link_wheel(Connection connection, std::uint64_t now) noexcept {
    if (timeout_ticks_ == 0) {
        return;
    }
    Record& record = storage_.records[connection];
    const std::uint64_t used = now - static_cast<std::uint32_t>(static_cast<std::uint32_t>(now) - record.used_at);
    const std::uint64_t number = std::clamp((used + timeout_ticks_) / slot_ticks_, wheel_at_, wheel_at_ + wheel_slots - 1);
    const auto slot = static_cast<std::uint32_t>(number % wheel_slots);
    record.wheel_back = first_of_slot | slot;
    record.wheel_next = wheel_[slot];
    if (wheel_[slot] != nil) {
        storage_.records[wheel_[slot]].wheel_back = connection;
    }
    wheel_[slot] = connection;
}

void NatTable::unlink_wheel(const Record& record) noexcept {
    if (timeout_ticks_ == 0) {
        return;
    }
    if ((record.wheel_back & first_of_slot) != 0) {
        wheel_[record.wheel_back & ~first_of_slot] = record.wheel_next;
    } else {
        storage_.records[record.wheel_back].wheel_next = record.wheel_next;
    }
    if (record.wheel_next != nil) {
        storage_.records[record.wheel_next].wheel_back = record.wheel_back;
    }
}

void NatTable::rebuild_wheel(std::uint64_t now) noexcept {
    wheel_.fill(nil);
    timeout_ticks_ = limits_.timeout_ns == 0 ? 0 : (limits_.timeout_ns >> tick_shift) + 1;
    slot_ticks_ = timeout_ticks_ / wheel_slots_a_timeout + 1;
    wheel_at_ = now / slot_ticks_;
    for (std::uint32_t i = oldest_; i != nil; i = storage_.records[i].newer) {
        link_wheel(i, now);
    }
}

void NatTable::expire(std::uint64_t now_ns, std::size_t budget) noexcept {
    const std::uint64_t now = ticks_of(now_ns);
    if (timeout_ticks_ == 0) {
        return;
    }
    const std::uint64_t end = now / slot_ticks_;
    while (wheel_at_ < end) {
        std::uint32_t& first = wheel_[wheel_at_ % wheel_slots];
        while (first != nil) {
            if (budget-- == 0) {
                return;
            }
            const Connection connection = first;
            if (is_expired(storage_.records[connection], now)) {
                remove(connection);
                ++counters_[NatCount::expired];
            } else {  // it expires after `wheel_at_`, so it never comes back into the slot that is being emptied
                unlink_wheel(storage_.records[connection]);
                link_wheel(connection, now);
            }
        }
        wheel_at_ = size_ == 0 ? end : wheel_at_ + 1;
    }
}

void NatTable::clear() noexcept {
    counters_[NatCount::cleared] += size_;
    storage_.by_inside.clear();
    storage_.by_outside.clear();
    storage_.mapping_by_inside.clear();
    pool_.release_all();
    b4s_.clear();
    wheel_.fill(nil);
    free_record_ = free_mapping_ = oldest_ = newest_ = nil;
    fresh_record_ = fresh_mapping_ = 0;
    size_ = 0;
    changed_to_.reset();
}

void NatTable::set_limits(const NatLimits& limits, std::uint64_t now_ns) {
    const std::uint64_t now = ticks_of(now_ns);
    (void)refill_tokens(now_ns);
    if (limits.capacity > storage_.capacity) {
        Storage larger{limits.capacity};
        for (std::uint32_t i = 0; i < fresh_record_; ++i) {
            larger.records[i] = storage_.records[i];
        }
        for (std::uint32_t i = 0; i < fresh_mapping_; ++i) {
            larger.mappings[i] = storage_.mappings[i];
        }
        for (std::uint32_t i = oldest_; i != nil; i = storage_.records[i].newer) {
            const Record& record = storage_.records[i];
            larger.by_inside.insert(hash_of_pair(inside_of(i), remote_of(i)), i);
            larger.by_outside.insert(hash_of_outside(record.pool_number, record.pool_port, remote_of(i)), i);
        }
        for (std::uint32_t i = 0; i < fresh_mapping_; ++i) {
            const Mapping& mapping = storage_.mappings[i];
            if (mapping.connections != 0 && !mapping.detached) {
                larger.mapping_by_inside.insert(hash_of_mapping({.address = mapping.inside, .port = mapping.inside_port}), i);
            }
        }
        storage_ = std::move(larger);
    }
    const bool rate_was_off = limits_.establishment_per_second == 0;
    const bool new_timeout = limits_.timeout_ns != limits.timeout_ns;
    limits_ = limits;
    const std::uint64_t most = limits_.establishment_burst * token_price;
    tokens_ = rate_was_off ? most : std::min(tokens_, most);
    tokens_at_ns_ = now_ns;
    while (limits_.overflow == Overflow::evict_oldest && size_ > limits_.capacity) {
        remove(oldest_);
        ++counters_[NatCount::evicted];
    }
    if (new_timeout) {
        rebuild_wheel(now);
    }
}

std::size_t NatTable::memory_bytes() const noexcept {
    return storage_.records.bytes() + storage_.mappings.bytes() + storage_.by_inside.bytes() + storage_.by_outside.bytes() +
           storage_.mapping_by_inside.bytes() + pool_.bytes();
}

}  // namespace gatemark::refdut
