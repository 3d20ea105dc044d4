#pragma once

#include "frame/echo.hpp"

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

/// What tasks of an echo trial tell each other across workers, without locks.
namespace gatemark::loop {

/// Requests that wait for their replies: from one receiver of the Responder to one sender.
class AnswerQueue {
public:
    static constexpr std::size_t capacity = 4096;

    AnswerQueue() : answers_(capacity) {}

    /// For the receiver: how many more there is room for; nobody else makes this less.
    [[nodiscard]] std::size_t room() const noexcept {
        return capacity - static_cast<std::size_t>(head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_acquire));
    }
    /// For the receiver, where there is room.
    void put(const frame::EchoAnswer& answer) noexcept {
        const std::uint64_t head = head_.load(std::memory_order_relaxed);
        answers_[static_cast<std::size_t>(head % capacity)] = answer;
        head_.store(head + 1, std::memory_order_release);
    }
    /// For the sender.
    [[nodiscard]] std::size_t size() const noexcept {
        return static_cast<std::size_t>(head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_relaxed));
    }
    /// Answer i of those that wait, i < size(); it stays where it is.
    [[nodiscard]] const frame::EchoAnswer& at(std::size_t i) const noexcept {
        return answers_[static_cast<std::size_t>((tail_.load(std::memory_order_relaxed) + i) % capacity)];
    }
    void drop(std::size_t count) noexcept { tail_.store(tail_.load(std::memory_order_relaxed) + count, std::memory_order_release); }

private:
    std::vector<frame::EchoAnswer> answers_;
    alignas(64) std::atomic<std::uint64_t> head_{0};
    alignas(64) std::atomic<std::uint64_t> tail_{0};
};

/// Which slots of one sender have got a reply: from any number of receivers. Each slot has the
/// number of its latest request with a reply; a bit for each slot, and one for each 64 of them, say
/// where to look. It cannot overflow, whatever arrives.
class ReplyBoard {
public:
    explicit ReplyBoard(std::size_t slots) : replied_(slots), slot_bits_((slots + 63) / 64), word_bits_((slots + 4095) / 4096) {}

    /// For a receiver: request `number` of the slot has got its reply.
    void post(std::size_t slot, std::uint64_t number) noexcept {
        std::uint64_t known = replied_[slot].load(std::memory_order_relaxed);
        while (known < number + 1 && !replied_[slot].compare_exchange_weak(known, number + 1, std::memory_order_relaxed)) {}
        const std::size_t word = slot / 64;
        if (slot_bits_[word].fetch_or(std::uint64_t{1} << slot % 64, std::memory_order_acq_rel) == 0) {
            word_bits_[word / 64].fetch_or(std::uint64_t{1} << word % 64, std::memory_order_acq_rel);
        }
    }
    /// For the sender: calls take(slot, requests) for each slot that something was posted for since
    /// the last time; `requests` - 1 is the highest number posted. Returns whether there was any.
    template <class Take>
    bool collect(Take&& take) noexcept {
        bool any = false;
        for (std::size_t i = 0; i < word_bits_.size(); ++i) {
            if (word_bits_[i].load(std::memory_order_relaxed) == 0) {
                continue;
            }
            for (std::uint64_t words = word_bits_[i].exchange(0, std::memory_order_acq_rel); words != 0; words &= words - 1) {
                const std::size_t word = i * 64 + static_cast<std::size_t>(std::countr_zero(words));
                for (std::uint64_t bits = slot_bits_[word].exchange(0, std::memory_order_acq_rel); bits != 0; bits &= bits - 1) {
                    const std::size_t slot = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
                    take(slot, replied_[slot].load(std::memory_order_relaxed));
                    any = true;
                }
            }
        }
        return any;
    }

private:
    std::vector<std::atomic<std::uint64_t>> replied_, slot_bits_, word_bits_;
};

/// The part of a trial in which all clients run: from when the last of them begins until the first
/// of them has nothing more to send.
class SteadyPart {
public:
    explicit SteadyPart(std::uint64_t clients) noexcept : missing_{clients} {}
    /// A client sends its first request, or its last one. For the senders.
    void client_begins(pace::Ticks now) noexcept {
        if (missing_.fetch_sub(1, std::memory_order_relaxed) == 1) {
            begin_.store(now.value, std::memory_order_relaxed);
        }
    }
    void client_ends(pace::Ticks now) noexcept {
        std::uint64_t known = end_.load(std::memory_order_relaxed);
        while (now.value < known && !end_.compare_exchange_weak(known, now.value, std::memory_order_relaxed)) {}
    }
    /// Of a constant rate, which is known before.
    void set(pace::Ticks begin, pace::Ticks end) noexcept {
        begin_.store(begin.value, std::memory_order_relaxed);
        end_.store(end.value, std::memory_order_relaxed);
    }
    [[nodiscard]] bool contains(pace::Ticks time) const noexcept {
        return time.value >= begin_.load(std::memory_order_relaxed) && time.value <= end_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] pace::Ticks begin() const noexcept { return {begin_.load(std::memory_order_relaxed)}; }
    [[nodiscard]] pace::Ticks end() const noexcept { return {end_.load(std::memory_order_relaxed)}; }
    /// Whether every client has begun before one had nothing more to send.
    [[nodiscard]] bool exists() const noexcept { return begin().value != never && end().value != never && begin() <= end(); }

private:
    static constexpr std::uint64_t never = ~std::uint64_t{0};
    std::atomic<std::uint64_t> missing_, begin_{never}, end_{never};
};

}  // namespace gatemark::loop
