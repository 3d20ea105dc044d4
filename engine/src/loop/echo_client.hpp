#pragma once

#include "frame/burst.hpp"
#include "io/port.hpp"
#include "loop/echo_hand_over.hpp"
#include "loop/echo_receiver.hpp"
#include "loop/sending_task.hpp"
#include "record/round_trips.hpp"

#include <utility>
#include <vector>

namespace gatemark::loop {

/// Writes the requests of a constant rate for a Sender: number i is due when the schedule says so,
/// whatever has come back.
class EchoWriter {
public:
    explicit EchoWriter(const frame::Echo& echo) noexcept : echo_{&echo} {}
    void write(const frame::BurstFrames& frames, pace::Ticks now) const noexcept {
        for (std::size_t k = 0; k < frames.count; ++k) {
            echo_->write_request(frames.frames[k], frames.indexes[k], now);
        }
    }

private:
    const frame::Echo* echo_;
};

/// Handles the replies: records round-trip times, and tells the sender of a closed loop that a slot
/// may go on.
class ReplyHandler {
public:
    /// `boards`: one for each sender of a closed loop, none with a constant rate; sender s has the
    /// clients s, s + senders, ...
    ReplyHandler(const frame::Echo& echo, std::vector<ReplyBoard*> boards, const SteadyPart& steady)
        : echo_{&echo},
          boards_{std::move(boards)},
          senders_{std::max<std::uint64_t>(boards_.size(), 1)},
          steady_{&steady},
          clients_(static_cast<std::size_t>(echo.numbers().shape().clients)) {}

    [[nodiscard]] static bool has_room() noexcept { return true; }
    [[nodiscard]] static frame::Faults learn(std::span<const std::byte> /*bytes*/, const frame::Arrival& /*arrival*/,
                                             const frame::EchoPlace& /*place*/, const frame::Faults& /*others*/) noexcept {
        return {};
    }
    void record(std::uint64_t /*index*/, const frame::EchoPlace& place, pace::Ticks sent, pace::Ticks arrived,
                EchoOutcome outcome) noexcept {
        if (outcome == EchoOutcome::received) {
            steady_replies_ += steady_->contains(arrived) ? 1 : 0;
            if (arrived >= sent) [[likely]] {
                const pace::Ticks time{arrived.value - sent.value};
                clients_[static_cast<std::size_t>(place.client)].add(time);
                if (place.round == 0) {
                    first_.add(time);
                }
            }
        }
        if (!boards_.empty() && (outcome == EchoOutcome::received || outcome == EchoOutcome::late)) {
            const auto client = senders_.divide(place.client);
            boards_[static_cast<std::size_t>(client.remainder)]->post(
                static_cast<std::size_t>(client.quotient * echo_->numbers().shape().window + place.slot), place.number);
        }
    }

    // Valid after the worker has left the trial.
    [[nodiscard]] const std::vector<record::RoundTrips>& clients() const noexcept { return clients_; }
    /// Of the first request to each destination, which creates state in the gateway.
    [[nodiscard]] const record::RoundTrips& first() const noexcept { return first_; }
    [[nodiscard]] std::uint64_t steady_replies() const noexcept { return steady_replies_; }

private:
    const frame::Echo* echo_;
    std::vector<ReplyBoard*> boards_;
    Divider senders_;
    const SteadyPart* steady_;
    std::vector<record::RoundTrips> clients_;
    record::RoundTrips first_;
    std::uint64_t steady_replies_ = 0;
};

/// Slots of a sender in the order in which they joined; each is in one list at most. Takes no
/// memory of its own.
class SlotList {
public:
    struct Link {
        std::uint32_t before = none, after = none;
    };
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    explicit SlotList(std::vector<Link>& links) noexcept : links_{links} {}
    [[nodiscard]] bool empty() const noexcept { return first_ == none; }
    [[nodiscard]] std::uint32_t front() const noexcept { return first_; }
    void push_back(std::uint32_t slot) noexcept {
        links_[slot] = {.before = last_, .after = none};
        (last_ == none ? first_ : links_[last_].after) = slot;
        last_ = slot;
    }
    void remove(std::uint32_t slot) noexcept {
        const Link link = links_[slot];
        (link.before == none ? first_ : links_[link.before].after) = link.after;
        (link.after == none ? last_ : links_[link.after].before) = link.before;
    }

private:
    std::vector<Link>& links_;
    std::uint32_t first_ = none, last_ = none;
};

struct ClosedLoopPlan {
    const frame::Echo* echo = nullptr;
    std::uint64_t first = 0, stride = 1;  ///< this sender has clients first, first + stride, ...
    pace::Ticks start{}, end{};
    pace::Ticks pace_without_reply{};
    pace::Ticks give_up_lateness{};
    std::size_t slot = 0;  ///< template slot of the queue
    ReplyBoard* board = nullptr;
    SteadyPart* steady = nullptr;
};

/// What one client sent. Times are those in the marks.
struct EchoClientSent {
    std::uint64_t requests = 0;
    pace::Ticks first{}, last{};
};

/// Sends the requests of its clients in a closed loop: a slot sends its next one when its reply has
/// come, or some time after the last one without a reply. Nothing is due at a planned time, so
/// there is no lateness; if the port takes no request for too long, the sender gives up.
template <io::TransmitsFrames Queue, pace::TickClock Clock>
class ClosedLoopSender final : public SendingTask {
public:
    ClosedLoopSender(const ClosedLoopPlan& plan, Queue& queue, const Clock& clock)
        : plan_{plan},
          queue_{queue},
          clock_{clock},
          shape_{plan.echo->numbers().shape()},
          slots_(static_cast<std::size_t>(clients_of(plan) * shape_.window)),
          links_(slots_.size()),
          clients_(static_cast<std::size_t>(clients_of(plan))),
          open_slots_{slots_.size()} {
        for (std::uint64_t slot = 0; slot < shape_.window; ++slot) {  // in the order of the indexes
            for (std::uint64_t client = 0; client < clients_.size(); ++client) {
                make_ready(static_cast<std::uint32_t>(client * shape_.window + slot), plan.start);
            }
        }
        if (slots_.empty()) {
            stop();
        }
    }

    bool poll() noexcept override {
        if (finished_.load(std::memory_order_relaxed)) {
            return false;
        }
        const pace::Ticks now = clock_.now();
        if (now < plan_.start || (sent_ == ready_count_ && !prepare(now))) {
            return false;
        }
        hand_over();
        return true;
    }
    void release_rest() noexcept override {
        queue_.release(std::span{buffers_}.subspan(sent_, ready_count_ - sent_));
        sent_ = ready_count_;
    }

    [[nodiscard]] static std::uint64_t clients_of(const ClosedLoopPlan& plan) noexcept {
        const std::uint64_t clients = plan.echo->numbers().shape().clients;
        return clients > plan.first ? (clients - 1 - plan.first) / plan.stride + 1 : 0;
    }
    // Valid after the worker has left the trial.
    /// Of clients first, first + stride, ...
    [[nodiscard]] const std::vector<EchoClientSent>& clients() const noexcept { return clients_; }
    [[nodiscard]] std::uint64_t steady_requests() const noexcept { return steady_requests_; }
    /// Whether the port took this request, which is one of a client of this sender.
    [[nodiscard]] bool has_offered(const frame::EchoPlace& place) const noexcept {
        const std::uint64_t client = (place.client - plan_.first) / plan_.stride;
        return place.number < slots_[static_cast<std::size_t>(client * shape_.window + place.slot)].offered;
    }

private:
    struct Slot {
        std::uint64_t written = 0, offered = 0;  ///< requests
        pace::Ticks since{};                     ///< it waits, or is ready
        bool waits = false;                      ///< for a reply
    };

    void make_ready(std::uint32_t slot, pace::Ticks since) noexcept {
        slots_[slot].waits = false;
        slots_[slot].since = since;
        ready_.push_back(slot);
    }
    /// Finds the slots that may send.
    void look(pace::Ticks now) noexcept {
        plan_.board->collect([&](std::size_t number, std::uint64_t replied) {
            const auto slot = static_cast<std::uint32_t>(number);
            if (slots_[slot].waits && slots_[slot].written == replied) {  // else to a request before the latest
                waiting_.remove(slot);
                make_ready(slot, now);
            }
        });
        while (!waiting_.empty()) {
            const std::uint32_t slot = waiting_.front();
            const pace::Ticks due{slots_[slot].since.value + plan_.pace_without_reply.value};
            if (due > now) {
                break;
            }
            waiting_.remove(slot);
            make_ready(slot, due);
        }
    }
    /// Writes requests of slots that may send; returns false if there is none or buffers are short.
    bool prepare(pace::Ticks now) noexcept {
        if (now >= plan_.end) {
            plan_.steady->client_ends(plan_.end);
            stop();
            return false;
        }
        look(now);
        if (ready_.empty()) {
            return false;
        }
        std::size_t wanted = 0;
        for (std::uint32_t slot = ready_.front(); slot != SlotList::none && wanted < frame::burst_frames_max; slot = links_[slot].after) {
            burst_[wanted++] = slot;
        }
        const std::size_t got = queue_.acquire(plan_.slot, std::span{buffers_}.first(wanted));
        if (got == 0) {
            ++counts_.refused;
            give_up_if_hopeless({now.value - slots_[burst_[0]].since.value});
            return false;
        }
        for (std::size_t i = 0; i < got; ++i) {
            write(i, now);
        }
        burst_time_ = now;
        ready_count_ = got;
        sent_ = 0;
        return true;
    }
    void write(std::size_t i, pace::Ticks now) noexcept {
        Slot& slot = slots_[burst_[i]];
        const std::uint64_t client = plan_.first + burst_[i] / shape_.window * plan_.stride;
        const std::uint64_t index = plan_.echo->numbers().index_of(client, burst_[i] % shape_.window, slot.written);
        plan_.echo->write_request(Queue::bytes(buffers_[i]), index, now);
        due_[i] = slot.since;
        ready_.remove(burst_[i]);
        ++slot.written;
        if (slot.written < shape_.requests_of_slot()) {
            slot.since = now;
            slot.waits = true;
            waiting_.push_back(burst_[i]);
        }
    }

    void hand_over() noexcept {
        const pace::Ticks now = clock_.now();
        const pace::Ticks lateness{now.value - due_[sent_].value};
        const std::size_t accepted = queue_.send(std::span{buffers_}.subspan(sent_, ready_count_ - sent_));
        for (std::size_t i = sent_; i < sent_ + accepted; ++i) {
            note_offered(burst_[i]);
        }
        if (accepted != 0) {
            counts_.offered_foreground += accepted;
            counts_.last_handover = now;
            sent_ += accepted;
            offered_so_far_.store(counts_.offered_foreground, std::memory_order_relaxed);
        }
        if (sent_ != ready_count_) {
            ++counts_.refused;
            give_up_if_hopeless(lateness);
        } else if (open_slots_ == 0) {
            stop();
        }
    }
    void note_offered(std::uint32_t number) noexcept {
        Slot& slot = slots_[number];
        EchoClientSent& client = clients_[static_cast<std::size_t>(number / shape_.window)];
        if (client.requests == 0) {
            client.first = burst_time_;
            plan_.steady->client_begins(burst_time_);
        }
        client.last = burst_time_;
        ++slot.offered;
        if (++client.requests == shape_.requests_of_client()) {
            plan_.steady->client_ends(burst_time_);
        }
        open_slots_ -= slot.offered == shape_.requests_of_slot() ? 1 : 0;
        steady_requests_ += plan_.steady->contains(burst_time_) ? 1 : 0;
    }
    /// A Tester that is this late cannot complete a valid trial: stop now, and report it.
    void give_up_if_hopeless(pace::Ticks lateness) noexcept {
        if (lateness > plan_.give_up_lateness) {
            counts_.gave_up = true;
            stop();
        }
    }

    ClosedLoopPlan plan_;
    Queue& queue_;
    const Clock& clock_;
    frame::EchoShape shape_;
    std::vector<Slot> slots_;
    std::vector<SlotList::Link> links_;
    SlotList ready_{links_}, waiting_{links_};  ///< those that wait: all the same time, so the first is the next
    std::vector<EchoClientSent> clients_;
    std::uint64_t open_slots_;  ///< with requests that the port has not taken
    std::uint64_t steady_requests_ = 0;
    pace::Ticks burst_time_{};
    std::size_t ready_count_ = 0, sent_ = 0;
    std::array<std::uint32_t, frame::burst_frames_max> burst_{};
    std::array<pace::Ticks, frame::burst_frames_max> due_{};
    std::array<typename Queue::Buffer, frame::burst_frames_max> buffers_{};
};

}  // namespace gatemark::loop
