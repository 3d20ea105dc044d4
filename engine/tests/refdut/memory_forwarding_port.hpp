#pragma once

#include "pace/clock.hpp"
#include "refdut/forwarding_port.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <vector>

/// A port of the reference gateway made of memory, and a clock that stands still, for tests.
namespace gatemark::refdut {

struct StoppedClock {
    const std::uint64_t* ticks;
    [[nodiscard]] pace::Ticks now() const noexcept { return {*ticks}; }
};

struct MemoryBuffer {
    static constexpr std::size_t room = 2304;
    std::vector<std::byte> memory;
    std::size_t begin = 128, bytes = 0;
};

class MemoryForwardingPort {
public:
    using Buffer = MemoryBuffer*;
    struct View {
        std::byte* begin;
        std::size_t bytes, headroom, tailroom;
    };
    using Bytes = std::vector<std::byte>;

    /// Arrives at the next poll.
    void arrive(const Bytes& frame) {
        auto buffer = std::make_unique<MemoryBuffer>();
        buffer->memory.resize(MemoryBuffer::room);
        std::ranges::copy(frame, buffer->memory.begin() + static_cast<std::ptrdiff_t>(buffer->begin));
        buffer->bytes = frame.size();
        arriving_.push_back(std::move(buffer));
    }
    /// All frames sent so far.
    std::vector<Bytes> sent;
    std::size_t accepts = SIZE_MAX;        ///< frames that the port takes from now on
    inline static std::size_t in_use = 0;  ///< buffers that are somewhere in the gateway

    [[nodiscard]] std::size_t receive(std::span<Buffer> burst) noexcept {
        const std::size_t count = std::min(burst.size(), arriving_.size());
        for (Buffer& buffer : burst.first(count)) {
            buffer = arriving_.front().release();
            arriving_.pop_front();
        }
        in_use += count;
        return count;
    }
    [[nodiscard]] static View frame(Buffer buffer) noexcept {
        return {buffer->memory.data() + buffer->begin, buffer->bytes, buffer->begin, buffer->memory.size() - buffer->begin - buffer->bytes};
    }
    static void set_frame(Buffer buffer, const std::byte* begin, std::size_t bytes) noexcept {
        buffer->begin = static_cast<std::size_t>(begin - buffer->memory.data());
        buffer->bytes = bytes;
    }
    [[nodiscard]] static Buffer copy(Buffer buffer) noexcept {
        ++in_use;
        return std::make_unique<MemoryBuffer>(*buffer).release();
    }
    [[nodiscard]] std::size_t send(std::span<Buffer> burst) noexcept {
        const std::size_t count = std::min(burst.size(), accepts);
        for (const Buffer buffer : burst.first(count)) {
            const auto at = frame(buffer);
            sent.emplace_back(at.begin, at.begin + at.bytes);
        }
        accepts -= accepts == SIZE_MAX ? 0 : count;
        release(burst.first(count));
        return count;
    }
    void release(std::span<Buffer> burst) noexcept {
        for (const Buffer buffer : burst) {
            const std::unique_ptr<MemoryBuffer> freed{buffer};
        }
        in_use -= burst.size();
    }

private:
    std::deque<std::unique_ptr<MemoryBuffer>> arriving_;
};
static_assert(ForwardsFrames<MemoryForwardingPort>);

}  // namespace gatemark::refdut
