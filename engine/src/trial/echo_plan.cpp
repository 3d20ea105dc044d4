#include "trial/echo_plan.hpp"

#include "frame/subscriber_hosts.hpp"

#include <algorithm>

namespace gatemark::trial {

namespace {

constexpr const char *where_direction = "directions[0]", *where_stream = "directions[0].foreground";

void check_shape(const frame::EchoShape& shape, Errors& errors) {
    if (shape.destinations % shape.window != 0) {
        errors.push_back(
            {std::to_string(shape.destinations) + " destinations cannot be shared out to a window of " + std::to_string(shape.window),
             "echo.destinations", "choose a multiple of the window"});
    }
    if (shape.requests() > frame_count_limit) {
        errors.push_back({"the trial would have " + std::to_string(shape.requests()) + " requests", "echo",
                          "choose fewer clients, destinations or requests to each, 2^36 in all"});
    }
}

/// Hosts of an echo trial are numbered, none is drawn.
void check_numbered(const frame::HostSet& hosts, const std::string& where, Errors& errors) {
    check_hosts(hosts, where, errors);
    if (hosts.part.mode != frame::ValueMode::fixed && hosts.part.mode != frame::ValueMode::increasing) {
        errors.push_back({"hosts of an echo trial are numbered", where + ".mode", "send increasing or fixed"});
    }
}

/// The clients of a stateful gateway that are behind tunnels: each subscriber has all hosts (RFC
/// 6333 section 6.6).
std::optional<frame::SubscriberHosts> hosts_behind_tunnels(const TrialRequest& request, const frame::StreamRequest& stream) {
    return request.echo->pool && stream.source_tunnel && stream.source_tunnel->subscribers
               ? std::optional{frame::SubscriberHosts{stream.source, *stream.source_tunnel->subscribers}}
               : std::nullopt;
}

/// Each client is a host or a customer edge of its own.
void check_clients(const TrialRequest& request, const frame::StreamRequest& stream, const frame::EchoShape& shape, Errors& errors) {
    const std::string source = std::string{where_stream} + ".source";
    if (stream.source_edges) {
        check_edges(stream, request.seed, frame::signature::TrafficClass::foreground, where_stream, errors);
        if (stream.source_edges->count != shape.clients || stream.source_edges->choice != frame::EdgeChoice::cycle) {
            errors.push_back({"each client is a customer edge", source + ".edges", "send as many as clients, and choice cycle"});
        }
        if (request.echo->pool) {
            errors.push_back({"a border relay has no state and chooses no address", "echo.pool", "send null"});
        }
        return;
    }
    check_numbered(stream.source, source, errors);
    const auto behind = hosts_behind_tunnels(request, stream);
    if (auto error = behind ? behind->problem(std::string{where_stream} + ".source_tunnel.subscribers") : std::nullopt) {
        errors.push_back(*std::move(error));
        return;
    }
    const std::uint64_t hosts = behind ? behind->values().count() : stream.source.part.count();
    if (shape.clients > hosts) {
        errors.push_back({std::to_string(shape.clients) + " clients need as many addresses; there are " + std::to_string(hosts), source,
                          "widen minimum to maximum, or have fewer clients"});
    }
}

/// Enough hosts at both ends, each with its number.
void check_ends(const TrialRequest& request, const frame::StreamRequest& stream, const frame::EchoShape& shape, Errors& errors) {
    const std::string destination = std::string{where_stream} + ".destination";
    if (stream.destination_edges) {
        errors.push_back({"customer edges answer no echo requests", destination, "give hosts there"});
        return;
    }
    check_clients(request, stream, shape, errors);
    check_numbered(stream.destination, destination, errors);
    const std::uint64_t hosts = std::uint64_t{stream.destination.part.count()} * stream.destination.networks;
    if (shape.destinations > hosts) {
        errors.push_back(
            {std::to_string(shape.destinations) + " destinations of a client need as many addresses; there are " + std::to_string(hosts),
             destination, "widen minimum to maximum, or use more networks"});
    }
}

void check_stream(const TrialRequest& request, const frame::StreamRequest& stream, const frame::EchoShape& shape, Errors& errors) {
    check_ends(request, stream, shape, errors);
    if (stream.without_checksum) {
        errors.push_back({"an echo message has a checksum", std::string{where_stream} + ".udp_checksum", "send computed"});
    }
    if (stream.marking.labels_flows || stream.marking.traffic_classes.size() > 1) {
        errors.push_back({"echo requests have one traffic class and flow label", where_stream, "send one of each"});
    }
    if (!stream.extension_headers.empty()) {
        errors.push_back({"echo requests have no extension headers", std::string{where_stream} + ".extension_headers", "send none"});
    }
    if (stream.trailer_octets != 0) {
        errors.push_back({"echo requests have nothing behind the packet", std::string{where_stream} + ".trailer_octets", "send 0"});
    }
    if (!stream.as_sent && !stream.source_edges && stream.source_family() != stream.destination_family() && !stream.mapping) {
        errors.push_back({"source and destination are of different families, but there is no translation",
                          std::string{where_stream} + ".translation", "give a prefix or explicit address mappings"});
    }
}

/// What else a request may have is not for a trial of this kind.
void check_rest(const TrialRequest& request, Errors& errors) {
    if (request.connections) {
        errors.push_back({"an echo trial has no connections: it learns what a stateful gateway does", "connections", "send null"});
    }
    if (request.delays.timeout || request.delays.tags || request.delays.variation) {
        errors.push_back({"round-trip times have no tags and no variation, and their timeout is that of `echo`", "delays", "send null"});
    }
    if (request.directions.size() != 1 || request.directions[0].direction != Direction::forward) {
        errors.push_back({"echo requests go forward, and their replies are not asked for", "directions", "send forward alone"});
        return;
    }
    const DirectionRequest& direction = request.directions[0];
    if (!direction.foreground || direction.background || direction.foreground_m != 1 || direction.foreground_n != 1) {
        errors.push_back({"an echo trial has foreground only", where_direction, "give the foreground, with 1 for m and n"});
    }
    if (direction.step || direction.bursts || direction.flow_start) {
        errors.push_back({"echo requests have a constant rate or a closed loop", where_direction, "leave out step, bursts and flow_start"});
    }
    if (request.echo->pace_without_reply.has_value() != (direction.frames_per_second == 0)) {
        errors.push_back({"a closed loop has no rate, and requests have one otherwise", std::string{where_direction} + ".frames_per_second",
                          "send null with closed_loop, or a rate without it"});
    }
    if (request.waits.drain < request.echo->timeout) {
        errors.push_back(
            {"the wait for the last replies is shorter than the timeout of a reply", "waits.drain_ns", "make it at least echo.timeout_ns"});
    }
}

std::optional<frame::PublicSide> plan_outside(const EchoRequest& request, const frame::StreamRequest& stream, Errors& errors) {
    if (!request.pool) {
        if (request.edge) {
            errors.push_back({"a customer edge has a public address", "echo.pool", "give its MAP address"});
        }
        return std::nullopt;
    }
    auto pool = net::AddressPool::make(*request.pool, "echo.pool");
    if (const Error* error = error_of(pool)) {
        errors.push_back(*error);
        return std::nullopt;
    }
    const net::Family outside = stream.as_sent ? stream.source_family() : stream.destination_family();
    if (std::get<net::AddressPool>(pool).family() != outside) {
        errors.push_back({"the pool is not of the Responder's family", "echo.pool", "give the gateway's public addresses"});
    }
    return frame::PublicSide{std::get<net::AddressPool>(std::move(pool)),
                             plan_edge(request.edge, *request.pool, &stream, outside, "echo", errors)};
}

}  // namespace

std::variant<TrialPlan, Errors> make_echo_plan(const TrialRequest& request, const LinkPlan& links) {
    const EchoRequest& wanted = *request.echo;
    Errors errors;
    check_shape(wanted.shape, errors);
    check_rest(request, errors);
    if (!errors.empty()) {
        return errors;
    }
    const DirectionRequest& direction = request.directions[0];
    const frame::StreamRequest& stream = *direction.foreground;
    check_stream(request, stream, wanted.shape, errors);
    std::optional<frame::PublicSide> outside = plan_outside(wanted, stream, errors);
    const bool is_closed_loop = wanted.pace_without_reply.has_value();
    const std::uint64_t frame_count =
        is_closed_loop ? wanted.shape.requests() : frame_count_of(request.duration, direction.frames_per_second);
    if (frame_count == 0 || frame_count > frame_count_limit) {
        errors.push_back({"the trial would have " + std::to_string(frame_count) + " requests", where_direction,
                          "choose a duration and rate of 1 to 2^36 requests"});
    }
    if (!errors.empty()) {
        return errors;
    }
    TrialPlan plan;
    plan.trial_id = frame::signature::trial_id_of(request.seed, request.trial_number);
    auto echo = frame::Echo::make(stream, wanted.shape, std::move(outside), request.seed, plan.trial_id, links.sides[0], links.sides[1],
                                  where_stream);
    if (const Error* error = error_of(echo)) {
        return Errors{*error};
    }
    plan.echo = EchoPlan{std::get<frame::Echo>(std::move(echo)), wanted.pace_without_reply, wanted.timeout};
    for (const Direction each : {Direction::forward, Direction::reverse}) {
        DirectionPlan& direction_plan = plan.directions.emplace_back();
        direction_plan.direction = each;
        direction_plan.frames_per_second = each == Direction::forward ? direction.frames_per_second : 0;
        direction_plan.frame_count = frame_count;
    }
    return plan;
}

}  // namespace gatemark::trial
