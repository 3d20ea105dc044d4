#pragma once

#include "io/dpdk_queue.hpp"
#include "io/kernel_drops.hpp"
#include "loop/neighbor_responder.hpp"
#include "loop/receiver.hpp"
#include "pace/tick_scale.hpp"
#include "trial/tester.hpp"
#include "trial/trial_plan.hpp"
#include "trial/worker.hpp"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

/// The internals of `Tester`, shared by the files that open it and run trials on it.
namespace gatemark::trial {

/// Template slots of every transmit queue.
enum Slot : std::size_t { slot_foreground, slot_background, slot_arp, slot_discovery, slot_count };

using Responder = loop::NeighborResponder<io::TransmitQueue>;
using IdleReceiver = loop::Receiver<io::ReceiveQueue>;

struct QueuePair {
    std::vector<io::FramePool> pools;  ///< by Slot
    std::unique_ptr<io::TransmitQueue> transmit;
    std::unique_ptr<io::ReceiveQueue> receive;
    std::unique_ptr<loop::NeighborMailbox> mailbox;  ///< one for each receiver, because a mailbox has one writer
    std::unique_ptr<IdleReceiver> idle_receiver;     ///< between trials, for neighbour messages only
    std::uint64_t idle_of_other_port = 0;            ///< what `idle_receiver` had counted when it was asked last
};

/// The gateway at a port: its address, and the address that we ask from.
struct KnownGateway {
    net::Address gateway, source;
};

struct TesterSide {
    explicit TesterSide(io::DpdkPort opened) : port{std::move(opened)}, drops{port} {}

    io::DpdkPort port;
    io::DropReader drops;
    loop::NeighborLink link;
    std::vector<QueuePair> queues;
    std::unique_ptr<Responder> responder;
    std::optional<net::MacAddress> gateway_mac;
    bool teach_hosts = true;
    std::vector<KnownGateway> gateways;  ///< one a family at most
};

/// What the Responder learned, kept between trials: test phase 1 fills it, test phase 2 reads it.
struct ConnectionMemory {
    state::StateTable table;
    std::optional<ConnectionPlan> plan;  ///< of the trial that filled it
    std::uint64_t established = 0;
    /// When the first connection was established, and how many were each second; absent if they
    /// were drawn.
    struct Pace {
        pace::Ticks start{};
        std::uint64_t connections_per_second = 1;
    };
    std::optional<Pace> pace;
};

/// What is recorded of the frames of one direction; reused from trial to trial because of its
/// memory.
struct DirectionMemory {
    record::ArrivalBitmap arrivals;
    std::array<record::DelayWindow, 2> windows;  ///< by class
    record::TaggedDelays tags;
};

/// What is recorded of an echo trial beyond its directions; reused like them.
struct EchoMemory {
    record::ArrivalBitmap answered;  ///< requests whose replies the Responder's ports took
    state::StateTable table;         ///< by client and destination
};

struct TesterParts {
    TesterParts(io::DpdkEnvironment started, std::uint64_t ticks_per_second) : environment{std::move(started)}, scale{ticks_per_second} {}

    [[nodiscard]] TesterSide& side(Side which) { return *sides[static_cast<std::size_t>(which)]; }
    [[nodiscard]] DirectionMemory& memory(Direction direction) { return memories[static_cast<std::size_t>(direction)]; }
    [[nodiscard]] LinkPlan links();
    /// Whose frames arrive at a port beside those of a trial.
    [[nodiscard]] loop::KnownSources known_sources(Side which);
    /// Where workers run; between trials these CPUs are free.
    [[nodiscard]] std::vector<unsigned> worker_cpus() const;
    /// Has every worker poll its list, and returns when none polls its previous one.
    void hand_out(const std::vector<TaskList>& lists);

    io::DpdkEnvironment environment;  // created first, destroyed last
    pace::TickScale scale;
    pace::CycleClock clock;
    std::array<std::unique_ptr<TesterSide>, 2> sides;
    ConnectionMemory connections;
    EchoMemory echo;
    Layout layout;
    std::vector<TaskList> idle_lists;              ///< by worker
    std::array<DirectionMemory, 2> memories;       ///< by Direction
    std::vector<std::unique_ptr<Worker>> workers;  // created last, destroyed first
};

}  // namespace gatemark::trial
