#pragma once

#include "base/divider.hpp"
#include "frame/stream.hpp"
#include "pace/clock.hpp"
#include "pace/mix.hpp"
#include "record/arrival_bitmap.hpp"
#include "record/delay_recorder.hpp"
#include "state/connection_keeper.hpp"

#include <array>
#include <optional>

namespace gatemark::loop {

/// What a receiver must know about one direction to recompute any of its frames.
struct ExpectedDirection {
    bool active = false;
    bool arrives_here = false;  ///< otherwise a frame that arrives has not been forwarded
    std::uint64_t frame_count = 0;
    pace::Mix mix{1, 1};
    std::array<const frame::Stream*, 2> streams{};  ///< foreground, background
    record::ArrivalBitmap* arrivals = nullptr;
    Divider senders{1};  ///< frame i was sent by sender i mod their number
    record::DelayPlan delays{};
    const state::ConnectionKeeper* keeper = nullptr;  ///< of a stateful gateway's Initiator only

    /// A single sender is the usual case and needs no division.
    [[nodiscard]] std::uint64_t sender_of(std::uint64_t index) const noexcept {
        return senders.divisor() == 1 ? 0 : senders.remainder(index);
    }
};

/// Link-layer addresses that tell whose a frame is that is none of the trial.
struct KnownSources {
    std::optional<net::MacAddress> gateway;     ///< on the link of this port
    std::optional<net::MacAddress> other_port;  ///< of the Tester; absent where nothing but a wire joins both
};

struct ReceiverPlan {
    std::uint32_t trial_id = 0;
    pace::Ticks earliest{};                       ///< no frame of the trial was sent before this
    std::array<ExpectedDirection, 2> directions;  ///< forward, reverse
    std::size_t kept_frames_max = 4;
    KnownSources sources{};
};

}  // namespace gatemark::loop
