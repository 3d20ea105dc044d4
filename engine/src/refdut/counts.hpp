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
    queue_full,     ///< the shaper's queue is full
    recovery,       ///< lost after an overload
    reset,          ///< the gateway resets
    no_neighbour,   ///< the link-layer address of the far side is not known
    too_long,       ///< longer than the MTU of the side where it would leave
    no_room,        ///< the buffer has no room for the VLAN tag
    hold_full,      ///< more frames held than `held_frames`: the gateway's own fault
    transmit_full,  ///< the port accepted no more frames: the gateway's own fault, or there is no receiver
};

enum class DirectionCount : std::uint8_t {
    received,        ///< frames of any kind that arrived on the direction's side
    test_frames,     ///< UDP frames to be forwarded
    forwarded,       ///< test frames handed to a port, copies not counted
    lost,            ///< by the selectors of `loss`
    held,            ///< waiting or delayed at this moment
    duplicated,      ///< copies handed to the port
    hairpinned,      ///< forwarded to the side that they came from, by a border relay
    reordered,       ///< forwarded after `by` later frames, as asked for
    reorder_short,   ///< selected, but too few later frames came in time
    copies_failed,   ///< selected for duplication, but no buffer was left, or the port refused the copy
    not_applicable,  ///< selected for damage to a field that the frame does not have
    carried_over,    ///< left, but arrived before the counts were reset: in no other count
    late,            ///< handed to the port more than 10 us after they were due
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

enum class NeighbourCount : std::uint8_t { received, answered, asked };

/// Of neither test frames nor neighbour messages.
enum class OtherCount : std::uint8_t {
    forwarded,
    dropped,
    icmp_errors,  ///< sent about refused connections
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
