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
        std::atomic_ref<std::uint64_t>{entries_[connection]}.store(
            std::uint64_t{generation_} << 56 | endpoint.address << 16 | endpoint.port, std::memory_order_relaxed);
    }
    [[nodiscard]] std::optional<Endpoint> read(std::uint64_t connection) const noexcept {
        // std::atomic_ref does not accept const objects.
        const std::uint64_t entry = __atomic_load_n(&entries_[connection], __ATOMIC_RELAXED);
        if (entry >> 56 != generation_) {
            return std::nullopt;
        }
        return Endpoint{.address = entry >> 16 & 0xff'ffff'ffff, .port = static_cast<std::uint16_t>(entry & 0xffff)};
    }
    /// How many entries there are. It reads the whole table, so it is for after a trial.
    [[nodiscard]] std::uint64_t filled() const noexcept;
    void prefetch(std::uint64_t connection) const noexcept { __builtin_prefetch(entries_.data() + connection); }

private:
    PagedMemory<std::uint64_t> entries_;
    std::uint64_t count_ = 0;
    std::uint8_t generation_ = 0;  ///< entries of another generation are empty: forgetting costs nothing
};

}  // namespace gatemark::state
