#include "refdut/write_counts.hpp"

#include <nlohmann/json.hpp>

namespace gatemark::refdut {

namespace {

using nlohmann::json;

template <std::size_t N>
void add_named(json& to, const std::array<std::uint64_t, N>& counts, const std::array<std::string_view, N>& names) {
    for (std::size_t i = 0; i < N; ++i) {
        if (counts[i] != 0) {
            to[std::string{names[i]}] = counts[i];
        }
    }
}

json write_delay(const DirectionCounts& counts, const pace::TickScale& scale) {
    const auto ns = [&](std::uint64_t ticks) { return scale.time({ticks}).count(); };
    const bool any = counts.delay_samples > 0;
    return {{"samples", counts.delay_samples},
            {"minimum_ns", any ? json(ns(counts.delay_min)) : json{}},
            {"mean_ns", any ? json(ns(counts.delay_sum / counts.delay_samples)) : json{}},
            {"maximum_ns", any ? json(ns(counts.delay_max)) : json{}}};
}

json write_direction(const DirectionCounts& counts, const pace::TickScale& scale) {
    json dropped = json::object(), corrupted = json::object(), reasons = json::object();
    add_named(dropped, counts.translator_drops, drop_names);
    add_named(dropped, counts.own_drops, own_drop_names);
    add_named(corrupted, counts.corrupted, field_names);
    add_named(reasons, counts.reasons, field_names);
    return {{"received", counts.received},
            {"test_frames", counts.test_frames},
            {"forwarded", counts.forwarded},
            {"dropped", dropped},
            {"lost", counts.lost},
            {"held", counts.held},
            {"hairpinned", counts.hairpinned},
            {"duplicated", counts.duplicated},
            {"copies_failed", counts.copies_failed},
            {"reordered", counts.reordered},
            {"reorder_short", counts.reorder_short},
            {"corrupted", corrupted},
            {"reasons", reasons},
            {"not_applicable", counts.not_applicable},
            {"carried_over", counts.carried_over},
            {"late", counts.late},
            {"delay", write_delay(counts, scale)}};
}

}  // namespace

json write_counts(const Snapshot& snapshot, const std::array<std::uint64_t, 2>& receive_missed, const pace::TickScale& scale) {
    const auto ns = [&](std::uint64_t ticks) { return scale.time({ticks}).count(); };
    const GatewayCounts& counts = snapshot.counts;
    const auto& [forward, reverse] = counts.directions;
    const auto transmit_full = static_cast<std::size_t>(OwnDrop::transmit_full), hold_full = static_cast<std::size_t>(OwnDrop::hold_full);
    return {{"ok", true},
            {"elapsed_ns", ns(snapshot.elapsed)},
            {"own",
             {{"poll_gap_max_ns", ns(counts.poll_gap_max)},
              {"late_departure_max_ns", ns(std::max(forward.late_max, reverse.late_max))},
              {"late", forward.late + reverse.late},
              {"transmit_full", forward.own_drops[transmit_full] + reverse.own_drops[transmit_full]},
              {"hold_full", forward.own_drops[hold_full] + reverse.own_drops[hold_full]},
              {"receive_missed", receive_missed[0] + receive_missed[1]},
              {"polls", counts.polls}}},
            {"connections",
             {{"count", snapshot.connections},
              {"capacity", snapshot.capacity},
              {"created", snapshot.table.created},
              {"evicted", snapshot.table.evicted},
              {"refused", snapshot.table.refused},
              {"expired", snapshot.table.expired},
              {"rate_limited", snapshot.table.rate_limited},
              {"untranslated", snapshot.table.untranslated},
              {"pool_exhausted", snapshot.table.pool_exhausted},
              {"cleared", snapshot.table.cleared}}},
            {"forward", write_direction(forward, scale)},
            {"reverse", write_direction(reverse, scale)},
            {"neighbour",
             {{"received", counts.neighbour_received}, {"answered", counts.neighbour_answered}, {"asked", counts.neighbour_asked}}},
            {"other", {{"forwarded", counts.other_forwarded}, {"dropped", counts.other_dropped}, {"icmp_errors", counts.errors_sent}}}};
}

json write_errors(const Errors& errors) {
    json list = json::array();
    for (const Error& error : errors) {
        list.push_back({{"what", error.what}, {"where", error.where}, {"fix", error.fix}});
    }
    return {{"ok", false}, {"errors", list}};
}

}  // namespace gatemark::refdut
