#pragma once

#include "base/divider.hpp"
#include "frame/burst.hpp"
#include "frame/echo_verification.hpp"
#include "frame/header_checks.hpp"
#include "io/port.hpp"
#include "loop/receiving_task.hpp"
#include "pace/clock.hpp"
#include "record/arrival_bitmap.hpp"

#include <array>
#include <atomic>
#include <concepts>
#include <vector>

namespace gatemark::loop {

/// What became of a message that arrived where it should.
enum class EchoOutcome : std::uint8_t { received, late, faulty, duplicate };

/// What one receiver counted of one client's messages.
using EchoCounts = Counts<EchoOutcome>;

struct EchoReceiverPlan {
    std::uint32_t trial_id = 0;
    pace::Ticks earliest{};  ///< no message of the trial was sent before this
    std::size_t kept_frames_max = 4;
    KnownSources sources{};
    const frame::Echo* echo = nullptr;
    frame::EchoKind kind = frame::EchoKind::request;
    std::uint64_t frame_count = 0;  ///< requests of the trial
    record::ArrivalBitmap* arrivals = nullptr;
    record::DelayPlan delays{};
    std::optional<Divider> senders{};  ///< of requests that leave in the order of their indexes: request i by sender i mod their number
};

/// What is done with messages that have arrived.
/// - has_room(): whether there is room for a whole burst.
/// - learn(...): what else is wrong with a message that has `others`.
/// - record(...): what became of it.
template <class T>
concept HandlesEchoes =
    requires(T& handler, const T& constant, std::span<const std::byte> bytes, const frame::Arrival& arrival, const frame::EchoPlace& place,
             const frame::Faults& others, std::uint64_t index, pace::Ticks time, EchoOutcome outcome) {
        { constant.has_room() } noexcept -> std::same_as<bool>;
        { handler.learn(bytes, arrival, place, others) } noexcept -> std::same_as<frame::Faults>;
        { handler.record(index, place, time, time, outcome) } noexcept;
    };

/// Classifies every frame of one queue in an echo trial and compares every echo message with what a
/// correct gateway must have made of it. Does not allocate, lock or throw.
template <io::ReceivesFrames Queue, HandlesEchoes Handler, pace::TickClock Clock = pace::CycleClock>
class EchoReceiver final : public ReceivingTask {
public:
    EchoReceiver(const EchoReceiverPlan& plan, Queue& queue, NeighborMailbox& mailbox, Handler handler, const Clock& clock = {})
        : plan_{plan},
          queue_{queue},
          mailbox_{mailbox},
          clock_{clock},
          handler_{std::move(handler)},
          delays_{plan.delays},
          kept_{static_cast<std::size_t>(KeptReason::count), plan.kept_frames_max},
          clients_(static_cast<std::size_t>(plan.echo->numbers().shape().clients)) {}

    EchoReceiver(const EchoReceiver&) = delete;
    EchoReceiver& operator=(const EchoReceiver&) = delete;

    bool poll() noexcept override {
        if (!handler_.has_room()) {
            return false;  // frames wait in the port's ring, whose drops are counted
        }
        const std::size_t count = queue_.receive(buffers_);
        if (count == 0) {
            return false;
        }
        const pace::Ticks now = clock_.now();
        for (std::size_t i = 0; i < count; ++i) {
            process(Queue::bytes(buffers_[i]), queue_.arrival(buffers_[i], now));
        }
        queue_.release(std::span{buffers_}.first(count));
        received_so_far_.store(counts_[own()][record::Count::received], std::memory_order_relaxed);
        return true;
    }

    [[nodiscard]] std::uint64_t received_so_far() const noexcept override { return received_so_far_.load(std::memory_order_relaxed); }
    [[nodiscard]] const record::ClassCounts& counts(frame::signature::Direction direction,
                                                    frame::signature::TrafficClass traffic_class) const noexcept override {
        static const record::ClassCounts none{};
        return traffic_class == frame::signature::TrafficClass::foreground ? counts_[static_cast<std::size_t>(direction)] : none;
    }
    [[nodiscard]] const record::DelayRecorder* delays(frame::signature::Direction direction) const noexcept override {
        return static_cast<std::size_t>(direction) == own() ? &delays_ : nullptr;
    }
    [[nodiscard]] const record::ForeignCounts& foreign() const noexcept override { return foreign_; }
    [[nodiscard]] const record::KeptFrames& kept() const noexcept override { return kept_; }
    /// Valid after the worker has left the trial.
    [[nodiscard]] const std::vector<EchoCounts>& clients() const noexcept { return clients_; }
    [[nodiscard]] const Handler& handler() const noexcept { return handler_; }

private:
    /// The direction whose messages arrive here: requests are sent forward.
    [[nodiscard]] std::size_t own() const noexcept { return plan_.kind == frame::EchoKind::request ? 0 : 1; }

    void process(std::span<const std::byte> bytes, pace::Ticks now) noexcept {
        const frame::Arrival arrival = frame::classify_echo(bytes, plan_.trial_id);
        if (arrival.kind == frame::ArrivalKind::ours) {
            verify_and_record(bytes, arrival, now);
        } else if (has_damaged_mark(bytes, arrival, now)) {
            frame::Faults faults;
            faults.add(frame::Fault::mark);
            note_faults(counts_[own()], kept_, faults, bytes);
        } else {
            note_other(bytes, arrival, plan_.sources, mailbox_, foreign_, kept_);
        }
    }
    [[nodiscard]] bool has_damaged_mark(std::span<const std::byte> bytes, const frame::Arrival& arrival, pace::Ticks now) const noexcept {
        if (arrival.kind == frame::ArrivalKind::other_trial) {
            const pace::Ticks sent{frame::signature::timestamp(bytes.data() + arrival.payload)};
            if (sent < plan_.earliest || sent > now) {
                return false;
            }
        }
        return frame::goes_between_echo_hosts(bytes, arrival, *plan_.echo, plan_.kind);
    }

    void verify_and_record(std::span<const std::byte> bytes, const frame::Arrival& arrival, pace::Ticks now) noexcept {
        const std::byte* const mark = bytes.data() + arrival.payload;
        const std::uint64_t index = frame::signature::index(mark);
        const pace::Ticks sent{frame::signature::timestamp(mark)};
        const bool exists = frame::signature::stream(mark) == plan_.echo->stream().id() && index < plan_.frame_count;
        const bool came_back = exists && frame::came_back(bytes, arrival, *plan_.echo, plan_.kind);
        const frame::EchoPlace place = plan_.echo->numbers().place_of(index);
        frame::Faults faults;
        faults.add_if(!exists, frame::Fault::index);
        faults.add_if(came_back, frame::Fault::wrong_port);
        const bool has_arrived = faults.none();  // else it was damaged or not forwarded, and nothing else is expected of it
        if (has_arrived) {
            faults = frame::verify_echo(bytes, arrival, *plan_.echo, plan_.kind, place);
        }
        if (sent < plan_.earliest && frame::time_stamp_is_intact(faults)) {
            ++foreign_[record::ForeignFrame::other_trial];
            return;
        }
        if (has_arrived) {
            faults.add(handler_.learn(bytes, arrival, place, faults));
        }
        note_faults(counts_[came_back ? 1 - own() : own()], kept_, faults, bytes);
        if (has_arrived) {
            const EchoOutcome outcome = record(index, place, faults, sent, now);
            if (outcome == EchoOutcome::received) {
                const frame::Mark due = plan_.echo->stream().expected_mark({});
                counts_[own()].remarks.add(frame::remarks_of(bytes, arrival, frame::expected_of(*plan_.echo, plan_.kind).frame_template,
                                                             due, plan_.echo->stream().tunnel_traffic_class(due.traffic_class)));
            }
            handler_.record(index, place, sent, now, outcome);
        }
    }

    EchoOutcome record(std::uint64_t index, const frame::EchoPlace& place, const frame::Faults& faults, pace::Ticks sent,
                       pace::Ticks now) noexcept {
        record::ClassCounts& counts = counts_[own()];
        EchoCounts& client = clients_[static_cast<std::size_t>(place.client)];
        if (!plan_.arrivals->mark(index)) {
            ++counts[record::Count::duplicate];
            ++client[EchoOutcome::duplicate];
            return EchoOutcome::duplicate;
        }
        if (plan_.senders) {
            counts.note_order(index, plan_.senders->remainder(index));
        }
        if (!faults.none()) {
            ++counts[record::Count::faulty];
            ++client[EchoOutcome::faulty];
            return EchoOutcome::faulty;
        }
        if (!delays_.of_class(0).note(index, index, sent, now)) {
            ++counts[record::Count::late];
            ++client[EchoOutcome::late];
            return EchoOutcome::late;
        }
        ++counts[record::Count::received];
        ++client[EchoOutcome::received];
        return EchoOutcome::received;
    }

    EchoReceiverPlan plan_;
    Queue& queue_;
    NeighborMailbox& mailbox_;
    const Clock clock_;
    Handler handler_;
    std::array<typename Queue::Buffer, frame::burst_frames_max> buffers_{};
    std::array<record::ClassCounts, 2> counts_{};  ///< by direction, of the foreground
    record::DelayRecorder delays_;
    record::ForeignCounts foreign_;
    record::KeptFrames kept_;
    std::vector<EchoCounts> clients_;
    alignas(64) std::atomic<std::uint64_t> received_so_far_{0};
};

}  // namespace gatemark::loop
