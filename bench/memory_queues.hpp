#pragma once

#include "io/port.hpp"
#include "loop/receiver.hpp"
#include "loop/sender.hpp"
#include "streams.hpp"

#include <memory>

/// Queues that cost almost nothing, so that only the loop is measured, and plans for senders and
/// receivers.
namespace gatemark::bench {

/// Frames of one stream in memory. Once all of them are received, `restart` makes them the next
/// ones of the stream, so that each is received for the first time.
class StoredQueue {
public:
    using Buffer = std::span<const std::byte>;

    /// The trial has `rounds` times as many frames as are stored.
    StoredQueue(StoredFrames& frames, record::ArrivalBitmap& arrivals, std::uint64_t rounds)
        : frames_{frames}, arrivals_{arrivals}, rounds_{rounds} {
        for (std::size_t i = 0; i < frames.size(); ++i) {
            places_.push_back(frames.place_of(i));
        }
    }
    [[nodiscard]] bool at_end() const noexcept { return next_ == places_.size(); }
    void restart() {
        round_ = (round_ + 1) % rounds_;
        if (round_ == 0) {
            arrivals_.reset(arrivals_.frame_count(), record::Receivers::one);
        }
        if (rounds_ > 1) {
            frames_.write_from(round_ * frames_.size());
        }
        next_ = 0;
    }

    std::size_t receive(std::span<Buffer> burst) noexcept {
        const std::size_t count = std::min(burst.size(), places_.size() - next_), frame_bytes = frames_.frame_bytes();
        for (std::size_t i = 0; i < count; ++i) {
            burst[i] = {frames_.at_place(places_[next_ + i]), frame_bytes};
        }
        next_ += count;
        return count;
    }
    static std::span<const std::byte> bytes(Buffer buffer) noexcept { return buffer; }
    static pace::Ticks arrival(Buffer /*buffer*/, pace::Ticks polled) noexcept { return polled; }
    void release(std::span<Buffer> /*burst*/) noexcept {}

private:
    StoredFrames& frames_;
    record::ArrivalBitmap& arrivals_;
    std::uint64_t rounds_, round_ = 0;
    std::vector<std::uint32_t> places_;  ///< in the order of their frames; short, as a port's few descriptors stay in cache
    std::size_t next_ = 0;
};

/// Accepts everything; has as many buffers as a burst.
class DiscardingQueue {
public:
    using Buffer = std::byte*;

    explicit DiscardingQueue(const frame::Stream& stream) : frames_(burst_frames, stream.sent().frame) {}
    std::size_t acquire(std::size_t /*slot*/, std::span<Buffer> wanted) noexcept {
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            wanted[i] = frames_[i].data();
        }
        return wanted.size();
    }
    static std::byte* bytes(Buffer buffer) noexcept { return buffer; }
    std::size_t send(std::span<Buffer> given) noexcept { return given.size(); }
    void release(std::span<Buffer> /*burst*/) noexcept {}

private:
    std::vector<std::vector<std::byte>> frames_;
};

/// Everything is due at once, so every poll takes a full burst.
inline loop::SenderPlan flat_out(const frame::Stream& stream, std::uint64_t frame_count = std::uint64_t{1} << 40) {
    return {.frame_count = frame_count,
            .schedule = pace::Schedule{{.frames_per_second = 1'000'000'000}, {}, 1'000'000'000},
            .mix = pace::Mix{1, 1},
            .late = {~std::uint64_t{0}},
            .give_up_lateness = {~std::uint64_t{0}},
            .foreground = &stream};
}

/// A receiver of one stream with everything that its plan points to.
struct ReceiverParts {
    ReceiverParts(const frame::Stream& stream, std::uint64_t frame_count) {
        arrivals.reset(frame_count, record::Receivers::one);
        auto& direction = plan.directions[(stream.id() >> 1) & 1U];
        direction = {.active = true,
                     .arrives_here = true,
                     .frame_count = frame_count,
                     .mix = {1, 1},
                     .streams = {&stream, nullptr},
                     .arrivals = &arrivals};
    }
    ReceiverParts(const ReceiverParts&) = delete;
    ReceiverParts& operator=(const ReceiverParts&) = delete;

    /// As in a trial for latency and delay variation (RFC 8219 section 7).
    void record_tags_and_variation() {
        window.reset(record::Receivers::one);
        tags.reset({.first = 0, .frames = plan.directions[0].frame_count, .count = 40});
        plan.directions[0].delays.windows[0] = &window;
        plan.directions[0].delays.tags = &tags;
    }
    /// As in test phase 1 or 2 (RFC 9693 section 4.2); phase 2 finds what phase 1 wrote.
    void keep_connections(state::Phase phase, std::uint64_t count) {
        keeper = std::make_unique<state::ConnectionKeeper>(phase, full_table(count), pool);
        plan.directions[0].keeper = keeper.get();
    }

    loop::ReceiverPlan plan{.trial_id = trial_id, .directions = {}};
    loop::NeighborMailbox mailbox;
    record::ArrivalBitmap arrivals;
    record::DelayWindow window;
    record::TaggedDelays tags;
    const net::AddressPool& pool = public_pool();
    std::unique_ptr<state::ConnectionKeeper> keeper;
};

}  // namespace gatemark::bench
