#include "loop/receiving_task.hpp"

#include "net/headers.hpp"

#include <cstring>

namespace gatemark::loop {

void note_faults(record::ClassCounts& counts, record::KeptFrames& kept, const frame::Faults& faults,
                 std::span<const std::byte> bytes) noexcept {
    counts.faults.add(faults);
    faults.visit([&](frame::Fault fault) { kept.keep(static_cast<std::size_t>(fault), bytes); });
}

namespace {

bool comes_from(std::span<const std::byte> bytes, const std::optional<net::MacAddress>& source) noexcept {
    return source && bytes.size() >= net::ethernet::header_bytes &&
           std::memcmp(bytes.data() + net::ethernet::source, source->data(), net::mac_bytes) == 0;
}

}  // namespace

void note_other(std::span<const std::byte> bytes, const frame::Arrival& arrival, const KnownSources& sources, NeighborMailbox& mailbox,
                record::ForeignCounts& foreign, record::KeptFrames& kept) noexcept {
    if (comes_from(bytes, sources.other_port)) {
        ++foreign[record::ForeignFrame::of_other_port];
        if (arrival.asks_or_answers) {
            mailbox.put(bytes);
        }
        return;
    }
    switch (arrival.kind) {
        case frame::ArrivalKind::neighbour:
            ++foreign[record::ForeignFrame::neighbour];
            if (arrival.asks_or_answers) {
                mailbox.put(bytes);
            }
            break;
        case frame::ArrivalKind::other_trial: ++foreign[record::ForeignFrame::other_trial]; break;
        case frame::ArrivalKind::icmp_error:
            ++foreign.icmp[record::ForeignCounts::icmp_slot(arrival.family == net::Family::ipv6, arrival.icmp_type, arrival.icmp_code)];
            kept.keep(static_cast<std::size_t>(KeptReason::icmp_error), bytes);
            break;
        case frame::ArrivalKind::fragment:
            ++foreign[record::ForeignFrame::fragment];
            kept.keep(static_cast<std::size_t>(KeptReason::fragment), bytes);
            break;
        case frame::ArrivalKind::foreign:
        case frame::ArrivalKind::ours:
            ++foreign[comes_from(bytes, sources.gateway) ? record::ForeignFrame::of_gateway : record::ForeignFrame::foreign];
            kept.keep(static_cast<std::size_t>(KeptReason::foreign), bytes);
            break;
    }
}

}  // namespace gatemark::loop
