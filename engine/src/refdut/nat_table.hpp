#pragma once

#include "base/counts.hpp"
#include "base/paged_memory.hpp"
#include "net/address.hpp"
#include "refdut/b4_set.hpp"
#include "refdut/hash_index.hpp"
#include "refdut/port_pool.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace gatemark::refdut {

/// What a full table does with a frame that asks for a new connection.
enum class Overflow : std::uint8_t {
    refuse,                ///< drops the frame and notifies its sender by ICMP, at most once a millisecond
    drop,                  ///< drops the frame
    evict_oldest,          ///< deletes the connection that was established first
    forward_untranslated,  ///< routes the frame with its own source address
};

/// May be changed while the gateway runs.
struct NatLimits {
    std::uint64_t capacity = 1'000'000;  ///< connections, at most NatTable::capacity_max
    Overflow overflow = Overflow::refuse;
    std::uint64_t establishment_per_second = 0;  ///< new connections a second; 0: no limit
    /// New connections at once after a pause, at least 1. With 1 a frame that comes a nanosecond
    /// early is turned away: choose it above the sender's jitter. In T seconds burst + rate * T
    /// connections are established.
    std::uint64_t establishment_burst = 1;
    std::uint64_t timeout_ns = 300'000'000'000;  ///< since the last frame in either direction (200 us late at most); 0: never
};

/// Counted since the table was made or `reset_counters`.
enum class NatCount : std::uint8_t {
    created,         ///< made
    evicted,         ///< deleted to make room for a new one
    refused,         ///< not made, because the table was full
    expired,         ///< deleted, because no frame had used them for the timeout
    rate_limited,    ///< not made, because they came faster than the establishment rate
    untranslated,    ///< not made: the frame was routed with its own source address
    pool_exhausted,  ///< not made, because no public port was free
    cleared,         ///< deleted by `clear` or `reset`
};

/// One end of a connection: 16 bytes of address as in net::Address, whatever the family.
struct NatEndpoint {
    std::array<std::byte, 16> address{};
    std::uint16_t port = 0;
    friend bool operator==(const NatEndpoint&, const NatEndpoint&) = default;
};

/// The connections of a NAT. A connection is a four-tuple: inside endpoint and remote endpoint. All
/// connections of an inside endpoint share one pool endpoint (Endpoint-Independent Mapping, RFC
/// 4787 section 4.1); or each has its own (Address and Port-Dependent Mapping), which other
/// connections may have as well if their remote endpoints differ. It has the inside port if that is
/// free, else the next free one. A pool address is chosen by the inside address (paired, RFC 4787
/// section 4.1) and left only if all its ports are taken; ports that only one remote endpoint takes
/// are looked through one by one. From outside only the remote endpoint of a known connection is
/// let in (Address and Port-Dependent Filtering, RFC 4787 section 5), so the number of connections
/// is exactly that of the four-tuples which are answered. All memory is taken when the table is
/// made and when its capacity grows. One thread at a time.
class NatTable {
public:
    using Connection = std::uint32_t;
    static constexpr Connection none = 0xffff'ffff;
    static constexpr std::uint64_t capacity_max = 100'000'000;

    enum class Outcome : std::uint8_t { known, created, refused, dropped, untranslated, rate_limited, pool_exhausted };
    struct Lookup {
        Outcome outcome = Outcome::known;
        Connection connection = none;  ///< of known and created
    };

    /// `pool` has at least one address; limits and ports are within their ranges (see `check` in
    /// translate.hpp).
    NatTable(const NatPool& pool, const NatLimits& limits);

    /// The connection of a frame from inside; creates it if it does not exist and is allowed.
    [[nodiscard]] Lookup from_inside(const NatEndpoint& inside, const NatEndpoint& remote, std::uint64_t now_ns) noexcept;
    /// The connection that a frame from outside belongs to, or `none`.
    [[nodiscard]] Connection from_outside(const NatEndpoint& remote, const NatEndpoint& pool, std::uint64_t now_ns) noexcept;
    [[nodiscard]] bool in_pool(const std::array<std::byte, 16>& address) const noexcept { return pool_.number_of(address).has_value(); }

    /// Where a connection will be searched for. The memory for all frames of a burst is prefetched
    /// before the first one is translated: with a table larger than the caches, waiting for it is
    /// most of a frame's time.
    struct Clue {
        enum class Where : std::uint8_t { nowhere, inside, outside } where = Where::nowhere;
        std::uint32_t hash = 0;
    };
    /// First for all frames; this also prefetches the index;
    [[nodiscard]] Clue clue_from_inside(const NatEndpoint& inside, const NatEndpoint& remote) const noexcept;
    [[nodiscard]] Clue clue_from_outside(const NatEndpoint& remote, const NatEndpoint& pool) const noexcept;
    /// then for all frames again.
    void fetch(const Clue& clue) const noexcept;

    /// An IPv4 endpoint as that of one B4 (RFC 6333 section 6.6); none if there are too many B4s.
    [[nodiscard]] std::optional<NatEndpoint> behind_b4(NatEndpoint inside, const std::array<std::byte, 16>& b4) noexcept;
    /// The B4 that a connection is behind, and another one; none if there is no other.
    [[nodiscard]] const std::array<std::byte, 16>& b4_of(Connection connection) const noexcept;
    [[nodiscard]] std::optional<std::array<std::byte, 16>> another_b4(Connection connection) const noexcept;

    // For a connection that was just found.
    [[nodiscard]] NatEndpoint inside_of(Connection connection) const noexcept;
    [[nodiscard]] NatEndpoint pool_of(Connection connection) const noexcept;
    [[nodiscard]] NatEndpoint remote_of(Connection connection) const noexcept;

    /// For corrupt.hpp: from now on gives the connection another pool port, like a NAT that lost
    /// its mapping. False if the pool has no other. Ports that connections gave up come last: what
    /// is still under way to them must not reach somebody else, a fault that nobody planted.
    [[nodiscard]] bool change_mapping(Connection connection) noexcept;
    /// Another connection with the same remote endpoint, from the 4096 that were established before
    /// it and after it.
    [[nodiscard]] Connection another_owner(Connection connection) const noexcept;

    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] const NatLimits& limits() const noexcept { return limits_; }
    [[nodiscard]] const Counts<NatCount>& counters() const noexcept { return counters_; }
    void reset_counters() noexcept { counters_ = {}; }

    /// Deletes expired connections, examining at most `budget`. Call it regularly: a frame never
    /// finds an expired connection, but `size` counts it until it is examined (1/1024 of the
    /// timeout and 200 us late at most, if the budget suffices).
    void expire(std::uint64_t now_ns, std::size_t budget = SIZE_MAX) noexcept;
    /// Deletes everything and counts it as cleared. Takes some milliseconds per million of
    /// capacity.
    void clear() noexcept;
    /// Takes effect at once. Connections stay, except that evict_oldest removes those beyond a
    /// smaller capacity. Not for the frame path: growing takes memory and time. Throws
    /// std::bad_alloc, and all stays as it was.
    void set_limits(const NatLimits& limits, std::uint64_t now_ns);

    /// Of what a table of this capacity takes, apart from the pool.
    [[nodiscard]] static std::uint64_t bytes_for(std::uint64_t capacity) noexcept {
        return capacity * (sizeof(Record) + sizeof(Mapping)) + 3 * HashIndex::bytes_for(capacity);
    }
    /// What `set_limits` would allocate for this capacity, while all that is held stays.
    [[nodiscard]] std::uint64_t growth(std::uint64_t capacity) const noexcept {
        return capacity > storage_.capacity ? bytes_for(capacity) : 0;
    }
    /// Of allocated memory (not all of it is touched).
    [[nodiscard]] std::size_t memory_bytes() const noexcept;

private:
    static constexpr std::uint32_t nil = 0xffff'ffff;
    static constexpr std::uint32_t wheel_slots = 2048, wheel_slots_a_timeout = 1024, first_of_slot = 0x8000'0000;

    /// One cache line.
    struct alignas(64) Record {
        std::array<std::byte, 16> inside, remote;
        std::uint16_t inside_port, remote_port, pool_port, pool_number;
        std::uint32_t mapping;
        std::uint32_t used_at;                 ///< in ticks of 2^16 ns since the table's first frame
        std::uint32_t older, newer;            ///< in order of establishment; `newer` also links free records
        std::uint32_t wheel_back, wheel_next;  ///< of those that may expire in the same slot of time; the first one's back is the slot
    };
    static_assert(sizeof(Record) == 64);

    /// A pool endpoint that an inside endpoint holds, or one of its connections.
    struct Mapping {
        std::array<std::byte, 16> inside;
        std::uint16_t inside_port, pool_port, pool_number;
        bool detached;              ///< no new connection uses it: it is a connection's own
        std::uint32_t connections;  ///< 0: free
        std::uint32_t next_free;
    };
    static_assert(sizeof(Mapping) == 32);

    /// Everything whose size follows the capacity.
    struct Storage {
        explicit Storage(std::uint64_t capacity);
        std::uint64_t capacity;
        PagedMemory<Record> records;
        PagedMemory<Mapping> mappings;
        HashIndex by_inside, by_outside, mapping_by_inside;
    };

    [[nodiscard]] std::uint64_t ticks_of(std::uint64_t now_ns) noexcept;
    [[nodiscard]] bool is_expired(const Record& record, std::uint64_t now) const noexcept {
        return timeout_ticks_ != 0 && static_cast<std::uint32_t>(static_cast<std::uint32_t>(now) - record.used_at) > timeout_ticks_;
    }

    [[nodiscard]] std::uint32_t b4_number_of(Connection connection) const noexcept;
    [[nodiscard]] Lookup establish(const NatEndpoint& inside, const NatEndpoint& remote, std::uint32_t hash, std::uint64_t now_ns) noexcept;
    [[nodiscard]] std::uint32_t take_record() noexcept;
    void remove(Connection connection) noexcept;
    [[nodiscard]] Connection find_outside(PortPool::Place pool, const NatEndpoint& remote) const noexcept;
    [[nodiscard]] PortPool::Place wanted_place(const NatEndpoint& inside) const noexcept;
    [[nodiscard]] std::uint32_t mapping_of(const NatEndpoint& inside) noexcept;
    [[nodiscard]] std::uint32_t make_mapping(const NatEndpoint& inside, const NatEndpoint& remote, PortPool::Place first) noexcept;
    /// Of endpoint-dependent mapping: a place that no connection with this remote endpoint has.
    [[nodiscard]] std::optional<PortPool::Place> free_place(const NatEndpoint& remote, PortPool::Place first) const noexcept;
    void release_mapping(std::uint32_t mapping) noexcept;
    [[nodiscard]] bool refill_tokens(std::uint64_t now_ns) noexcept;

    void link_age(Connection connection) noexcept;
    void unlink_age(const Record& record) noexcept;
    void link_wheel(Connection connection, std::uint64_t now) noexcept;
    void unlink_wheel(const Record& record) noexcept;
    void rebuild_wheel(std::uint64_t now) noexcept;

    PortPool pool_;
    bool is_dependent_;  ///< endpoint-dependent mapping
    NatLimits limits_;
    Counts<NatCount> counters_;
    std::uint64_t size_ = 0;
    Storage storage_;
    B4Set b4s_;
    std::uint32_t free_record_ = nil, fresh_record_ = 0, free_mapping_ = nil, fresh_mapping_ = 0;
    std::uint32_t oldest_ = nil, newest_ = nil;
    std::optional<std::uint16_t> changed_to_{};  ///< the port that change_mapping() gave last
    std::optional<std::uint64_t> start_ns_;
    std::uint64_t timeout_ticks_ = 0, slot_ticks_ = 1;
    std::uint64_t wheel_at_ = 0;  ///< number of the next slot to examine
    std::array<std::uint32_t, wheel_slots> wheel_{};
    std::uint64_t tokens_ = 0, tokens_at_ns_ = 0;  ///< a connection costs 10^9 tokens; a nanosecond brings `establishment_per_second`
};

}  // namespace gatemark::refdut
