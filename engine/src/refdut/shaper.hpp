#pragma once

#include "base/wide.hpp"

#include <cstdint>

namespace gatemark::refdut {

struct ShaperSpec {
    std::uint64_t frames_per_second = 0;  ///< 0: no limit
    std::uint64_t queue_frames = 1000;    ///< that may wait, in addition to the one in service
    std::uint64_t recovery_ns = 0;
    std::uint64_t recovery_loss = 2;  ///< every n-th frame is lost while recovering, at least 1
    std::uint64_t flow_cost_ns = 0;   ///< a frame takes so much longer for each flow beyond the first
    friend bool operator==(const ShaperSpec&, const ShaperSpec&) = default;
};

/// A deterministic server: each frame takes 1/capacity, in order of arrival, and waits for those
/// before it. A frame that finds `queue` frames waiting is dropped. A constant load r above the
/// capacity C therefore loses its first frame once (r - C) * T is more than the queue. After a drop
/// every `recovery_loss`-th accepted frame is lost until `recovery` is over; it takes its place in
/// the queue and its service all the same, so that these losses do not end an overload.
///
/// With a cost of flows a frame takes 1/capacity + (flows - 1) * cost, as a whole number of
/// frames/s that is rounded down. A change begins with the frame in service, which begins again.
///
/// Times are ticks of any clock; service times are exact fractions of a tick, so nothing drifts.
class Shaper {
public:
    enum class Verdict : std::uint8_t { served, queue_full, lost_in_recovery };
    struct Answer {
        Verdict verdict;
        std::uint64_t end_ticks;  ///< of its service; of a served frame only
    };

    Shaper() = default;
    Shaper(const ShaperSpec& spec, std::uint64_t ticks_per_second) noexcept
        : spec_{spec},
          rate_{spec.frames_per_second},
          ticks_per_second_{ticks_per_second},
          recovery_ticks_{static_cast<std::uint64_t>(static_cast<Wide>(spec.recovery_ns) * ticks_per_second / 1'000'000'000)} {}

    /// Frames arrive in order of time.
    [[nodiscard]] Answer arrive(std::uint64_t now_ticks) noexcept {
        if (spec_.frames_per_second == 0) {
            return {.verdict = Verdict::served, .end_ticks = now_ticks};
        }
        return serve(now_ticks);
    }
    /// From now on the direction has so many flows, at least one.
    void set_flows(std::uint64_t now_ticks, std::uint64_t flows) noexcept {
        if (flows == flows_) {
            return;
        }
        constexpr std::uint64_t second_ns = 1'000'000'000;
        const Wide longer = static_cast<Wide>(flows - 1) * spec_.flow_cost_ns * spec_.frames_per_second;
        const Wide rate = static_cast<Wide>(spec_.frames_per_second) * second_ns / (second_ns + longer);
        busy_frames_ = in_gateway(now_ticks);
        busy_since_ = now_ticks;
        flows_ = flows;
        rate_ = rate == 0 ? 1 : static_cast<std::uint64_t>(rate);
    }
    /// Forgets the frames in the queue and in service, and the recovery.
    void clear() noexcept { busy_frames_ = 0, recovering_ = false; }

private:
    [[nodiscard]] Answer serve(std::uint64_t now_ticks) noexcept {
        const std::uint64_t before = in_gateway(now_ticks);
        if (before == 0) {
            busy_since_ = now_ticks;
            busy_frames_ = 0;
        } else if (before > spec_.queue_frames) {  // one of them is being served, the others wait
            recovering_ = recovery_ticks_ > 0;
            last_drop_ = now_ticks;
            return {.verdict = Verdict::queue_full, .end_ticks = 0};
        }
        ++busy_frames_;
        if (recovering_ && recovery_loses(now_ticks)) {
            return {.verdict = Verdict::lost_in_recovery, .end_ticks = 0};
        }
        const Wide ticks = (static_cast<Wide>(busy_frames_) * ticks_per_second_ + rate_ - 1) / rate_;
        return {.verdict = Verdict::served, .end_ticks = busy_since_ + static_cast<std::uint64_t>(ticks)};
    }
    [[nodiscard]] std::uint64_t in_gateway(std::uint64_t now_ticks) const noexcept {
        if (busy_frames_ == 0) {
            return 0;
        }
        const Wide done = static_cast<Wide>(now_ticks - busy_since_) * rate_ / ticks_per_second_;
        return done >= busy_frames_ ? 0 : busy_frames_ - static_cast<std::uint64_t>(done);
    }
    [[nodiscard]] bool recovery_loses(std::uint64_t now_ticks) noexcept {
        if (now_ticks - last_drop_ >= recovery_ticks_) {
            recovering_ = false;
            recovery_frames_ = 0;
            return false;
        }
        return ++recovery_frames_ % spec_.recovery_loss == 0;
    }

    ShaperSpec spec_;
    std::uint64_t rate_ = 0, flows_ = 1;  ///< frames/s with these flows
    std::uint64_t ticks_per_second_ = 1, recovery_ticks_ = 0;
    std::uint64_t busy_since_ = 0, busy_frames_ = 0;  ///< the server has been busy since then, with this many frames
    bool recovering_ = false;
    std::uint64_t last_drop_ = 0, recovery_frames_ = 0;
};

}  // namespace gatemark::refdut
