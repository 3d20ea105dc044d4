#pragma once

#include "base/counts.hpp"
#include "io/dpdk_port.hpp"

#include <algorithm>
#include <cstdint>

namespace gatemark::io {

/// Why a frame was lost on the Tester's side of the wire.
enum class OwnDrop : std::uint8_t {
    rx_missed,             ///< the receive ring of the port was full
    rx_no_buffer,          ///< no buffer was free for the frame
    rx_errors,             ///< the frame was damaged when it arrived
    tx_errors,             ///< the driver took the frame and did not send it
    tx_unsent,             ///< `pci:` ports only: the driver took the frame, and the card does not count it as sent
    socket_drops,          ///< a packet or XDP socket was full
    interface_rx_dropped,  ///< the Tester's kernel interface dropped it on arrival
    interface_tx_dropped,  ///< the Tester's kernel interface dropped it instead of sending it
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
