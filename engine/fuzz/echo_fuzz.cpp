#include "frame/echoes.hpp"
#include "fuzz/frame_queue.hpp"
#include "fuzz/frames.hpp"
#include "fuzz/holds.hpp"
#include "fuzz/marks.hpp"
#include "fuzz/reached.hpp"
#include "golden/slow_packet.hpp"
#include "loop/echo_client.hpp"
#include "loop/echo_responder.hpp"

#include <array>
#include <bit>
#include <functional>
#include <optional>

/// Messages of every kind arrive at the clients and at the Responder of an echo trial: what they
/// count must add up, what they take for correct must be, octet by octet, what a correct gateway
/// makes of the message that was sent, and each correct request has one answer, which goes to where
/// it came from.
namespace gatemark::fuzz {
namespace {

using frame::EchoKind, frame::Fault;
using record::Count, record::ForeignFrame;
using test::Bytes, test::Gateway;

constexpr std::uint64_t timeout = 5000, now = 10'000, request_count = 36;
constexpr std::size_t frames_max = 6, raw_bytes_max = 300;
static_assert(test::small_shape.requests() == request_count);

/// All but what only UDP has.
constexpr std::array echo_faults{Fault::destination_mac,
                                 Fault::source_mac,
                                 Fault::encapsulated,
                                 Fault::headers,
                                 Fault::family,
                                 Fault::fragment,
                                 Fault::length,
                                 Fault::vlan,
                                 Fault::ipv4_header,
                                 Fault::ipv4_header_checksum,
                                 Fault::identification,
                                 Fault::source_address,
                                 Fault::destination_address,
                                 Fault::hop_limit,
                                 Fault::traffic_class,
                                 Fault::dont_fragment,
                                 Fault::flow_label,
                                 Fault::extension_headers,
                                 Fault::payload,
                                 Fault::index,
                                 Fault::mark,
                                 Fault::wrong_port,
                                 Fault::untranslated_source,
                                 Fault::mapping_changed,
                                 Fault::other_edge_port,
                                 Fault::other_edge_address,
                                 Fault::interface_identifier,
                                 Fault::outside_rule,
                                 Fault::outside_port_set,
                                 Fault::icmp_type,
                                 Fault::identifier,
                                 Fault::sequence,
                                 Fault::icmp_checksum,
                                 Fault::wrong_client,
                                 Fault::wrong_slot};
constexpr auto echo_fault_names = names_of_these(echo_faults);
enum class Outcome : std::uint8_t { received, late, faulty, duplicate, other_trial, other };
constexpr std::array<std::string_view, 2> kind_names{"request", "reply"};

struct EchoScenario {
    frame::Echo echo;
    std::optional<state::StateTable> table{};
};

frame::EdgesRequest edges() {
    return {.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/30", 6, 2),
                        test::edge_domain("2001:db8:8000::/51", "198.51.100.0/24", 20, 0)},
            .count = test::small_shape.clients};
}

frame::Echo make(const frame::StreamRequest& request, const std::optional<std::string>& pool = std::nullopt,
                 const std::optional<frame::GatewayEdge>& edge = std::nullopt, const test::Vlans& vlans = {}) {
    return test::make_echo(request, test::small_shape, pool, vlans, std::nullopt, edge);
}

std::vector<EchoScenario> all() {
    std::vector<EchoScenario> list;
    list.push_back({make(test::echo_request(Gateway::router44))});
    list.push_back({make(test::echo_request(Gateway::router66), std::nullopt, std::nullopt, {.sent = 200, .received = 100})});
    list.push_back({make(test::echo_request(Gateway::siit64))});
    list.push_back({make(test::echo_request(Gateway::siit46, 1400))});
    list.push_back({make(test::echo_request(Gateway::router44), "203.0.113.8/30")});
    list.push_back({test::make_echo(test::echo_request(Gateway::router66), test::small_shape, std::nullopt, {}, test::seed)});
    list.push_back({make(test::echo_request_of(edges()))});
    auto edge = frame::GatewayEdge::make(test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6).rule, 0x1234, "edge");
    list.push_back({make(test::echo_request(Gateway::siit46), "2001:db8:12:3400:0:c000:212:34/128", std::get<frame::GatewayEdge>(edge))});
    list.push_back({make(test::echo_request(Gateway::siit64, 9018))});
    for (EchoScenario& scenario : list) {
        if (scenario.echo.pool() != nullptr) {
            holds(!scenario.table.emplace().reset(test::small_shape.all_destinations()), "there is memory for a few entries");
        }
    }
    return list;
}

std::vector<EchoScenario>& scenarios() {
    static std::vector<EchoScenario> list = all();
    return list;
}
constexpr std::size_t scenario_count = 9;

Reached reached_faults{"fault", echo_fault_names, 2 * scenario_count};
Reached reached_outcomes{"outcome", names_of<Outcome>, 2 * scenario_count};
Reached reached_kinds{"correct", kind_names, scenario_count};

struct StoppedClock {
    [[nodiscard]] static pace::Ticks now() noexcept { return {fuzz::now}; }
};

/// Counters of one receiver.
struct Step {
    Counts<Outcome> outcomes;
    Counts<frame::Fault> faults;
};

/// The receiver of one side with all that it records in; requests are answered from `answers`.
class Side {
public:
    Side(EchoScenario& scenario, EchoKind kind) : scenario_{scenario}, steady_{test::small_shape.clients} {
        begin();
        loop::EchoReceiverPlan plan{.trial_id = test::trial_id(),
                                    .earliest = {1000},
                                    .kept_frames_max = 2,
                                    .echo = &scenario.echo,
                                    .kind = kind,
                                    .frame_count = request_count,
                                    .arrivals = &arrivals_};
        if (kind == EchoKind::reply) {
            plan.delays.timeout = {timeout};
            receiver_ =
                std::make_unique<Client>(plan, queue_, mailbox_, loop::ReplyHandler{scenario.echo, {&board_}, steady_}, StoppedClock{});
            return;
        }
        std::optional<state::EchoKeeper> keeper;
        if (scenario.table) {
            keeper.emplace(*scenario.table, scenario.echo.numbers());
        }
        receiver_ =
            std::make_unique<Responder>(plan, queue_, mailbox_, loop::RequestHandler{scenario.echo, keeper, answers_}, StoppedClock{});
    }

    /// Forgets what has arrived, and what was learned and handed over; what is counted stays.
    void begin() {
        arrivals_.reset(request_count, record::Receivers::one);
        answers_.drop(answers_.size());
        if (scenario_.table) {
            holds(!scenario_.table->reset(test::small_shape.all_destinations()), "there is memory for a few entries");
        }
    }
    void receive(std::span<const Bytes> frames) {
        for (const Bytes& frame : frames) {
            queue_.put(frame);
        }
        while (receiver_->poll()) {}
        while (mailbox_.take([](const auto&) { return true; })) {}
    }
    /// All counters so far. Those of ICMP errors are 65,536, so only that of `frame` is looked at.
    [[nodiscard]] Step counted(std::span<const std::byte> frame) const {
        Step step;
        for (const auto direction : {frame::signature::Direction::forward, frame::signature::Direction::reverse}) {
            const record::ClassCounts& counts = receiver_->counts(direction, frame::signature::TrafficClass::foreground);
            step.outcomes[Outcome::received] += counts[Count::received];
            step.outcomes[Outcome::late] += counts[Count::late];
            step.outcomes[Outcome::faulty] += counts[Count::faulty];
            step.outcomes[Outcome::duplicate] += counts[Count::duplicate];
            step.faults.add(counts.faults);
        }
        const record::ForeignCounts& foreign = receiver_->foreign();
        step.outcomes[Outcome::other_trial] = foreign[ForeignFrame::other_trial];
        step.outcomes[Outcome::other] = foreign[ForeignFrame::neighbour] + foreign[ForeignFrame::fragment] + foreign[ForeignFrame::foreign];
        const frame::Arrival arrival = frame::classify_echo(frame, test::trial_id());
        const bool is_ipv6 = arrival.family == net::Family::ipv6;
        step.outcomes[Outcome::other] += foreign.icmp[record::ForeignCounts::icmp_slot(is_ipv6, arrival.icmp_type, arrival.icmp_code)];
        return step;
    }
    [[nodiscard]] std::uint64_t arrived() const {
        std::uint64_t sum = 0;
        for (const std::uint64_t word : arrivals_.words_of(0)) {
            sum += static_cast<std::uint64_t>(std::popcount(word));
        }
        return sum;
    }
    [[nodiscard]] const loop::AnswerQueue& answers() const { return answers_; }

private:
    using Client = loop::EchoReceiver<FrameQueue, loop::ReplyHandler, StoppedClock>;
    using Responder = loop::EchoReceiver<FrameQueue, loop::RequestHandler, StoppedClock>;

    EchoScenario& scenario_;
    loop::SteadyPart steady_;
    loop::ReplyBoard board_{static_cast<std::size_t>(test::small_shape.slots())};
    loop::AnswerQueue answers_;
    record::ArrivalBitmap arrivals_;
    FrameQueue queue_;
    loop::NeighborMailbox mailbox_;
    std::unique_ptr<loop::ReceivingTask> receiver_;
};

std::uint64_t some_time(Script& script) {
    static constexpr std::array<std::uint64_t, 7> times{9000, 5000, now, 4999, 999, now + 1, ~std::uint64_t{0}};
    return times[script.below(times.size())];
}

/// What a correct gateway delivers on this side, or something near it.
Bytes made_message(Script& script, const frame::Echo& echo, EchoKind kind) {
    const std::uint64_t index = script.below(request_count + 4), time = some_time(script);
    const auto identifier = static_cast<std::uint16_t>(script.one_in(4) ? script.word() : 1232 + script.byte() % 4);
    const frame::EchoAnswer answer{
        .index = index,
        .sent = {time},
        .source = {.address = echo.pool() == nullptr ? 0 : script.below(echo.pool()->count()), .identifier = identifier}};
    switch (script.byte() % 8) {
        case 0: return test::sent_request(echo, index, time);
        case 1: return test::sent_reply(echo, answer);
        case 2: return raw_frame(script, raw_bytes_max);
        default: return kind == EchoKind::request ? test::expected_request(echo, answer) : test::expected_reply(echo, index, time);
    }
}

/// Changes what a gateway may confuse: the identifier, the client, the type.
void confuse(Script& script, Bytes& bytes, const frame::Echo& echo) {
    const frame::Arrival arrival = frame::classify_echo(bytes, test::trial_id());
    if (arrival.kind != frame::ArrivalKind::ours || arrival.misplaced) {
        return;
    }
    std::byte* const message = bytes.data() + arrival.udp;
    switch (script.byte() % 8) {
        case 0: store_big_endian(message + net::icmp::identifier, script.word()); break;
        case 1: message[net::icmp::identifier + 1] ^= static_cast<std::byte>(1U + script.byte() % 3); break;
        case 2: message[net::icmp::sequence + 1] ^= std::byte{1}; break;
        case 3: message[net::icmp::type] = static_cast<std::byte>(script.byte()); break;
        case 4: {
            const Bytes other = test::expected_reply(echo, script.below(request_count));
            const frame::Layout& layout = echo.expected_reply().frame_template.layout;
            if (arrival.family == layout.family && bytes.size() >= layout.end) {
                std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(layout.destination_address()), net::address_bytes(layout.family),
                            bytes.begin() + static_cast<std::ptrdiff_t>(arrival.ip + layout.destination_address() - layout.ip));
            }
            break;
        }
        default: return;
    }
    correct_header_checksum(bytes);
    correct_upper_checksum(bytes);
}

bool has_sound_checksums(std::span<const std::byte> frame, const frame::Layout& layout) {
    const std::span message = frame.subspan(layout.udp, layout.udp_bytes());
    if (layout.family == net::Family::ipv4) {
        return test::slow_sum(frame.subspan(layout.ip, net::ipv4::header_bytes)) == 0xffff && test::slow_sum(message) == 0xffff;
    }
    Bytes summed{frame.begin() + static_cast<std::ptrdiff_t>(layout.source_address()),
                 frame.begin() + static_cast<std::ptrdiff_t>(layout.udp)};
    const std::array<std::byte, 4> rest{static_cast<std::byte>(layout.udp_bytes() >> 8), static_cast<std::byte>(layout.udp_bytes()),
                                        std::byte{0}, static_cast<std::byte>(net::protocol_icmpv6)};
    test::append(summed, rest);
    test::append(summed, message);
    return test::slow_sum(summed) == 0xffff;
}

/// A message that was received, octet by octet.
void expect_correct(std::span<const std::byte> frame, const frame::Echo& echo, EchoKind kind) {
    const frame::Arrival arrival = frame::classify_echo(frame, test::trial_id());
    holds(arrival.kind == frame::ArrivalKind::ours && !arrival.misplaced, "only messages of the trial are received");
    const std::byte* const mark = frame.data() + arrival.payload;
    const std::uint64_t index = frame::signature::index(mark);
    holds(index < request_count, "the mark is that of a request");
    const pace::Ticks sent{frame::signature::timestamp(mark)};
    const auto source = frame::public_source(frame, arrival, echo);
    holds(kind == EchoKind::reply || source.has_value() == (echo.pool() != nullptr), "a stateful gateway's source is of the pool");
    Bytes expected = kind == EchoKind::request
                         ? test::expected_request(echo, {.index = index, .sent = sent, .source = source.value_or(frame::PublicSource{})})
                         : test::expected_reply(echo, index, sent.value);
    const frame::EchoFrame& shape = kind == EchoKind::request ? echo.expected_request() : echo.expected_reply();
    const frame::Layout& layout = shape.frame_template.layout;
    holds(frame.size() >= expected.size(), "a correct message is whole");
    holds(has_sound_checksums(frame, layout), "the checksums of a correct message hold");
    if (kind == EchoKind::request && echo.gateway_edge() != nullptr) {
        holds(echo.gateway_edge()->has_identifier(source->identifier), "the identifier is one of the edge's set");
    }
    expect_mark(frame, expected, layout, echo.stream(), {});
    std::vector<bool> free(expected.size());
    const auto leave_out = [&](std::size_t at, std::size_t bytes) {
        std::fill_n(free.begin() + static_cast<std::ptrdiff_t>(at), bytes, true);
    };
    leave_out(net::ethernet::source, net::mac_bytes);
    leave_out(layout.udp + net::icmp::checksum, 2);
    if (layout.family == net::Family::ipv4) {
        leave_out(layout.ip + net::ipv4::checksum, 2);
        if (!echo.stream().identification_kept()) {
            leave_out(layout.ip + net::ipv4::identification, 2);
        }
    }
    const bool is_tagged = layout.ip > net::ethernet::header_bytes;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::byte mask = i == net::ethernet::header_bytes && is_tagged ? std::byte{0x0f} : std::byte{0xff};
        holds(free[i] || (frame[i] & mask) == (expected[i] & mask), "a correct message is as expected in every octet");
    }
}

/// The answer to a request goes to where that came from, with its identifier and sequence number.
void expect_answer(std::span<const std::byte> request, const frame::Echo& echo, const loop::AnswerQueue& answers) {
    const frame::Arrival arrival = frame::classify_echo(request, test::trial_id());
    const Bytes reply = test::sent_reply(echo, answers.at(answers.size() - 1));
    const frame::Layout& layout = echo.sent_reply().frame_template.layout;
    const std::size_t bytes = net::address_bytes(layout.family);
    const std::size_t source = arrival.ip + layout.source_address() - layout.ip, destination = source + bytes;
    const auto same = [&](std::size_t ours, std::size_t theirs, std::size_t count) {
        return std::ranges::equal(std::span{reply}.subspan(ours, count), request.subspan(theirs, count));
    };
    holds(same(layout.destination_address(), source, bytes) && same(layout.source_address(), destination, bytes), "a reply goes back");
    holds(same(layout.udp + net::icmp::identifier, arrival.udp + net::icmp::identifier, 4), "a reply keeps identifier and sequence number");
    holds(same(layout.payload, arrival.payload, layout.end - layout.payload), "a reply keeps the data");
    holds(has_sound_checksums(reply, layout), "the checksums of a reply hold");
}

void receive_alone(Side& side, const Bytes& frame, EchoScenario& scenario, EchoKind kind, std::size_t number) {
    const Step before = side.counted(frame);
    const std::uint64_t arrived = side.arrived();
    const std::size_t answers = side.answers().size();
    side.receive({&frame, 1});
    const Step after = side.counted(frame);
    const Step step{.outcomes = after.outcomes.since(before.outcomes), .faults = after.faults.since(before.faults)};
    const std::size_t group = 2 * number + (kind == EchoKind::reply ? 1 : 0);
    reached_outcomes.note_counted(step.outcomes, group);
    step.faults.visit([](frame::Fault, std::uint64_t count) { holds(count <= 1, "a message has each fault once"); });
    reached_faults.note_counted(echo_faults, step.faults, group);
    const auto of = [&](Outcome outcome) { return step.outcomes[outcome]; };
    const std::uint64_t ends = step.outcomes.sum(), faults = step.faults.sum(), received = of(Outcome::received), late = of(Outcome::late);
    const std::uint64_t faulty = of(Outcome::faulty), other_trial = of(Outcome::other_trial), other = of(Outcome::other);
    holds(ends == 1 || (ends == 0 && faults > 0), "a message ends in one class, or never arrived");
    holds(received + late + other_trial + other == 0 || faults == 0, "only what is wrong has a fault");
    holds(faulty == 0 || faults > 0, "a faulty message has a fault");
    holds(side.arrived() - arrived == received + late + faulty, "a message is marked when it arrives for the first time");
    holds(side.answers().size() - answers == (kind == EchoKind::request ? received : 0), "a correct request is answered, once");
    if (received + late != 0) {
        expect_correct(frame, scenario.echo, kind);
        reached_kinds.note(kind == EchoKind::request ? std::size_t{0} : 1, number);
    }
    if (kind == EchoKind::request && received != 0) {
        expect_answer(frame, scenario.echo, side.answers());
    }
}

/// One scenario and side with two receivers: one gets every message alone, the other all in a
/// burst.
struct World {
    World(EchoScenario& scenario, EchoKind kind) : alone{scenario, kind}, together{scenario, kind} {}
    Side alone, together;
};

World& world(std::size_t number, EchoKind kind) {
    static std::array<std::unique_ptr<World>, 2 * scenario_count> worlds;
    auto& place = worlds[2 * number + (kind == EchoKind::reply ? 1 : 0)];
    if (!place) {
        place = std::make_unique<World>(scenarios()[number], kind);
    }
    return *place;
}

}  // namespace

void run(Script& script) {
    holds(scenarios().size() == scenario_count, "scenarios are counted");
    const std::size_t number = script.below(scenario_count);
    EchoScenario& scenario = scenarios()[number];
    const EchoKind kind = script.byte() % 2 == 0 ? EchoKind::request : EchoKind::reply;
    World& world = fuzz::world(number, kind);
    world.alone.begin();
    std::vector<Bytes> frames;
    while (!script.at_end() && frames.size() < frames_max) {
        Bytes frame = made_message(script, scenario.echo, kind);
        confuse(script, frame, scenario.echo);
        damage(script, frame);
        receive_alone(world.alone, frame, scenario, kind, number);
        frames.push_back(std::move(frame));
    }
    if (frames.empty()) {
        return;
    }
    world.together.begin();
    world.together.receive(frames);
    const Step alone = world.alone.counted(frames.back()), together = world.together.counted(frames.back());
    holds(alone.outcomes == together.outcomes && alone.faults == together.faults, "a burst is counted as its messages one by one");
}

}  // namespace gatemark::fuzz
