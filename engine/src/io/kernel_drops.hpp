#pragma once

#include "io/dpdk_port.hpp"

#include <cstdint>

namespace gatemark::io {

/// Frames lost on the Tester's side of the wire, and, apart from them, those that the gateway's end of a veth had no room for.
/// Totals; the caller subtracts. One frame is counted in one place.
struct OwnDrops {
    /// Driver: the receive ring was full; no buffer; damaged on arrival; accepted for sending and then lost.
    std::uint64_t rx_missed = 0, rx_no_buffer = 0, rx_errors = 0, tx_errors = 0;
    /// Packet or XDP sockets whose ring was full.
    std::uint64_t socket_drops = 0;
    /// Counters of the kernel's interface.
    std::uint64_t interface_rx_dropped = 0, interface_tx_dropped = 0;
    /// Not ours: the input queue of the veth's other end was full.
    std::uint64_t peer_queue_drops = 0;
};

/// Reads what the driver, its sockets and the interface count. One reader for each port, as reading a packet socket resets it.
class DropReader {
public:
    /// `port` must outlive the reader.
    explicit DropReader(const DpdkPort& port);
    /// Totals since the reader was made. Control path: some system calls.
    [[nodiscard]] OwnDrops read();

private:
    [[nodiscard]] OwnDrops totals();
    void add_driver_counts(OwnDrops& drops) const;
    void add_socket_counts(OwnDrops& drops);
    void add_interface_counts(OwnDrops& drops) const;

    const DpdkPort& port_;
    bool is_veth_ = false;
    std::uint64_t packet_socket_drops_ = 0;
    OwnDrops start_;
};

}  // namespace gatemark::io
