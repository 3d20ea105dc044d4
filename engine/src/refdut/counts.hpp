#pragma once

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
constexpr std::size_t own_drop_count = count_of<OwnDrop>;
constexpr auto own_drop_names = names_of<OwnDrop>;

/// Of one direction. For test frames: test_frames = forwarded + lost + all drops + held, at any
/// moment.
struct DirectionCounts {
    std::uint64_t received = 0;        ///< frames of any kind that arrived on the direction's side
    std::uint64_t test_frames = 0;     ///< UDP frames to be forwarded
    std::uint64_t forwarded = 0;       ///< test frames handed to a port, copies not counted
    std::uint64_t lost = 0;            ///< by the selectors of `loss`
    std::uint64_t held = 0;            ///< waiting or delayed at this moment
    std::uint64_t duplicated = 0;      ///< copies handed to the port
    std::uint64_t hairpinned = 0;      ///< forwarded to the side that they came from, by a border relay
    std::uint64_t reordered = 0;       ///< forwarded after `by` later frames, as asked for
    std::uint64_t reorder_short = 0;   ///< selected, but too few later frames came in time
    std::uint64_t copies_failed = 0;   ///< selected for duplication, but no buffer was left, or the port refused the copy
    std::uint64_t not_applicable = 0;  ///< selected for damage to a field that the frame does not have
    std::uint64_t carried_over = 0;    ///< left, but arrived before the counts were reset: in no other count
    std::uint64_t late = 0;            ///< handed to the port more than 10 us after they were due
    std::uint64_t late_max = 0;        ///< ticks
    std::uint64_t delay_samples = 0, delay_min = ~std::uint64_t{0}, delay_max = 0, delay_sum = 0;  ///< ticks
    std::array<std::uint64_t, drop_count> translator_drops{};                                      ///< by Drop
    std::array<std::uint64_t, own_drop_count> own_drops{};                                         ///< by OwnDrop
    std::array<std::uint64_t, field_count> corrupted{};  ///< by the Field that was damaged; handed to the port
    std::array<std::uint64_t, field_count> reasons{};    ///< by the Field under which the Tester is to count them

    void drop(Drop reason) noexcept { ++translator_drops[static_cast<std::size_t>(reason)]; }
    void drop(OwnDrop reason) noexcept { ++own_drops[static_cast<std::size_t>(reason)]; }
    [[nodiscard]] std::uint64_t dropped() const noexcept {
        std::uint64_t sum = 0;
        for (const std::uint64_t count : translator_drops) {
            sum += count;
        }
        for (const std::uint64_t count : own_drops) {
            sum += count;
        }
        return sum;
    }
    [[nodiscard]] bool balanced() const noexcept { return test_frames == forwarded + lost + dropped() + held; }
};

/// Everything that the worker counts.
struct GatewayCounts {
    std::array<DirectionCounts, 2> directions;
    std::uint64_t neighbour_received = 0, neighbour_answered = 0, neighbour_asked = 0;
    std::uint64_t other_forwarded = 0, other_dropped = 0;  ///< neither test frames nor neighbour messages
    std::uint64_t errors_sent = 0;                         ///< ICMP errors about refused connections
    std::uint64_t polls = 0, poll_gap_max = 0;             ///< ticks
};

/// What `counts` answers.
struct Snapshot {
    GatewayCounts counts;
    NatCounters table;
    std::uint64_t connections = 0, capacity = 0, elapsed = 0;  ///< elapsed: ticks since the counts were reset
};

}  // namespace gatemark::refdut
