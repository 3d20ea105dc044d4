#include "io/packet_sender.hpp"

#include "io/kernel_interface.hpp"
#include "io/send_batches.hpp"

#include <rte_mbuf.h>

#include <linux/if_packet.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gatemark::io {

Result<std::unique_ptr<PacketSender>> PacketSender::open(const std::string& interface, bool other_end_drops) {
    const auto kernel_interface = find_kernel_interface(interface);
    if (const auto* const error = std::get_if<Error>(&kernel_interface)) {
        return *error;
    }
    // Protocol 0: this socket receives nothing.
    std::unique_ptr<PacketSender> sender{new PacketSender{socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), other_end_drops}};
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = std::get<KernelInterface>(kernel_interface).index;
    const int bypass = 1;
    if (sender->descriptor_ < 0 || bind(sender->descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        setsockopt(sender->descriptor_, SOL_PACKET, PACKET_QDISC_BYPASS, &bypass, sizeof(bypass)) != 0) {
        return Error{.what = std::string{"could not open a packet socket to send: "} + std::strerror(errno),
                     .where = "interface " + interface,
                     .fix = "run as root, or give the engine CAP_NET_RAW"};
    }
    lift_send_limit(sender->descriptor_);
    return sender;
}

PacketSender::PacketSender(int descriptor, bool other_end_drops) : descriptor_{descriptor}, other_end_drops_{other_end_drops} {
    for (std::size_t i = 0; i < messages_.size(); ++i) {
        messages_[i].msg_hdr.msg_iov = &pieces_[i];
        messages_[i].msg_hdr.msg_iovlen = 1;
    }
}

PacketSender::~PacketSender() {
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

std::size_t PacketSender::send(std::span<rte_mbuf*> burst) noexcept {
    return send_in_batches(burst, batch_frames_max, [this](std::span<rte_mbuf*> batch) { return send_batch(batch); });
}

std::size_t PacketSender::send_batch(std::span<rte_mbuf*> batch) noexcept {
    for (std::size_t i = 0; i < batch.size(); ++i) {
        pieces_[i] = {.iov_base = rte_pktmbuf_mtod(batch[i], void*), .iov_len = rte_pktmbuf_data_len(batch[i])};
    }
    std::size_t accepted = 0;
    while (accepted < batch.size()) {
        const auto asked = static_cast<unsigned>(batch.size() - accepted);
        const int sent = sendmmsg(descriptor_, &messages_[accepted], asked, MSG_DONTWAIT);
        if (sent == static_cast<int>(asked)) {
            return batch.size();
        }
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        accepted += static_cast<std::size_t>(std::max(sent, 0));
        // The frame after the last one sent failed. sendmmsg() reports the reason only if that was
        // the first frame.
        const bool may_be_dropped = sent > 0 || errno == ENOBUFS;
        if (!other_end_drops_ || !may_be_dropped) {
            break;
        }  // EAGAIN, ENOBUFS: no room; ENETDOWN, ENXIO: link_up reports it
        ++accepted;  // handed over and lost there: the veth has counted it, and sending it again would count it twice
    }
    return accepted;
}

}  // namespace gatemark::io
