#pragma once

#include "pace/clock.hpp"

#include <concepts>
#include <cstddef>
#include <span>

/// What `loop` requires of a port. Models are io/dpdk_queue.hpp (real ports) and the ports of tests
/// without DPDK, which are made of memory.
namespace gatemark::io {

/// A queue that sends frames out of buffers filled in advance.
/// - acquire(slot, burst) fills a prefix of `burst` with buffers that hold the template of `slot`
///   and that nothing else uses any more; returns how many. Fewer than requested means that buffers
///   are short: the Tester's fault, and counted as such.
/// - send(burst) hands over a prefix and returns its length. The rest stays with the caller: send
///   it again or release it.
template <class Q>
concept TransmitsFrames = requires(Q& queue, std::span<typename Q::Buffer> burst, std::size_t slot, typename Q::Buffer buffer) {
    { queue.acquire(slot, burst) } noexcept -> std::same_as<std::size_t>;
    { Q::bytes(buffer) } noexcept -> std::same_as<std::byte*>;
    { queue.send(burst) } noexcept -> std::same_as<std::size_t>;
    { queue.release(burst) } noexcept;
};

/// A queue that receives whole frames, as on the wire without FCS; VLAN tags are left in the frame.
/// A frame is the caller's until it is released, and more may be received before that.
/// `arrival` returns when a frame arrived: the time of the poll that returned it, unless the
/// hardware knows better.
template <class Q>
concept ReceivesFrames = requires(Q& queue, std::span<typename Q::Buffer> burst, typename Q::Buffer buffer) {
    { queue.receive(burst) } noexcept -> std::same_as<std::size_t>;
    { Q::bytes(buffer) } noexcept -> std::same_as<std::span<const std::byte>>;
    { queue.arrival(buffer, pace::Ticks{}) } noexcept -> std::same_as<pace::Ticks>;
    { queue.release(burst) } noexcept;
};

}  // namespace gatemark::io
