#pragma once

#include "frame/arrival.hpp"
#include "frame/signature.hpp"
#include "frame/verification.hpp"
#include "loop/neighbor_mailbox.hpp"
#include "loop/receiver_plan.hpp"
#include "loop/task.hpp"
#include "record/delay_recorder.hpp"
#include "record/kept_frames.hpp"
#include "record/receive_counts.hpp"

namespace gatemark::loop {

/// Reasons for which frames are kept: every fault, then frames that are not ours.
enum class KeptReason : std::size_t { icmp_error = frame::fault_count, fragment, foreign, count };

[[nodiscard]] constexpr std::string_view kept_reason_name(std::size_t reason) noexcept {
    switch (reason) {
        case static_cast<std::size_t>(KeptReason::icmp_error): return "icmp_error";
        case static_cast<std::size_t>(KeptReason::fragment): return "later_fragment";
        case static_cast<std::size_t>(KeptReason::foreign): return "foreign";
        default: return frame::fault_names[reason];
    }
}

/// Counts the faults of a frame and keeps it for each of them.
void note_faults(record::ClassCounts& counts, record::KeptFrames& kept, const frame::Faults& faults,
                 std::span<const std::byte> bytes) noexcept;

/// Counts a frame that is not one of the trial; messages of neighbours go to the responder.
void note_other(std::span<const std::byte> bytes, const frame::Arrival& arrival, const KnownSources& sources, NeighborMailbox& mailbox,
                record::ForeignCounts& foreign, record::KeptFrames& kept) noexcept;

/// What the control thread sees of any receiver. All but `received_so_far` is valid after the
/// worker has left the trial.
class ReceivingTask : public Task {
public:
    [[nodiscard]] virtual std::uint64_t received_so_far() const noexcept = 0;
    [[nodiscard]] virtual const record::ClassCounts& counts(frame::signature::Direction direction,
                                                            frame::signature::TrafficClass traffic_class) const noexcept = 0;
    /// nullptr for a direction whose frames do not arrive here.
    [[nodiscard]] virtual const record::DelayRecorder* delays(frame::signature::Direction direction) const noexcept = 0;
    [[nodiscard]] virtual const record::ForeignCounts& foreign() const noexcept = 0;
    [[nodiscard]] virtual const record::KeptFrames& kept() const noexcept = 0;
};

}  // namespace gatemark::loop
