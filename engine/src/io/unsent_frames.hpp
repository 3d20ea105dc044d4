#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace gatemark::io {

/// Frames that the driver accepted from one queue. Only the thread of the queue adds.
class alignas(64) AcceptedFrames {
public:
    void add(std::size_t count) noexcept {
        count_.store(count_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);  // one writer: no locked instruction
    }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> count_ = 0;
};

/// Frames that a card's driver accepted and that the card does not count as sent. They never were
/// on the wire, whatever the driver says: a queue that the card does not serve, for example.
/// Without this they would pass for frames that the gateway lost.
///
/// Many cards have 32-bit counters, so numbers are compared modulo 2^32. A card may send frames of
/// its own, so less than nothing may be missing; that is no credit for later frames.
class UnsentFrames {
public:
    struct Counts {
        std::uint64_t accepted = 0;  ///< by the driver
        std::uint64_t sent = 0;      ///< by the card, as it says
    };
    /// Some drivers ask their card once a second.
    static constexpr std::chrono::milliseconds patience{2500};

    explicit UnsentFrames(const Counts& start) noexcept : behind_{behind(start)} {}

    /// Calls `read` until the card has counted all frames or `patience` is over. Returns how many
    /// frames have been missing altogether.
    template <class Read>
    std::uint64_t update(const Read& read, std::chrono::milliseconds allowed = patience) {
        const auto until = std::chrono::steady_clock::now() + allowed;
        std::int32_t now = behind(read());
        while (now > behind_ && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
            now = behind(read());
        }
        if (now > behind_) {
            total_ += static_cast<std::uint64_t>(std::int64_t{now} - behind_);
        }
        behind_ = now;
        return total_;
    }

private:
    [[nodiscard]] static std::int32_t behind(const Counts& counts) noexcept {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(counts.accepted - counts.sent));
    }

    std::int32_t behind_;  ///< at the last reading
    std::uint64_t total_ = 0;
};

}  // namespace gatemark::io
