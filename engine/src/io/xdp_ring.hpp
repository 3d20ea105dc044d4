#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

struct rte_mbuf;
struct rte_mempool;
struct xdp_desc;

namespace gatemark::io {

/// One of the four rings that an AF_XDP socket shares with the kernel. We write one of its two
/// counters, the kernel writes the other.
template <class Entry>
struct XdpRing {
    std::uint32_t* producer = nullptr;
    std::uint32_t* consumer = nullptr;
    Entry* entries = nullptr;
    unsigned size = 0;  ///< a power of two

    [[nodiscard]] Entry& at(std::uint32_t number) const noexcept { return entries[number & (size - 1)]; }
    [[nodiscard]] std::uint32_t produced() const noexcept {
        return std::atomic_ref<std::uint32_t>{*producer}.load(std::memory_order_acquire);
    }
    [[nodiscard]] std::uint32_t consumed() const noexcept {
        return std::atomic_ref<std::uint32_t>{*consumer}.load(std::memory_order_acquire);
    }
    void produce_until(std::uint32_t number) const noexcept {
        std::atomic_ref<std::uint32_t>{*producer}.store(number, std::memory_order_release);
    }
    void consume_until(std::uint32_t number) const noexcept {
        std::atomic_ref<std::uint32_t>{*consumer}.store(number, std::memory_order_release);
    }
};

/// The memory that an AF_XDP socket shares with the kernel: chunks of a power of two each.
struct XdpMemory {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    unsigned chunk_bytes = 0;
};

/// Reads the frames of an AF_XDP socket, and gives the kernel back what they lay in. It needs no
/// socket: whatever fills the rings writes their counters last.
class XdpReader {
public:
    XdpReader() = default;
    /// `pool` gives the buffers. Memory, rings and pool outlive this.
    XdpReader(const XdpMemory& memory, const XdpRing<xdp_desc>& received, const XdpRing<std::uint64_t>& fill, rte_mempool* pool) noexcept
        : memory_{memory}, received_{received}, fill_{fill}, pool_{pool} {}

    /// Copies frames out of the ring and returns their number. Frames that find no buffer stay in
    /// the ring. Of a frame that is longer than a buffer only the beginning is returned, and of one
    /// that does not lie in the memory an empty frame: no such frame looks like one of ours.
    [[nodiscard]] std::size_t receive(std::span<rte_mbuf*> burst) noexcept;

private:
    /// How many octets of a frame can be copied.
    [[nodiscard]] std::size_t readable(const xdp_desc& descriptor, const rte_mbuf& buffer) const noexcept;

    XdpMemory memory_;
    XdpRing<xdp_desc> received_;
    XdpRing<std::uint64_t> fill_;
    rte_mempool* pool_ = nullptr;
};

}  // namespace gatemark::io
