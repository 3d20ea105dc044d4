#pragma once

#include "trial/trial_plan.hpp"

#include <variant>
#include <vector>

namespace gatemark::trial {

/// One frame as a trial would send it, and as a correct gateway would deliver it.
struct PreviewedFrame {
    Direction direction = Direction::forward;
    std::uint64_t index = 0;
    bool foreground = true;
    std::chrono::nanoseconds due{};
    std::vector<std::byte> sent, expected;
};

/// The first `request.count` frames of every direction. Frames are a pure function of seed, stream
/// and index: no port is needed.
[[nodiscard]] std::variant<std::vector<PreviewedFrame>, Errors> preview_frames(const FramesRequest& request);

}  // namespace gatemark::trial
