#pragma once

#include "io/kernel_drops.hpp"
#include "loop/neighbor_mailbox.hpp"
#include "record/delay_recorder.hpp"
#include "record/lateness.hpp"
#include "record/loss.hpp"
#include "record/loss_table.hpp"
#include "record/receive_counts.hpp"
#include "record/round_trips.hpp"
#include "trial/requests.hpp"

#include <array>
#include <string>
#include <vector>

/// Facts about one trial, without judgement.
namespace gatemark::trial {

struct ClassReport {
    std::optional<std::size_t> frame_octets;  ///< as in `frame::StreamRequest`; absent without frames, and in a trial of echo requests
    std::uint64_t intended = 0, offered = 0, lost = 0;
    record::ClassCounts counts;
    record::LossFacts loss;
    std::optional<record::LossTable> loss_table;  ///< absent without losses, and of echo requests
    record::ClassDelays delays;
    std::optional<record::TagFacts> tags;
};

/// Frames that left at once because the Tester was late.
struct LateBurst {
    std::uint64_t index = 0, frames = 0;  ///< the first one; with several queues others' frames are among them
    std::chrono::nanoseconds lateness{};  ///< of the first one
};

struct DirectionReport {
    Direction direction = Direction::forward;
    std::uint64_t frames_per_second = 0;
    std::chrono::nanoseconds intended_duration{}, sending{}, lateness_max{};
    bool gave_up = false;
    std::uint64_t refused = 0;
    record::LatenessHistogram lateness;  ///< in ticks
    std::vector<record::LossFacts::Run> longest_loss_runs;
    std::vector<LateBurst> late_bursts;  ///< where frames were lost
    ClassReport foreground, background;
};

struct PortReport {
    bool link_up = false;
    /// How often the link was seen to go down while frames were sent or awaited.
    std::uint64_t link_losses = 0;
    /// How far the times of arriving frames may be off; 0 where the Tester reads its own clock.
    std::chrono::nanoseconds clock_error{};
    /// Correct frames by the queue on which they arrived.
    std::vector<std::uint64_t> received_by_queue;
    record::ForeignCounts foreign;
    io::OwnDrops own_drops;
    loop::NeighborDrops neighbor_drops;
};

struct KeptFrame {
    Side side = Side::left;
    std::string reason;
    std::vector<std::byte> bytes;
};

struct PhaseTime {
    const char* phase;
    std::chrono::nanoseconds duration;
};

/// How long sending and draining took on each clock: the same, unless the machine slept or moved.
struct ClockTimes {
    std::chrono::nanoseconds cycle_counter{}, monotonic_raw{};
};

/// How many connections have an entry in the state table.
struct EstablishedConnections {
    state::Phase phase = state::Phase::establish;
    std::uint64_t count = 0, established = 0;
};

/// What is counted of a client's messages.
enum class EchoCount : std::uint8_t {
    requests,
    arrived,
    replies,
    late,
    lost,  ///< without any reply
    duplicate,
    faulty,
};

/// One client of an echo trial. Times are since the start of the schedule.
struct EchoClientReport {
    std::uint64_t client = 0;
    std::chrono::nanoseconds begin{}, end{};  ///< first and last request
    Counts<EchoCount> counts;
    record::RoundTrips round_trips;
};

/// The part of an echo trial in which all clients run.
struct EchoSteadyReport {
    std::chrono::nanoseconds begin{}, end{};
    std::uint64_t requests = 0, replies = 0;
};

struct EchoReport {
    std::optional<EchoSteadyReport> steady;  ///< absent if one client had ended before another began
    std::vector<EchoClientReport> clients;
    record::RoundTrips all, first;     ///< first: of the first request to each destination
    std::uint64_t first_requests = 0;  ///< how many of those were offered
    std::chrono::nanoseconds client_busy{}, responder_busy{};

    [[nodiscard]] std::uint64_t all_requests() const noexcept {
        std::uint64_t sum = 0;
        for (const EchoClientReport& client : clients) {
            sum += client.counts[EchoCount::requests];
        }
        return sum;
    }
};

struct TrialReport {
    std::uint32_t trial_number = 0;
    bool cancelled = false;
    bool with_histograms = false;
    std::optional<EstablishedConnections> connections;
    std::optional<EchoReport> echo;
    std::vector<PhaseTime> phases;
    ClockTimes clocks;
    std::chrono::nanoseconds worker_pause_max{};  ///< longest time for which a worker did nothing while there was work
    std::vector<DirectionReport> directions;
    std::array<PortReport, 2> ports;  ///< by Side
    std::vector<KeptFrame> kept_frames;
};

struct Progress {
    struct Counts {
        Direction direction = Direction::forward;
        std::uint64_t offered = 0, received = 0;
    };
    const char* phase = "";
    std::chrono::nanoseconds elapsed{};
    std::vector<Counts> directions;
};

/// What came of an exchange.
struct ExchangeReport {
    struct Arrived {
        Side side = Side::left;
        std::chrono::nanoseconds at{};  ///< after the exchange began
        std::vector<std::byte> bytes;   ///< of the whole frame, without FCS
    };
    std::array<std::uint64_t, 2> sent{};  ///< packets that the port took, by Side
    std::vector<Arrived> arrived;         ///< in the order of their times
    std::uint64_t not_kept = 0;           ///< arrived as well, but there was no room
    bool cancelled = false;
};

}  // namespace gatemark::trial
