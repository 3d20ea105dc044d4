#pragma once

#include "base/counts.hpp"
#include "frame/marking.hpp"
#include "frame/verification.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gatemark::record {

/// What is counted of the frames of a class, but for remarks and faults.
enum class Count : std::uint8_t {
    received,         ///< distinct correct frames that arrived in time
    late,             ///< distinct correct frames that took longer than the trial allows
    faulty,           ///< distinct frames that arrived with a fault
    duplicate,        ///< further arrivals of a frame that had already arrived
    identifications,  ///< see record/identifications.hpp
    distinct_identifications,
    /// Arrivals with an index below an earlier arrival from the same sender at this receiver (RFC
    /// 4737 section 3.3). The order in which frames of two senders leave the two queues of a port
    /// is unknown, so reordering between them says nothing about the gateway.
    reordered,
    reordering_extent_max,  ///< of two receivers, the larger one counts
};

/// What one receiver counted of one class of one direction.
struct ClassCounts {
    static constexpr std::size_t senders_max = 64;

    Counts<Count> counts;
    Counts<frame::Remark> remarks;  ///< of the frames received
    Counts<frame::Fault> faults;
    std::array<std::uint64_t, senders_max> highest_index{};  ///< by sender

    [[nodiscard]] std::uint64_t& operator[](Count counter) noexcept { return counts[counter]; }
    [[nodiscard]] std::uint64_t operator[](Count counter) const noexcept { return counts[counter]; }

    void note_order(std::uint64_t index, std::uint64_t sender) noexcept {
        std::uint64_t& highest = highest_index[static_cast<std::size_t>(sender)];
        if (index < highest) {
            ++counts[Count::reordered];
            counts[Count::reordering_extent_max] = std::max(counts[Count::reordering_extent_max], highest - index);
        } else {
            highest = index;
        }
    }
    void add(const ClassCounts& other) noexcept {
        const std::uint64_t extent = std::max(counts[Count::reordering_extent_max], other[Count::reordering_extent_max]);
        counts.add(other.counts);
        counts[Count::reordering_extent_max] = extent;
        remarks.add(other.remarks);
        faults.add(other.faults);
    }
};

/// Frames that are not of this trial.
enum class ForeignFrame : std::uint8_t {
    other_trial,
    neighbour,
    fragment,
    foreign,
    of_gateway,     ///< foreign ones that the gateway sends from its own link-layer address
    of_other_port,  ///< whatever the Tester's other port has sent and no gateway has forwarded
};

/// What one receiver counted that was not a frame of this trial.
struct ForeignCounts {
    Counts<ForeignFrame> counts;
    std::vector<std::uint64_t> icmp = std::vector<std::uint64_t>(65536);  ///< by (ICMPv6 ? 0x8000 : 0) | type << 8 | code, types below 128

    [[nodiscard]] std::uint64_t& operator[](ForeignFrame kind) noexcept { return counts[kind]; }
    [[nodiscard]] std::uint64_t operator[](ForeignFrame kind) const noexcept { return counts[kind]; }

    void add(const ForeignCounts& other) noexcept {
        counts.add(other.counts);
        std::transform(icmp.begin(), icmp.end(), other.icmp.begin(), icmp.begin(), std::plus<>{});
    }
    [[nodiscard]] static constexpr std::size_t icmp_slot(bool icmpv6, std::uint8_t type, std::uint8_t code) noexcept {
        return (icmpv6 ? std::size_t{0x8000} : std::size_t{0}) | (static_cast<std::size_t>(type & 0x7f) << 8) | code;
    }
};

}  // namespace gatemark::record
