#pragma once

#include "frame/verification.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace gatemark::record {

/// One counter of `Counts`. Whatever adds or writes counters goes through their table, so a new one
/// is a member and a row.
template <class Counts>
struct Counter {
    std::string_view name;  ///< in the protocol
    std::uint64_t Counts::* value;
    bool is_maximum = false;  ///< of two receivers, the larger one counts; otherwise their sum
};

template <class Counts>
void add_counters(Counts& counts, const Counts& others) noexcept {
    for (const auto& counter : Counts::counters) {
        std::uint64_t& value = counts.*counter.value;
        const std::uint64_t other = others.*counter.value;
        value = counter.is_maximum ? std::max(value, other) : value + other;
    }
}

/// What one receiver counted of one class of one direction.
struct ClassCounts {
    static constexpr std::size_t senders_max = 64;

    std::uint64_t received = 0;                ///< distinct correct frames that arrived in time
    std::uint64_t late = 0;                    ///< distinct correct frames that took longer than the trial allows
    std::uint64_t faulty = 0;                  ///< distinct frames that arrived with a fault
    std::uint64_t duplicate = 0;               ///< further arrivals of a frame that had already arrived
    std::uint64_t zero_checksum = 0;           ///< the received ones with the zero checksum that their translator is known for
    std::uint64_t congestion_experienced = 0;  ///< the received ones that the gateway has marked so
    std::uint64_t congestion_outside = 0;      ///< the received ones in whose outer header that is marked
    std::uint64_t flow_label_set = 0;          ///< the received ones that a router has given a flow label
    std::uint64_t with_trailer = 0;            ///< the received ones with octets behind the packet
    std::uint64_t identifications = 0, distinct_identifications = 0;  ///< see record/identifications.hpp
    /// Arrivals with an index below an earlier arrival from the same sender at this receiver (RFC
    /// 4737 section 3.3). The order in which frames of two senders leave the two queues of a port
    /// is unknown, so reordering between them says nothing about the gateway.
    std::uint64_t reordered = 0;
    std::uint64_t reordering_extent_max = 0;
    static const std::array<Counter<ClassCounts>, 13> counters;

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
    void add(const frame::Remarks& remarks) noexcept {
        congestion_experienced += remarks.congestion_experienced ? 1 : 0;
        congestion_outside += remarks.congestion_outside ? 1 : 0;
        flow_label_set += remarks.flow_label_set ? 1 : 0;
        with_trailer += remarks.with_trailer ? 1 : 0;
    }
    void add(const ClassCounts& other) noexcept {
        add_counters(*this, other);
        std::transform(faults.begin(), faults.end(), other.faults.begin(), faults.begin(), std::plus<>{});
    }
};
inline constexpr std::array<Counter<ClassCounts>, 13> ClassCounts::counters{{
    {"received", &ClassCounts::received},
    {"late", &ClassCounts::late},
    {"faulty", &ClassCounts::faulty},
    {"duplicate", &ClassCounts::duplicate},
    {"zero_checksum", &ClassCounts::zero_checksum},
    {"congestion_experienced", &ClassCounts::congestion_experienced},
    {"congestion_outside", &ClassCounts::congestion_outside},
    {"flow_label_set", &ClassCounts::flow_label_set},
    {"with_trailer", &ClassCounts::with_trailer},
    {"identifications", &ClassCounts::identifications},
    {"distinct_identifications", &ClassCounts::distinct_identifications},
    {"reordered", &ClassCounts::reordered},
    {"reordering_extent_max", &ClassCounts::reordering_extent_max, true},
}};

/// What one receiver counted that was not a frame of this trial.
struct ForeignCounts {
    std::uint64_t other_trial = 0, neighbour = 0, fragment = 0, foreign = 0;
    std::uint64_t of_gateway = 0;     ///< foreign ones that the gateway sends from its own link-layer address
    std::uint64_t of_other_port = 0;  ///< whatever the Tester's other port has sent and no gateway has forwarded
    static const std::array<Counter<ForeignCounts>, 6> counters;

    std::vector<std::uint64_t> icmp = std::vector<std::uint64_t>(65536);  ///< by (ICMPv6 ? 0x8000 : 0) | type << 8 | code, types below 128

    void add(const ForeignCounts& other) noexcept {
        add_counters(*this, other);
        std::transform(icmp.begin(), icmp.end(), other.icmp.begin(), icmp.begin(), std::plus<>{});
    }
    [[nodiscard]] static constexpr std::size_t icmp_slot(bool icmpv6, std::uint8_t type, std::uint8_t code) noexcept {
        return (icmpv6 ? std::size_t{0x8000} : std::size_t{0}) | (static_cast<std::size_t>(type & 0x7f) << 8) | code;
    }
};
inline constexpr std::array<Counter<ForeignCounts>, 6> ForeignCounts::counters{{
    {"other_trial", &ForeignCounts::other_trial},
    {"neighbour", &ForeignCounts::neighbour},
    {"fragment", &ForeignCounts::fragment},
    {"foreign", &ForeignCounts::foreign},
    {"of_gateway", &ForeignCounts::of_gateway},
    {"of_other_port", &ForeignCounts::of_other_port},
}};

}  // namespace gatemark::record
