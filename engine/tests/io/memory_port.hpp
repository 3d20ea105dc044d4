#pragma once

#include "io/port.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

/// Ports made of memory, for tests without DPDK. One thread only; they allocate, so they say
/// nothing about speed.
namespace gatemark::io {

using MemoryFrame = std::vector<std::byte>;

/// A bounded queue of frames from a sender to a receiver.
struct MemoryWire {
    std::deque<MemoryFrame> frames;
    std::size_t capacity = std::numeric_limits<std::size_t>::max();
};

class MemoryTransmitQueue {
public:
    using Buffer = MemoryFrame*;

    explicit MemoryTransmitQueue(MemoryWire& wire, std::size_t buffers = 4096) : wire_{&wire}, buffers_left_{buffers} {}

    void set_template(std::size_t slot, std::span<const std::byte> frame) {
        if (templates_.size() <= slot) {
            templates_.resize(slot + 1);
        }
        templates_[slot].assign(frame.begin(), frame.end());
    }
    /// Each send takes at most this many frames, as a port does whose ring is nearly full.
    void accept_at_most(std::size_t frames_per_send) { accepted_per_send_ = frames_per_send; }

    [[nodiscard]] std::size_t acquire(std::size_t slot, std::span<Buffer> burst) noexcept {
        const std::size_t got = std::min(burst.size(), buffers_left_);
        for (Buffer& buffer : burst.first(got)) {
            buffer = std::make_unique<MemoryFrame>(templates_[slot]).release();
        }
        buffers_left_ -= got;
        return got;
    }
    [[nodiscard]] static std::byte* bytes(Buffer buffer) noexcept { return buffer->data(); }
    static void resize(Buffer buffer, std::size_t bytes) noexcept { buffer->resize(bytes); }
    [[nodiscard]] std::size_t send(std::span<Buffer> burst) noexcept {
        const std::size_t room = wire_->capacity - std::min(wire_->capacity, wire_->frames.size());
        const std::size_t accepted = std::min({burst.size(), accepted_per_send_, room});
        for (const Buffer buffer : burst.first(accepted)) {
            wire_->frames.push_back(std::move(*buffer));
        }
        release(burst.first(accepted));
        return accepted;
    }
    void release(std::span<Buffer> burst) noexcept {
        for (const Buffer buffer : burst) {
            const std::unique_ptr<MemoryFrame> freed{buffer};
        }
        buffers_left_ += burst.size();
    }

private:
    MemoryWire* wire_;
    std::vector<MemoryFrame> templates_;
    std::size_t buffers_left_;
    std::size_t accepted_per_send_ = std::numeric_limits<std::size_t>::max();
};

class MemoryReceiveQueue {
public:
    using Buffer = MemoryFrame*;

    explicit MemoryReceiveQueue(MemoryWire& wire) : wire_{&wire} {}

    [[nodiscard]] std::size_t receive(std::span<Buffer> burst) noexcept {
        const std::size_t received = std::min(burst.size(), wire_->frames.size());
        for (Buffer& buffer : burst.first(received)) {
            buffer = std::make_unique<MemoryFrame>(std::move(wire_->frames.front())).release();
            wire_->frames.pop_front();
        }
        return received;
    }
    [[nodiscard]] static std::span<const std::byte> bytes(Buffer buffer) noexcept { return *buffer; }
    [[nodiscard]] static pace::Ticks arrival(Buffer /*buffer*/, pace::Ticks polled) noexcept { return polled; }
    void release(std::span<Buffer> burst) noexcept {
        for (const Buffer buffer : burst) {
            const std::unique_ptr<MemoryFrame> freed{buffer};
        }
    }

private:
    MemoryWire* wire_;
};

static_assert(TransmitsFrames<MemoryTransmitQueue> && ReceivesFrames<MemoryReceiveQueue>);

}  // namespace gatemark::io
