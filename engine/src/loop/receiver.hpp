#pragma once

#include "frame/recognizer.hpp"
#include "frame/verification.hpp"
#include "io/port.hpp"
#include "loop/frame_prefetcher.hpp"
#include "loop/neighbor_mailbox.hpp"
#include "loop/receiver_plan.hpp"
#include "loop/receiving_task.hpp"
#include "pace/clock.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <optional>
#include <vector>

namespace gatemark::loop {

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
                    const frame::Stream& stream = *direction.streams[class_number];
                    const bool learns = stream.role() == frame::Role::initiator;
                    arriving_.push_back({.recognizer = frame::Recognizer{stream},
                                         .records = records_of(i, class_number),
                                         .learns = learns,
                                         .learns_quickly = learns && direction.keeper->knows_by_pool(stream)});
                }
            }
        }
    }

    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    /// Takes what has arrived. A full burst is left to the next poll, which works on it while the
    /// frames behind it come from memory.
    bool poll() noexcept override {
        Burst& waiting = bursts_[waiting_];
        Burst& arrived = bursts_[1 - waiting_];
        receive(arrived);
        if (waiting.count == 0 && arrived.count == 0) {
            return false;
        }
        work_on(waiting);
        next_frames_.prefetch_rest();
        if (arrived.count < frame::burst_frames_max) {
            work_on(arrived);
        }
        waiting_ = 1 - waiting_;
        publish();
        return true;
    }
    void finish() noexcept override {
        work_on(bursts_[waiting_]);
        publish();
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
    struct Burst {
        std::size_t count = 0;
        pace::Ticks polled{};
        std::array<typename Queue::Buffer, frame::burst_frames_max> buffers{};
        std::array<std::span<const std::byte>, frame::burst_frames_max> frames{};

        [[nodiscard]] std::span<const std::span<const std::byte>> all_frames() const noexcept { return std::span{frames}.first(count); }
    };
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
        bool learns;                                             ///< of an Initiator: the state table learns from its frames
        bool learns_quickly;                                     ///< from nearly all of them
        frame::MatchedFrames matched{};                          ///< of this burst
        std::array<std::uint8_t, frame::burst_frames_max> at{};  ///< where each of them is in the burst
        std::uint32_t wrong = 0;                                 ///< a bit for each of them that is no correct frame
    };
    static constexpr auto places_in_order = [] {
        std::array<std::uint8_t, frame::burst_frames_max> places{};
        for (std::size_t i = 0; i < places.size(); ++i) {
            places[i] = static_cast<std::uint8_t>(i);
        }
        return places;
    }();
    /// A frame that is correct as far as can be told without the state table.
    struct RecognizedFrame {
        ArrivingStream* stream = nullptr;  ///< nullptr: not recognized
        std::size_t place = 0;             ///< among the frames that match its template
    };

    void publish() noexcept { received_so_far_.store(received_, std::memory_order_relaxed); }
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
    void work_on(Burst& burst) noexcept {
        if (burst.count == 0) {
            return;
        }
        next_frames_.prefetch_some();
        recognize(burst);
        if (!take_run(burst)) [[unlikely]] {
            take_one_by_one(burst);
        }
        queue_.release(std::span{burst.buffers}.first(burst.count));
        burst.count = 0;
    }

    /// Finds the frames of the burst that match the template of a stream, and which are correct.
    void recognize(const Burst& burst) noexcept {
        const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << burst.count) - 1);
        std::uint32_t left = all;
        for (ArrivingStream& arriving_stream : arriving_) {
            arriving_stream.matched.count = 0;
            if (left == 0) {
                continue;
            }
            if (left == all && take_all(arriving_stream, burst)) {
                left = 0;
            } else {
                const std::uint32_t matches = arriving_stream.recognizer.match(burst.all_frames()) & left;
                left &= ~matches;
                take_matching(arriving_stream, burst, matches);
            }
            next_frames_.prefetch_some();
            compare(arriving_stream);
            next_frames_.prefetch_some();
        }
    }
    static bool is_within(const Records& records, std::uint64_t index) noexcept { return index < records.direction->frame_count; }
    /// Returns false, and has taken none, if the frames of the burst must be looked at one by one.
    [[nodiscard]] static bool take_all(ArrivingStream& arriving_stream, const Burst& burst) noexcept {
        if (arriving_stream.records.numbers_differ) {
            return false;
        }
        const auto largest = arriving_stream.recognizer.match_all(burst.all_frames(), arriving_stream.matched);
        if (!largest || !is_within(arriving_stream.records, *largest)) {
            return false;
        }
        arriving_stream.at = places_in_order;
        return true;
    }
    /// These frames of the burst match the template; some may still have no index of the stream.
    void take_matching(ArrivingStream& arriving_stream, const Burst& burst, std::uint32_t matches) noexcept {
        const Records& records = arriving_stream.records;
        frame::MatchedFrames& matched = arriving_stream.matched;
        matched.count = 0;
        for (; matches != 0; matches &= matches - 1) {
            const auto i = static_cast<std::size_t>(std::countr_zero(matches));
            const std::uint64_t index = arriving_stream.recognizer.index(burst.frames[i].data());
            std::uint64_t number = index;
            if (!is_within(records, index) || (records.numbers_differ && !is_of_class(records, index, number))) {
                continue;
            }
            arriving_stream.at[matched.count] = static_cast<std::uint8_t>(i);
            arriving_stream.recognizer.gather(burst.frames[i].data(), index, number, matched);
        }
    }
    static bool is_of_class(const Records& records, std::uint64_t index, std::uint64_t& number) noexcept {
        const auto place = records.direction->mix.place_of(index);
        number = place.number_in_class;
        return place.foreground == (records.class_number == 0);
    }

    /// Compares what varies, for all the frames of a stream at once.
    static void compare(ArrivingStream& arriving_stream) noexcept {
        frame::MatchedFrames& matched = arriving_stream.matched;
        if (matched.count == 0) {
            return;
        }
        arriving_stream.recognizer.compute(matched);
        arriving_stream.wrong = arriving_stream.recognizer.compare(matched);
        if (arriving_stream.learns) {
            for (std::size_t k = 0; k < matched.count; ++k) {
                arriving_stream.records.direction->keeper->prefetch(matched.connections[k]);
            }
        }
    }

    /// Takes a burst of correct frames of one stream that follow each other without a gap, as
    /// nearly all bursts are: they are marked and counted together. Returns false, and has done
    /// nothing, if this is another one.
    [[nodiscard]] bool take_run(const Burst& burst) noexcept {
        for (ArrivingStream& arriving_stream : arriving_) {
            if (arriving_stream.matched.count == burst.count) {
                return arriving_stream.wrong == 0 && take_run_of(arriving_stream, burst);
            }
        }
        return false;
    }
    [[nodiscard]] bool take_run_of(ArrivingStream& arriving_stream, const Burst& burst) noexcept {
        const Records& records = arriving_stream.records;
        const frame::MatchedFrames& matched = arriving_stream.matched;
        const std::size_t count = burst.count;
        const std::uint64_t first = matched.indexes[0];
        record::ClassCounts& counts = *records.counts;
        if (records.direction->senders.divisor() != 1 || first < counts.highest_index[0] || !matched.follow_each_other() ||
            frame::Recognizer::put_sent(matched, sent_) < plan_.earliest) {
            return false;
        }
        const std::uint32_t faulty = arriving_stream.learns ? learn_all(burst, arriving_stream) : 0;
        const std::uint32_t is_new = records.arrivals->mark_run(first, count);
        next_frames_.prefetch_some();
        for (std::size_t k = 0; k < count; ++k) {
            arrived_[k] = queue_.arrival(burst.buffers[k], burst.polled);
        }
        if (faulty == 0 && static_cast<std::size_t>(std::popcount(is_new)) == count) [[likely]] {
            counts.highest_index[0] = first + count - 1;
            const std::size_t in_time = records.delays->note_run(first, matched.numbers, std::span{sent_}.first(count), arrived_);
            counts.received += in_time;
            counts.late += count - in_time;
            received_ += in_time;
            return true;
        }
        for (std::size_t k = 0; k < count; ++k) {
            (void)record_marked(records, first + k, matched.numbers[k], (is_new >> k & 1U) != 0, (faulty >> k & 1U) != 0, sent_[k],
                                arrived_[k]);
        }
        return true;
    }

    [[gnu::noinline]] void take_one_by_one(const Burst& burst) noexcept {
        std::array<RecognizedFrame, frame::burst_frames_max> recognized{};
        for (ArrivingStream& arriving_stream : arriving_) {
            for (std::size_t k = 0; k < arriving_stream.matched.count; ++k) {
                if ((arriving_stream.wrong >> k & 1U) == 0) [[likely]] {
                    recognized[arriving_stream.at[k]] = {&arriving_stream, k};
                }
            }
        }
        for (std::size_t i = 0; i < burst.count; ++i) {
            const pace::Ticks arrived = queue_.arrival(burst.buffers[i], burst.polled);
            if (recognized[i].stream != nullptr) [[likely]] {
                take_recognized(burst.frames[i], recognized[i], arrived);
            } else {
                take(burst.frames[i], arrived);
            }
        }
    }

    void take_recognized(std::span<const std::byte> bytes, const RecognizedFrame& recognized, pace::Ticks now) noexcept {
        const ArrivingStream& arriving_stream = *recognized.stream;
        const frame::MatchedFrames& matched = arriving_stream.matched;
        const pace::Ticks sent{swap_bytes(matched.arrived.times[recognized.place])};
        if (sent < plan_.earliest) [[unlikely]] {
            ++foreign_.other_trial;
            return;
        }
        const frame::Faults faults = arriving_stream.learns ? learn(bytes, arriving_stream, recognized.place) : frame::Faults{};
        (void)record(arriving_stream.records, matched.indexes[recognized.place], matched.numbers[recognized.place], faults, sent, now);
    }
    /// Learns from a burst whose frames all are of the stream. Returns a bit for each that is
    /// faulty.
    [[nodiscard]] std::uint32_t learn_all(const Burst& burst, const ArrivingStream& arriving_stream) noexcept {
        const state::ConnectionKeeper& keeper = *arriving_stream.records.direction->keeper;
        std::uint32_t faulty = 0;
        std::size_t k =
            arriving_stream.learns_quickly ? keeper.learn_correct(arriving_stream.matched, arriving_stream.recognizer.arrival()) : 0;
        for (; k < burst.count; ++k) {
            faulty |= std::uint32_t{!learn(burst.frames[k], arriving_stream, k).none()} << k;
        }
        return faulty;
    }
    [[nodiscard]] frame::Faults learn(std::span<const std::byte> bytes, const ArrivingStream& arriving_stream, std::size_t place) noexcept {
        const frame::Arrival& arrival = arriving_stream.recognizer.arrival();
        const state::ConnectionKeeper& keeper = *arriving_stream.records.direction->keeper;
        const std::uint64_t connection = arriving_stream.matched.connections[place];
        if (arriving_stream.learns_quickly && keeper.learn_correct(bytes.data(), arrival, connection)) [[likely]] {
            return {};
        }
        const frame::Stream& stream = arriving_stream.recognizer.stream();
        const frame::Faults faults = keeper.learn(bytes.data(), arrival, stream, stream.values_of(connection), {});
        if (!faults.none()) [[unlikely]] {
            note_faults(*arriving_stream.records.counts, kept_, faults, bytes);
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
    /// received.
    bool record(const Records& records, std::uint64_t index, std::uint64_t number_in_class, const frame::Faults& faults, pace::Ticks sent,
                pace::Ticks now) noexcept {
        return record_marked(records, index, number_in_class, records.arrivals->mark(index), !faults.none(), sent, now);
    }
    bool record_marked(const Records& records, std::uint64_t index, std::uint64_t number_in_class, bool is_new, bool is_faulty,
                       pace::Ticks sent, pace::Ticks now) noexcept {
        record::ClassCounts& counts = *records.counts;
        if (!is_new) {
            ++counts.duplicate;
            return false;
        }
        counts.note_order(index, records.direction->sender_of(index));
        if (is_faulty) {
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
            return direction.keeper->learn(bytes.data(), arrival, stream, values, others);
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
    std::array<Burst, 2> bursts_{};
    std::size_t waiting_ = 0;                                              ///< which of them the last poll has left
    FramePrefetcher next_frames_;                                          ///< of the burst that arrived last
    std::array<pace::Ticks, frame::burst_frames_max> sent_{}, arrived_{};  ///< of a run
    std::array<std::array<record::ClassCounts, 2>, 2> counts_{};
    std::array<std::optional<record::DelayRecorder>, 2> delays_;  ///< by direction
    record::ForeignCounts foreign_;
    record::KeptFrames kept_;
    std::uint64_t received_ = 0;
    alignas(64) std::atomic<std::uint64_t> received_so_far_{0};
};

}  // namespace gatemark::loop
