#include "loop/echo_client.hpp"
#include "loop/echo_responder.hpp"
#include "loop/sender.hpp"

#include "frame/echoes.hpp"
#include "io/memory_port.hpp"
#include "record/loss.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>

/// Clients and Responder with a gateway between them that is a function, on a clock that stands
/// still until it is told.
namespace gatemark::loop {
namespace {

using frame::EchoKind, frame::EchoShape, frame::signature::Direction, frame::signature::TrafficClass;
using record::Count;
using test::Bytes, test::Gateway, test::SlowPacket;

struct EchoClock {
    const std::uint64_t* ticks;
    [[nodiscard]] pace::Ticks now() const noexcept { return {*ticks}; }
};
static_assert(pace::TickClock<EchoClock>);

constexpr EchoShape path_shape{.clients = 2, .window = 2, .count = 3, .destinations = 6};  // 36 requests
constexpr std::uint64_t path_start = 1000, path_pace = 10'000, path_timeout = 50'000;
/// What the gateway makes of a frame: one, several or none.
using Frames = std::vector<Bytes>;
using Forward = std::function<Frames(const Bytes&)>;

/// One queue on each side. The gateway does not change a frame unless it is told to: `as_sent`.
class EchoPath {
public:
    explicit EchoPath(bool is_closed_loop = true, std::optional<std::string> pool = std::nullopt, std::uint64_t duration = 1'000'000,
                      const EchoShape& shape = path_shape, std::uint8_t traffic_class = 0)
        : echo_{test::make_echo(request_of(traffic_class), shape, pool)}, shape_{shape} {
        for (record::ArrivalBitmap* const bitmap : {&requests_, &replies_, &answered_}) {
            bitmap->reset(shape.requests());
        }
        EXPECT_FALSE(table_.reset(shape.all_destinations()));
        left_.set_template(0, echo_.sent_request().frame_template.frame);
        right_.set_template(0, echo_.sent_reply().frame_template.frame);
        EchoReceiverPlan plan{.trial_id = test::trial_id(),
                              .earliest = {path_start},
                              .echo = &echo_,
                              .kind = EchoKind::request,
                              .frame_count = shape.requests(),
                              .arrivals = &requests_};
        std::optional<state::EchoKeeper> keeper;
        if (echo_.pool() != nullptr) {
            keeper.emplace(table_, echo_.numbers());
        }
        listener_ = std::make_unique<Listener>(plan, right_in_, mailbox_, RequestHandler{echo_, keeper, answers_}, clock_);
        plan.kind = EchoKind::reply;
        plan.arrivals = &replies_;
        plan.delays.timeout = {path_timeout};
        const std::vector<ReplyBoard*> boards(is_closed_loop ? 1 : 0, &board_);
        client_ = std::make_unique<Client>(plan, left_in_, mailbox_, ReplyHandler{echo_, boards, steady_}, clock_);
        answerer_ = std::make_unique<Answerer>(echo_, answers_, answered_, right_, 0, clock_);
        sender_ = std::make_unique<Loop>(ClosedLoopPlan{.echo = &echo_,
                                                        .start = {path_start},
                                                        .end = {path_start + duration},
                                                        .pace_without_reply = {path_pace},
                                                        .give_up_lateness = {100'000},
                                                        .board = &board_,
                                                        .steady = &steady_},
                                         left_, clock_);
    }

    static frame::StreamRequest request_of(std::uint8_t traffic_class) {
        frame::StreamRequest request = test::echo_request(Gateway::router66);
        request.marking.traffic_classes = {traffic_class};
        request.as_sent = true;
        request.hop_limit_decrement = 0;
        return request;
    }
    /// Everything once, `ticks` later; returns whether there was work.
    bool step(std::uint64_t ticks = 10) {
        ticks_ += ticks;
        bool busy = sender_->poll();
        carry(left_wire_, right_in_wire_, up);
        busy |= listener_->poll();
        busy |= answerer_->poll();
        carry(right_wire_, left_in_wire_, down);
        busy |= client_->poll();
        return busy;
    }
    void run(unsigned steps = 10'000) {
        while (steps-- != 0 && !sender_->finished()) {
            step();
        }
        for (unsigned i = 0; i < 10; ++i) {
            step();
        }
    }
    [[nodiscard]] const record::ClassCounts& requests() const { return listener_->counts(Direction::forward, TrafficClass::foreground); }
    [[nodiscard]] const record::ClassCounts& replies() const { return client_->counts(Direction::reverse, TrafficClass::foreground); }
    [[nodiscard]] static std::uint64_t fault(const record::ClassCounts& counts, frame::Fault fault) { return counts.faults[fault]; }
    [[nodiscard]] std::size_t under_way() const { return right_in_wire_.frames.size(); }

    using Loop = ClosedLoopSender<io::MemoryTransmitQueue, EchoClock>;
    using Answerer = ReplySender<io::MemoryTransmitQueue, EchoClock>;
    using Listener = EchoReceiver<io::MemoryReceiveQueue, RequestHandler, EchoClock>;
    using Client = EchoReceiver<io::MemoryReceiveQueue, ReplyHandler, EchoClock>;

    std::uint64_t ticks_ = path_start;
    EchoClock clock_{&ticks_};
    Forward up = [](const Bytes& frame) { return Frames{frame}; }, down = up;
    frame::Echo echo_;
    EchoShape shape_;
    record::ArrivalBitmap requests_, replies_, answered_;
    state::StateTable table_;
    AnswerQueue answers_;
    ReplyBoard board_{64};
    SteadyPart steady_{shape_.clients};
    NeighborMailbox mailbox_;
    io::MemoryWire left_wire_, right_in_wire_, right_wire_, left_in_wire_;
    io::MemoryTransmitQueue left_{left_wire_}, right_{right_wire_};
    io::MemoryReceiveQueue right_in_{right_in_wire_}, left_in_{left_in_wire_};
    std::unique_ptr<Listener> listener_;
    std::unique_ptr<Client> client_;
    std::unique_ptr<Answerer> answerer_;
    std::unique_ptr<Loop> sender_;

private:
    static void carry(io::MemoryWire& from, io::MemoryWire& to, const Forward& forward) {
        for (; !from.frames.empty(); from.frames.pop_front()) {
            for (const Bytes& frame : forward(from.frames.front())) {
                to.frames.push_back(frame);
            }
        }
    }
};

std::uint64_t index_of(const Bytes& frame) {
    const frame::Arrival arrival = frame::classify_echo(frame, test::trial_id());
    return frame::signature::index(frame.data() + arrival.payload);
}

TEST(EchoPath, EveryRequestIsAnsweredOnceAndSlotsWaitForTheirReplies) {
    EchoPath path;
    std::vector<unsigned> open(4);  // of each slot
    path.up = [&](const Bytes& frame) {
        const frame::EchoPlace place = path.echo_.numbers().place_of(index_of(frame));
        EXPECT_EQ(++open[place.client * 2 + place.slot], 1U) << "one request of a slot is under way";
        return Frames{frame};
    };
    path.down = [&](const Bytes& frame) {
        const frame::EchoPlace place = path.echo_.numbers().place_of(index_of(frame));
        --open[place.client * 2 + place.slot];
        return Frames{frame};
    };
    path.run();
    EXPECT_TRUE(path.sender_->finished());
    EXPECT_EQ(path.sender_->counts().offered_foreground, 36U);
    EXPECT_EQ(path.requests()[Count::received], 36U);
    EXPECT_EQ(path.answerer_->counts().offered_foreground, 36U);
    EXPECT_EQ(path.replies()[Count::received], 36U);
    const ReplyHandler& handler = path.client_->handler();
    EXPECT_EQ(handler.clients()[0].samples(), 18U);
    EXPECT_EQ(handler.clients()[1].samples(), 18U);
    EXPECT_EQ(handler.first().samples(), 12U) << "one for each destination";
    EXPECT_EQ(handler.clients()[0].histogram().maximum().value, 0U) << "all in one step";
}

TEST(EchoPath, CountsMessagesThatWereMarkedAsCongestionExperienced) {
    EchoPath path{true, std::nullopt, 1'000'000, path_shape, 1};
    path.up = [](const Bytes& frame) {
        SlowPacket packet = test::read_packet(frame);
        packet.traffic_class = index_of(frame) % 3 == 0 ? 3 : packet.traffic_class;
        return Frames{test::write_packet(packet)};
    };
    path.run();
    EXPECT_EQ(path.requests()[Count::received], 36U);
    EXPECT_EQ(path.requests().remarks[frame::Remark::congestion_experienced], 12U);
    EXPECT_EQ(path.replies()[Count::received], 36U);
    EXPECT_EQ(path.replies().remarks[frame::Remark::congestion_experienced], 0U);
}

TEST(EchoPath, CountsMessagesWithOctetsBehindThem) {
    EchoPath path{true, std::nullopt, 1'000'000, path_shape, 1};
    path.down = [](const Bytes& frame) {
        Bytes longer = frame;
        longer.resize(frame.size() + index_of(frame) % 4);
        return Frames{longer};
    };
    path.run();
    EXPECT_EQ(path.requests().remarks[frame::Remark::with_trailer], 0U);
    EXPECT_EQ(path.replies()[Count::received], 36U);
    EXPECT_EQ(path.replies().remarks[frame::Remark::with_trailer], 27U);
    EXPECT_EQ(path.replies()[Count::faulty], 0U);
}

TEST(EchoPath, ASlotWithoutReplyGoesOnAfterThePace) {
    EchoPath path;
    path.up = [](const Bytes& frame) { return index_of(frame) == 0 ? Frames{} : Frames{frame}; };
    std::optional<std::uint64_t> next_at;
    path.down = [&](const Bytes& frame) {
        if (index_of(frame) == 4) {  // the second request of client 0, slot 0
            next_at = path.ticks_;
        }
        return Frames{frame};
    };
    path.run();
    ASSERT_TRUE(next_at);
    EXPECT_EQ(*next_at, path_start + 10 + path_pace) << "sent at the first step after the start";
    EXPECT_EQ(path.replies()[Count::received], 35U);
    EXPECT_FALSE(path.sender_->has_offered({.client = 0, .slot = 0, .number = 9, .destination = 0, .round = 0}));
    EXPECT_TRUE(path.sender_->has_offered({.client = 0, .slot = 0, .number = 8, .destination = 0, .round = 0}));
    const record::LossFacts losses = record::find_losses_among(path.requests_, 36, [](std::uint64_t) { return true; });
    EXPECT_EQ(losses.lost, 1U);
    EXPECT_EQ(losses.first_index, 0U);
}

TEST(EchoPath, ALateReplyIsLateAndDoesNotLetTheSlotGoOnTwice) {
    EchoPath path;
    std::optional<Bytes> held;
    path.down = [&](const Bytes& frame) {
        if (index_of(frame) == 0) {
            held = frame;
            return Frames{};
        }
        return Frames{frame};
    };
    path.run();
    ASSERT_TRUE(held);
    EXPECT_EQ(path.replies()[Count::received], 35U);
    path.ticks_ += path_timeout;
    path.left_in_wire_.frames.push_back(*held);
    path.step();
    EXPECT_EQ(path.replies()[Count::late], 1U);
    EXPECT_EQ(path.replies()[Count::received], 35U);
    EXPECT_EQ(path.sender_->counts().offered_foreground, 36U);
    EXPECT_EQ(path.client_->clients()[0][EchoOutcome::late], 1U);
}

TEST(EchoPath, EveryKthReplyLostIsOneInKLost) {
    EchoPath path;
    unsigned count = 0;
    path.down = [&](const Bytes& frame) { return ++count % 4 == 0 ? Frames{} : Frames{frame}; };
    path.run(100'000);
    EXPECT_EQ(path.answerer_->counts().offered_foreground, 36U);
    EXPECT_EQ(path.replies()[Count::received], 27U);
    const auto was_answered = [&](std::uint64_t index) { return path.answered_.arrived(index); };
    EXPECT_EQ(record::find_losses_among(path.replies_, 36, was_answered).lost, 9U);
}

TEST(EchoPath, DuplicatesAreCountedAndARequestIsAnsweredOnce) {
    EchoPath path;
    path.up = [](const Bytes& frame) { return Frames{frame, frame}; };
    path.down = path.up;
    path.run();
    EXPECT_EQ(path.requests()[Count::received], 36U);
    EXPECT_EQ(path.requests()[Count::duplicate], 36U);
    EXPECT_EQ(path.answerer_->counts().offered_foreground, 36U);
    EXPECT_EQ(path.replies()[Count::duplicate], 36U);
    EXPECT_EQ(path.client_->clients()[1][EchoOutcome::duplicate], 18U);
}

TEST(EchoPath, AReplyToAnotherClientOrSlotIsAFaultOfItsOwn) {
    EchoPath path;
    path.down = [](const Bytes& frame) {
        SlowPacket packet = test::read_packet(frame);
        if (index_of(frame) == 0) {
            packet.destination.bytes[15] ^= std::byte{1};  // from client 0, whose address ends in 2, to client 1
        }
        if (index_of(frame) == 3) {
            packet.echo->identifier ^= 1;
        }
        return Frames{test::write_packet(packet)};
    };
    path.run(100'000);
    EXPECT_EQ(path.fault(path.replies(), frame::Fault::wrong_client), 1U);
    EXPECT_EQ(path.fault(path.replies(), frame::Fault::destination_address), 1U);
    EXPECT_EQ(path.fault(path.replies(), frame::Fault::wrong_slot), 1U);
    EXPECT_EQ(path.replies()[Count::faulty], 2U);
    EXPECT_EQ(path.replies()[Count::received], 34U);
}

TEST(EchoPath, AFaultyRequestIsCountedAndNotAnswered) {
    EchoPath path;
    path.up = [](const Bytes& frame) {
        SlowPacket packet = test::read_packet(frame);
        packet.echo->sequence ^= static_cast<std::uint16_t>(index_of(frame) == 5 ? 1 : 0);
        return Frames{test::write_packet(packet)};
    };
    path.run(100'000);
    EXPECT_EQ(path.fault(path.requests(), frame::Fault::sequence), 1U);
    EXPECT_EQ(path.requests()[Count::faulty], 1U);
    EXPECT_EQ(path.answerer_->counts().offered_foreground, 35U);
}

TEST(EchoPath, WhatComesBackToTheClientsIsOnTheWrongPort) {
    EchoPath path;
    path.up = [&](const Bytes& frame) {
        if (index_of(frame) == 0) {
            path.left_in_wire_.frames.push_back(frame);
            return Frames{};
        }
        return Frames{frame};
    };
    path.run(100'000);
    EXPECT_EQ(path.fault(path.client_->counts(Direction::forward, TrafficClass::foreground), frame::Fault::wrong_port), 1U);
    EXPECT_EQ(path.replies()[Count::received], 35U);
}

/// The gateway is a NAT: it gives each request the source and identifier that the test wants, and
/// turns replies round.
TEST(EchoPath, TheResponderLearnsWhatAStatefulGatewayChose) {
    EchoPath path{true, "2001:2:0:ffff::/120"};
    bool changes = false;
    path.up = [&](const Bytes& frame) {
        SlowPacket packet = test::read_packet(frame);
        const frame::EchoPlace place = path.echo_.numbers().place_of(index_of(frame));
        packet.source = test::address_of("2001:2:0:ffff::7");
        packet.echo->identifier = static_cast<std::uint16_t>(1000 + place.client * 100 + place.destination);
        if (changes && place.round == 2 && place.client == 1 && place.destination == 4) {
            packet.echo->identifier = 9;
        }
        return Frames{test::write_packet(packet)};
    };
    path.down = [&](const Bytes& frame) {
        SlowPacket packet = test::read_packet(frame);
        EXPECT_EQ(net::to_text(packet.destination), "2001:2:0:ffff::7");
        const frame::EchoPlace place = path.echo_.numbers().place_of(index_of(frame));
        EXPECT_EQ(packet.echo->identifier, 1000 + place.client * 100 + place.destination) << "as it arrived";
        packet.destination = test::address_of(place.client == 0 ? "2001:2::2" : "2001:2::3");
        packet.echo->identifier = place.identifier();
        return Frames{test::write_packet(packet)};
    };
    path.run();
    EXPECT_EQ(path.replies()[Count::received], 36U);
    EchoPath other{true, "2001:2:0:ffff::/120"};
    changes = true;
    other.up = path.up;
    other.down = path.down;
    other.run(100'000);
    EXPECT_EQ(other.fault(other.requests(), frame::Fault::mapping_changed), 1U);
    EXPECT_EQ(other.requests()[Count::faulty], 1U);
    EXPECT_EQ(other.replies()[Count::received], 35U);
}

TEST(EchoPath, TheDurationEndsIt) {
    EchoPath path{true, std::nullopt, 40};
    path.run();
    EXPECT_TRUE(path.sender_->finished());
    EXPECT_LT(path.sender_->counts().offered_foreground, 36U);
    EXPECT_EQ(path.sender_->counts().offered_foreground, path.replies()[Count::received]);
    ASSERT_TRUE(path.steady_.exists());
    EXPECT_EQ(path.steady_.end().value, path_start + 40);
}

TEST(EchoPath, TheSteadyPartIsThatInWhichAllClientsRun) {
    EchoPath path;
    path.down = [&](const Bytes& frame) {  // client 1 gets no replies, so it is slow
        return path.echo_.numbers().place_of(index_of(frame)).client == 1 ? Frames{} : Frames{frame};
    };
    path.run(100'000);
    ASSERT_TRUE(path.steady_.exists());
    EXPECT_EQ(path.steady_.begin().value, path_start + 10);
    EXPECT_EQ(path.steady_.end().value, path.sender_->clients()[0].last.value);
    EXPECT_EQ(path.sender_->clients()[0].requests, 18U);
    EXPECT_EQ(path.sender_->clients()[1].requests, 18U);
    EXPECT_EQ(path.client_->handler().steady_replies(), 18U);
    EXPECT_LT(path.sender_->steady_requests(), 22U);
    EXPECT_GE(path.sender_->steady_requests(), 18U);
}

TEST(EchoPath, APortThatTakesFewFramesDelaysAndLosesNone) {
    EchoPath path;
    path.left_.accept_at_most(1);
    path.right_.accept_at_most(1);
    path.run();
    EXPECT_EQ(path.replies()[Count::received], 36U);
    EXPECT_GT(path.sender_->counts().refused, 0U);
}

TEST(EchoPath, APortThatTakesNothingMakesItGiveUp) {
    EchoPath path;
    path.left_.accept_at_most(0);
    path.run(20'000);
    EXPECT_TRUE(path.sender_->finished());
    EXPECT_TRUE(path.sender_->counts().gave_up);
    path.sender_->release_rest();
}

TEST(EchoPath, AFullQueueOfAnswersHoldsRequestsBackInThePort) {
    EchoPath path;
    while (path.answers_.room() != 0) {
        path.answers_.put({});
    }
    path.ticks_ += 10;
    path.sender_->poll();
    path.right_in_wire_.frames = path.left_wire_.frames;
    EXPECT_FALSE(path.listener_->poll());
    EXPECT_EQ(path.right_in_wire_.frames.size(), 4U);
    path.answers_.drop(AnswerQueue::capacity);
    EXPECT_TRUE(path.listener_->poll());
    EXPECT_EQ(path.answers_.size(), 4U);
}

TEST(EchoPath, AConstantRateDoesNotWaitForReplies) {
    EchoPath path{false};
    const SenderPlan plan{.frame_count = 36,
                          .schedule = pace::Schedule{{.frames_per_second = 1000}, {path_start}, 1'000'000},
                          .mix = pace::Mix{1, 1},
                          .give_up_lateness = {1'000'000}};
    Sender<io::MemoryTransmitQueue, EchoClock, EchoWriter> sender{plan, path.left_, path.clock_, EchoWriter{path.echo_}};
    for (std::uint64_t i = 0; i < 36; ++i) {
        path.ticks_ = path_start + i * 1000;
        sender.poll();
        ASSERT_EQ(path.left_wire_.frames.size(), i + 1);
        EXPECT_EQ(index_of(path.left_wire_.frames.back()), i);
    }
    path.right_in_wire_.frames = path.left_wire_.frames;
    while (path.listener_->poll() || path.answerer_->poll()) {}
    EXPECT_EQ(path.requests()[Count::received], 36U);
    EXPECT_EQ(path.requests()[Count::reordered], 0U);
}

TEST(ReplyBoard, TellsTheLatestNumberOfEverySlotOnce) {
    ReplyBoard board{10'000};
    std::map<std::size_t, std::uint64_t> seen;
    const auto take = [&](std::size_t slot, std::uint64_t replied) { EXPECT_TRUE(seen.emplace(slot, replied).second); };
    EXPECT_FALSE(board.collect(take));
    for (const std::size_t slot : {std::size_t{0}, std::size_t{63}, std::size_t{64}, std::size_t{9'999}}) {
        board.post(slot, 4);
        board.post(slot, 2);
    }
    EXPECT_TRUE(board.collect(take));
    EXPECT_EQ(seen, (std::map<std::size_t, std::uint64_t>{{0, 5}, {63, 5}, {64, 5}, {9'999, 5}}));
    EXPECT_FALSE(board.collect(take));
}

TEST(AnswerQueue, KeepsTheOrderAroundItsEnd) {
    AnswerQueue queue;
    std::uint64_t put = 0, taken = 0;
    for (unsigned round = 0; round < 10; ++round) {
        while (queue.room() > 100) {
            queue.put({.index = put++});
        }
        for (std::size_t i = 0; i < 1000; ++i) {
            ASSERT_EQ(queue.at(i).index, taken + i);
        }
        queue.drop(1000);
        taken += 1000;
    }
    EXPECT_EQ(queue.size(), put - taken);
}

}  // namespace
}  // namespace gatemark::loop
