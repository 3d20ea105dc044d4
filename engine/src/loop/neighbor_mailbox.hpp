#pragma once

#include "base/counts.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gatemark::loop {

/// Neighbour messages that the Tester did not deal with.
enum class NeighborDrop : std::uint8_t {
    neighbour_overflow,    ///< a message of ARP or neighbour discovery came faster than the Tester could answer
    neighbour_unanswered,  ///< the port took no answer to such a message until after the wait for residual frames
};
using NeighborDrops = Counts<NeighborDrop>;

/// Carries neighbour discovery frames from a receiver to the neighbour responder of its port, off
/// the fast path. Bounded, with one writer and one reader, so a port has a mailbox for each of its
/// receivers. A frame that finds it full is dropped and counted: the gateway asks again, but only
/// after a second, and what it loses until then is not its fault.
class NeighborMailbox {
public:
    /// A gateway may ask for all the hosts of a trial at once.
    static constexpr std::size_t capacity = 4096, bytes_max = 128;
    struct Letter {
        std::size_t bytes = 0;
        std::array<std::byte, bytes_max> data;
        [[nodiscard]] std::span<const std::byte> frame() const noexcept { return std::span{data}.first(bytes); }
    };

    void put(std::span<const std::byte> frame) noexcept {
        const std::size_t head = head_.load(std::memory_order_relaxed);
        if (head - tail_.load(std::memory_order_acquire) == capacity || frame.size() > bytes_max) {
            overflow_.fetch_add(1, std::memory_order_relaxed);
            return;
        }
        Letter& letter = letters_[head % capacity];
        letter.bytes = frame.size();
        std::copy(frame.begin(), frame.end(), letter.data.begin());
        head_.store(head + 1, std::memory_order_release);  // pairs with the load in take
    }

    /// Calls `reader` with the oldest letter, which stays the oldest if `reader` returns false.
    /// Returns whether a letter was taken.
    template <class Reader>
    bool take(Reader&& reader) noexcept {
        const std::size_t tail = tail_.load(std::memory_order_relaxed);
        if (head_.load(std::memory_order_acquire) == tail || !reader(letters_[tail % capacity])) {
            return false;
        }
        tail_.store(tail + 1, std::memory_order_release);  // pairs with the load in put
        return true;
    }
    /// Letters that wait; for any thread.
    [[nodiscard]] std::size_t size() const noexcept {
        const std::size_t tail = tail_.load(std::memory_order_acquire);  // first: it never overtakes the head
        return head_.load(std::memory_order_acquire) - tail;
    }
    [[nodiscard]] std::uint64_t overflow() const noexcept { return overflow_.load(std::memory_order_relaxed); }

private:
    alignas(64) std::atomic<std::size_t> head_{0};
    alignas(64) std::atomic<std::size_t> tail_{0};
    std::atomic<std::uint64_t> overflow_{0};
    std::array<Letter, capacity> letters_;
};

}  // namespace gatemark::loop
