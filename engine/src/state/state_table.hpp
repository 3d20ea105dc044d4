#pragma once

#include "base/paged_memory.hpp"
#include "base/result.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace gatemark::state {

/// The source of a connection as the Responder sees it: a public address, by its number in the
/// pool, and a port.
struct Endpoint {
    std::uint64_t address = 0;
    std::uint16_t port = 0;
    friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// What the Responder learned in test phase 1: the translated source of each connection (RFC 9693
/// section 4.10). Entry k belongs to connection k, which is known from the frame, so the
/// destination need not be stored. 8 bytes a connection, for both families: 8 bits of generation,
/// 40 of the address's number, 16 of the port. One atomic store writes an entry, so any number of
/// receivers and senders share it without a lock.
class StateTable {
public:
    /// Bytes that `reset` would take in addition to those that are held.
    [[nodiscard]] std::uint64_t growth(std::uint64_t count) const noexcept {
        return count > entries_.size() ? count * sizeof(std::uint64_t) - entries_.bytes() : 0;
    }

    /// Forgets everything and makes room for `count` connections. Memory is kept from trial to
    /// trial and touched in advance, on `cpus`, so no worker waits for a page fault.
    [[nodiscard]] std::optional<Error> reset(std::uint64_t count, std::span<const unsigned> cpus = {});

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return entries_.bytes(); }

    void write(std::uint64_t connection, const Endpoint& endpoint) noexcept {
        // Relaxed: an entry is complete in itself; nothing else is published with it.
        std::atomic_ref<std::uint64_t>{entries_[connection]}.store(entry_of(endpoint), std::memory_order_relaxed);
    }
    /// Whether `read` would return this endpoint.
    [[nodiscard]] bool has(std::uint64_t connection, const Endpoint& endpoint) const noexcept {
        return load(connection) == entry_of(endpoint);
    }
    /// An endpoint in one number, as an entry holds it.
    [[nodiscard]] static constexpr std::uint64_t packed(std::uint64_t address, std::uint16_t port) noexcept { return address << 16 | port; }
    /// `write` for several connections in turn, with endpoints as `packed` gives them.
    void write_all(std::span<const std::uint64_t> connections, std::span<const std::uint64_t> endpoints) noexcept {
        std::uint64_t* const entries = entries_.data();
        const std::uint64_t generation = std::uint64_t{generation_} << 56;
        for (std::size_t k = 0; k < connections.size(); ++k) {
            std::atomic_ref<std::uint64_t>{entries[connections[k]]}.store(generation | endpoints[k], std::memory_order_relaxed);
        }
    }
    /// For how many of several connections, from the first one on, `read` would return these
    /// endpoints.
    [[nodiscard]] std::size_t count_same(std::span<const std::uint64_t> connections,
                                         std::span<const std::uint64_t> endpoints) const noexcept {
        const std::uint64_t generation = std::uint64_t{generation_} << 56;
        std::size_t k = 0;
        while (k < connections.size() && load(connections[k]) == (generation | endpoints[k])) {
            ++k;
        }
        return k;
    }
    [[nodiscard]] std::optional<Endpoint> read(std::uint64_t connection) const noexcept {
        const std::uint64_t entry = load(connection);
        if (entry >> 56 != generation_) {
            return std::nullopt;
        }
        return Endpoint{.address = entry >> 16 & 0xff'ffff'ffff, .port = static_cast<std::uint16_t>(entry & 0xffff)};
    }
    /// How many entries there are. It reads the whole table, so it is for after a trial.
    [[nodiscard]] std::uint64_t filled() const noexcept;
    void prefetch(std::uint64_t connection) const noexcept { __builtin_prefetch(entries_.data() + connection); }

private:
    [[nodiscard]] std::uint64_t entry_of(const Endpoint& endpoint) const noexcept {
        return std::uint64_t{generation_} << 56 | packed(endpoint.address, endpoint.port);
    }
    [[nodiscard]] std::uint64_t load(std::uint64_t connection) const noexcept {
        return __atomic_load_n(&entries_[connection], __ATOMIC_RELAXED);  // std::atomic_ref does not accept const objects
    }

    PagedMemory<std::uint64_t> entries_;
    std::uint64_t count_ = 0;
    std::uint8_t generation_ = 0;  ///< entries of another generation are empty: forgetting costs nothing
};

}  // namespace gatemark::state
