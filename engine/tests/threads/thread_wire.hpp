#pragma once

#include "io/port.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

/// Ports made of memory for many threads: every queue of one port is joined to every queue of the
/// other by a ring with one writer and one reader, as a card and a gateway scatter frames.
namespace gatemark::test {

constexpr std::size_t wire_frame_bytes = 128;

struct WireFrame {
    std::size_t bytes = 0;
    std::array<std::byte, wire_frame_bytes> data{};
};

class WireRing {
public:
    [[nodiscard]] bool put(const WireFrame& frame) noexcept {
        const std::size_t head = head_.load(std::memory_order_relaxed);
        if (head - tail_.load(std::memory_order_acquire) == frames_.size()) {
            return false;
        }
        frames_[head % frames_.size()] = frame;
        head_.store(head + 1, std::memory_order_release);
        return true;
    }
    [[nodiscard]] bool take(WireFrame& frame) noexcept {
        const std::size_t tail = tail_.load(std::memory_order_relaxed);
        if (head_.load(std::memory_order_acquire) == tail) {
            return false;
        }
        frame = frames_[tail % frames_.size()];
        tail_.store(tail + 1, std::memory_order_release);
        return true;
    }

private:
    std::atomic<std::size_t> head_{0}, tail_{0};
    std::array<WireFrame, 256> frames_;
};

/// From every queue of one port to every queue of the other.
using WireMatrix = std::vector<std::vector<std::unique_ptr<WireRing>>>;

[[nodiscard]] inline WireMatrix make_wires(std::size_t queues) {
    WireMatrix wires(queues);
    for (auto& row : wires) {
        std::generate_n(std::back_inserter(row), queues, [] { return std::make_unique<WireRing>(); });
    }
    return wires;
}

class WireTransmitQueue {
public:
    using Buffer = WireFrame*;

    WireTransmitQueue(WireMatrix& wires, std::size_t queue) : rings_{wires[queue]}, buffers_(2 * 32) {
        for (WireFrame& buffer : buffers_) {
            free_.push_back(&buffer);
        }
    }
    void set_template(std::size_t slot, std::span<const std::byte> frame) {
        templates_.resize(std::max(templates_.size(), slot + 1));
        templates_[slot].bytes = frame.size();
        std::ranges::copy(frame, templates_[slot].data.begin());
    }
    [[nodiscard]] std::size_t acquire(std::size_t slot, std::span<Buffer> burst) noexcept {
        const std::size_t got = std::min(burst.size(), free_.size());
        for (Buffer& buffer : burst.first(got)) {
            buffer = free_.back();
            free_.pop_back();
            *buffer = templates_[slot];
        }
        return got;
    }
    [[nodiscard]] static std::byte* bytes(Buffer buffer) noexcept { return buffer->data.data(); }
    /// Each frame to the next queue of the other port; a full ring stops the burst.
    [[nodiscard]] std::size_t send(std::span<Buffer> burst) noexcept {
        std::size_t accepted = 0;
        while (accepted < burst.size() && rings_[next_ % rings_.size()]->put(*burst[accepted])) {
            ++accepted;
            ++next_;
        }
        release(burst.first(accepted));
        return accepted;
    }
    void release(std::span<Buffer> burst) noexcept { free_.insert(free_.end(), burst.begin(), burst.end()); }

private:
    std::vector<std::unique_ptr<WireRing>>& rings_;
    std::vector<WireFrame> buffers_, templates_;
    std::vector<Buffer> free_;
    std::size_t next_ = 0;
};

class WireReceiveQueue {
public:
    using Buffer = WireFrame*;

    WireReceiveQueue(WireMatrix& wires, std::size_t queue) : queue_{queue}, wires_{wires} {
        for (WireFrame& frame : frames_) {
            free_.push_back(&frame);
        }
    }
    [[nodiscard]] std::size_t receive(std::span<Buffer> burst) noexcept {
        std::size_t count = 0;
        for (auto& row : wires_) {
            while (count < burst.size() && !free_.empty() && row[queue_]->take(*free_.back())) {
                burst[count++] = free_.back();
                free_.pop_back();
            }
        }
        return count;
    }
    [[nodiscard]] static std::span<const std::byte> bytes(Buffer buffer) noexcept { return std::span{buffer->data}.first(buffer->bytes); }
    [[nodiscard]] static pace::Ticks arrival(Buffer /*buffer*/, pace::Ticks polled) noexcept { return polled; }
    void release(std::span<Buffer> burst) noexcept { free_.insert(free_.end(), burst.begin(), burst.end()); }

private:
    std::size_t queue_;
    WireMatrix& wires_;
    std::array<WireFrame, 64> frames_;
    std::vector<Buffer> free_;
};

static_assert(io::TransmitsFrames<WireTransmitQueue> && io::ReceivesFrames<WireReceiveQueue>);

}  // namespace gatemark::test
