#include "trial/frame_preview.hpp"

#include "pace/schedule.hpp"

#include <algorithm>

namespace gatemark::trial {

namespace {

std::vector<std::byte> frame_in(const frame::FrameForm& form, const frame::Stream& stream, std::uint64_t number_in_class,
                                std::uint64_t index) {
    std::vector<std::byte> frame = form.frame;
    frame::write_frame(form, frame.data(), stream.values(number_in_class), stream.octet(), index, {});
    return frame;
}

}  // namespace

std::variant<std::vector<PreviewedFrame>, Errors> preview_frames(const FramesRequest& request) {
    LinkPlan links;
    links.sides[0] = {.source = request.left_mac, .destination = request.right_mac, .vlan_id = request.left_vlan_id};
    links.sides[1] = {.source = request.right_mac, .destination = request.left_mac, .vlan_id = request.right_vlan_id};
    auto plan = make_trial_plan(request.trial, links);
    if (auto* errors = std::get_if<Errors>(&plan)) {
        return std::move(*errors);
    }
    std::vector<PreviewedFrame> frames;
    for (const DirectionPlan& direction : std::get<TrialPlan>(plan).directions) {
        for (std::uint64_t index = 0; index < std::min(request.count, direction.frame_count); ++index) {
            const auto place = direction.mix.place_of(index);
            const frame::Stream& stream = place.foreground ? *direction.foreground : *direction.background;
            const pace::Schedule schedule{{}, 1'000'000'000, direction.frames_per_second, index};
            frames.push_back({.direction = direction.direction,
                              .index = index,
                              .foreground = place.foreground,
                              .due = std::chrono::nanoseconds{static_cast<std::int64_t>(schedule.due().value)},
                              .sent = frame_in(stream.sent(), stream, place.number_in_class, index),
                              .expected = frame_in(stream.expected(), stream, place.number_in_class, index)});
        }
    }
    return frames;
}

}  // namespace gatemark::trial
