#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gatemark::refdut {

/// Frames that wait for their departure, taken out in order of time, and in insertion order if due
/// at the same time. A frame that is due after all others, as every frame with a constant delay is,
/// goes into a ring; only the rest need a heap. All memory is allocated at the start.
template <class Item>
class HoldQueue {
public:
    explicit HoldQueue(std::size_t capacity) : capacity_{capacity}, ring_(std::bit_ceil(capacity + 1)), mask_{ring_.size() - 1} {
        heap_.reserve(capacity);
    }

    [[nodiscard]] std::size_t size() const noexcept { return ring_size() + heap_.size(); }
    [[nodiscard]] bool empty() const noexcept { return head_ == tail_ && heap_.empty(); }
    [[nodiscard]] bool full() const noexcept { return size() >= capacity_; }
    /// When the last frame of the ring is due; nothing in the queue is due later. 0 if there is
    /// none.
    [[nodiscard]] std::uint64_t last_due() const noexcept { return head_ == tail_ ? 0 : ring_[(tail_ - 1) & mask_].due; }

    /// The queue must not be full.
    void push(std::uint64_t due, const Item& item) noexcept {
        const Held held{.due = due, .number = next_number_++, .item = item};
        if (due >= last_due()) {
            ring_[tail_++ & mask_] = held;
            return;
        }
        heap_.push_back(held);  // within the reserved memory
        std::ranges::push_heap(heap_, later);
    }
    /// Takes out the next frame if it is due at `now`.
    [[nodiscard]] bool pop_due(std::uint64_t now, Item& item) noexcept {
        const bool from_ring = head_ != tail_ && (heap_.empty() || later(heap_.front(), ring_[head_ & mask_]));
        if (from_ring) {
            if (ring_[head_ & mask_].due > now) {
                return false;
            }
            item = ring_[head_++ & mask_].item;
            return true;
        }
        if (heap_.empty() || heap_.front().due > now) {
            return false;
        }
        std::ranges::pop_heap(heap_, later);
        item = heap_.back().item;
        heap_.pop_back();
        return true;
    }

private:
    struct Held {
        std::uint64_t due, number;
        Item item;
    };
    [[nodiscard]] static bool later(const Held& a, const Held& b) noexcept { return a.due != b.due ? a.due > b.due : a.number > b.number; }
    [[nodiscard]] std::size_t ring_size() const noexcept { return tail_ - head_; }

    std::size_t capacity_;
    std::vector<Held> ring_;
    std::size_t mask_, head_ = 0, tail_ = 0;
    std::vector<Held> heap_;
    std::uint64_t next_number_ = 0;
};

}  // namespace gatemark::refdut
