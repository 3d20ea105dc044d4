#include "trial/tester.hpp"

#include "trial/tester_parts.hpp"
#include "trial/trial_run.hpp"

#include <algorithm>

namespace gatemark::trial {

using namespace std::chrono_literals;

LinkPlan TesterParts::links() {
    LinkPlan plan;
    for (std::size_t i = 0; i < 2; ++i) {
        const TesterSide& own = *sides[i];
        // Without a gateway the far end of the wire is the other port: loop-back.
        plan.sides[i] = {
            .source = own.link.own_mac, .destination = own.gateway_mac.value_or(sides[1 - i]->link.own_mac), .vlan_id = own.link.vlan_id};
    }
    return plan;
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
                      .workers = parts_->layout,
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
    constexpr auto look_interval = 10ms, ask_interval = 500ms;
    const auto asked_at = std::chrono::steady_clock::now();
    auto next_question = asked_at;
    for (auto now = asked_at; now - asked_at < request.timeout; now = std::chrono::steady_clock::now()) {
        if (now >= next_question) {
            side.responder->ask_for({{request.gateway, request.source}});
            next_question = now + ask_interval;
        }
        if (!watcher.wait(look_interval)) {
            break;
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

std::variant<TrialReport, Errors> Tester::run(const TrialRequest& request, Watcher& watcher) {
    auto plan = make_trial_plan(request, parts_->links());
    if (auto* errors = std::get_if<Errors>(&plan)) {
        return std::move(*errors);
    }
    TrialRun run{*parts_, request, std::get<TrialPlan>(plan), watcher};
    return run.execute();
}

}  // namespace gatemark::trial
