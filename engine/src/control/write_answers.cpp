#include "control/write_answers.hpp"

#include "base/names.hpp"
#include "control/write_delays.hpp"

namespace gatemark::control {

namespace {

using Json = nlohmann::json;

std::string hexadecimal(const std::vector<std::byte>& bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    text.reserve(2 * bytes.size());
    for (const std::byte byte : bytes) {
        text += digits[std::to_integer<std::size_t>(byte >> 4)];
        text += digits[std::to_integer<std::size_t>(byte & std::byte{0x0f})];
    }
    return text;
}

Json runs_json(const std::vector<record::LossFacts::Run>& from) {
    Json runs = Json::array();
    for (const auto& run : from) {
        runs.push_back({{"index", run.index}, {"length", run.length}});
    }
    return runs;
}

Json loss_json(const record::LossFacts& loss) {
    return {{"runs", loss.runs},
            {"longest_run", loss.longest_run},
            {"first_index", loss.first_index},
            {"last_index", loss.last_index},
            {"first_runs", runs_json(loss.first_runs)},
            {"by_slice", loss.by_slice}};
}

Json count_json(const record::LossTable::Count& count) { return {{"lost", count.lost}, {"arrived", count.arrived}}; }

Json field_json(const record::LossTable::Field& field) {
    Json heaviest = Json::array(), ranges = Json::array(), bits = Json::array();
    for (const auto& value : field.heaviest) {
        heaviest.push_back({{"name", value.name}, {"lost", value.count.lost}, {"arrived", value.count.arrived}});
    }
    for (const auto& range : field.ranges) {
        ranges.push_back({{"first", range.first}, {"last", range.last}, {"values", range.values}, {"lost", range.lost}});
    }
    for (const auto& bit : field.bits) {
        bits.push_back(count_json(bit));
    }
    return {{"field", name_of(field.field)},
            {"modulus", field.modulus == 0 ? Json{} : Json(field.modulus)},
            {"lost", field.count.lost},
            {"arrived", field.count.arrived},
            {"values", field.values},
            {"losing", field.losing},
            {"dead", field.dead},
            {"lost_in_dead", field.lost_in_dead},
            {"firsts", field.firsts ? Json(*field.firsts) : Json{}},
            {"heaviest", heaviest},
            {"ranges", ranges},
            {"bits", bits}};
}

Json ages_json(const std::optional<record::LossTable::Ages>& ages) {
    if (!ages) {
        return {};
    }
    return {{"silent_ns", ages->silent.count()},
            {"after", ages->after},
            {"lost", ages->all.lost},
            {"arrived", ages->all.arrived},
            {"older", count_json(ages->older)}};
}

Json table_json(const std::optional<record::LossTable>& table) {
    if (!table) {
        return {};
    }
    Json fields = Json::array();
    for (const auto& field : table->fields) {
        fields.push_back(field_json(field));
    }
    return {{"lost", table->examined.lost}, {"arrived", table->examined.arrived}, {"fields", fields}, {"ages", ages_json(table->ages)}};
}

template <class Enum>
void write_counts(const Counts<Enum>& counts, Json& json) {
    counts.visit([&](Enum counter, std::uint64_t count) { json[std::string{name_of(counter)}] = count; });
}

Json class_json(const trial::ClassReport& report, bool with_histograms, const pace::TickScale& scale) {
    Json faults = Json::object();
    report.counts.faults.visit([&](frame::Fault fault, std::uint64_t count) {
        if (count != 0) {
            faults[std::string{name_of(fault)}] = count;
        }
    });
    Json json = {{"frame_octets", report.frame_octets ? Json(*report.frame_octets) : Json{}},
                 {"intended", report.intended},
                 {"offered", report.offered},
                 {"lost", report.lost},
                 {"faults", faults},
                 {"loss", loss_json(report.loss)},
                 {"loss_table", table_json(report.loss_table)},
                 {"delay", delay_json(report, with_histograms, scale)}};
    write_counts(report.counts.counts, json);
    write_counts(report.counts.remarks, json);
    return json;
}

Json late_bursts_json(const std::vector<trial::LateBurst>& bursts) {
    Json json = Json::array();
    for (const trial::LateBurst& burst : bursts) {
        json.push_back({{"index", burst.index}, {"frames", burst.frames}, {"lateness_ns", burst.lateness.count()}});
    }
    return json;
}

Json direction_json(const trial::DirectionReport& report, bool with_histograms, const pace::TickScale& scale) {
    Json histogram = Json::array();
    // Lateness below 64 ticks, about 30 ns, is within the precision of the clock readings.
    constexpr std::size_t first_bucket = 6;
    std::uint64_t bursts = 0;
    for (std::size_t bucket = 0; bucket < record::LatenessHistogram::buckets; ++bucket) {
        bursts += report.lateness.bursts(bucket);
        if (bucket >= first_bucket && bursts != 0) {
            histogram.push_back({{"below_ns", scale.time(record::LatenessHistogram::below(bucket)).count()}, {"bursts", bursts}});
            bursts = 0;
        }
    }
    return {{"direction", trial::name_of(report.direction)},
            {"frames_per_second", report.frames_per_second},
            {"intended_duration_ns", report.intended_duration.count()},
            {"sending_ns", report.sending.count()},
            {"lateness_max_ns", report.lateness_max.count()},
            {"gave_up", report.gave_up},
            {"lateness_histogram", histogram},
            {"refused", report.refused},
            {"longest_loss_runs", runs_json(report.longest_loss_runs)},
            {"late_bursts", late_bursts_json(report.late_bursts)},
            {"foreground", class_json(report.foreground, with_histograms, scale)},
            {"background", class_json(report.background, with_histograms, scale)}};
}

Json clocks_json(const trial::ClockTimes& clocks) {
    return {{"cycle_counter_ns", clocks.cycle_counter.count()}, {"monotonic_raw_ns", clocks.monotonic_raw.count()}};
}

Json port_json(const trial::PortReport& report) {
    Json icmp = Json::object();
    for (std::size_t slot = 0; slot < report.foreign.icmp.size(); ++slot) {
        if (report.foreign.icmp[slot] != 0) {
            icmp[std::string{(slot & 0x8000) != 0 ? "icmpv6 " : "icmpv4 "} + std::to_string((slot >> 8) & 0x7f) + "/" +
                 std::to_string(slot & 0xff)] = report.foreign.icmp[slot];
        }
    }
    Json foreign = {{"icmp", icmp}};
    write_counts(report.foreign.counts, foreign);
    Json own_drops;
    write_counts(report.own_drops.counts, own_drops);
    write_counts(report.neighbor_drops, own_drops);
    return {{"link_up", report.link_up},
            {"link_losses", report.link_losses},
            {"clock_error_ns", report.clock_error.count()},
            {"received_by_queue", report.received_by_queue},
            {"foreign", foreign},
            {"own_drops", own_drops},
            {"peer_queue_drops", report.own_drops.peer_queue_drops}};
}

Json connections_json(const trial::EstablishedConnections& connections) {
    return {{"phase", connections.phase == state::Phase::establish ? "establish" : "use"},
            {"count", connections.count},
            {"established", connections.established}};
}

Json echo_json(const trial::EchoReport& report, const pace::TickScale& scale) {
    Json steady, clients = Json::array();
    if (report.steady) {
        steady = {{"begin_ns", report.steady->begin.count()},
                  {"end_ns", report.steady->end.count()},
                  {"requests", report.steady->requests},
                  {"replies", report.steady->replies}};
    }
    for (const trial::EchoClientReport& client : report.clients) {
        Json json = {{"client", client.client},
                     {"begin_ns", client.begin.count()},
                     {"end_ns", client.end.count()},
                     {"rtt", round_trips_json(client.round_trips, client.counts[trial::EchoCount::requests], scale)}};
        write_counts(client.counts, json);
        clients.push_back(std::move(json));
    }
    return {{"steady", steady},
            {"clients", clients},
            {"all", round_trips_json(report.all, report.all_requests(), scale)},
            {"first", round_trips_json(report.first, report.first_requests, scale)},
            {"client_busy_ns", report.client_busy.count()},
            {"responder_busy_ns", report.responder_busy.count()}};
}

}  // namespace

Json to_json(const Errors& errors) {
    Json list = Json::array();
    for (const Error& error : errors) {
        list.push_back({{"what", error.what}, {"where", error.where}, {"fix", error.fix}});
    }
    return list;
}

Json to_json(const io::PortFacts& facts) {
    return {{"port", facts.port},
            {"driver", facts.driver},
            {"mac", net::to_text(facts.mac)},
            {"numa_node", facts.numa_node},
            {"link_up", facts.link_up},
            {"link_mbps", facts.link_mbps},
            {"mtu", facts.mtu},
            {"timestamps", facts.stamps_arrivals ? "hardware" : "software"}};
}

Json to_json(const trial::Layout& layout) {
    Json workers = Json::array();
    for (const trial::WorkerLayout& worker : layout.workers) {
        Json tasks = Json::array();
        for (const trial::TaskPlace& task : worker.tasks) {
            tasks.push_back(task.text());
        }
        workers.push_back({{"cpu", worker.cpu}, {"tasks", tasks}});
    }
    return {{"queues", {{"left", layout.queues[0]}, {"right", layout.queues[1]}}}, {"workers", workers}, {"why", layout.why}};
}

Json to_json(const trial::Progress& progress) {
    Json directions = Json::array();
    for (const auto& counts : progress.directions) {
        directions.push_back({{"direction", trial::name_of(counts.direction)}, {"offered", counts.offered}, {"received", counts.received}});
    }
    return {{"phase", progress.phase}, {"elapsed_ns", progress.elapsed.count()}, {"directions", directions}};
}

Json to_json(const trial::TrialReport& report, const pace::TickScale& scale) {
    Json phases = Json::array(), directions = Json::array(), kept = Json::array();
    for (const trial::PhaseTime& phase : report.phases) {
        phases.push_back({{"phase", phase.phase}, {"duration_ns", phase.duration.count()}});
    }
    for (const trial::DirectionReport& direction : report.directions) {
        directions.push_back(direction_json(direction, report.with_histograms, scale));
    }
    for (const trial::KeptFrame& frame : report.kept_frames) {
        kept.push_back({{"side", trial::name_of(frame.side)}, {"reason", frame.reason}, {"octets", hexadecimal(frame.bytes)}});
    }
    return {{"trial_number", report.trial_number},
            {"cancelled", report.cancelled},
            {"connections", report.connections ? connections_json(*report.connections) : Json{}},
            {"echo", report.echo ? echo_json(*report.echo, scale) : Json{}},
            {"phases", phases},
            {"clocks", clocks_json(report.clocks)},
            {"worker_pause_max_ns", report.worker_pause_max.count()},
            {"directions", directions},
            {"ports", {{"left", port_json(report.ports[0])}, {"right", port_json(report.ports[1])}}},
            {"kept_frames", kept}};
}

Json to_json(const trial::ExchangeReport& report) {
    Json arrived = Json::array();
    for (const auto& frame : report.arrived) {
        arrived.push_back({{"side", trial::name_of(frame.side)}, {"at_ns", frame.at.count()}, {"octets", hexadecimal(frame.bytes)}});
    }
    return {{"cancelled", report.cancelled},
            {"sent", {{"left", report.sent[0]}, {"right", report.sent[1]}}},
            {"arrived", arrived},
            {"not_kept", report.not_kept}};
}

Json to_json(const state::Behaviour& behaviour) {
    Json json;
    write_counts(behaviour, json);
    return json;
}

Json to_json(const std::vector<trial::PreviewedFrame>& frames) {
    Json list = Json::array();
    for (const trial::PreviewedFrame& frame : frames) {
        list.push_back({{"direction", trial::name_of(frame.direction)},
                        {"index", frame.index},
                        {"class", frame.foreground ? "foreground" : "background"},
                        {"due_ns", frame.due.count()},
                        {"sent", hexadecimal(frame.sent)},
                        {"expected", hexadecimal(frame.expected)}});
    }
    return list;
}

}  // namespace gatemark::control
