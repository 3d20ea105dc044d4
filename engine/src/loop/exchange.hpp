#pragma once

#include "frame/arrival.hpp"
#include "frame/burst.hpp"
#include "io/port.hpp"
#include "loop/neighbor_mailbox.hpp"
#include "loop/task.hpp"
#include "pace/clock.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

/// Sends a few frames exactly as they are, and keeps whatever arrives meanwhile. This is no
/// measurement: nothing here is fast.
namespace gatemark::loop {

/// A queue whose buffers take frames of any length. The rest of `bytes` is left as it was, so
/// nobody else sends these buffers before they are filled with a template.
template <class Q>
concept SendsAnyLength = io::TransmitsFrames<Q> && requires(Q& queue, typename Q::Buffer buffer, std::size_t bytes) {
    { Q::resize(buffer, bytes) } noexcept;
};

/// Sends each frame at its time; one that the port does not take is tried again.
template <SendsAnyLength Queue, pace::TickClock Clock = pace::CycleClock>
class FrameListSender final : public Task {
public:
    /// The buffers of `slot` are as long as the longest frame. `frames` outlive the task.
    FrameListSender(const std::vector<std::vector<std::byte>>& frames, Queue& queue, std::size_t slot, pace::Ticks interval,
                    const Clock& clock = {})
        : frames_{frames}, queue_{queue}, slot_{slot}, interval_{interval}, clock_{clock} {}

    bool poll() noexcept override {
        const std::size_t next = sent_.load(std::memory_order_relaxed);
        const pace::Ticks now = clock_.now();
        if (next == frames_.size() || (next != 0 && now < due_)) {
            return false;
        }
        const std::vector<std::byte>& frame = frames_[next];
        std::array<typename Queue::Buffer, 1> buffer;
        if (queue_.acquire(slot_, buffer) != 1) {
            return false;
        }
        std::copy(frame.begin(), frame.end(), Queue::bytes(buffer[0]));
        Queue::resize(buffer[0], frame.size());
        if (queue_.send(buffer) != 1) {
            queue_.release(buffer);
            return false;
        }
        due_.value = (next == 0 ? now : due_).value + interval_.value;
        sent_.store(next + 1, std::memory_order_release);
        return true;
    }

    /// How many frames the port has taken; for any thread.
    [[nodiscard]] std::size_t sent() const noexcept { return sent_.load(std::memory_order_acquire); }

private:
    const std::vector<std::vector<std::byte>>& frames_;
    Queue& queue_;
    std::size_t slot_;
    pace::Ticks interval_;
    const Clock clock_;
    pace::Ticks due_{};  ///< of the next frame; the first one is due when the task begins
    std::atomic<std::size_t> sent_{0};
};

/// Keeps every frame that arrives but messages of neighbours, which go to the responder as in a
/// trial.
template <io::ReceivesFrames Queue, pace::TickClock Clock = pace::CycleClock>
class FrameKeeper final : public Task {
public:
    static constexpr std::size_t frames_max = 4096;
    static constexpr std::size_t store_bytes = std::size_t{1} << 22;
    struct Kept {
        pace::Ticks arrived;
        std::size_t begin, bytes;
    };

    FrameKeeper(Queue& queue, NeighborMailbox& mailbox, const Clock& clock = {}) : queue_{queue}, mailbox_{mailbox}, clock_{clock} {
        kept_.reserve(frames_max);
    }

    bool poll() noexcept override {
        const std::size_t count = queue_.receive(buffers_);
        const pace::Ticks now = clock_.now();
        for (std::size_t i = 0; i < count; ++i) {
            keep(Queue::bytes(buffers_[i]), queue_.arrival(buffers_[i], now));
        }
        queue_.release(std::span{buffers_}.first(count));
        return count != 0;
    }

    /// Valid after the worker has left the exchange.
    [[nodiscard]] const std::vector<Kept>& kept() const noexcept { return kept_; }
    [[nodiscard]] std::span<const std::byte> bytes_of(const Kept& kept) const noexcept { return {store_.get() + kept.begin, kept.bytes}; }
    /// Frames for which there was no room.
    [[nodiscard]] std::uint64_t not_kept() const noexcept { return not_kept_; }

private:
    void keep(std::span<const std::byte> frame, pace::Ticks arrived) noexcept {
        const frame::Arrival arrival = frame::classify(frame, 0);
        if (arrival.kind == frame::ArrivalKind::neighbour) {
            if (arrival.asks_or_answers) {
                mailbox_.put(frame);
            }
            return;
        }
        if (kept_.size() == frames_max || frame.size() > store_bytes - used_) {
            ++not_kept_;
            return;
        }
        std::copy(frame.begin(), frame.end(), store_.get() + used_);
        kept_.push_back({.arrived = arrived, .begin = used_, .bytes = frame.size()});
        used_ += frame.size();
    }

    Queue& queue_;
    NeighborMailbox& mailbox_;
    const Clock clock_;
    std::array<typename Queue::Buffer, frame::burst_frames_max> buffers_{};
    std::unique_ptr<std::byte[]> store_ = std::make_unique_for_overwrite<std::byte[]>(store_bytes);
    std::vector<Kept> kept_;
    std::size_t used_ = 0;
    std::uint64_t not_kept_ = 0;
};

}  // namespace gatemark::loop
