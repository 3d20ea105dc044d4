#pragma once

#include "golden/bytes.hpp"
#include "pace/clock.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace gatemark::fuzz {

/// A queue of frames in heap buffers of exactly their size, so that the address sanitizer detects
/// any read beyond.
class FrameQueue {
public:
    struct Held {
        std::unique_ptr<std::byte[]> bytes;
        std::size_t size = 0;
    };
    using Buffer = const Held*;

    void put(const test::Bytes& frame) {
        Held held{std::make_unique_for_overwrite<std::byte[]>(frame.size()), frame.size()};
        std::ranges::copy(frame, held.bytes.get());
        frames_.push_back(std::move(held));
    }
    [[nodiscard]] std::size_t receive(std::span<Buffer> burst) noexcept {
        const std::size_t count = std::min(burst.size(), frames_.size());
        std::transform(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(count), burst.begin(),
                       [](const Held& held) { return &held; });
        return count;
    }
    [[nodiscard]] static std::span<const std::byte> bytes(Buffer buffer) noexcept { return {buffer->bytes.get(), buffer->size}; }
    [[nodiscard]] static pace::Ticks arrival(Buffer /*buffer*/, pace::Ticks polled) noexcept { return polled; }
    void release(std::span<Buffer> burst) noexcept {
        frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(burst.size()));
    }

private:
    std::vector<Held> frames_;
};

}  // namespace gatemark::fuzz
