#pragma once

#include "io/port.hpp"
#include "loop/frame_prefetcher.hpp"
#include "loop/neighbor_mailbox.hpp"
#include "loop/receiver_plan.hpp"
#include "loop/receiving_task.hpp"
#include "loop/recognition.hpp"
#include "loop/recording.hpp"
#include "pace/clock.hpp"

#include <array>
#include <atomic>
#include <utility>
#include <vector>

namespace gatemark::loop {

/// Compares every test frame that one queue receives with what a correct gateway must have made of
/// it, and classifies all other frames. A burst passes through six stages: receive, match, compute,
/// compare, learn, record. The whole burst is compared before the state table learns from its first
/// frame, so that prefetched entries have time to arrive from memory.
///
/// Nearly all frames are correct and recognized in this way. The others take the slow path, which
/// determines what is wrong: `verify`. The time of arrival is the end of the poll that returned the
/// frame, or the port's hardware time stamp.
template <io::ReceivesFrames Queue, pace::TickClock Clock = pace::CycleClock>
class Receiver final : public ReceivingTask {
public:
    Receiver(const ReceiverPlan& plan, Queue& queue, NeighborMailbox& mailbox, const Clock& clock = {})
        : plan_{plan}, queue_{queue}, mailbox_{mailbox}, clock_{clock}, recording_{plan_} {
        for (std::size_t i = 0; i < plan_.directions.size(); ++i) {
            const ExpectedDirection& direction = plan_.directions[i];
            for (std::size_t class_number = 0; class_number < direction.streams.size(); ++class_number) {
                if (direction.active && direction.arrives_here && direction.streams[class_number] != nullptr) {
                    streams_.emplace_back(direction, class_number, recording_.of_class(i, class_number));
                }
            }
        }
    }

    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    /// Receives what has arrived. A full burst is left to the next poll, which works on it while
    /// the frames behind it come from memory.
    bool poll() noexcept override {
        receive(*arrived_);
        if (waiting_->count == 0 && arrived_->count == 0) {
            return false;
        }
        process(*waiting_);
        next_frames_.prefetch_rest();
        if (arrived_->count < frame::burst_frames_max) {
            process(*arrived_);
        }
        std::swap(waiting_, arrived_);
        publish();
        return true;
    }
    void finish() noexcept override {
        process(*waiting_);
        for (const ArrivingStream& stream : streams_) {
            stream.identifications().count(stream.recording().counts());
        }
        publish();
    }

    [[nodiscard]] std::uint64_t received_so_far() const noexcept override { return received_so_far_.load(std::memory_order_relaxed); }
    // Valid after the worker has left the trial.
    [[nodiscard]] const record::ClassCounts& counts(frame::signature::Direction direction,
                                                    frame::signature::TrafficClass traffic_class) const noexcept override {
        return recording_.of_class(static_cast<std::size_t>(direction), static_cast<std::size_t>(traffic_class)).counts();
    }
    [[nodiscard]] const record::DelayRecorder* delays(frame::signature::Direction direction) const noexcept override {
        return recording_.delays(static_cast<std::size_t>(direction));
    }
    [[nodiscard]] const record::ForeignCounts& foreign() const noexcept override { return recording_.foreign(); }
    [[nodiscard]] const record::KeptFrames& kept() const noexcept override { return recording_.kept(); }

private:
    /// What one poll of the queue has returned.
    struct Burst {
        std::size_t count = 0;
        pace::Ticks polled{};
        std::array<typename Queue::Buffer, frame::burst_frames_max> buffers{};
        std::array<std::span<const std::byte>, frame::burst_frames_max> frames{};

        [[nodiscard]] std::span<const std::span<const std::byte>> all_frames() const noexcept { return std::span{frames}.first(count); }
    };

    void receive(Burst& burst) noexcept {
        burst.count = queue_.receive(burst.buffers);
        if (burst.count == 0) {
            return;
        }
        burst.polled = clock_.now();
        for (std::size_t i = 0; i < burst.count; ++i) {
            burst.frames[i] = Queue::bytes(burst.buffers[i]);
        }
        next_frames_ = FramePrefetcher{burst.all_frames()};
    }

    /// All stages after the first.
    void process(Burst& burst) noexcept {
        if (burst.count == 0) {
            return;
        }
        next_frames_.prefetch_some();
        std::uint32_t left = ArrivingStream::all_of(burst.count);
        for (ArrivingStream& stream : streams_) {
            if (left == 0) {
                stream.match_none();
                continue;
            }
            left = stream.match(burst.all_frames(), left);
            next_frames_.prefetch_some();
            stream.compute();
            stream.compare();
            stream.prefetch_connections();
            next_frames_.prefetch_some();
        }
        if (!learn_and_record_run(burst)) [[unlikely]] {
            learn_and_record_each(burst);
        }
        queue_.release(std::span{burst.buffers}.first(burst.count));
        burst.count = 0;
    }

    /// For a burst of correct frames of one stream that follow each other without a gap, as nearly
    /// all bursts are. Returns false, and has done nothing, if this is another one.
    [[nodiscard]] bool learn_and_record_run(const Burst& burst) noexcept {
        for (const ArrivingStream& stream : streams_) {
            if (stream.matched().count == burst.count) {
                return stream.wrong() == 0 && learn_and_record_run(burst, stream);
            }
        }
        return false;
    }
    [[nodiscard]] bool learn_and_record_run(const Burst& burst, const ArrivingStream& stream) noexcept {
        const frame::MatchedFrames& matched = stream.matched();
        const std::size_t count = burst.count;
        ClassRecording& recording = stream.recording();
        run_.first = matched.indexes[0];
        run_.count = count;
        if (!recording.may_record_run(run_.first) || !matched.follow_each_other() ||
            frame::Recognizer::copy_sent_times(matched, run_.sent) < plan_.earliest) {
            return false;
        }
        run_.is_faulty = stream.learns() ? learn_run(burst, stream) : 0;
        recording.mark_run(run_);
        next_frames_.prefetch_some();
        for (std::size_t k = 0; k < count; ++k) {
            run_.arrived[k] = queue_.arrival(burst.buffers[k], burst.polled);
        }
        recording.record_run(run_, matched.numbers);
        return true;
    }
    /// Returns a bit for each frame that is faulty.
    [[nodiscard]] std::uint32_t learn_run(const Burst& burst, const ArrivingStream& stream) noexcept {
        std::uint32_t faulty = 0;
        for (std::size_t k = stream.learn_correct(); k < burst.count; ++k) {
            faulty |= std::uint32_t{!learn(burst.frames[k], stream, k).none()} << k;
        }
        return faulty;
    }

    /// For any other burst.
    [[gnu::noinline]] void learn_and_record_each(const Burst& burst) noexcept {
        std::array<RecognizedFrame, frame::burst_frames_max> recognized{};
        for (const ArrivingStream& stream : streams_) {
            for (std::size_t k = 0; k < stream.matched().count; ++k) {
                if ((stream.wrong() >> k & 1U) == 0) [[likely]] {
                    recognized[stream.place(k)] = {&stream, k};
                }
            }
        }
        for (std::size_t i = 0; i < burst.count; ++i) {
            const pace::Ticks arrived = queue_.arrival(burst.buffers[i], burst.polled);
            if (recognized[i].stream != nullptr) [[likely]] {
                learn_and_record(burst.frames[i], recognized[i], arrived);
            } else {
                verify_and_record(burst.frames[i], arrived);
            }
        }
    }
    /// A frame that is correct as far as can be told without the state table.
    struct RecognizedFrame {
        const ArrivingStream* stream = nullptr;  ///< nullptr: not recognized
        std::size_t k = 0;                       ///< among the frames that match its template
    };
    void learn_and_record(std::span<const std::byte> bytes, const RecognizedFrame& recognized, pace::Ticks arrived) noexcept {
        const auto& [stream, k] = recognized;
        const frame::MatchedFrames& matched = stream->matched();
        const pace::Ticks sent{swap_bytes(matched.arrived.times[k])};
        if (sent < plan_.earliest) [[unlikely]] {
            ++recording_.foreign()[record::ForeignFrame::other_trial];
            return;
        }
        const frame::Faults faults = stream->learns() ? learn(bytes, *stream, k) : frame::Faults{};
        (void)stream->recording().record(matched.indexes[k], matched.numbers[k], faults, sent, arrived);
    }
    [[nodiscard]] frame::Faults learn(std::span<const std::byte> bytes, const ArrivingStream& stream, std::size_t k) noexcept {
        const frame::Faults faults = stream.learn(k);
        if (!faults.none()) [[unlikely]] {
            note_faults(stream.recording().counts(), recording_.kept(), faults, bytes);
        }
        return faults;
    }

    /// The slow path, for arbitrary bytes.
    [[gnu::noinline]] void verify_and_record(std::span<const std::byte> bytes, pace::Ticks arrived) noexcept {
        const frame::Arrival arrival = frame::classify(bytes, plan_.trial_id);
        if (arrival.kind == frame::ArrivalKind::ours) {
            record_verified(bytes, verify(bytes, arrival, plan_), arrived);
        } else if (const ArrivingStream* const stream = stream_of_damaged_mark(streams_, bytes, arrival, plan_.earliest, arrived)) {
            frame::Faults faults;
            faults.add(frame::Fault::mark);
            note_faults(stream->recording().counts(), recording_.kept(), faults, bytes);
        } else {
            note_other(bytes, arrival, plan_.sources, mailbox_, recording_.foreign(), recording_.kept());
        }
    }
    void record_verified(std::span<const std::byte> bytes, const VerifiedFrame& verified, pace::Ticks arrived) noexcept {
        if (verified.is_of_other_trial) {
            ++recording_.foreign()[record::ForeignFrame::other_trial];
            return;
        }
        ClassRecording& recording = recording_.of_class(verified.direction_number, verified.class_number);
        note_faults(recording.counts(), recording_.kept(), verified.faults, bytes);
        if (verified.has_arrived && recording.record(verified.index, verified.number_in_class, verified.faults, verified.sent, arrived)) {
            recording.counts().remarks.add(verified.remarks);
        }
    }

    void publish() noexcept { received_so_far_.store(recording_.received(), std::memory_order_relaxed); }

    ReceiverPlan plan_;
    Queue& queue_;
    NeighborMailbox& mailbox_;
    const Clock clock_;
    Recording recording_;
    std::vector<ArrivingStream> streams_;  ///< those whose frames arrive here
    std::array<Burst, 2> bursts_{};
    Burst* waiting_ = &bursts_[0];  ///< what the last poll has left
    Burst* arrived_ = &bursts_[1];
    FramePrefetcher next_frames_;  ///< of the burst that arrived last
    FrameRun run_;
    alignas(64) std::atomic<std::uint64_t> received_so_far_{0};
};

}  // namespace gatemark::loop
