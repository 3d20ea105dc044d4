#pragma once

#include "frame/stream.hpp"
#include "pace/mix.hpp"
#include "record/arrival_bitmap.hpp"
#include "record/loss_table.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace gatemark::record {

/// One direction of a trial that uses connections. Its frames are evenly spaced.
struct UsedDirection {
    const ArrivalBitmap* arrivals = nullptr;
    const pace::Mix* mix = nullptr;
    const frame::Stream* stream = nullptr;
    std::span<const std::uint64_t> offered_end;
    std::uint64_t frames_per_second = 1;
};

/// Frames of each direction that are gone through, and frames and connections that are followed, at
/// most or about: 16 MB and a tenth of a second.
inline constexpr std::uint64_t aged_frames_max = std::uint64_t{1} << 22U, followed_frames_max = std::uint64_t{1} << 19U,
                               followed_connections_max = std::uint64_t{1} << 15U;

/// For how long the connections of lost frames, and of those that arrived, had been silent: how
/// long before no frame of theirs had arrived, in any direction. Of `directions[0]`; the other one,
/// if it has a stream, keeps connections alive as well. A frame counts only if the one before it of
/// its connection, in the same direction, arrived: a connection that is gone for whatever reason is
/// ever more silent, so later losses would make each reason look like a timeout. `established` says
/// when a connection was established, before the trial began: a negative time. The first frame of a
/// connection is old in any case, and a gateway may give connections another timeout once they are
/// used: where later frames are 95 % of the lost ones at least, and less than half as many of them
/// arrive all the same, only these count.
/// Connections are followed that a hash draws. None where nothing that counts was lost, or nothing
/// arrived.
[[nodiscard]] std::optional<LossTable::Ages> find_loss_ages(const std::array<UsedDirection, 2>& directions, std::uint64_t connections,
                                                            const std::function<std::chrono::nanoseconds(std::uint64_t)>& established);

}  // namespace gatemark::record
