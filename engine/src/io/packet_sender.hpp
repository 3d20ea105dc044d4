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

/// Sends the frames of an af_packet port by sendmmsg() on a socket of its own, instead of the
/// driver.
///
/// In the driver's ring a frame that the device drops becomes "to be sent" again (Linux 6.6 and
/// later): a veth whose other end is full drops the frame and counts it, and the next kick sends it
/// again. An overloaded gateway would look like a slow Tester, frames would stay in the ring until
/// the next trial, and `tx_dropped` would count frames that were not lost. The driver's poll() may
/// also wait for ever.
///
/// A frame given to sendmmsg() is sent, lost at the other end and counted there once, or refused;
/// nothing is left behind.
class PacketSender {
public:
    /// `other_end_drops`: a refusal by the device means that the other end of a veth or tap lost
    /// the frame, as a wire would have delivered it there.
    [[nodiscard]] static Result<std::unique_ptr<PacketSender>> open(const std::string& interface, bool other_end_drops);

    PacketSender(const PacketSender&) = delete;
    PacketSender& operator=(const PacketSender&) = delete;
    ~PacketSender();

    /// Frees the buffers of the frames accepted, a prefix of `burst`, and returns their number.
    /// Never waits.
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
