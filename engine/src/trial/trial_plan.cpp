#include "trial/trial_plan.hpp"

#include "base/wide.hpp"

#include <algorithm>

namespace gatemark::trial {

namespace {

using frame::signature::TrafficClass;

/// One bit a frame is kept; beyond 8 GiB of bits a trial is a mistake.
constexpr std::uint64_t frame_count_limit = std::uint64_t{1} << 36;

void check_hosts(const frame::HostSet& hosts, const std::string& where, Errors& errors) {
    if (hosts.varies() && hosts.offset + 2 > net::address_octets(hosts.address.family)) {
        errors.push_back({"the varying part of the address lies outside it", where + ".offset",
                          "choose an offset of 0 to 2 for IPv4, 0 to 14 for IPv6"});
    }
    if (hosts.part.minimum > hosts.part.maximum) {
        errors.push_back({"minimum is above maximum", where, "swap them"});
    }
    if (hosts.many_networks && hosts.varies() && hosts.network_octet() == hosts.offset && hosts.part.maximum > 0xff) {
        errors.push_back({"the varying part overlaps the octet of the destination networks", where,
                          "keep the part within 0 to 255, move its offset, or use one network"});
    }
    if (hosts.many_networks && hosts.varies() && hosts.network_octet() == hosts.offset + 1) {
        errors.push_back(
            {"the lower octet of the varying part is that of the destination networks", where, "move the offset, or use one network"});
    }
}

void check_ports(const frame::ValueRange& ports, const std::string& where, Errors& errors) {
    if (ports.minimum > ports.maximum) {
        errors.push_back({"minimum is above maximum", where, "swap them"});
    }
}

/// Checks one class of one direction and makes its stream.
std::optional<frame::Stream> plan_stream(const std::optional<frame::StreamRequest>& request, bool wanted, TrafficClass traffic_class,
                                         const DirectionPlan& plan, const TrialRequest& trial, std::uint32_t tag, const LinkPlan& links,
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
    check_ports(request->source_ports, where + ".source_ports", errors);
    check_ports(request->destination_ports, where + ".destination_ports", errors);
    if (!request->as_sent && request->source.address.family != request->destination.address.family && !request->mapping) {
        errors.push_back({"source and destination are of different families, but there is no translation", where + ".translation",
                          "give a prefix or explicit address mappings"});
    }
    if (errors.size() != before) {
        return std::nullopt;
    }
    const auto& sent = links.sides[static_cast<std::size_t>(sending_side(plan.direction))];
    const auto& received = links.sides[static_cast<std::size_t>(receiving_side(plan.direction))];
    auto stream = frame::Stream::make(*request, plan.direction, traffic_class, trial.seed, tag, sent, received.vlan_id, where);
    if (const Error* error = error_of(stream)) {
        errors.push_back(*error);
        return std::nullopt;
    }
    return std::get<frame::Stream>(std::move(stream));
}

}  // namespace

std::uint64_t frame_count_of(std::chrono::nanoseconds duration, std::uint64_t frames_per_second) noexcept {
    return static_cast<std::uint64_t>(static_cast<Wide>(duration.count()) * frames_per_second / 1'000'000'000);
}

std::variant<TrialPlan, Errors> make_trial_plan(const TrialRequest& request, const LinkPlan& links) {
    Errors errors;
    TrialPlan plan;
    plan.tag = frame::signature::tag_of(request.seed, request.trial_number);
    if (request.directions.empty() || request.directions.size() > 2) {
        errors.push_back({"a trial has one or two directions", "directions", "give forward, reverse or both"});
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
            errors.push_back({"m of n frames cannot be foreground with m above n or n of 0", where, "choose 0 <= m <= n and n >= 1"});
            continue;
        }
        DirectionPlan& made = plan.directions.emplace_back();
        made.direction = direction.direction;
        made.frames_per_second = direction.frames_per_second;
        made.frame_count = frame_count_of(request.duration, direction.frames_per_second);
        made.mix = pace::Mix{direction.foreground_m, direction.foreground_n};
        if (made.frame_count == 0 || made.frame_count > frame_count_limit) {
            errors.push_back({"the trial would have " + std::to_string(made.frame_count) + " frames", where,
                              "choose a duration and rate of 1 to 2^36 frames"});
        }
        made.foreground = plan_stream(direction.foreground, direction.foreground_m != 0, TrafficClass::foreground, made, request, plan.tag,
                                      links, where + ".foreground", errors);
        made.background = plan_stream(direction.background, direction.foreground_m != direction.foreground_n, TrafficClass::background,
                                      made, request, plan.tag, links, where + ".background", errors);
    }
    if (!errors.empty()) {
        return errors;
    }
    std::sort(plan.directions.begin(), plan.directions.end(), [](const auto& a, const auto& b) { return a.direction < b.direction; });
    return plan;
}

}  // namespace gatemark::trial
