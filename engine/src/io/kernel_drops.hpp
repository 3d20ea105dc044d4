#pragma once

#include "base/counts.hpp"
#include "io/dpdk_port.hpp"

#include <algorithm>
#include <cstdint>

namespace gatemark::io {

/// Why a frame was lost on the Tester's side of the wire.
enum class OwnDrop : std::uint8_t {
    rx_missed,             ///< by the driver: the receive ring was full,
    rx_no_buffer,          ///< there was no buffer,
    rx_errors,             ///< damaged on arrival,
    tx_errors,             ///< accepted for sending and then lost
    tx_unsent,             ///< accepted by the driver of a card, and not among those that the card counts as sent or lost
    socket_drops,          ///< by packet or XDP sockets whose ring was full
    interface_rx_dropped,  ///< by the kernel's interface
    interface_tx_dropped,
};

/// Frames lost on the Tester's side of the wire and, separately, those that the gateway's end of a
/// veth or tap had no room for. These are totals; the caller subtracts. Each frame is counted once.
struct OwnDrops {
    Counts<OwnDrop> counts;
    std::uint64_t peer_queue_drops = 0;  ///< not ours: the input queue of the other end of a veth or tap was full

    [[nodiscard]] std::uint64_t& operator[](OwnDrop reason) noexcept { return counts[reason]; }
    [[nodiscard]] std::uint64_t operator[](OwnDrop reason) const noexcept { return counts[reason]; }
    /// What was lost since `before`.
    [[nodiscard]] OwnDrops since(const OwnDrops& before) const noexcept {
        return {.counts = counts.since(before.counts),
                .peer_queue_drops = peer_queue_drops - std::min(peer_queue_drops, before.peer_queue_drops)};
    }
};

/// Reads the counters of the driver, its sockets and the interface. Use one reader per port,
/// because reading a packet socket's counter resets it.
class DropReader {
public:
    /// `port` must outlive the reader.
    explicit DropReader(const DpdkPort& port);
    /// Totals since the reader was created. Control path only: it makes system calls, and waits for
    /// a card that has not counted all frames yet.
    [[nodiscard]] OwnDrops read();

private:
    [[nodiscard]] OwnDrops totals();
    void add_driver_counts(OwnDrops& drops) const;
    void add_socket_counts(OwnDrops& drops);
    void add_interface_counts(OwnDrops& drops) const;

    [[nodiscard]] UnsentFrames::Counts sending() const;

    const DpdkPort& port_;
    bool has_other_end_ = false;
    std::uint64_t packet_socket_drops_ = 0;
    OwnDrops start_;
    UnsentFrames unsent_;
};

}  // namespace gatemark::io
