#include "io/xdp_socket.hpp"

#include "io/kernel_interface.hpp"
#include "io/send_batches.hpp"

#include <rte_mbuf.h>

#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace gatemark::io {

namespace {

/// What the kernel leaves free in front of a received frame (XDP_PACKET_HEADROOM).
constexpr unsigned receive_headroom_bytes = 256;
constexpr unsigned chunk_bytes_min = 2048;
constexpr unsigned received_bytes_min = chunk_bytes_min - receive_headroom_bytes;
/// Frames that may be in flight before the other side processes them (ip_rcv() for a router). The
/// limit must never be reached, or a slow gateway would look like a slow Tester. Each place costs 8
/// bytes.
constexpr unsigned frames_under_way_max = 1U << 20;
/// The kernel frees the queue of a closed socket asynchronously.
constexpr std::chrono::seconds release_time_max{1};
constexpr std::uint64_t no_address = ~std::uint64_t{0};

bool set_option(int descriptor, int option, const void* value, socklen_t bytes) {
    return setsockopt(descriptor, SOL_XDP, option, value, bytes) == 0;
}

bool set_ring(int descriptor, int option, unsigned entries) { return set_option(descriptor, option, &entries, sizeof(entries)); }

}  // namespace

Result<std::unique_ptr<XdpSocket>> XdpSocket::open(const std::string& interface, unsigned queue, unsigned ring_frames, unsigned frame_bytes,
                                                   rte_mempool* pool) {
    const auto kernel_interface = find_kernel_interface(interface);
    if (const auto* const error = std::get_if<Error>(&kernel_interface)) {
        return *error;
    }
    std::unique_ptr<XdpSocket> opened{
        new XdpSocket{socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ring_frames, frame_bytes, pool}};
    if (const int reason = opened->set_up(std::get<KernelInterface>(kernel_interface).index, queue); reason != 0) {
        return Error{.what = "could not open an AF_XDP socket for queue " + std::to_string(queue) + ": " + std::strerror(reason),
                     .where = "interface " + interface,
                     .fix = "run as root; no other program may use XDP on this interface; or use af_packet"};
    }
    return opened;
}

XdpSocket::XdpSocket(int descriptor, unsigned ring_frames, unsigned frame_bytes, rte_mempool* pool)
    : descriptor_{descriptor},
      ring_frames_{ring_frames},
      received_bytes_max_{std::max(received_bytes_min, frame_bytes)},
      chunk_bytes_{std::bit_ceil(received_bytes_max_ + receive_headroom_bytes)},
      pool_{pool} {}

XdpSocket::~XdpSocket() {
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
    const auto unmap = [](const auto& ring) {
        if (ring.mapping != nullptr) {
            munmap(ring.mapping, ring.mapping_bytes);
        }
    };
    unmap(transmit_);
    unmap(completion_);
    unmap(receive_);
    unmap(fill_);
    if (memory_ != nullptr) {
        munmap(memory_, std::size_t{ring_frames_ + batch_frames_max} * chunk_bytes_);
    }
}

int XdpSocket::set_up(int interface_index, unsigned queue) {
    if (descriptor_ < 0) {
        return errno;
    }
    const std::size_t bytes = std::size_t{ring_frames_ + batch_frames_max} * chunk_bytes_;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        return errno;
    }
    memory_ = static_cast<std::byte*>(memory);
    xdp_umem_reg area{};
    area.addr = reinterpret_cast<std::uintptr_t>(memory);
    area.len = bytes;
    area.chunk_size = chunk_bytes_;
    // This way the kernel refuses, and counts, a frame that is too long for a buffer
    // (receive_data_room()).
    area.headroom = chunk_bytes_ - receive_headroom_bytes - received_bytes_max_;
    if (!set_option(descriptor_, XDP_UMEM_REG, &area, sizeof(area))) {
        return errno;
    }
    if (const int reason = make_rings(); reason != 0) {
        return reason;
    }
    for (std::uint32_t i = 0; i < ring_frames_; ++i) {
        fill_.at(i) = std::uint64_t{i} * chunk_bytes_;
    }
    fill_.produce_until(ring_frames_);
    reader_ = {{.begin = memory_, .bytes = bytes, .chunk_bytes = chunk_bytes_}, receive_, fill_, pool_};
    lift_send_limit(descriptor_);
    sockaddr_xdp address{};
    address.sxdp_family = AF_XDP;
    address.sxdp_flags = XDP_COPY;
    address.sxdp_ifindex = static_cast<unsigned>(interface_index);
    address.sxdp_queue_id = queue;
    return bind_to(address) ? 0 : errno;
}

bool XdpSocket::bind_to(const sockaddr_xdp& address) const {
    const auto deadline = std::chrono::steady_clock::now() + release_time_max;
    while (bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        if (errno != EBUSY || std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return true;
}

int XdpSocket::make_rings() {
    fill_.size = receive_.size = ring_frames_;
    completion_.size = frames_under_way_max;
    transmit_.size = batch_frames_max;
    xdp_mmap_offsets offsets{};
    socklen_t length = sizeof(offsets);
    const bool complete =
        set_ring(descriptor_, XDP_UMEM_FILL_RING, fill_.size) && set_ring(descriptor_, XDP_UMEM_COMPLETION_RING, completion_.size) &&
        set_ring(descriptor_, XDP_RX_RING, receive_.size) && set_ring(descriptor_, XDP_TX_RING, transmit_.size) &&
        getsockopt(descriptor_, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) == 0 &&
        map_ring(fill_, offsets.fr, XDP_UMEM_PGOFF_FILL_RING) && map_ring(completion_, offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING) &&
        map_ring(receive_, offsets.rx, XDP_PGOFF_RX_RING) && map_ring(transmit_, offsets.tx, XDP_PGOFF_TX_RING);
    return complete ? 0 : errno;
}

template <class Entry, class Offsets>
bool XdpSocket::map_ring(MappedRing<Entry>& ring, const Offsets& offsets, std::uint64_t page_offset) {
    const std::size_t bytes = offsets.desc + std::size_t{ring.size} * sizeof(Entry);
    void* const mapping =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, static_cast<off_t>(page_offset));
    if (mapping == MAP_FAILED) {
        return false;
    }
    auto* const begin = static_cast<std::byte*>(mapping);
    ring.mapping = mapping;
    ring.mapping_bytes = bytes;
    ring.producer = reinterpret_cast<std::uint32_t*>(begin + offsets.producer);
    ring.consumer = reinterpret_cast<std::uint32_t*>(begin + offsets.consumer);
    ring.entries = reinterpret_cast<Entry*>(begin + offsets.desc);
    return true;
}

std::size_t XdpSocket::send(std::span<rte_mbuf*> burst) noexcept {
    return send_in_batches(burst, batch_frames_max, [this](std::span<rte_mbuf*> batch) { return send_batch(batch); });
}

std::size_t XdpSocket::send_batch(std::span<rte_mbuf*> batch) noexcept {
    // In copy mode a chunk is ours again when the kick returns, long before its completion, so only
    // the number of completions matters.
    const std::uint32_t completed = completion_.produced();
    completion_.consume_until(completed);
    const std::uint32_t first = transmit_.produced();
    if (sent_ - completed > frames_under_way_max - batch_frames_max || (transmit_.consumed() != first && !kick_until_empty())) {
        return 0;
    }
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
        const std::uint64_t address = std::uint64_t{ring_frames_ + i} * chunk_bytes_;
        const unsigned bytes = rte_pktmbuf_data_len(batch[i]);
        std::memcpy(memory_ + address, rte_pktmbuf_mtod(batch[i], const std::byte*), bytes);
        transmit_.at(first + i) = {.addr = address, .len = bytes, .options = 0};
    }
    const auto end = first + static_cast<std::uint32_t>(batch.size());
    transmit_.produce_until(end);
    std::uint32_t left = 0;
    if (!kick_until_empty()) {
        left = end - transmit_.consumed();
        withdraw_left_frames();
    }
    const auto accepted = static_cast<std::uint32_t>(batch.size()) - left;
    sent_ += accepted;
    return accepted;
}

bool XdpSocket::kick_until_empty() noexcept {
    const std::uint32_t end = transmit_.produced();
    // EBUSY: the other end dropped a frame, which ends the kick; the next kick continues after that
    // frame.
    for (unsigned kick = 0; kick <= 2 * batch_frames_max && transmit_.consumed() != end; ++kick) {
        const std::uint32_t before = transmit_.consumed();
        const bool failed = sendto(descriptor_, nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0;
        if (failed && errno != EBUSY && errno != EINTR && transmit_.consumed() == before) {
            return false;  // no memory, or the link is down
        }
    }
    return transmit_.consumed() == end;
}

void XdpSocket::withdraw_left_frames() noexcept {
    // The kernel may already have read the producer counter, so frames cannot be taken back. It
    // skips invalid descriptors, and counts them (tx_errors).
    for (std::uint32_t i = transmit_.consumed(); i != transmit_.produced(); ++i) {
        transmit_.at(i).addr = no_address;
    }
}

}  // namespace gatemark::io
