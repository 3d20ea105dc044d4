#include "loop/receiving_task.hpp"

namespace gatemark::loop {

void note_faults(record::ClassCounts& counts, record::KeptFrames& kept, const frame::Faults& faults,
                 std::span<const std::byte> bytes) noexcept {
    for (std::size_t i = 0; i < frame::fault_count; ++i) {
        if (faults.has(static_cast<frame::Fault>(i))) {
            ++counts.faults[i];
            kept.keep(i, bytes);
        }
    }
}

void note_other(std::span<const std::byte> bytes, const frame::Arrival& arrival, NeighborMailbox& mailbox, record::ForeignCounts& foreign,
                record::KeptFrames& kept) noexcept {
    switch (arrival.kind) {
        case frame::ArrivalKind::neighbour:
            ++foreign.neighbour;
            if (arrival.asks_or_answers) {
                mailbox.put(bytes);
            }
            break;
        case frame::ArrivalKind::other_trial: ++foreign.other_trial; break;
        case frame::ArrivalKind::icmp_error:
            ++foreign.icmp[record::ForeignCounts::icmp_slot(arrival.family == net::Family::ipv6, arrival.icmp_type, arrival.icmp_code)];
            kept.keep(static_cast<std::size_t>(KeptReason::icmp_error), bytes);
            break;
        case frame::ArrivalKind::fragment:
            ++foreign.fragment;
            kept.keep(static_cast<std::size_t>(KeptReason::fragment), bytes);
            break;
        case frame::ArrivalKind::foreign:
        case frame::ArrivalKind::ours:
            ++foreign.foreign;
            kept.keep(static_cast<std::size_t>(KeptReason::foreign), bytes);
            break;
    }
}

}  // namespace gatemark::loop
