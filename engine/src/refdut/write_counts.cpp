#include "refdut/write_counts.hpp"

#include <nlohmann/json.hpp>

namespace gatemark::refdut {

namespace {

using nlohmann::json;

template <class Enum>
json write(const Counts<Enum>& counts) {
    json names;
    counts.visit([&](Enum counter, std::uint64_t count) { names[std::string{name_of(counter)}] = count; });
    return names;
}

template <class Enum>
void write_counted(const Counts<Enum>& counts, json& to) {
    counts.visit([&](Enum counter, std::uint64_t count) {
        if (count != 0) {
            to[std::string{name_of(counter)}] = count;
        }
    });
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
    write_counted(counts.translator_drops, dropped);
    write_counted(counts.own_drops, dropped);
    write_counted(counts.corrupted, corrupted);
    write_counted(counts.reasons, reasons);
    json direction = write(counts.frames);
    direction.update({{"dropped", dropped}, {"corrupted", corrupted}, {"reasons", reasons}, {"delay", write_delay(counts, scale)}});
    return direction;
}

}  // namespace

json write_counts(const Snapshot& snapshot, const std::array<std::uint64_t, 2>& receive_missed, const pace::TickScale& scale) {
    const auto ns = [&](std::uint64_t ticks) { return scale.time({ticks}).count(); };
    const GatewayCounts& counts = snapshot.counts;
    const auto& [forward, reverse] = counts.directions;
    const auto own_drops = [&counts](OwnDrop reason) {
        return counts.directions[0].own_drops[reason] + counts.directions[1].own_drops[reason];
    };
    json connections = write(snapshot.table);
    connections.update({{"count", snapshot.connections}, {"capacity", snapshot.capacity}});
    return {{"ok", true},
            {"elapsed_ns", ns(snapshot.elapsed)},
            {"own",
             {{"poll_gap_max_ns", ns(counts.poll_gap_max)},
              {"late_departure_max_ns", ns(std::max(forward.late_max, reverse.late_max))},
              {"late", forward[DirectionCount::late] + reverse[DirectionCount::late]},
              {"transmit_full", own_drops(OwnDrop::transmit_full)},
              {"hold_full", own_drops(OwnDrop::hold_full)},
              {"receive_missed", receive_missed[0] + receive_missed[1]},
              {"polls", counts.polls}}},
            {"connections", connections},
            {"forward", write_direction(forward, scale)},
            {"reverse", write_direction(reverse, scale)},
            {"neighbour", write(counts.neighbour)},
            {"other", write(counts.other)}};
}

json write_errors(const Errors& errors) {
    json list = json::array();
    for (const Error& error : errors) {
        list.push_back({{"what", error.what}, {"where", error.where}, {"fix", error.fix}});
    }
    return {{"ok", false}, {"errors", list}};
}

}  // namespace gatemark::refdut
