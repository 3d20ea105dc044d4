#include "trial/frame_preview.hpp"

#include "pace/schedule.hpp"

#include <algorithm>

namespace gatemark::trial {

namespace {

/// Shows a stateful gateway's choices as if it used the first address of its pool and kept every
/// port.
std::vector<std::byte> frame_in(const frame::FrameTemplate& frame_template, const frame::Stream& stream, std::uint64_t number_in_class,
                                std::uint64_t index, const TrialPlan& plan) {
    std::vector<std::byte> frame = frame_template.frame;
    const frame::FrameValues values = stream.values(number_in_class);
    const bool chosen_source = stream.role() == frame::Role::initiator && &frame_template == &stream.expected();
    const bool chosen_destination = stream.role() == frame::Role::responder && &frame_template == &stream.sent();
    const auto write_special = [&] {
        if (&frame_template == &stream.sent()) {
            stream.write_special(frame.data(), values);
        } else {
            stream.write_special_expected(frame.data(), values);
        }
    };
    if (!chosen_source && !chosen_destination) {
        frame::write_frame(frame_template, frame.data(), values, stream.id(), index, {});
        write_special();
        return frame;
    }
    const net::AddressPool& pool = plan.connections->identity.pool;
    const frame::Layout& layout = frame_template.layout;
    const Sum addresses =
        chosen_source ? pool.write(frame.data() + layout.source_address(), 0) +
                            frame_template.destination.write(frame.data() + layout.destination_address(), values.destination_host, 0)
                      : frame_template.source.write(frame.data() + layout.source_address(), values.source_host, 0) +
                            pool.write(frame.data() + layout.destination_address(), 0);
    frame::complete_frame(frame_template, frame.data(), addresses, values.source_port, values.destination_port, stream.id(), index, {});
    write_special();
    return frame;
}

/// Requests alone: a reply is not a function of its number, because a stateful gateway has chosen
/// where it goes. Its choices are shown as if it used the first address of its pool and kept every
/// identifier.
std::vector<PreviewedFrame> preview_requests(std::uint64_t count, const TrialPlan& plan, const pace::TickScale& scale) {
    const frame::Echo& echo = plan.echo->echo;
    const DirectionPlan& direction = plan.directions.front();
    std::vector<PreviewedFrame> frames;
    for (std::uint64_t index = 0; index < std::min(count, direction.frame_count); ++index) {
        PreviewedFrame& frame = frames.emplace_back();
        frame.index = index;
        if (!plan.echo->pace_without_reply) {
            const pace::Schedule schedule{direction.load(scale), {}, scale.ticks_per_second(), index};
            frame.due = std::chrono::nanoseconds{static_cast<std::int64_t>(schedule.begin().due().value)};
        }
        frame.sent = echo.sent_request().frame_template.frame;
        echo.write_request(frame.sent.data(), index, {});
        frame.expected = echo.expected_request().frame_template.frame;
        const frame::EchoPlace place = echo.numbers().place_of(index);
        const std::uint16_t identifier = echo.identifier_of(place, echo.values_of(place));
        echo.write_expected_request(frame.expected.data(), {.index = index, .source = {.address = 0, .identifier = identifier}});
    }
    return frames;
}

}  // namespace

std::variant<std::vector<PreviewedFrame>, Errors> preview_frames(const FramesRequest& request) {
    LinkPlan links;
    links.sides[0] = {.source = request.left_mac, .destination = request.right_mac, .vlan_id = request.left_vlan_id};
    links.sides[1] = {.source = request.right_mac, .destination = request.left_mac, .vlan_id = request.right_vlan_id};
    for (const Side side : {Side::left, Side::right}) {
        const auto i = static_cast<std::size_t>(side);
        if (request.random_host_macs[i]) {
            links.sides[i].host_macs = host_macs_of(side, request.trial.seed);
        }
    }
    auto plan = make_trial_plan(request.trial, links);
    if (auto* errors = std::get_if<Errors>(&plan)) {
        return std::move(*errors);
    }
    constexpr pace::TickScale nanoseconds{1'000'000'000};
    std::vector<PreviewedFrame> frames;
    const TrialPlan& trial_plan = std::get<TrialPlan>(plan);
    if (trial_plan.echo) {
        return preview_requests(request.count, trial_plan, nanoseconds);
    }
    for (const DirectionPlan& direction : trial_plan.directions) {
        for (std::uint64_t index = 0; index < std::min(request.count, direction.frame_count); ++index) {
            const auto place = direction.mix.place_of(index);
            const frame::Stream& stream = place.foreground ? *direction.foreground : *direction.background;
            const pace::Schedule schedule{direction.load(nanoseconds), {}, nanoseconds.ticks_per_second(), index};
            frames.push_back({.direction = direction.direction,
                              .index = index,
                              .foreground = place.foreground,
                              .due = std::chrono::nanoseconds{static_cast<std::int64_t>(schedule.begin().due().value)},
                              .sent = frame_in(stream.sent(), stream, place.number_in_class, index, trial_plan),
                              .expected = frame_in(stream.expected(), stream, place.number_in_class, index, trial_plan)});
        }
    }
    return frames;
}

}  // namespace gatemark::trial
