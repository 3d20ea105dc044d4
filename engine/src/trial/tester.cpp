#include "trial/tester.hpp"

#include "base/available_memory.hpp"
#include "trial/tester_parts.hpp"
#include "trial/trial_run.hpp"

#include <algorithm>

namespace gatemark::trial {

using namespace std::chrono_literals;

LinkPlan TesterParts::links() {
    LinkPlan plan;
    for (std::size_t i = 0; i < 2; ++i) {
        const TesterSide& tester_side = *sides[i];
        // Without a gateway, the other port is at the far end of the wire: loop-back.
        plan.sides[i] = {.source = tester_side.link.own_mac,
                         .destination = tester_side.gateway_mac.value_or(sides[1 - i]->link.own_mac),
                         .vlan_id = tester_side.link.vlan_id,
                         .host_macs = tester_side.link.host_macs};
    }
    return plan;
}

loop::KnownSources TesterParts::known_sources(Side which) {
    const auto i = static_cast<std::size_t>(which);
    const bool has_gateway = sides[i]->gateway_mac || sides[1 - i]->gateway_mac;
    return {.gateway = sides[i]->gateway_mac, .other_port = has_gateway ? std::optional{sides[1 - i]->link.own_mac} : std::nullopt};
}

std::vector<unsigned> TesterParts::worker_cpus() const {
    std::vector<unsigned> cpus;
    for (const WorkerLayout& worker : layout.workers) {
        cpus.push_back(worker.cpu);
    }
    return cpus;
}

void TesterParts::hand_out(const std::vector<TaskList>& lists) {
    for (std::size_t i = 0; i < workers.size(); ++i) {
        workers[i]->ask(lists[i]);
    }
    for (const auto& worker : workers) {
        worker->wait();
    }
}

Tester::Tester(std::unique_ptr<TesterParts> parts) : parts_{std::move(parts)} {}
Tester::~Tester() = default;

OpenedFacts Tester::facts() const {
    OpenedFacts facts{.ports = {parts_->sides[0]->port.facts(), parts_->sides[1]->port.facts()},
                      .layout = parts_->layout,
                      .huge_pages = parts_->environment.uses_huge_pages()};
    for (std::size_t i = 0; i < 2; ++i) {
        facts.ports[i].mac = parts_->sides[i]->link.own_mac;
    }
    return facts;
}

std::variant<net::MacAddress, Errors> Tester::resolve(const ResolveRequest& request, Watcher& watcher) {
    TesterSide& side = parts_->side(request.side);
    const std::string where = name_of(request.side);
    if (request.gateway.family != request.source.family) {
        return Errors{{"gateway and source are of different families", where, "give both as IPv4 or both as IPv6"}};
    }
    side.responder->forget();
    constexpr auto wake_interval = 10ms, ask_interval = 500ms;
    const auto asked_at = std::chrono::steady_clock::now();
    auto next_question = asked_at;
    for (auto now = asked_at; now - asked_at < request.timeout; now = std::chrono::steady_clock::now()) {
        if (now >= next_question) {
            side.responder->ask_for({{request.gateway, request.source}});
            next_question = now + ask_interval;
        }
        if (!watcher.wait(wake_interval)) {
            return Errors{{"the request was cancelled before " + net::to_text(request.gateway) + " answered", where, "send it again"}};
        }
        if (const auto mac = side.responder->mac_of(request.gateway)) {
            side.gateway_mac = mac;
            std::erase_if(side.gateways, [&](const KnownGateway& known) { return known.gateway.family == request.gateway.family; });
            side.gateways.push_back({request.gateway, request.source});
            return *mac;
        }
    }
    const char* const protocol = request.gateway.family == net::Family::ipv4 ? "ARP" : "neighbour discovery";
    return Errors{{net::to_text(request.gateway) + " did not answer " + protocol + " on port " + side.port.options().name.text, where,
                   "check that the gateway is up, that this address is on its " + where +
                       " interface and that the cable or virtual link joins it to this port"}};
}

namespace {

/// Test phase 1 begins with an empty state table, and test phase 2 only with a full one.
std::optional<Error> prepare(ConnectionMemory& memory, const ConnectionPlan& plan, std::span<const unsigned> cpus) {
    if (plan.phase == state::Phase::establish) {
        memory.plan.reset();
        memory.established = 0;
        if (auto error = memory.table.reset(plan.identity.count, cpus)) {
            return error;
        }
        memory.plan = plan;
        return std::nullopt;
    }
    if (!memory.plan || memory.plan->identity != plan.identity) {
        return Error{"these connections were not established", "connections",
                     "make a trial of phase `establish` with the same connections first"};
    }
    if (memory.established != plan.identity.count) {
        return Error{
            "the state table holds " + std::to_string(memory.established) + " of " + std::to_string(plan.identity.count) + " connections",
            "connections", "repeat phase `establish` at a lower rate until every connection is established (RFC 9693 section 4.2)"};
    }
    return std::nullopt;
}

/// Refuses a trial whose records do not fit into memory: one bit for every frame, and what is
/// recorded of delays and connections.
std::optional<Error> check_records(TesterParts& parts, const TrialRequest& request, const TrialPlan& plan) {
    std::uint64_t bytes = 0;
    for (const DirectionPlan& direction : plan.directions) {
        const DirectionMemory& memory = parts.memory(direction.direction);
        bytes += memory.arrivals.growth(direction.frame_count) + (direction.tags ? memory.tags.growth(direction.tags->count) : 0);
        for (const record::DelayWindow& window : memory.windows) {
            bytes += request.delays.variation ? window.growth() : 0;
        }
    }
    if (plan.connections && plan.connections->phase == state::Phase::establish) {
        bytes += parts.connections.table.growth(plan.connections->identity.count);
    }
    if (plan.echo) {
        const frame::EchoShape& shape = plan.echo->echo.numbers().shape();
        const std::uint64_t histograms = (shape.clients + 1) * parts.side(Side::left).queues.size() + shape.clients + 2;
        bytes += parts.echo.answered.growth(plan.directions.front().frame_count) +
                 (plan.echo->echo.pool() == nullptr ? 0 : parts.echo.table.growth(shape.all_destinations())) +
                 histograms * record::DelayHistogram::bucket_count * sizeof(std::uint64_t);
    }
    return check_memory(bytes, "the records of the trial", "memory",
                        "free memory or raise that limit; or measure for a shorter time, at a lower rate, with fewer tags or connections");
}

}  // namespace

std::variant<TrialReport, Errors> Tester::run(const TrialRequest& request, Watcher& watcher) {
    auto plan = make_trial_plan(request, parts_->links());
    if (auto* errors = std::get_if<Errors>(&plan)) {
        return std::move(*errors);
    }
    if (auto error = check_records(*parts_, request, std::get<TrialPlan>(plan))) {
        return Errors{std::move(*error)};
    }
    if (const auto& connections = std::get<TrialPlan>(plan).connections) {
        if (auto error = prepare(parts_->connections, *connections, parts_->worker_cpus())) {
            return Errors{std::move(*error)};
        }
    }
    if (const auto& echo = std::get<TrialPlan>(plan).echo; echo && echo->echo.pool() != nullptr) {
        if (auto error = parts_->echo.table.reset(echo->echo.numbers().shape().all_destinations())) {
            return Errors{std::move(*error)};
        }
    }
    TrialRun run{*parts_, request, std::get<TrialPlan>(plan), watcher};
    return run.execute();
}

std::variant<state::Behaviour, Errors> Tester::behaviour() const {
    const ConnectionMemory& memory = parts_->connections;
    if (!memory.plan) {
        return Errors{{"no connection was established yet", "", "make a trial of phase `establish` first"}};
    }
    state::Behaviour behaviour = state::observe(memory.plan->set(), memory.table);
    behaviour[state::Observation::established] = memory.established;
    return behaviour;
}

std::uint64_t Tester::connection_count() const { return parts_->connections.plan ? parts_->connections.plan->identity.count : 0; }

}  // namespace gatemark::trial
