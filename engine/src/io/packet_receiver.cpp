#include "io/packet_receiver.hpp"

#include "io/kernel_interface.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gatemark::io {

namespace {

constexpr unsigned block_bytes_min = 64 * 1024;

template <class T>
bool set_option(int descriptor, int option, const T& value) {
    return setsockopt(descriptor, SOL_PACKET, option, &value, sizeof(value)) == 0;
}

unsigned block_bytes(PacketRing ring) { return std::max(ring.slot_bytes, block_bytes_min); }
std::size_t ring_bytes(PacketRing ring) { return static_cast<std::size_t>(ring.slots) * ring.slot_bytes; }

}  // namespace

Result<std::unique_ptr<PacketReceiver>> PacketReceiver::open(const std::string& interface, PacketRing ring, std::uint16_t group,
                                                             rte_mempool* pool) {
    const auto kernel_interface = find_kernel_interface(interface);
    if (const auto* const error = std::get_if<Error>(&kernel_interface)) {
        return *error;
    }
    // Whole blocks only: a smaller ring is rounded up to the slots of one block.
    ring.slots = std::max(ring.slots, block_bytes(ring) / ring.slot_bytes);
    // Protocol 0 until the ring is set up: nothing may arrive before that.
    std::unique_ptr<PacketReceiver> receiver{new PacketReceiver{socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ring, pool}};
    if (const int reason = receiver->set_up(std::get<KernelInterface>(kernel_interface).index, group); reason != 0) {
        return Error{.what = std::string{"could not open a packet socket to receive: "} + std::strerror(reason),
                     .where = "interface " + interface,
                     .fix = "run as root, or give the engine CAP_NET_RAW; a ring needs memory: fewer ring_frames take less"};
    }
    return receiver;
}

PacketReceiver::PacketReceiver(int descriptor, PacketRing ring, rte_mempool* pool)
    : descriptor_{descriptor}, ring_{ring}, pool_{pool}, reader_{ring, nullptr, pool} {}

PacketReceiver::~PacketReceiver() {
    if (memory_ != nullptr) {
        munmap(memory_, ring_bytes(ring_));
    }
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

int PacketReceiver::set_up(int interface_index, std::uint16_t group) {
    const tpacket_req request{.tp_block_size = block_bytes(ring_),
                              .tp_block_nr = static_cast<unsigned>(ring_bytes(ring_) / block_bytes(ring_)),
                              .tp_frame_size = ring_.slot_bytes,
                              .tp_frame_nr = ring_.slots};
    if (descriptor_ < 0 || !set_option(descriptor_, PACKET_VERSION, static_cast<int>(TPACKET_V2)) ||
        !set_option(descriptor_, PACKET_IGNORE_OUTGOING, 1) || !set_option(descriptor_, PACKET_RX_RING, request)) {
        return errno;
    }
    void* const mapped = mmap(nullptr, ring_bytes(ring_), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (mapped == MAP_FAILED) {
        return errno;
    }
    memory_ = static_cast<std::byte*>(mapped);
    reader_ = PacketRingReader{ring_, memory_, pool_};
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = interface_index;
    if (bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        return errno;
    }
    packet_mreq promiscuous{};
    promiscuous.mr_ifindex = interface_index;
    promiscuous.mr_type = PACKET_MR_PROMISC;
    if (!set_option(descriptor_, PACKET_ADD_MEMBERSHIP, promiscuous)) {
        return errno;
    }
    const int fanout = group | (PACKET_FANOUT_HASH << 16);
    return group == 0 || set_option(descriptor_, PACKET_FANOUT, fanout) ? 0 : errno;
}

}  // namespace gatemark::io
