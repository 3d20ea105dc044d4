#pragma once

#include "loop/echo_client.hpp"
#include "loop/echo_responder.hpp"
#include "loop/sender.hpp"
#include "loop/timed_task.hpp"
#include "trial/report.hpp"
#include "trial/tester_parts.hpp"

#include <map>
#include <memory>
#include <vector>

namespace gatemark::trial {

/// The tasks of an echo trial, which take the places of senders and receivers: clients on the left,
/// both halves of the Responder on the right; and what is reported of them.
class EchoTasks {
public:
    /// All of these outlive the tasks. Throws std::bad_alloc.
    EchoTasks(TesterParts& parts, const TrialRequest& request, const TrialPlan& plan);

    void set_templates();
    /// One for each queue of the side.
    [[nodiscard]] std::vector<std::unique_ptr<loop::ReceivingTask>> make_receivers(Side side, pace::Ticks earliest);
    /// One for each queue of the side that the direction is sent from.
    [[nodiscard]] std::vector<std::unique_ptr<loop::SendingTask>> make_senders(Direction direction, pace::Ticks start);
    /// What a worker polls in the place of `task`, so that the time of its work is known.
    [[nodiscard]] loop::Task* timed(Side side, loop::Task& task);

    // Valid after the workers have left the trial.
    [[nodiscard]] record::LossFacts losses(Direction direction) const;
    /// Times are since `start`.
    [[nodiscard]] EchoReport report(pace::Ticks start) const;

private:
    using ConstantRate = loop::Sender<io::TransmitQueue, pace::CycleClock, loop::EchoWriter>;
    using ClosedLoop = loop::ClosedLoopSender<io::TransmitQueue, pace::CycleClock>;
    using Requests = loop::EchoReceiver<io::ReceiveQueue, loop::RequestHandler>;
    using Replies = loop::EchoReceiver<io::ReceiveQueue, loop::ReplyHandler>;

    [[nodiscard]] const frame::Echo& echo() const noexcept { return plan_.echo->echo; }
    [[nodiscard]] pace::Schedule schedule(pace::Ticks start, std::uint64_t first, std::uint64_t stride) const;
    [[nodiscard]] std::unique_ptr<loop::SendingTask> make_client(std::size_t queue, pace::Ticks start);
    /// Whether the port took request `index`.
    [[nodiscard]] bool has_offered(std::uint64_t index) const;
    [[nodiscard]] std::uint64_t first_requests() const;
    void fill_sent(EchoReport& report, pace::Ticks start) const;
    void fill_sent_at_rate(EchoReport& report, pace::Ticks start) const;
    [[nodiscard]] std::chrono::nanoseconds since(pace::Ticks start, pace::Ticks time) const {
        return parts_.scale.time({time > start ? time.value - start.value : 0});
    }

    TesterParts& parts_;
    const TrialRequest& request_;
    const TrialPlan& plan_;
    loop::SteadyPart steady_;
    std::optional<state::EchoKeeper> keeper_;
    std::vector<std::unique_ptr<loop::AnswerQueue>> answers_;  ///< by queue of the right port
    std::vector<std::unique_ptr<loop::ReplyBoard>> boards_;    ///< by queue of the left port; of a closed loop
    // What was made, by queue; owned by the trial.
    std::vector<const Requests*> requests_;
    std::vector<const Replies*> replies_;
    std::vector<const ClosedLoop*> closed_loops_;
    std::vector<const ConstantRate*> constant_rates_;
    std::array<std::map<loop::Task*, std::unique_ptr<loop::TimedTask<>>>, 2> timed_;  ///< by Side
};

}  // namespace gatemark::trial
