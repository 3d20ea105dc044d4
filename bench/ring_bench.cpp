#include "memory_queues.hpp"
#include "ports.hpp"
#include "tick_counter.hpp"

#include <deque>

/// Trials on two ports joined by rings, all tasks polled by one thread as one worker of the engine
/// does: every frame is written, sent, received, verified and recorded.
namespace gatemark::bench {

namespace {

using frame::signature::Direction;

constexpr std::uint64_t trial_frames = std::uint64_t{1} << 20;  // each direction

/// One direction: its sender on one port, its receiver on the other.
struct Way {
    Way(net::Family family, Direction which, io::DpdkPort& from, io::DpdkPort& to)
        : direction{which},
          stream{stream_for(family, Varying::ports_and_hosts, 0, which)},
          parts{stream, trial_frames},
          pools{pools_for(from, stream.sent().frame)},
          transmit{from, 0, pools},
          receive{to, 0} {}

    void start_trial() {
        parts.arrivals.reset(trial_frames, record::Receivers::one);
        sender.emplace(flat_out(stream, trial_frames), transmit, clock);
        receiver.emplace(parts.plan, receive, parts.mailbox);
    }
    [[nodiscard]] bool is_complete() const {
        const auto& counts = receiver->counts(direction, frame::signature::TrafficClass::foreground);
        return sender->counts().offered_foreground == trial_frames && counts[record::Count::received] == trial_frames;
    }

    Direction direction;
    frame::Stream stream;
    ReceiverParts parts;
    std::span<io::FramePool> pools;
    io::TransmitQueue transmit;
    io::ReceiveQueue receive;
    pace::CycleClock clock;
    std::optional<loop::Sender<io::TransmitQueue, pace::CycleClock>> sender;
    std::optional<loop::Receiver<io::ReceiveQueue>> receiver;
};

void run_trials(benchmark::State& state, net::Family family, std::size_t directions) {
    auto& [left, right] = ring_ports();
    std::deque<Way> ways;
    ways.emplace_back(family, Direction::forward, left, right);
    if (directions == 2) {
        ways.emplace_back(family, Direction::reverse, right, left);
    }
    TickCounter counter{state};
    for (auto unused : state) {
        std::vector<loop::Task*> tasks;
        for (Way& way : ways) {
            way.start_trial();
            tasks.insert(tasks.end(), {&*way.sender, &*way.receiver});
        }
        for (bool busy = true; busy;) {
            busy = false;
            for (loop::Task* const task : tasks) {
                busy |= task->poll();
            }
        }
        for (const Way& way : ways) {
            if (!way.is_complete()) {
                state.SkipWithError("a frame was lost or found faulty");
            }
        }
        counter.add(directions * trial_frames);
    }
}

void one_way_on_ring(benchmark::State& state, net::Family family) { run_trials(state, family, 1); }
void duplex_on_ring(benchmark::State& state, net::Family family) { run_trials(state, family, 2); }

BENCHMARK_CAPTURE(one_way_on_ring, ipv4, net::Family::ipv4);
BENCHMARK_CAPTURE(duplex_on_ring, ipv4, net::Family::ipv4);
BENCHMARK_CAPTURE(duplex_on_ring, ipv6, net::Family::ipv6);

}  // namespace

}  // namespace gatemark::bench
