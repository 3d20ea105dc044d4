#include "loop/neighbor_responder.hpp"
#include "loop/receiver.hpp"
#include "loop/sender.hpp"
#include "pace/calibrate.hpp"
#include "state/reply_writer.hpp"
#include "trial/layout.hpp"
#include "trial/worker.hpp"

#include "frame/streams.hpp"
#include "threads/thread_wire.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

/// Both test phases of a stateful trial on several workers, with several queues a port, while the
/// control thread looks at the counters and asks for neighbours: everything that threads share, as
/// they share it in the engine.
namespace gatemark::trial {
namespace {

using namespace std::chrono_literals;
using frame::Role;
using frame::signature::Direction, frame::signature::TrafficClass;
using test::WireReceiveQueue, test::WireTransmitQueue;

constexpr std::uint64_t connection_count = 4000, ticks_per_second = 1'000'000'000;
constexpr std::size_t slot_foreground = 0, slot_arp = 1, slot_discovery = 2;

struct NanosecondClock {
    [[nodiscard]] static pace::Ticks now() noexcept {
        return {static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())};
    }
};
const NanosecondClock the_clock;

using Receiver = loop::Receiver<WireReceiveQueue, NanosecondClock>;
using UploadSender = loop::Sender<WireTransmitQueue, NanosecondClock>;
using ReplySender = loop::Sender<WireTransmitQueue, NanosecondClock, state::ReplyWriter>;
using Responder = loop::NeighborResponder<WireTransmitQueue>;

/// Loop-back: the gateway changes nothing, so the pool is that of the inner hosts.
frame::Stream stream_of(Role role, enumerate::ConnectionChoice::Mode choice) {
    const auto inside = test::varying_host("10.0.0.0", 2, frame::ValueMode::pseudorandom, 2, 9),
               outside = test::varying_host("198.19.0.0", 2, frame::ValueMode::pseudorandom, 2, 6);
    const frame::ValueRange inner{frame::ValueMode::pseudorandom, 5000, 5099}, outer{frame::ValueMode::pseudorandom, 80, 81};
    const bool initiator = role == Role::initiator;
    frame::StreamRequest request;
    request.source = initiator ? inside : outside;
    request.destination = initiator ? outside : inside;
    request.source_ports = initiator ? inner : outer;
    request.destination_ports = initiator ? outer : inner;
    request.as_sent = true;
    request.hop_limit_decrement = 0;
    const enumerate::TupleRanges ranges{
        .source_ports = {5000, 100}, .destination_ports = {80, 2}, .source_hosts = {2, 8}, .destination_hosts = {2, 5}};
    request.connections = frame::ConnectionTraffic{
        .role = role, .set = {ranges, enumerate::Order::pseudorandom, connection_count, test::seed}, .choice = choice};
    return test::make_stream(request, {}, TrafficClass::foreground, initiator ? Direction::forward : Direction::reverse);
}

/// A port with its queues, as the engine has it.
struct Port {
    Port(test::WireMatrix& out, test::WireMatrix& in, std::size_t queues) {
        for (std::size_t queue = 0; queue < queues; ++queue) {
            transmit.push_back(std::make_unique<WireTransmitQueue>(out, queue));
            transmit.back()->set_template(slot_arp, std::vector<std::byte>(loop::neighbor_frame_bytes(net::Family::ipv4, false)));
            transmit.back()->set_template(slot_discovery, std::vector<std::byte>(loop::neighbor_frame_bytes(net::Family::ipv6, false)));
            receive.push_back(std::make_unique<WireReceiveQueue>(in, queue));
            mailboxes.push_back(std::make_unique<loop::NeighborMailbox>());
        }
    }
    void make_responder(const frame::HostSet& hosts, const net::MacAddress& mac) {
        std::vector<loop::NeighborMailbox*> all;
        for (const auto& mailbox : mailboxes) {
            all.push_back(mailbox.get());
        }
        responder = std::make_unique<Responder>(loop::NeighborLink{.own_mac = mac, .vlan_id = std::nullopt},
                                                std::vector<frame::AnsweredHosts>{hosts}, *transmit[0], all,
                                                Responder::Slots{.arp = slot_arp, .discovery = slot_discovery});
    }
    std::vector<std::unique_ptr<WireTransmitQueue>> transmit;
    std::vector<std::unique_ptr<WireReceiveQueue>> receive;
    std::vector<std::unique_ptr<loop::NeighborMailbox>> mailboxes;
    std::unique_ptr<Responder> responder;
};

/// Senders, receivers and what they record in, of one test phase.
struct Phase {
    std::array<std::vector<std::unique_ptr<loop::SendingTask>>, 2> senders;  ///< by the direction that they send
    std::array<std::vector<std::unique_ptr<Receiver>>, 2> receivers;         ///< by the direction that they receive
    std::array<record::ArrivalBitmap, 2> arrivals;
    std::array<record::DelayWindow, 2> windows;
    record::TaggedDelays tags;
    std::vector<TaskList> lists;
};

class ManyWorkers : public testing::TestWithParam<std::pair<unsigned, unsigned>> {
protected:
    ManyWorkers() {
        left_.make_responder(test::varying_host("10.0.0.0", 2, frame::ValueMode::pseudorandom, 2, 9), *net::parse_mac("02:00:00:00:00:01"));
        right_.make_responder(test::varying_host("198.19.0.0", 2, frame::ValueMode::pseudorandom, 2, 6),
                              *net::parse_mac("02:00:00:00:00:02"));
        EXPECT_EQ(table_.reset(connection_count), std::nullopt);
        idle_.resize(layout_.size());
        for (std::size_t i = 0; i < layout_.size(); ++i) {
            workers_.push_back(std::make_unique<Worker>(0, Precedence::shared, idle_[i]));
        }
    }
    [[nodiscard]] static std::vector<unsigned> cpus(unsigned count) {
        std::vector<unsigned> numbers(count);
        for (unsigned i = 0; i < count; ++i) {
            numbers[i] = i;
        }
        return numbers;
    }
    Port& port(Side side) { return side == Side::left ? left_ : right_; }

    void add(Phase& phase, const frame::Stream& stream, std::uint64_t frames, const state::ConnectionKeeper* keeper) {
        const auto direction = static_cast<std::size_t>(stream.role() == Role::initiator ? Direction::forward : Direction::reverse);
        Port &from = direction == 0 ? left_ : right_, &to = direction == 0 ? right_ : left_;
        phase.arrivals[direction].reset(frames);
        phase.windows[direction].reset();
        loop::ReceiverPlan plan{.trial_id = test::trial_id(), .directions = {}, .kept_frames_max = 1};
        plan.directions[direction] = {
            .active = true,
            .arrives_here = true,
            .frame_count = frames,
            .mix = {1, 1},
            .streams = {&stream, nullptr},
            .arrivals = &phase.arrivals[direction],
            .senders = Divider{queues_},
            .delays = {.windows = {&phase.windows[direction], nullptr}, .tags = direction == 0 ? &phase.tags : nullptr},
            .keeper = keeper};
        const pace::Ticks start{NanosecondClock::now().value + 2'000'000};
        for (unsigned queue = 0; queue < queues_; ++queue) {
            phase.receivers[direction].push_back(std::make_unique<Receiver>(plan, *to.receive[queue], *to.mailboxes[queue], the_clock));
            from.transmit[queue]->set_template(slot_foreground, stream.sent().frame);
            const loop::SenderPlan sender{.frame_count = frames,
                                          .first = queue,
                                          .stride = queues_,
                                          .schedule = {{.frames_per_second = 100'000}, start, ticks_per_second, queue, queues_},
                                          .mix = {1, 1},
                                          .give_up_lateness = {3600 * ticks_per_second},
                                          .foreground = &stream};
            if (stream.role() == Role::initiator) {
                phase.senders[direction].push_back(std::make_unique<UploadSender>(sender, *from.transmit[queue], the_clock));
            } else {
                phase.senders[direction].push_back(
                    std::make_unique<ReplySender>(sender, *from.transmit[queue], the_clock, state::ReplyWriter{stream, table_, pool_}));
            }
        }
    }

    /// As TrialRun::task_lists.
    void place(Phase& phase) {
        for (const WorkerLayout& worker : layout_) {
            TaskList& list = phase.lists.emplace_back();
            for (const TaskPlace& place : worker.tasks) {
                const bool left = place.side == Side::left;
                if (place.kind == TaskKind::receive) {
                    if (auto& receivers = phase.receivers[left ? 1 : 0]; !receivers.empty()) {
                        list.tasks.push_back(receivers[place.queue].get());
                    }
                    continue;
                }
                if (auto& senders = phase.senders[left ? 0 : 1]; !senders.empty()) {
                    list.tasks.push_back(senders[place.queue].get());
                }
                if (place.queue == 0) {
                    list.tasks.push_back(port(place.side).responder.get());
                }
            }
        }
    }
    void hand_out(const std::vector<TaskList>& lists) {
        for (std::size_t i = 0; i < workers_.size(); ++i) {
            workers_[i]->ask(lists[i]);
        }
        for (const auto& worker : workers_) {
            worker->wait();
        }
    }
    [[nodiscard]] static std::uint64_t received(const Phase& phase) {
        std::uint64_t sum = 0;
        for (const auto& receivers : phase.receivers) {
            for (const auto& receiver : receivers) {
                sum += receiver->received_so_far();
            }
        }
        return sum;
    }

    /// The control thread's part, until `frames` have arrived.
    void run(Phase& phase, std::uint64_t frames) {
        place(phase);
        left_.responder->forget();
        left_.responder->ask_for({{test::address_of("198.19.0.2"), test::address_of("10.0.0.0")}});
        right_.responder->ask_for({{test::address_of("10.0.0.2"), test::address_of("198.19.0.0")}});
        hand_out(phase.lists);
        const auto end = std::chrono::steady_clock::now() + 60s;
        const auto answered = [&] { return phase.receivers[1].empty() || left_.responder->mac_of(test::address_of("198.19.0.2")); };
        while ((received(phase) < frames || !answered()) && std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(1ms);
            for (const auto& senders : phase.senders) {
                for (const auto& sender : senders) {
                    EXPECT_LE(sender->offered_so_far(), frames);
                }
            }
        }
        hand_out(idle_);
        for (const auto& senders : phase.senders) {
            for (const auto& sender : senders) {
                EXPECT_TRUE(sender->finished() && !sender->counts().gave_up);
                sender->release_rest();
            }
        }
        EXPECT_TRUE(answered());
    }
    void expect_all(const Phase& phase, Direction direction, std::uint64_t frames) {
        record::ClassCounts counts;
        record::ClassDelays delays;
        for (const auto& receiver : phase.receivers[static_cast<std::size_t>(direction)]) {
            counts.add(receiver->counts(direction, TrafficClass::foreground));
            delays.add(receiver->delays(direction)->delays(0));
        }
        EXPECT_EQ(counts[record::Count::received], frames);
        EXPECT_EQ(counts[record::Count::faulty] + counts[record::Count::duplicate] + counts[record::Count::late], 0U);
        EXPECT_EQ(delays.all.samples(), frames);
        EXPECT_EQ(delays.variation->pairs(), frames - 1);
    }

    const unsigned queues_ = GetParam().first;
    test::WireMatrix forward_ = test::make_wires(queues_), reverse_ = test::make_wires(queues_);
    Port left_{forward_, reverse_, queues_}, right_{reverse_, forward_, queues_};
    state::StateTable table_;
    net::AddressPool pool_ = std::get<net::AddressPool>(net::AddressPool::make({{test::address_of("10.0.0.0"), 24}}, "pool"));
    std::vector<WorkerLayout> layout_ = lay_out(queues_, queues_, {cpus(GetParam().second), cpus(GetParam().second)});
    std::vector<TaskList> idle_;
    std::vector<std::unique_ptr<Worker>> workers_;
};

TEST_P(ManyWorkers, CountEveryFrameOfBothPhasesOnce) {
    using Choice = enumerate::ConnectionChoice::Mode;
    const frame::Stream all = stream_of(Role::initiator, Choice::increasing);
    const state::ConnectionKeeper learning{state::Phase::establish, table_, pool_};
    Phase establish;
    establish.tags.reset({.first = 0, .frames = connection_count, .count = 50});
    add(establish, all, connection_count, &learning);
    run(establish, connection_count);
    expect_all(establish, Direction::forward, connection_count);

    constexpr std::uint64_t frames = 6000;
    const frame::Stream upload = stream_of(Role::initiator, Choice::pseudorandom),
                        download = stream_of(Role::responder, Choice::pseudorandom);
    const state::ConnectionKeeper checking{state::Phase::use, table_, pool_};
    Phase use;
    use.tags.reset({.first = 0, .frames = frames, .count = 50});
    add(use, upload, frames, &checking);
    add(use, download, frames, nullptr);
    run(use, 2 * frames);
    expect_all(use, Direction::forward, frames);
    expect_all(use, Direction::reverse, frames);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ManyWorkers, testing::Values(std::pair{1U, 2U}, std::pair{2U, 4U}, std::pair{3U, 3U}));

}  // namespace
}  // namespace gatemark::trial
