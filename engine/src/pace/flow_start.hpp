#pragma once

#include "base/divider.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace gatemark::pace {

/// Flows that start one after another (RFC 8219 section 10.2.2). The load that all of them make
/// together has slots at a constant rate, which they take in turn: slot r * flows + f is that of
/// flow f in round r. Flow f starts with round f * rounds_between. The slots of flows that have not
/// started stay empty, so each flow has the same rate from its start to the end.
class FlowStart {
public:
    /// Both are at least 1; flows * flows * rounds_between is below 2^63.
    constexpr FlowStart(std::uint64_t flows, std::uint64_t rounds_between) noexcept
        : flows_{flows}, rounds_between_{rounds_between}, empty_slots_{rounds_between * (flows * (flows - 1) / 2)} {}

    /// Frames 0 to ramp_frames() - 1 are sent before the last flow starts.
    [[nodiscard]] constexpr std::uint64_t ramp_frames() const noexcept { return empty_slots_; }  // half of the slots are empty
    /// Slots before the first one of the last flow's first round.
    [[nodiscard]] constexpr std::uint64_t ramp_slots() const noexcept { return 2 * empty_slots_; }

    /// The slot of frame i.
    [[nodiscard]] constexpr std::uint64_t slot_of(std::uint64_t i) const noexcept {
        if (i >= ramp_frames()) {
            return i + empty_slots_;
        }
        const std::uint64_t started = flows_started_at(i);
        const std::uint64_t in_step = i - frames_before_step(started);
        const std::uint64_t round = (started - 1) * rounds_between_.divisor() + in_step / started;
        return round * flows_ + in_step % started;
    }
    /// The number of frames in slots 0 to slots - 1.
    [[nodiscard]] constexpr std::uint64_t frames_before(std::uint64_t slots) const noexcept {
        if (slots >= ramp_slots()) {
            return slots - empty_slots_;
        }
        const std::uint64_t round = slots / flows_;
        const auto [step, round_in_step] = rounds_between_.divide(round);
        const std::uint64_t started = step + 1;
        return frames_before_step(started) + round_in_step * started + std::min(slots % flows_, started);
    }

private:
    /// Frames before the round in which flow number `started` - 1 starts.
    [[nodiscard]] constexpr std::uint64_t frames_before_step(std::uint64_t started) const noexcept {
        return rounds_between_.divisor() * (started * (started - 1) / 2);
    }
    /// How many flows have started when frame i of the ramp is sent: the largest s with s * (s - 1)
    /// / 2 <= i / rounds_between.
    [[nodiscard]] constexpr std::uint64_t flows_started_at(std::uint64_t i) const noexcept {
        const std::uint64_t steps = rounds_between_.divide(i).quotient;
        return (1 + square_root(8 * steps + 1)) / 2;
    }
    /// Rounded down, of a value above 0: Newton's method from above.
    [[nodiscard]] static constexpr std::uint64_t square_root(std::uint64_t value) noexcept {
        std::uint64_t root = std::uint64_t{1} << ((std::bit_width(value) + 1) / 2);
        for (std::uint64_t next = (root + value / root) / 2; next < root; next = (root + value / root) / 2) {
            root = next;
        }
        return root;
    }

    std::uint64_t flows_;
    Divider rounds_between_;
    std::uint64_t empty_slots_;
};

consteval bool every_started_flow_has_its_slots(std::uint64_t flows, std::uint64_t rounds_between) {
    const FlowStart start{flows, rounds_between};
    std::uint64_t i = 0;
    for (std::uint64_t slot = 0; slot < flows * rounds_between * flows + 3 * flows; ++slot) {
        if (start.frames_before(slot) != i) {
            return false;
        }
        if (slot / flows >= slot % flows * rounds_between) {  // its flow has started
            if (start.slot_of(i++) != slot) {
                return false;
            }
        }
    }
    return start.frames_before(start.ramp_slots()) == start.ramp_frames();
}
static_assert(every_started_flow_has_its_slots(1, 1) && every_started_flow_has_its_slots(2, 1) && every_started_flow_has_its_slots(2, 7) &&
              every_started_flow_has_its_slots(5, 3) && every_started_flow_has_its_slots(17, 1) && every_started_flow_has_its_slots(13, 4));

}  // namespace gatemark::pace
