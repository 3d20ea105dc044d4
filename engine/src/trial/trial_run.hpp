#pragma once

#include "loop/sender.hpp"
#include "state/reply_writer.hpp"
#include "trial/echo_tasks.hpp"
#include "trial/tester_parts.hpp"

#include <array>
#include <chrono>
#include <optional>
#include <variant>

namespace gatemark::trial {

/// One trial from its waits to its report (RFC 2544 section 23). Phases: settle, learn, send,
/// drain, rest.
class TrialRun {
public:
    /// `parts`, `request`, `plan` and `watcher` outlive the run.
    TrialRun(TesterParts& parts, const TrialRequest& request, const TrialPlan& plan, Watcher& watcher);
    /// Takes its tasks from the workers, which still have them if it ended with an exception, and
    /// gives back the buffers that they hold.
    ~TrialRun();
    TrialRun(const TrialRun&) = delete;
    TrialRun& operator=(const TrialRun&) = delete;
    /// Throws std::bad_alloc.
    [[nodiscard]] TrialReport execute();

private:
    using Sender = loop::Sender<io::TransmitQueue, pace::CycleClock>;
    using ReplySender = loop::Sender<io::TransmitQueue, pace::CycleClock, state::ReplyWriter>;
    using Receiver = loop::Receiver<io::ReceiveQueue>;
    struct PlacedReceiver {
        Side side;
        std::unique_ptr<loop::ReceivingTask> receiver;
    };
    struct PlacedSender {
        Direction direction;
        std::unique_ptr<loop::SendingTask> sender;
    };

    void reset_memories();
    [[nodiscard]] record::DelayPlan delay_plan(const DirectionPlan& direction) const;
    void make_receivers();
    void make_senders(pace::Ticks start);
    [[nodiscard]] std::unique_ptr<loop::SendingTask> make_sender(const loop::SenderPlan& plan, io::TransmitQueue& queue);
    void set_templates();
    [[nodiscard]] std::vector<TaskList> task_lists() const;
    /// What a worker polls for one of these tasks.
    [[nodiscard]] loop::Task* polled(Side side, loop::Task& task) const { return echo_ ? echo_->timed(side, task) : &task; }
    /// Waits until `time` has passed since `start`, reporting progress; returns false once the
    /// trial is cancelled. Work done since `start` counts towards the wait, which is never shorter
    /// than `time`.
    bool pass(const char* phase, std::chrono::nanoseconds time, std::chrono::steady_clock::time_point start);
    void teach();
    /// How long to wait before the next check while frames are sent, given the time until the last
    /// one is due.
    [[nodiscard]] std::chrono::nanoseconds until_next_look(std::chrono::nanoseconds left) const;
    /// Follows the clocks of ports that stamp frames.
    void follow_clocks();
    /// Counts each time that a port is seen to have lost its link. Asks the drivers from time to
    /// time, because that may take them a while.
    void look_at_links();
    /// Adds what the ports heard of each other since the trial before, learning frames above all.
    /// Nobody polls the idle receivers meanwhile.
    void count_while_idle();
    void send();
    [[nodiscard]] Progress progress(const char* phase, std::chrono::nanoseconds elapsed) const;
    [[nodiscard]] bool all_sent() const;
    /// Whether a sender was so late that the trial is spoiled; all senders then stop.
    [[nodiscard]] bool one_gave_up() const;

    void fill_direction(DirectionReport& report, const DirectionPlan& plan) const;
    /// Where the offered frames of each sender of a direction end (`record::find_losses`).
    [[nodiscard]] std::vector<std::uint64_t> offered_ends(Direction direction) const;
    /// Which frames were lost, by what they differ by, and when; nothing without losses.
    void explain_losses(DirectionReport& report, const DirectionPlan& plan, std::span<const std::uint64_t> offered_end) const;
    /// The latest catch-ups of all senders of a direction, by index.
    [[nodiscard]] std::vector<LateBurst> late_bursts(Direction direction) const;
    /// For how long the connections of lost frames had been silent; `plan` is of their direction.
    [[nodiscard]] std::optional<record::LossTable::Ages> loss_ages(const DirectionPlan& plan) const;
    void fill_class(ClassReport& report, const DirectionPlan& plan, frame::signature::TrafficClass traffic_class) const;
    [[nodiscard]] record::TagFacts tags_of(const DirectionPlan& plan, frame::signature::TrafficClass traffic_class) const;
    void fill_port(PortReport& report, Side side) const;
    void fill_kept_frames();
    void fill_connections();

    TesterParts& parts_;
    const TrialRequest& request_;
    const TrialPlan& plan_;
    Watcher& watcher_;
    TrialReport report_;
    std::array<bool, 2> links_up_{true, true};
    /// No link is asked for outside of the time in which frames are sent or awaited.
    std::optional<std::chrono::steady_clock::time_point> next_link_look_;
    std::optional<state::ConnectionKeeper> keeper_;
    std::unique_ptr<EchoTasks> echo_;  ///< of an echo trial
    std::vector<PlacedReceiver> receivers_;
    std::vector<PlacedSender> senders_;
    std::vector<TaskList> listening_;  ///< without senders; polled by the workers until the senders are made
    std::vector<TaskList> lists_;      ///< polled by the workers from then on, to the end of the drain
    pace::Ticks start_{};
};

}  // namespace gatemark::trial
