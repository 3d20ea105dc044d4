#include "trial/trial_plan.hpp"

#include "base/wide.hpp"
#include "trial/echo_plan.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gatemark::trial {

namespace {

using frame::signature::TrafficClass;

void check_ports(const frame::ValueRange& ports, const std::string& where, Errors& errors) {
    if (ports.minimum > ports.maximum) {
        errors.push_back({"minimum is above maximum", where, "swap them"});
    }
}

/// Whether one of the hosts has an address in this IPv4 prefix: bit by bit, the prefix agrees with
/// what does not vary, and begins a value between the first one and the last one.
bool may_be_in(const frame::HostSet& hosts, const net::Prefix& prefix) {
    const auto agrees = [&](unsigned network) {
        const auto first = hosts.host(hosts.part.minimum, static_cast<std::uint8_t>(network)),
                   last = hosts.host(hosts.part.maximum, static_cast<std::uint8_t>(network));
        bool tight_low = true, tight_high = true;  // whether the value so far is that of the first host, of the last one
        for (unsigned i = 0; i < prefix.length; ++i) {
            const bool bit = net::bit_of(prefix.address, i), low = net::bit_of(first, i), high = net::bit_of(last, i);
            const bool is_below = tight_low && bit < low, is_above = tight_high && bit > high;
            if (is_below || is_above || (low == high && bit != low && (i / 8 < hosts.offset || i / 8 > hosts.offset + 1))) {
                return false;
            }
            tight_low = tight_low && bit == low;
            tight_high = tight_high && bit == high;
        }
        return true;
    };
    for (unsigned network = 0; network < hosts.networks; ++network) {
        if (agrees(network)) {
            return true;
        }
    }
    return false;
}

/// The range of one digit of a four-tuple.
enumerate::TupleRange tuple_range(const frame::ValueRange& range) { return {.minimum = range.minimum, .count = range.count()}; }

std::optional<frame::HostSet> subscribers_of(const std::optional<frame::TunnelRequest>& tunnel) {
    return tunnel ? tunnel->subscribers : std::nullopt;
}

/// The digit of the Initiator's host, which counts subscribers as well.
std::optional<enumerate::TupleRange> source_range(const frame::HostSet& sources, const std::optional<frame::HostSet>& subscribers,
                                                  Errors& errors) {
    if (!subscribers) {
        return tuple_range(sources.part);
    }
    const frame::SubscriberHosts hosts{sources, *subscribers};
    if (auto error = hosts.problem("connections")) {
        errors.push_back(*std::move(error));
        return std::nullopt;
    }
    return tuple_range(hosts.values());
}

/// Checks the Responder's foreground against the Initiator's: source and destination must be
/// swapped.
bool is_mirror_image(const frame::StreamRequest& a, const frame::StreamRequest& b) {
    const auto same_ports = [](const frame::ValueRange& mine, const frame::ValueRange& other) {
        return mine.minimum == other.minimum && mine.maximum == other.maximum;
    };
    return a.source == b.destination && a.destination == b.source && same_ports(a.source_ports, b.destination_ports) &&
           same_ports(a.destination_ports, b.source_ports) && subscribers_of(a.source_tunnel) == subscribers_of(b.destination_tunnel) &&
           subscribers_of(a.destination_tunnel) == subscribers_of(b.source_tunnel) && a.source_peers == b.destination_peers &&
           a.destination_peers == b.source_peers;
}

/// What the Initiator's and the Responder's ends must be together.
void check_identity(const ConnectionIdentity& identity, net::Family outside, bool as_sent, Errors& errors) {
    if (identity.sources.many_networks() || identity.destinations.many_networks()) {
        errors.push_back({"connections have one destination network", "connections", "set networks to 1"});
    }
    if (as_sent && identity.sources.address.family != identity.destinations.address.family) {
        errors.push_back({"in a loop-back Initiator and Responder are of one family", "connections", "give both as IPv4 or both as IPv6"});
    }
    if (identity.pool.family() != (as_sent ? identity.sources.address.family : outside)) {
        errors.push_back({"the pool is not of the Responder's family", "connections.pool", "give the gateway's public addresses"});
    }
    if (identity.ranges.count() > enumerate::Permutation::count_limit) {
        errors.push_back({"there are more than 2^40 four-tuples", "connections", "narrow the ranges of ports or hosts"});
    } else if (identity.count > static_cast<std::uint64_t>(identity.ranges.count())) {
        errors.push_back({std::to_string(identity.count) + " connections need as many four-tuples; the ranges have " +
                              std::to_string(static_cast<std::uint64_t>(identity.ranges.count())),
                          "connections.count", "widen the ranges of ports or hosts, or establish fewer"});
    }
}

/// Checks the connections and numbers them; the hosts and ports of the streams have been checked
/// already.
std::optional<ConnectionPlan> plan_connections(const TrialRequest& trial, Errors& errors) {
    const ConnectionsRequest& request = *trial.connections;
    const Direction upload = request.initiator == Side::left ? Direction::forward : Direction::reverse;
    const frame::StreamRequest *initiator = nullptr, *responder = nullptr;
    for (const DirectionRequest& direction : trial.directions) {
        if (direction.foreground) {
            (direction.direction == upload ? initiator : responder) = &*direction.foreground;
        }
    }
    const std::size_t before = errors.size();
    if (request.phase == state::Phase::establish && (initiator == nullptr || trial.directions.size() != 1)) {
        errors.push_back(
            {"connections are established in the Initiator's direction only", "directions", "send that direction, with foreground"});
    }
    using Mode = enumerate::ConnectionChoice::Mode;
    const bool draws = request.send_order == Mode::pseudorandom;
    if (request.phase == state::Phase::establish && !draws && request.send_order != Mode::increasing) {
        errors.push_back({"connections are established once each, in the order of their numbers, or drawn", "connections.send_order",
                          "send increasing or pseudorandom"});
    }
    const frame::StreamRequest* const given = initiator != nullptr ? initiator : responder;
    if (given == nullptr) {
        errors.push_back({"no direction has foreground frames, which connections consist of", "directions", "give a foreground stream"});
    }
    if (initiator != nullptr && responder != nullptr && !is_mirror_image(*initiator, *responder)) {
        errors.push_back({"the Responder's stream is not the mirror image of the Initiator's", "connections", "exchange hosts and ports"});
    }
    auto pool = net::AddressPool::make(request.pool, "connections.pool");
    if (const Error* error = error_of(pool)) {
        errors.push_back(*error);
    }
    if (given == nullptr) {
        return std::nullopt;
    }
    const frame::StreamRequest& stream = *given;
    const bool mirrored = initiator == nullptr;
    const net::Family outside = mirrored ? stream.source_family() : stream.destination_family();
    std::optional<frame::GatewayEdge> edge = plan_edge(request.edge, request.pool, initiator, outside, "connections", errors);
    if (errors.size() != before) {
        return std::nullopt;
    }
    const frame::HostSet& sources = mirrored ? stream.destination : stream.source;
    const auto subscribers = subscribers_of(mirrored ? stream.destination_tunnel : stream.source_tunnel);
    const auto source_hosts = source_range(sources, subscribers, errors);
    if (!source_hosts) {
        return std::nullopt;
    }
    ConnectionPlan plan{.phase = request.phase, .draws = draws, .identity = {}};
    ConnectionIdentity& identity = plan.identity;
    identity = {.ranges = {.source_ports = tuple_range(mirrored ? stream.destination_ports : stream.source_ports),
                           .destination_ports = tuple_range(mirrored ? stream.source_ports : stream.destination_ports),
                           .source_hosts = *source_hosts,
                           .destination_hosts = tuple_range(mirrored ? stream.source.part : stream.destination.part)},
                .order = request.order,
                .count = request.count,
                .seed = trial.seed,
                .initiator = request.initiator,
                .sources = sources,
                .destinations = mirrored ? stream.source : stream.destination,
                .subscribers = subscribers,
                .peers = mirrored ? stream.source_peers : stream.destination_peers,
                .pool = std::get<net::AddressPool>(std::move(pool)),
                .edge = edge};
    check_identity(identity, outside, stream.as_sent, errors);
    return errors.size() == before ? std::optional{plan} : std::nullopt;
}

frame::NatSide nat_side_of(const ConnectionIdentity& identity) {
    if (identity.edge) {
        return frame::NatSide::inside;
    }
    const bool is_nat46 = identity.sources.address.family == net::Family::ipv4 && identity.pool.family() == net::Family::ipv6;
    return is_nat46 ? frame::NatSide::either : frame::NatSide::outside;
}

/// The connections that a stream's frames belong to; only foreground has any.
frame::ConnectionTraffic traffic_of(const ConnectionPlan& plan, const ConnectionsRequest& request, Direction direction) {
    if (direction != plan.upload()) {
        return {.role = frame::Role::responder, .set = plan.set(), .choice = request.read_order, .nat_side = nat_side_of(plan.identity)};
    }
    return {.role = frame::Role::initiator, .set = plan.set(), .choice = request.send_order, .nat_side = nat_side_of(plan.identity)};
}

/// Checks one class of one direction and makes its stream.
std::optional<frame::Stream> plan_stream(const std::optional<frame::StreamRequest>& request, bool wanted, TrafficClass traffic_class,
                                         const DirectionPlan& plan, const TrialRequest& trial,
                                         const std::optional<ConnectionPlan>& connections, std::uint32_t trial_id, const LinkPlan& links,
                                         const std::string& where, Errors& errors) {
    if (request.has_value() != wanted) {
        errors.push_back({wanted ? "the mix asks for frames of this class, but nothing says which" : "the mix has no frames of this class",
                          where,
                          wanted ? "give the stream, or change foreground_m and foreground_n"
                                 : "leave the stream out, or change foreground_m and foreground_n"});
    }
    if (!request || !wanted) {
        return std::nullopt;
    }
    const std::size_t before = errors.size();
    check_hosts(request->source, where + ".source", errors);
    check_hosts(request->destination, where + ".destination", errors);
    for (const auto& [tunnel, name] :
         {std::pair{&request->source_tunnel, ".source_tunnel"}, {&request->destination_tunnel, ".destination_tunnel"}}) {
        if (*tunnel && (*tunnel)->subscribers) {
            check_hosts(*(*tunnel)->subscribers, where + name + ".subscribers", errors);
        }
    }
    check_ports(request->source_ports, where + ".source_ports", errors);
    check_ports(request->destination_ports, where + ".destination_ports", errors);
    check_edges(*request, trial.seed, traffic_class, where, errors);
    if (!request->as_sent && request->source_family() != request->destination_family() && !request->mapping &&
        request->peers() == nullptr) {
        errors.push_back({"source and destination are of different families, but there is no translation", where + ".translation",
                          "give a prefix or explicit address mappings"});
    }
    const bool needs_connections = request->tunnel() != nullptr || request->peers() != nullptr;
    const bool lacks_connections = trial.connections && !connections && needs_connections;  // a problem of its own
    if (errors.size() != before || (lacks_connections && traffic_class == TrafficClass::foreground)) {
        return std::nullopt;
    }
    const auto& sent = links.sides[static_cast<std::size_t>(sending_side(plan.direction))];
    const auto& received = links.sides[static_cast<std::size_t>(receiving_side(plan.direction))];
    frame::StreamRequest whole = *request;
    if (connections && traffic_class == TrafficClass::foreground) {
        whole.connections = traffic_of(*connections, *trial.connections, plan.direction);
    }
    auto stream = frame::Stream::make(whole, plan.direction, traffic_class, trial.seed, trial_id, sent, received, where);
    if (const Error* error = error_of(stream)) {
        errors.push_back(*error);
        return std::nullopt;
    }
    return std::get<frame::Stream>(std::move(stream));
}

/// The frames of a whole trial, before the load step and after it.
std::uint64_t frame_count(std::chrono::nanoseconds duration, const DirectionRequest& direction) {
    if (direction.flow_start) {
        return direction.flow_start->frames_before(frame_count_of(duration, direction.frames_per_second));
    }
    if (!direction.step || duration <= direction.step->after) {
        return frame_count_of(duration, direction.frames_per_second);
    }
    return frame_count_of(direction.step->after, direction.frames_per_second) +
           frame_count_of(duration - direction.step->after, direction.step->frames_per_second);
}

/// The first frame that is due at `time` or later, on a clock of nanoseconds.
std::uint64_t first_frame_from(std::chrono::nanoseconds time, const DirectionRequest& direction) {
    const auto not_before = [](std::chrono::nanoseconds stretch, std::uint64_t rate) {
        return static_cast<std::uint64_t>((static_cast<Wide>(stretch.count()) * rate + 999'999'999) / 1'000'000'000);
    };
    if (direction.bursts) {
        const pace::BurstyTraffic& bursts = *direction.bursts;
        const std::uint64_t next_burst = (not_before(time, direction.frames_per_second) + bursts.frames - 1) / bursts.frames;
        if (next_burst == 0) {
            return 0;
        }
        const std::uint64_t begin = (next_burst - 1) * bursts.frames;
        const auto start = static_cast<std::int64_t>(static_cast<Wide>(begin) * 1'000'000'000 / direction.frames_per_second);
        return begin + std::min(bursts.frames, not_before(time - std::chrono::nanoseconds{start}, bursts.frames_per_second));
    }
    if (direction.flow_start) {
        return direction.flow_start->frames_before(not_before(time, direction.frames_per_second));
    }
    if (!direction.step || time <= direction.step->after) {
        return not_before(time, direction.frames_per_second);
    }
    return frame_count_of(direction.step->after, direction.frames_per_second) +
           not_before(time - direction.step->after, direction.step->frames_per_second);
}

void check_step_and_bursts(const DirectionRequest& direction, std::chrono::nanoseconds duration, const std::string& where, Errors& errors) {
    if (direction.step && (direction.step->after >= duration || direction.step->after.count() == 0)) {
        errors.push_back({"the load changes outside the trial", where + ".step.after_ns", "choose a time before duration_ns"});
    }
    if (direction.step && direction.bursts) {
        errors.push_back({"a load with a step cannot have bursts", where + ".bursts", "leave out the step or the bursts"});
    }
    if (direction.bursts && direction.bursts->frames_per_second < direction.frames_per_second) {
        errors.push_back({"within a burst frames would leave at " + std::to_string(direction.bursts->frames_per_second) +
                              " frames/s, slower than the load of " + std::to_string(direction.frames_per_second) + " frames/s",
                          where + ".bursts.frames_per_second", "choose a rate that is at least the load"});
    }
}

void check_flow_start(const DirectionRequest& direction, std::chrono::nanoseconds duration, const std::string& where, Errors& errors) {
    const std::string at = where + ".flow_start";
    if (direction.step || direction.bursts) {
        errors.push_back({"flows that start one after another make a load of their own", at, "leave out the step and the bursts"});
    }
    if (direction.foreground_m != direction.foreground_n) {
        errors.push_back({"flows that start one after another cannot be combined with background", at, "send foreground only"});
    }
    if (direction.flow_start->ramp_slots() >= frame_count_of(duration, direction.frames_per_second)) {
        errors.push_back({"the trial ends before the last flow starts", at, "choose a longer duration_ns, or fewer flows"});
    }
}

std::optional<record::TagPlaces> plan_tags(const TagsRequest& tags, const DirectionRequest& direction, std::uint64_t frame_count,
                                           const std::string& where, Errors& errors) {
    const std::uint64_t first = first_frame_from(tags.first, direction);
    const std::uint64_t room = first < frame_count ? frame_count - first : 0;
    if (tags.count > room) {
        errors.push_back(
            {"there are " + std::to_string(room) + " frames from first_ns on, fewer than " + std::to_string(tags.count) + " tags", where,
             "send longer or faster, or tag fewer frames"});
        return std::nullopt;
    }
    return record::TagPlaces{.first = first, .frames = frame_count, .count = tags.count};
}

}  // namespace

void check_edges(const frame::StreamRequest& request, std::uint64_t seed, TrafficClass traffic_class, const std::string& where,
                 Errors& errors) {
    const frame::EdgesRequest* const wanted = request.edges();
    if (wanted == nullptr) {
        return;
    }
    const std::string end = where + (request.source_edges ? ".source" : ".destination");
    const std::string other = where + (request.source_edges ? ".destination" : ".source");
    auto edges = frame::CustomerEdges::make(*wanted, seed, end + ".edges");
    if (auto* problems = std::get_if<Errors>(&edges)) {
        std::move(problems->begin(), problems->end(), std::back_inserter(errors));
    }
    if (traffic_class == TrafficClass::background) {
        errors.push_back({"background is native IPv6 traffic", end, "give hosts (RFC 8219 section 5.3)"});
    }
    if (request.mapping && !request.mapping->is_empty()) {
        errors.push_back(
            {"customer edges are mapped by the rules of their domains", where + ".translation.prefix", "send prefix null and no eam"});
    }
    const frame::HostSet& hosts = request.source_edges ? request.destination : request.source;
    const auto inside = std::ranges::find_if(wanted->domains, [&](const frame::EdgeDomain& domain) {
        return hosts.address.family == net::Family::ipv4 && may_be_in(hosts, domain.rule.ipv4);
    });
    if (inside != wanted->domains.end()) {
        errors.push_back({"hosts outside have addresses of the rule with IPv4 prefix " + net::to_text(inside->rule.ipv4.address) + "/" +
                              std::to_string(inside->rule.ipv4.length),
                          other, "choose addresses that no rule has"});
    }
}

std::optional<frame::GatewayEdge> plan_edge(const std::optional<EdgeRequest>& request, const std::vector<net::Prefix>& pool,
                                            const frame::StreamRequest* initiator, net::Family outside, const std::string& where,
                                            Errors& errors) {
    if (!request) {
        return std::nullopt;
    }
    auto edge = frame::GatewayEdge::make(request->rule, request->ea, where + ".edge");
    if (auto* problems = std::get_if<Errors>(&edge)) {
        std::move(problems->begin(), problems->end(), std::back_inserter(errors));
        return std::nullopt;
    }
    const net::Address address = std::get<frame::GatewayEdge>(edge).address(outside);
    const std::size_t bits = 8 * net::address_bytes(address.family);
    if (pool.size() != 1 || pool[0].address != address || pool[0].length != bits) {
        errors.push_back({"the pool is not the public address of the edge, " + net::to_text(address), where + ".pool",
                          "send this address alone, with " + std::to_string(bits) + " bits"});
    }
    if (initiator != nullptr && (initiator->as_sent || initiator->source_family() != net::Family::ipv4)) {
        errors.push_back({"a customer edge has IPv4 clients, and a loop-back has no gateway", where + ".edge", "send null"});
    }
    return std::get<frame::GatewayEdge>(std::move(edge));
}

void check_hosts(const frame::HostSet& hosts, const std::string& where, Errors& errors) {
    if (hosts.varies() && hosts.offset + 2 > net::address_bytes(hosts.address.family)) {
        errors.push_back(
            {"the varying part is outside the address", where + ".offset", "choose an offset of 0 to 2 for IPv4, 0 to 14 for IPv6"});
    }
    if (hosts.part.minimum > hosts.part.maximum) {
        errors.push_back({"minimum is above maximum", where, "swap them"});
    }
    if (hosts.many_networks() && hosts.varies() && hosts.network_byte() == hosts.offset && hosts.part.maximum > 0xff) {
        errors.push_back({"the varying part overlaps the byte of the destination networks", where,
                          "keep the part within 0 to 255, move its offset, or use one network"});
    }
    if (hosts.many_networks() && hosts.varies() && hosts.network_byte() == hosts.offset + 1) {
        errors.push_back(
            {"the lower byte of the varying part is that of the destination networks", where, "move the offset, or use one network"});
    }
}

enumerate::ConnectionSet ConnectionPlan::set() const noexcept { return {identity.ranges, identity.order, identity.count, identity.seed}; }

std::uint64_t frame_count_of(std::chrono::nanoseconds duration, std::uint64_t frames_per_second) noexcept {
    return static_cast<std::uint64_t>(static_cast<Wide>(duration.count()) * frames_per_second / 1'000'000'000);
}

pace::Load DirectionPlan::load(const pace::TickScale& scale) const noexcept {
    pace::Load load{.frames_per_second = frames_per_second, .bursts = bursts, .flow_start = flow_start};
    if (step) {
        load.step = pace::Step{.frames_before = frame_count_of(step->after, frames_per_second),
                               .after = scale.ticks(step->after),
                               .frames_per_second = step->frames_per_second};
    }
    return load;
}

std::variant<TrialPlan, Errors> make_trial_plan(const TrialRequest& request, const LinkPlan& links) {
    if (request.echo) {
        return make_echo_plan(request, links);
    }
    Errors errors;
    TrialPlan plan;
    plan.trial_id = frame::signature::trial_id_of(request.seed, request.trial_number);
    if (request.directions.empty() || request.directions.size() > 2) {
        errors.push_back({"a trial has one or two directions", "directions", "give forward, reverse or both"});
    }
    if (request.connections) {
        plan.connections = plan_connections(request, errors);
    }
    for (std::size_t i = 0; i < request.directions.size(); ++i) {
        const DirectionRequest& direction = request.directions[i];
        const std::string where = "directions[" + std::to_string(i) + "]";
        if (plan.direction(direction.direction) != nullptr) {
            errors.push_back({std::string{name_of(direction.direction)} + " is given twice", where, "give each direction once"});
        }
        if (direction.frames_per_second == 0) {
            errors.push_back({"a load of 0 frames/s never ends", where + ".frames_per_second", "set 1 or more, or drop this direction"});
            continue;
        }
        if (direction.foreground_n == 0 || direction.foreground_m > direction.foreground_n) {
            errors.push_back({"the share m/n of foreground frames needs m <= n and n >= 1", where, "choose 0 <= m <= n and n >= 1"});
            continue;
        }
        DirectionPlan& direction_plan = plan.directions.emplace_back();
        direction_plan.direction = direction.direction;
        direction_plan.frames_per_second = direction.frames_per_second;
        direction_plan.step = direction.step;
        direction_plan.bursts = direction.bursts;
        direction_plan.flow_start = direction.flow_start;
        direction_plan.frame_count = frame_count(request.duration, direction);
        direction_plan.mix =
            direction.flow_start ? pace::Mix{*direction.flow_start} : pace::Mix{direction.foreground_m, direction.foreground_n};
        if (direction_plan.frame_count == 0 || direction_plan.frame_count > frame_count_limit) {
            errors.push_back({"the trial would have " + std::to_string(direction_plan.frame_count) + " frames", where,
                              "choose a duration and rate of 1 to 2^36 frames"});
        }
        check_step_and_bursts(direction, request.duration, where, errors);
        if (direction.flow_start) {
            check_flow_start(direction, request.duration, where, errors);
        }
        if (request.delays.tags) {
            direction_plan.tags = plan_tags(*request.delays.tags, direction, direction_plan.frame_count, where, errors);
        }
        direction_plan.foreground = plan_stream(direction.foreground, direction.foreground_m != 0, TrafficClass::foreground, direction_plan,
                                                request, plan.connections, plan.trial_id, links, where + ".foreground", errors);
        direction_plan.background =
            plan_stream(direction.background, direction.foreground_m != direction.foreground_n, TrafficClass::background, direction_plan,
                        request, plan.connections, plan.trial_id, links, where + ".background", errors);
        if (plan.connections && plan.connections->phase == state::Phase::establish && !plan.connections->draws &&
            direction_plan.intended_foreground() != request.connections->count) {
            errors.push_back({"the direction has " + std::to_string(direction_plan.intended_foreground()) +
                                  " foreground frames, not one for each of " + std::to_string(request.connections->count) + " connections",
                              where, "choose duration_ns = ceil(frames * 10^9 / frames_per_second)"});
        }
    }
    if (!errors.empty()) {
        return errors;
    }
    if (plan.directions.front().direction > plan.directions.back().direction) {  // of two at most
        std::swap(plan.directions.front(), plan.directions.back());
    }
    return plan;
}

}  // namespace gatemark::trial
