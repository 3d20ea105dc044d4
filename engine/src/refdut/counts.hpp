#pragma once

#include "base/counts.hpp"
#include "refdut/corrupt.hpp"
#include "refdut/nat_table.hpp"
#include "refdut/packet.hpp"

#include <array>
#include <cstdint>

namespace gatemark::refdut {

/// Why the gateway itself drops a test frame; the translator's reasons (`Drop`) come before these.
enum class OwnDrop : std::uint8_t {
    queue_full,     ///< the queue before the capacity was full
    recovery,       ///< lost after an overload
    reset,          ///< while the gateway reset
    no_neighbour,   ///< no neighbour known on the far side
    too_long,       ///< longer than the far side's MTU
    no_room,        ///< no room for the VLAN tag
    hold_full,      ///< more held than `held_frames`: the reference gateway's own fault
    transmit_full,  ///< the port took no more: the reference gateway's own fault, or nobody receives
};

enum class DirectionCount : std::uint8_t {
    received,        ///< frames of any kind that arrived on the direction's side
    test_frames,     ///< test frames among them
    forwarded,       ///< test frames that were handed to a port, copies not counted
    lost,            ///< taken by a selector of `loss`
    held,            ///< waiting or delayed at this moment
    duplicated,      ///< copies handed to the port
    hairpinned,      ///< forwarded ones that a border relay sent back to the inside
    reordered,       ///< overtaken by as many frames as asked for
    reorder_short,   ///< overtaken by fewer, as no more came in time
    copies_failed,   ///< copies that were not made, or that the port did not take
    not_applicable,  ///< selected for a damage that the frame has no field for
    carried_over,    ///< left after the counts were reset, but arrived before: in no other count
    late,            ///< handed over more than 10 us after they were due
};

/// Of one direction. For test frames: test_frames = forwarded + lost + all drops + held, at any
/// moment.
struct DirectionCounts {
    Counts<DirectionCount> frames;
    Counts<Drop> translator_drops;
    Counts<OwnDrop> own_drops;
    Counts<Field> corrupted;     ///< by the field that was damaged; handed to the port
    Counts<Field> reasons;       ///< by the field under which the Tester is to count them
    std::uint64_t late_max = 0;  ///< ticks
    std::uint64_t delay_samples = 0, delay_min = ~std::uint64_t{0}, delay_max = 0, delay_sum = 0;  ///< ticks

    [[nodiscard]] std::uint64_t& operator[](DirectionCount counter) noexcept { return frames[counter]; }
    [[nodiscard]] std::uint64_t operator[](DirectionCount counter) const noexcept { return frames[counter]; }

    void drop(Drop reason) noexcept { ++translator_drops[reason]; }
    void drop(OwnDrop reason) noexcept { ++own_drops[reason]; }
    [[nodiscard]] std::uint64_t dropped() const noexcept { return translator_drops.sum() + own_drops.sum(); }
    [[nodiscard]] bool balanced() const noexcept {
        return frames[DirectionCount::test_frames] ==
               frames[DirectionCount::forwarded] + frames[DirectionCount::lost] + dropped() + frames[DirectionCount::held];
    }
};

/// Of ARP and neighbour discovery.
enum class NeighbourCount : std::uint8_t {
    received,  ///< messages that arrived
    answered,  ///< messages that were answered
    asked,     ///< questions sent
};

/// Of neither test frames nor neighbour messages.
enum class OtherCount : std::uint8_t {
    forwarded,    ///< frames that were forwarded
    dropped,      ///< frames that were dropped
    icmp_errors,  ///< ICMP errors sent
};

/// Everything that the worker counts.
struct GatewayCounts {
    std::array<DirectionCounts, 2> directions;
    Counts<NeighbourCount> neighbour;
    Counts<OtherCount> other;
    std::uint64_t polls = 0, poll_gap_max = 0;  ///< ticks
};

/// What `counts` answers.
struct Snapshot {
    GatewayCounts counts;
    Counts<NatCount> table;
    std::uint64_t connections = 0, capacity = 0, elapsed = 0;  ///< elapsed: ticks since the counts were reset
};

}  // namespace gatemark::refdut
