#pragma once

#include "refdut/packet.hpp"

#include <concepts>
#include <cstddef>
#include <span>

namespace gatemark::refdut {

/// What the gateway requires of a port. Models are io/forward_queue.hpp and, in tests, memory. A
/// buffer that was received belongs to the gateway until it is sent on any port or released; `copy`
/// may return nothing (nullptr).
template <class Q>
concept ForwardsFrames =
    requires(Q& queue, std::span<typename Q::Buffer> burst, typename Q::Buffer buffer, const std::byte* begin, std::size_t bytes) {
        { queue.receive(burst) } noexcept -> std::same_as<std::size_t>;
        { Q::frame(buffer).begin } -> std::convertible_to<std::byte*>;
        { Q::set_frame(buffer, begin, bytes) } noexcept;
        { Q::copy(buffer) } noexcept -> std::same_as<typename Q::Buffer>;
        { queue.send(burst) } noexcept -> std::same_as<std::size_t>;
        { queue.release(burst) } noexcept;
    };

template <ForwardsFrames Q>
[[nodiscard]] Packet packet_of(typename Q::Buffer buffer) noexcept {
    const auto frame = Q::frame(buffer);
    return {.begin = frame.begin, .bytes = frame.bytes, .headroom = frame.headroom, .tailroom = frame.tailroom};
}

}  // namespace gatemark::refdut
