#pragma once

#include "frame/verification.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gatemark::record {

/// What one receiver counted of one class of one direction.
struct ClassCounts {
    static constexpr std::size_t senders_max = 64;

    std::uint64_t received = 0;       ///< distinct correct frames that arrived in time
    std::uint64_t late = 0;           ///< distinct correct frames that took longer than the trial allows
    std::uint64_t faulty = 0;         ///< distinct frames that arrived with a fault
    std::uint64_t duplicate = 0;      ///< further arrivals of a frame that had already arrived
    std::uint64_t zero_checksum = 0;  ///< the received ones with the zero checksum that their translator is known for
    /// Arrivals with an index below an earlier arrival from the same sender at this receiver (RFC
    /// 4737 section 3.3). The order in which frames of two senders leave the two queues of a port
    /// is unknown, so reordering between them says nothing about the gateway.
    std::uint64_t reordered = 0;
    std::uint64_t reordering_extent_max = 0;
    std::array<std::uint64_t, senders_max> highest_index{};  ///< by sender
    std::array<std::uint64_t, frame::fault_count> faults{};

    void note_order(std::uint64_t index, std::uint64_t sender) noexcept {
        std::uint64_t& highest = highest_index[static_cast<std::size_t>(sender)];
        if (index < highest) {
            ++reordered;
            reordering_extent_max = std::max(reordering_extent_max, highest - index);
        } else {
            highest = index;
        }
    }
    void add(const ClassCounts& other) noexcept {
        received += other.received;
        late += other.late;
        faulty += other.faulty;
        duplicate += other.duplicate;
        zero_checksum += other.zero_checksum;
        reordered += other.reordered;
        reordering_extent_max = std::max(reordering_extent_max, other.reordering_extent_max);
        for (std::size_t i = 0; i < faults.size(); ++i) {
            faults[i] += other.faults[i];
        }
    }
};

/// What one receiver counted that was not a frame of this trial.
struct ForeignCounts {
    std::uint64_t other_trial = 0, neighbour = 0, fragment = 0, foreign = 0;
    std::vector<std::uint32_t> icmp = std::vector<std::uint32_t>(65536);  ///< by (ICMPv6 ? 0x8000 : 0) | type << 8 | code, types below 128

    void add(const ForeignCounts& other) noexcept {
        other_trial += other.other_trial;
        neighbour += other.neighbour;
        fragment += other.fragment;
        foreign += other.foreign;
        std::transform(icmp.begin(), icmp.end(), other.icmp.begin(), icmp.begin(), std::plus<>{});
    }
    [[nodiscard]] static constexpr std::size_t icmp_slot(bool icmpv6, std::uint8_t type, std::uint8_t code) noexcept {
        return (icmpv6 ? std::size_t{0x8000} : std::size_t{0}) | (static_cast<std::size_t>(type & 0x7f) << 8) | code;
    }
};

}  // namespace gatemark::record
