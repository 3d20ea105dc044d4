#pragma once

#include "base/result.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

struct rte_mbuf;

namespace gatemark::io {

/// Sends the frames of an af_packet port, and of an af_xdp port on a veth, by sendmmsg() on a socket of its own, instead of the driver.
///
/// In the ring a frame that the device drops goes back to "to be sent" (Linux 6.6 and later): a veth whose other end is full drops the
/// frame, counts it, and the next kick sends it again. The gateway's overload would look like a slow Tester, frames would wait in
/// the ring for the next trial, and `tx_dropped` would count frames that were not lost. The driver's poll() may also wait for ever.
/// DPDK's af_xdp counts a frame as sent that waits in its ring, on a veth for want of room under way: the gateway's input queue of 1000
/// frames never fills, because 280 frames are the most that an XDP socket may have under way. With that limit lifted, the first frames that
/// the other end dropped left the ring in disorder (Linux 6.18, DPDK 22.11): most frames after that were refused as invalid descriptors,
/// and some were sent twice. So it happened without lifting it, after some 700,000 frames, in four of six runs. XDP sockets send 1.5 times
/// the frames, which is no use then.
///
/// A frame given to sendmmsg() is sent, lost at the other end and counted there once, or refused; nothing is left behind.
class PacketSender {
public:
    /// `other_end_drops`: a refusal by the device means that the veth's other end lost the frame, as a wire would have delivered it there.
    [[nodiscard]] static Result<std::unique_ptr<PacketSender>> open(const std::string& interface, bool other_end_drops);

    PacketSender(const PacketSender&) = delete;
    PacketSender& operator=(const PacketSender&) = delete;
    ~PacketSender();

    /// Frees the buffers of the frames accepted, a prefix of `burst`, and returns their number. Never waits.
    [[nodiscard]] std::size_t send(std::span<rte_mbuf*> burst) noexcept;

private:
    static constexpr std::size_t batch_frames_max = 32;

    PacketSender(int descriptor, bool other_end_drops);
    [[nodiscard]] std::size_t send_batch(std::span<rte_mbuf*> batch) noexcept;

    int descriptor_;
    bool other_end_drops_;
    std::array<iovec, batch_frames_max> pieces_{};
    std::array<mmsghdr, batch_frames_max> messages_{};
};

}  // namespace gatemark::io
