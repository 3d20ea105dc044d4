#pragma once

#include "base/wide.hpp"

#include <cstdint>

namespace gatemark::refdut {

struct ShaperSpec {
    std::uint64_t frames_per_second = 0;  ///< 0: no limit
    std::uint64_t queue_frames = 1000;    ///< that may wait, in addition to the one in service
    std::uint64_t recovery_ns = 0;
    std::uint64_t recovery_loss = 2;  ///< every n-th frame is lost while recovering, at least 1
    friend bool operator==(const ShaperSpec&, const ShaperSpec&) = default;
};

/// A deterministic server: each frame takes 1/capacity, in order of arrival, and waits for those
/// before it. A frame that finds `queue` frames waiting is dropped. A constant load r above the
/// capacity C therefore loses its first frame once (r - C) * T is more than the queue. After a drop
/// every `recovery_loss`-th accepted frame is lost until `recovery` is over; it takes its place in
/// the queue and its service all the same, so that these losses do not end an overload.
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
          ticks_per_second_{ticks_per_second},
          recovery_ticks_{static_cast<std::uint64_t>(static_cast<Wide>(spec.recovery_ns) * ticks_per_second / 1'000'000'000)} {}

    /// Frames arrive in order of time.
    [[nodiscard]] Answer arrive(std::uint64_t now_ticks) noexcept {
        if (spec_.frames_per_second == 0) {
            return {.verdict = Verdict::served, .end_ticks = now_ticks};
        }
        return serve(now_ticks);
    }
    /// Forgets the frames in the queue and in service, and the recovery.
    void clear() noexcept { busy_frames_ = 0, recovering_ = false; }

private:
    [[nodiscard]] Answer serve(std::uint64_t now_ticks) noexcept {
        std::uint64_t in_gateway = 0;
        if (busy_frames_ > 0) {
            const Wide done = static_cast<Wide>(now_ticks - busy_since_) * spec_.frames_per_second / ticks_per_second_;
            in_gateway = done >= busy_frames_ ? 0 : busy_frames_ - static_cast<std::uint64_t>(done);
        }
        if (in_gateway == 0) {
            busy_since_ = now_ticks;
            busy_frames_ = 0;
        } else if (in_gateway > spec_.queue_frames) {  // one of them is being served, the others wait
            recovering_ = recovery_ticks_ > 0;
            last_drop_ = now_ticks;
            return {.verdict = Verdict::queue_full, .end_ticks = 0};
        }
        ++busy_frames_;
        if (recovering_ && recovery_loses(now_ticks)) {
            return {.verdict = Verdict::lost_in_recovery, .end_ticks = 0};
        }
        const Wide ticks = (static_cast<Wide>(busy_frames_) * ticks_per_second_ + spec_.frames_per_second - 1) / spec_.frames_per_second;
        return {.verdict = Verdict::served, .end_ticks = busy_since_ + static_cast<std::uint64_t>(ticks)};
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
    std::uint64_t ticks_per_second_ = 1, recovery_ticks_ = 0;
    std::uint64_t busy_since_ = 0, busy_frames_ = 0;  ///< the server has been busy since then, with this many frames
    bool recovering_ = false;
    std::uint64_t last_drop_ = 0, recovery_frames_ = 0;
};

}  // namespace gatemark::refdut
