#pragma once

#include "base/divider.hpp"
#include "frame/recognizer.hpp"
#include "frame/verification.hpp"
#include "io/port.hpp"
#include "loop/neighbor_mailbox.hpp"
#include "loop/receiving_task.hpp"
#include "pace/clock.hpp"
#include "pace/mix.hpp"
#include "record/arrival_bitmap.hpp"
#include "record/delay_recorder.hpp"
#include "state/connection_keeper.hpp"

#include <array>
#include <atomic>
#include <optional>
#include <vector>

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

struct ReceiverPlan {
    std::uint32_t trial_id = 0;
    pace::Ticks earliest{};                       ///< no frame of the trial was sent before this
    std::array<ExpectedDirection, 2> directions;  ///< forward, reverse
    std::size_t kept_frames_max = 4;
};

/// Classifies every frame of one queue and compares every test frame with what a correct gateway
/// must have made of it. The time of arrival is the end of the poll that returned the frame, or the
/// port's hardware time stamp.
///
/// Nearly all frames are correct, and a Recognizer accepts them quickly; the others take the slow
/// path, which determines what is wrong. A whole burst is examined before any of its frames is
/// recorded, so that prefetched entries of the state table have time to arrive from memory.
template <io::ReceivesFrames Queue, pace::TickClock Clock = pace::CycleClock>
class Receiver final : public ReceivingTask {
public:
    Receiver(const ReceiverPlan& plan, Queue& queue, NeighborMailbox& mailbox, const Clock& clock = {})
        : plan_{plan},
          queue_{queue},
          mailbox_{mailbox},
          clock_{clock},
          kept_{static_cast<std::size_t>(KeptReason::count), plan.kept_frames_max} {
        for (std::size_t i = 0; i < plan.directions.size(); ++i) {
            const ExpectedDirection& direction = plan.directions[i];
            if (!direction.active || !direction.arrives_here) {
                continue;
            }
            delays_[i].emplace(direction.delays);
            for (std::size_t class_number = 0; class_number < 2; ++class_number) {
                if (direction.streams[class_number] != nullptr) {
                    arriving_.push_back({.recognizer = frame::Recognizer{*direction.streams[class_number]},
                                         .records = records_of(i, class_number),
                                         .has_connections = direction.streams[class_number]->role() != frame::Role::stateless,
                                         .has_rule = direction.streams[class_number]->has_rule(),
                                         .learns = direction.streams[class_number]->role() == frame::Role::initiator,
                                         .has_host_macs = direction.streams[class_number]->has_host_macs()});
                }
            }
        }
    }

    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    bool poll() noexcept override {
        const std::size_t count = queue_.receive(buffers_);
        if (count == 0) {
            return false;
        }
        const pace::Ticks now = clock_.now();
        const auto burst = std::span{buffers_}.first(count);
        for (std::size_t i = 0; i < count; ++i) {
            frames_[i] = Queue::bytes(buffers_[i]);
            __builtin_prefetch(frames_[i].data());
        }
        const std::span<const ArrivingStream> arriving{arriving_};
        for (std::size_t i = 0; i < count; ++i) {
            recognized_[i].stream = recognize(arriving, frames_[i], recognized_[i]);
        }
        for (const ArrivingStream& arriving_stream : arriving) {
            if (arriving_stream.has_connections) {
                compare_four_tuples(arriving_stream, count);
            }
            if (arriving_stream.has_rule) [[unlikely]] {
                compare_by_rule(arriving_stream, count);
            }
            if (arriving_stream.has_host_macs) [[unlikely]] {
                compare_host_macs(arriving_stream, count);
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            const pace::Ticks arrived = queue_.arrival(buffers_[i], now);
            if (recognized_[i].stream != nullptr) [[likely]] {
                take_recognized(frames_[i], recognized_[i], arrived);
            } else {
                take(frames_[i], arrived);
            }
        }
        queue_.release(burst);
        received_so_far_.store(received_, std::memory_order_relaxed);
        return true;
    }

    [[nodiscard]] std::uint64_t received_so_far() const noexcept override { return received_so_far_.load(std::memory_order_relaxed); }
    /// Valid after the worker has left the trial.
    [[nodiscard]] const record::ClassCounts& counts(frame::signature::Direction direction,
                                                    frame::signature::TrafficClass traffic_class) const noexcept override {
        return counts_[static_cast<std::size_t>(direction)][static_cast<std::size_t>(traffic_class)];
    }
    /// nullptr for a direction whose frames do not arrive here.
    [[nodiscard]] const record::DelayRecorder* delays(frame::signature::Direction direction) const noexcept override {
        const auto& recorder = delays_[static_cast<std::size_t>(direction)];
        return recorder ? &*recorder : nullptr;
    }
    [[nodiscard]] const record::ForeignCounts& foreign() const noexcept override { return foreign_; }
    [[nodiscard]] const record::KeptFrames& kept() const noexcept override { return kept_; }

private:
    /// Where a frame of one class of one direction is recorded.
    struct Records {
        const ExpectedDirection* direction = nullptr;
        record::ArrivalBitmap* arrivals = nullptr;
        record::ClassCounts* counts = nullptr;
        record::ClassDelayRecorder* delays = nullptr;
        std::size_t class_number = 0;
        bool numbers_differ = false;  ///< in the class from the index: of two classes, or of flows that start one after another
    };
    [[nodiscard]] Records records_of(std::size_t direction_number, std::size_t class_number) noexcept {
        const ExpectedDirection& direction = plan_.directions[direction_number];
        return {.direction = &direction,
                .arrivals = direction.arrivals,
                .counts = &counts_[direction_number][class_number],
                .delays = &delays_[direction_number]->of_class(class_number),
                .class_number = class_number,
                .numbers_differ = class_number != 0 || !direction.mix.numbers_are_indexes()};
    }
    struct ArrivingStream {
        frame::Recognizer recognizer;
        Records records;
        bool has_connections;  ///< of a stateful gateway
        bool has_rule;         ///< for addresses and ports that belong together
        bool learns;           ///< of an Initiator: the state table learns from its frames
        bool has_host_macs;    ///< the hosts that its frames go to have link-layer addresses of their own
    };
    /// A frame that is correct as far as can be told without the state table.
    struct RecognizedFrame {
        const ArrivingStream* stream = nullptr;  ///< nullptr: not recognized
        std::uint64_t index = 0, number_in_class = 0;
        frame::FrameValues values{};  ///< of an Initiator's frame only
    };

    /// Returns the stream that the frame is a correct frame of, or nullptr.
    [[gnu::always_inline]] static const ArrivingStream* recognize(std::span<const ArrivingStream> arriving,
                                                                  std::span<const std::byte> bytes, RecognizedFrame& recognized) noexcept {
        for (const ArrivingStream& arriving_stream : arriving) {
            if (arriving_stream.recognizer.matches_template(bytes)) {
                return is_recognized(arriving_stream, bytes.data(), recognized) ? &arriving_stream : nullptr;
            }
        }
        return nullptr;
    }
    [[gnu::always_inline]] static bool is_recognized(const ArrivingStream& arriving_stream, const std::byte* bytes,
                                                     RecognizedFrame& recognized) noexcept {
        recognized.index = arriving_stream.recognizer.index(bytes);
        recognized.number_in_class = recognized.index;
        if (recognized.index >= arriving_stream.records.direction->frame_count ||
            (arriving_stream.records.numbers_differ && !is_of_class(arriving_stream.records, recognized))) {
            return false;
        }
        const frame::Stream& stream = arriving_stream.recognizer.stream();
        return stream.draws() ? arriving_stream.recognizer.matches_values(bytes, stream.drawn_values(recognized.number_in_class))
                              : arriving_stream.has_connections || arriving_stream.has_rule ||
                                    matches_other_values(arriving_stream, bytes, recognized.number_in_class);
    }
    static bool is_of_class(const Records& records, RecognizedFrame& recognized) noexcept {
        const auto place = records.direction->mix.place_of(recognized.index);
        recognized.number_in_class = place.number_in_class;
        return place.foreground == (records.class_number == 0);
    }

    /// Out of line, to keep the register pressure of the usual case low.
    [[gnu::noinline]] static bool matches_other_values(const ArrivingStream& arriving_stream, const std::byte* bytes,
                                                       std::uint64_t number) noexcept {
        return arriving_stream.recognizer.matches_values(bytes, arriving_stream.recognizer.stream().other_values(number));
    }

    /// The part that `recognize` leaves out for frames of connections: the four-tuples of a whole
    /// burst are computed together, which is faster.
    [[gnu::noinline]] void compare_four_tuples(const ArrivingStream& arriving_stream, std::size_t count) noexcept {
        const frame::Stream& stream = arriving_stream.recognizer.stream();
        std::size_t tuple_count = 0;
        for (RecognizedFrame& recognized : std::span{recognized_}.first(count)) {
            if (recognized.stream == &arriving_stream) {
                recognized.values.connection = stream.connection_of(recognized.number_in_class);
                tuples_[tuple_count++] = recognized.values.connection;
            }
        }
        stream.connections().put_tuples(std::span{tuples_}.first(tuple_count));
        tuple_count = 0;
        for (std::size_t i = 0; i < count; ++i) {
            RecognizedFrame& recognized = recognized_[i];
            if (recognized.stream != &arriving_stream) {
                continue;
            }
            recognized.values = stream.values_of(recognized.values.connection, stream.connections().space().tuple(tuples_[tuple_count++]));
            if (!arriving_stream.recognizer.matches_values(frames_[i].data(), recognized.values)) {
                recognized.stream = nullptr;
            } else if (arriving_stream.learns) {
                arriving_stream.records.direction->keeper->prefetch(recognized.values.connection);
            }
        }
    }

    /// The part that `recognize` leaves out for streams with a rule, for a whole burst as well.
    [[gnu::noinline]] void compare_by_rule(const ArrivingStream& arriving_stream, std::size_t count) noexcept {
        const frame::Stream& stream = arriving_stream.recognizer.stream();
        std::size_t prepared = 0;
        for (const RecognizedFrame& recognized : std::span{recognized_}.first(count)) {
            if (recognized.stream == &arriving_stream) {
                numbers_[prepared++] = recognized.number_in_class;
            }
        }
        stream.prepare_by_rule(std::span{numbers_}.first(prepared), std::span{tuples_}.first(prepared));
        prepared = 0;
        for (std::size_t i = 0; i < count; ++i) {
            RecognizedFrame& recognized = recognized_[i];
            if (recognized.stream == &arriving_stream) {
                if (!arriving_stream.recognizer.matches_by_rule(frames_[i].data(), recognized.number_in_class, tuples_[prepared++])) {
                    recognized.stream = nullptr;
                }
            }
        }
    }

    /// The part that `recognize` leaves out where each host has a link-layer address of its own.
    [[gnu::noinline]] void compare_host_macs(const ArrivingStream& arriving_stream, std::size_t count) noexcept {
        const frame::Stream& stream = arriving_stream.recognizer.stream();
        for (std::size_t i = 0; i < count; ++i) {
            RecognizedFrame& recognized = recognized_[i];
            if (recognized.stream != &arriving_stream) {
                continue;
            }
            const frame::FrameValues values =
                arriving_stream.has_connections ? recognized.values : stream.values(recognized.number_in_class);
            if (!arriving_stream.recognizer.matches_host_mac(frames_[i].data(), values)) {
                recognized.stream = nullptr;
            }
        }
    }

    void take_recognized(std::span<const std::byte> bytes, const RecognizedFrame& recognized, pace::Ticks now) noexcept {
        const pace::Ticks sent{recognized.stream->recognizer.timestamp(bytes.data())};
        if (sent < plan_.earliest) [[unlikely]] {
            ++foreign_.other_trial;
            return;
        }
        const frame::Faults faults = recognized.stream->learns ? learn(bytes, recognized) : frame::Faults{};
        (void)record(recognized.stream->records, recognized.index, recognized.number_in_class, faults, sent, now);
    }
    [[nodiscard]] frame::Faults learn(std::span<const std::byte> bytes, const RecognizedFrame& recognized) noexcept {
        const auto& [recognizer, records, has_connections, has_rule, learns, has_host_macs] = *recognized.stream;
        const frame::Faults faults =
            records.direction->keeper->take(bytes, recognizer.arrival(), recognizer.stream(), recognized.values, {});
        if (!faults.none()) [[unlikely]] {
            note_faults(*records.counts, kept_, faults, bytes);
        }
        return faults;
    }

    /// The slow path, for arbitrary bytes.
    [[gnu::noinline]] void take(std::span<const std::byte> bytes, pace::Ticks now) noexcept {
        const frame::Arrival arrival = frame::classify(bytes, plan_.trial_id);
        if (arrival.kind == frame::ArrivalKind::ours) {
            take_ours(bytes, arrival, now);
        } else if (record::ClassCounts* const counts = counts_of_damaged_mark(bytes, arrival, now)) {
            frame::Faults faults;
            faults.add(frame::Fault::mark);
            note_faults(*counts, kept_, faults, bytes);
        } else {
            note_other(bytes, arrival, mailbox_, foreign_, kept_);
        }
    }
    /// Of the stream whose frame this is although its mark says that it is from elsewhere or, of a
    /// frame that was sent in this trial, from another trial; else nullptr. Its index is not known.
    [[nodiscard]] record::ClassCounts* counts_of_damaged_mark(std::span<const std::byte> bytes, const frame::Arrival& arrival,
                                                              pace::Ticks now) noexcept {
        if (arrival.kind == frame::ArrivalKind::other_trial) {
            const pace::Ticks sent{frame::signature::timestamp(bytes.data() + arrival.payload)};
            if (sent < plan_.earliest || sent > now) {
                return nullptr;
            }
        }
        for (const ArrivingStream& arriving_stream : arriving_) {
            if (frame::goes_between_hosts(bytes, arrival, arriving_stream.recognizer.stream())) {
                return arriving_stream.records.counts;
            }
        }
        return nullptr;
    }

    void take_ours(std::span<const std::byte> bytes, const frame::Arrival& arrival, pace::Ticks now) noexcept {
        const std::uint8_t stream_id = frame::signature::stream(bytes.data() + arrival.payload);
        const std::size_t direction_number = (stream_id >> 1) & 1U, class_number = stream_id & 1U;
        const std::uint64_t index = frame::signature::index(bytes.data() + arrival.payload);
        const pace::Ticks sent{frame::signature::timestamp(bytes.data() + arrival.payload)};
        const ExpectedDirection& direction = plan_.directions[direction_number];
        record::ClassCounts& counts = counts_[direction_number][class_number];
        const frame::Stream* const stream = direction.streams[class_number];
        const auto place = direction.mix.place_of(index);
        const bool exists = direction.active && stream != nullptr && stream->id() == stream_id && index < direction.frame_count &&
                            place.foreground == (class_number == 0);
        frame::Faults faults;
        faults.add_if(!exists, frame::Fault::index);
        faults.add_if(exists && !direction.arrives_here, frame::Fault::wrong_port);
        const bool has_arrived = faults.none();  // else it was damaged or not forwarded, and nothing else is expected of it
        if (has_arrived) {
            faults = frame::verify(bytes, arrival, *stream, stream->values(place.number_in_class));
        }
        if (sent < plan_.earliest && frame::time_stamp_is_intact(faults)) {
            ++foreign_.other_trial;
            return;
        }
        if (has_arrived) {
            faults.add(verify_connection(bytes, arrival, direction, *stream, stream->values(place.number_in_class), faults));
        }
        note_faults(counts, kept_, faults, bytes);
        if (has_arrived && record(records_of(direction_number, class_number), index, place.number_in_class, faults, sent, now) &&
            stream->zero_checksum_for_ones() && !stream->expects_no_checksum()) {
            counts.zero_checksum += frame::has_zero_checksum(bytes, arrival) ? 1 : 0;
        }
    }

    /// Records a verified frame that arrived where it should; returns whether it counts as
    /// received. Inlined, like the comparison of values, because calls are expensive here
    /// (bench/instructions.py, receive_ipv4).
    [[gnu::always_inline]] bool record(const Records& records, std::uint64_t index, std::uint64_t number_in_class,
                                       const frame::Faults& faults, pace::Ticks sent, pace::Ticks now) noexcept {
        record::ClassCounts& counts = *records.counts;
        if (!records.arrivals->mark(index)) {
            ++counts.duplicate;
            return false;
        }
        counts.note_order(index, records.direction->sender_of(index));
        if (!faults.none()) {
            ++counts.faulty;
            return false;
        }
        if (!records.delays->note(index, number_in_class, sent, now)) {
            ++counts.late;
            return false;
        }
        ++counts.received;
        ++received_;
        return true;
    }

    /// What is wrong with the connection of a frame of a stateful gateway that has `others` beside.
    static frame::Faults verify_connection(std::span<const std::byte> bytes, const frame::Arrival& arrival,
                                           const ExpectedDirection& direction, const frame::Stream& stream,
                                           const frame::FrameValues& values, const frame::Faults& others) noexcept {
        frame::Faults faults;
        if (stream.role() == frame::Role::stateless || arrival.misplaced) {
            return faults;
        }
        if (stream.role() == frame::Role::initiator) {
            return direction.keeper->take(bytes, arrival, stream, values, others);
        }
        if (others.has(frame::Fault::destination_address) || others.has(frame::Fault::destination_port)) {
            faults.add(state::misdelivery(bytes, arrival, stream, values));
        }
        return faults;
    }

    ReceiverPlan plan_;
    Queue& queue_;
    NeighborMailbox& mailbox_;
    const Clock clock_;
    std::vector<ArrivingStream> arriving_;  ///< the streams whose frames arrive here
    std::array<typename Queue::Buffer, burst_frames_max> buffers_{};
    std::array<std::span<const std::byte>, burst_frames_max> frames_{};
    std::array<RecognizedFrame, burst_frames_max> recognized_{};
    std::array<std::uint64_t, burst_frames_max> numbers_{}, tuples_{};
    std::array<std::array<record::ClassCounts, 2>, 2> counts_{};
    std::array<std::optional<record::DelayRecorder>, 2> delays_;  ///< by direction
    record::ForeignCounts foreign_;
    record::KeptFrames kept_;
    std::uint64_t received_ = 0;
    alignas(64) std::atomic<std::uint64_t> received_so_far_{0};
};

}  // namespace gatemark::loop
