#pragma once

#include "frame/burst.hpp"
#include "io/port.hpp"
#include "loop/echo_hand_over.hpp"
#include "loop/echo_receiver.hpp"
#include "loop/sending_task.hpp"
#include "state/echo_keeper.hpp"

namespace gatemark::loop {

/// The first half of the Responder: hands each correct request over to be answered, once. A
/// duplicate is counted and not answered, so that there is one reply at most to each request.
class RequestHandler {
public:
    RequestHandler(const frame::Echo& echo, const std::optional<state::EchoKeeper>& keeper, AnswerQueue& answers) noexcept
        : echo_{&echo}, keeper_{keeper}, answers_{&answers} {}

    [[nodiscard]] bool has_room() const noexcept { return answers_->room() >= frame::burst_frames_max; }
    [[nodiscard]] frame::Faults learn(std::span<const std::byte> bytes, const frame::Arrival& arrival, const frame::EchoPlace& place,
                                      const frame::Faults& others) noexcept {
        source_ = {};
        if (!keeper_ || !others.none()) {
            return {};
        }
        if (const auto source = frame::public_source(bytes, arrival, *echo_)) {
            source_ = *source;
            return keeper_->learn(place, source_);
        }
        return {};
    }
    void record(std::uint64_t index, const frame::EchoPlace& /*place*/, pace::Ticks sent, pace::Ticks /*arrived*/,
                EchoOutcome outcome) noexcept {
        if (outcome == EchoOutcome::received) {
            answers_->put({.index = index, .sent = sent, .source = source_});
        }
    }

private:
    const frame::Echo* echo_;
    std::optional<state::EchoKeeper> keeper_;  ///< of a stateful gateway
    AnswerQueue* answers_;
    frame::PublicSource source_{};  ///< of the latest request
};

/// The second half: sends the replies. What the port does not take is offered again, so none is
/// lost. It sends until the trial ends, whatever `stop` says, and nobody waits for it.
template <io::TransmitsFrames Queue, pace::TickClock Clock>
class ReplySender final : public SendingTask {
public:
    /// `answered` marks the requests whose replies the port has taken.
    ReplySender(const frame::Echo& echo, AnswerQueue& answers, record::ArrivalBitmap& answered, Queue& queue, std::size_t slot,
                const Clock& clock)
        : echo_{echo}, answers_{answers}, answered_{answered}, queue_{queue}, slot_{slot}, clock_{clock} {
        stop();
    }

    bool poll() noexcept override {
        if (sent_ == ready_ && !prepare()) {
            return false;
        }
        const pace::Ticks now = clock_.now();
        const std::size_t accepted = queue_.send(std::span{buffers_}.subspan(sent_, ready_ - sent_));
        if (accepted != 0) {
            for (std::size_t i = 0; i < accepted; ++i) {
                (void)answered_.mark(answers_.at(i).index);
            }
            answers_.drop(accepted);
            sent_ += accepted;
            counts_.offered_foreground += accepted;
            counts_.last_handover = now;
            offered_so_far_.store(counts_.offered_foreground, std::memory_order_relaxed);
        }
        counts_.refused += sent_ != ready_ ? 1 : 0;
        return true;
    }
    void release_rest() noexcept override {
        queue_.release(std::span{buffers_}.subspan(sent_, ready_ - sent_));
        sent_ = ready_;
    }

private:
    bool prepare() noexcept {
        const std::size_t wanted = std::min<std::size_t>(answers_.size(), frame::burst_frames_max);
        if (wanted == 0) {
            return false;
        }
        sent_ = 0;
        ready_ = queue_.acquire(slot_, std::span{buffers_}.first(wanted));
        counts_.refused += ready_ == 0 ? 1 : 0;
        for (std::size_t i = 0; i < ready_; ++i) {
            echo_.write_reply(Queue::bytes(buffers_[i]), answers_.at(i));
        }
        return ready_ != 0;
    }

    const frame::Echo& echo_;
    AnswerQueue& answers_;
    record::ArrivalBitmap& answered_;
    Queue& queue_;
    std::size_t slot_;
    const Clock& clock_;
    std::size_t ready_ = 0, sent_ = 0;  ///< answer 0 of the queue is that of buffer `sent_`
    std::array<typename Queue::Buffer, frame::burst_frames_max> buffers_{};
};

}  // namespace gatemark::loop
