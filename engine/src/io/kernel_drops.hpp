#pragma once

#include "io/dpdk_port.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace gatemark::io {

/// Frames lost on the Tester's side of the wire and, separately, those that the gateway's end of a
/// veth or tap had no room for. These are totals; the caller subtracts. Each frame is counted once.
struct OwnDrops {
    /// By the driver: receive ring full; no buffer; damaged on arrival; accepted for sending and
    /// then lost.
    std::uint64_t rx_missed = 0, rx_no_buffer = 0, rx_errors = 0, tx_errors = 0;
    /// Accepted by the driver of a card, and not among those that the card counts as sent or lost.
    std::uint64_t tx_unsent = 0;
    /// By packet or XDP sockets whose ring was full.
    std::uint64_t socket_drops = 0;
    /// By the kernel's interface.
    std::uint64_t interface_rx_dropped = 0, interface_tx_dropped = 0;
    /// Not ours: the input queue of the other end of a veth or tap was full.
    std::uint64_t peer_queue_drops = 0;

    struct Counter {
        std::string_view name;  ///< in the protocol
        std::uint64_t OwnDrops::* value;
        bool is_ours = true;
    };
    static const std::array<Counter, 9> counters;

    /// What was lost since `before`.
    [[nodiscard]] OwnDrops since(const OwnDrops& before) const noexcept {
        OwnDrops lost;
        for (const Counter& counter : counters) {
            lost.*counter.value = this->*counter.value - std::min(this->*counter.value, before.*counter.value);
        }
        return lost;
    }
};
inline constexpr std::array<OwnDrops::Counter, 9> OwnDrops::counters{{
    {"rx_missed", &OwnDrops::rx_missed},
    {"rx_no_buffer", &OwnDrops::rx_no_buffer},
    {"rx_errors", &OwnDrops::rx_errors},
    {"tx_errors", &OwnDrops::tx_errors},
    {"tx_unsent", &OwnDrops::tx_unsent},
    {"socket_drops", &OwnDrops::socket_drops},
    {"interface_rx_dropped", &OwnDrops::interface_rx_dropped},
    {"interface_tx_dropped", &OwnDrops::interface_tx_dropped},
    {"peer_queue_drops", &OwnDrops::peer_queue_drops, false},
}};
static_assert(sizeof(OwnDrops) == OwnDrops::counters.size() * sizeof(std::uint64_t), "every counter has a row");

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
