#include "fuzz/frame_queue.hpp"
#include "fuzz/frames.hpp"
#include "fuzz/holds.hpp"
#include "fuzz/marks.hpp"
#include "fuzz/reached.hpp"
#include "fuzz/scenarios.hpp"
#include "loop/neighbor_messages.hpp"
#include "loop/receiver.hpp"

#include <algorithm>
#include <memory>

/// Frames of every kind arrive at a receiver of every role: what it counts must add up, and what it
/// takes for correct must be, octet by octet, what a correct gateway makes of the frame that was
/// sent. Two receivers get the same frames, one by one and all in a burst.
namespace gatemark::fuzz {
namespace {

using frame::signature::Direction, frame::signature::TrafficClass;
using record::Count, record::ForeignFrame;
using test::Bytes;

constexpr std::uint64_t frame_count = 64, timeout = 5000, now = 10'000;
constexpr std::size_t frames_max = 6, raw_bytes_max = 300;
const net::MacAddress gateway_mac = *net::parse_mac("02:00:00:00:00:99");

enum class Outcome : std::uint8_t {
    received,
    late,
    faulty,
    duplicate,
    zero_checksum,
    with_trailer,
    other_trial,
    neighbour,
    later_fragment,
    foreign,
    icmp_error,
    not_arrived
};
Reached reached_faults{"fault", std::span{frame::fault_names}.first(frame::first_echo_fault), scenarios().size()};
Reached reached_outcomes{"outcome", names_of<Outcome>, scenarios().size()};
constexpr std::array<std::string_view, 3> table_names{"learned", "changed", "kept"};
Reached reached_table{"table", table_names};

/// The kind of outcome and the faults of a frame, each of these counters 0 or 1.
struct Step {
    Counts<Outcome> outcomes;
    Counts<frame::Fault> faults;
    [[nodiscard]] std::uint64_t of(Outcome outcome) const { return outcomes[outcome]; }
};

struct StoppedClock {
    [[nodiscard]] static pace::Ticks now() noexcept { return {fuzz::now}; }
};

/// A receiver of one scenario with all that it records in.
class Bench {
public:
    explicit Bench(const Scenario& scenario)
        : scenario_{scenario}, keeper_{scenario.phase, table_, scenario.pool, scenario.edge ? &*scenario.edge : nullptr} {
        loop::ReceiverPlan plan{.trial_id = test::trial_id(), .directions = {}, .kept_frames_max = 2};
        for (std::size_t i = 0; i < 2; ++i) {
            arrivals_[i].reset(frame_count, record::Receivers::one);
            const auto stream = [&](std::size_t number) { return scenario.streams[i][number] ? &*scenario.streams[i][number] : nullptr; };
            plan.directions[i] = {.active = true,
                                  .arrives_here = scenario.arrives_here[i],
                                  .frame_count = frame_count,
                                  .mix = scenario.mix,
                                  .streams = {stream(0), stream(1)},
                                  .arrivals = &arrivals_[i],
                                  .delays = {.timeout = {timeout}},
                                  .keeper = scenario.connections == 0 ? nullptr : &keeper_};
        }
        receiver_ = std::make_unique<Receiver>(plan, queue_, mailbox_);
    }

    /// Forgets all arrivals and connections; what is counted stays. In test phase 2 connection k is
    /// known at endpoint_of(k).
    void begin() {
        for (record::ArrivalBitmap& arrivals : arrivals_) {
            arrivals.reset(frame_count, record::Receivers::one);
        }
        if (scenario_.connections == 0) {
            return;
        }
        holds(!table_.reset(scenario_.connections), "there is memory for a few connections");
        for (std::uint64_t k = 0; scenario_.phase == state::Phase::use && k < scenario_.connections; ++k) {
            table_.write(k, endpoint_of(k));
        }
    }
    [[nodiscard]] std::optional<state::Endpoint> known(std::uint64_t k) const { return table_.read(k); }
    [[nodiscard]] state::Endpoint endpoint_of(std::uint64_t k) const {
        return {.address = k % scenario_.pool.count(), .port = static_cast<std::uint16_t>(40'000 + k)};
    }
    void receive(std::span<const Bytes> frames) {
        for (const Bytes& frame : frames) {
            queue_.put(frame);
        }
        while (receiver_->poll()) {}
    }
    [[nodiscard]] std::uint64_t arrived() const {
        std::uint64_t sum = 0;
        for (const record::ArrivalBitmap& arrivals : arrivals_) {
            for (const std::uint64_t word : arrivals.words_of(0)) {
                sum += static_cast<std::uint64_t>(std::popcount(word));
            }
        }
        return sum;
    }
    /// Whether the frame that a correct frame is has arrived before.
    [[nodiscard]] bool has_arrived(std::span<const std::byte> frame) const {
        const std::byte* const mark = frame.data() + frame::classify(frame, test::trial_id()).payload;
        return arrivals_[(frame::signature::stream(mark) >> 1) & 1U].arrived(frame::signature::index(mark));
    }
    [[nodiscard]] std::vector<std::optional<state::Endpoint>> entries() const {
        std::vector<std::optional<state::Endpoint>> list;
        for (std::uint64_t k = 0; k < scenario_.connections; ++k) {
            list.push_back(table_.read(k));
        }
        return list;
    }
    /// All counters so far. Those of ICMP errors are 65,536, so only that of `frame` is looked at.
    [[nodiscard]] Step counted(std::span<const std::byte> frame) const {
        Step step;
        const auto add = [&](Outcome outcome, std::uint64_t count) { step.outcomes[outcome] += count; };
        for (const Direction direction : {Direction::forward, Direction::reverse}) {
            for (const TrafficClass traffic_class : {TrafficClass::foreground, TrafficClass::background}) {
                const record::ClassCounts& counts = receiver_->counts(direction, traffic_class);
                add(Outcome::received, counts[Count::received]);
                add(Outcome::late, counts[Count::late]);
                add(Outcome::faulty, counts[Count::faulty]);
                add(Outcome::duplicate, counts[Count::duplicate]);
                add(Outcome::zero_checksum, counts.remarks[frame::Remark::zero_checksum]);
                add(Outcome::with_trailer, counts.remarks[frame::Remark::with_trailer]);
                step.faults.add(counts.faults);
            }
        }
        const record::ForeignCounts& foreign = receiver_->foreign();
        add(Outcome::other_trial, foreign[ForeignFrame::other_trial]);
        add(Outcome::neighbour, foreign[ForeignFrame::neighbour]);
        add(Outcome::later_fragment, foreign[ForeignFrame::fragment]);
        add(Outcome::foreign, foreign[ForeignFrame::foreign]);
        const frame::Arrival arrival = frame::classify(frame, test::trial_id());
        const bool ipv6 = arrival.family == net::Family::ipv6;
        add(Outcome::icmp_error, foreign.icmp[record::ForeignCounts::icmp_slot(ipv6, arrival.icmp_type, arrival.icmp_code)]);
        return step;
    }
    [[nodiscard]] loop::NeighborMailbox& mailbox() { return mailbox_; }

private:
    using Receiver = loop::Receiver<FrameQueue, StoppedClock>;

    const Scenario& scenario_;
    std::array<record::ArrivalBitmap, 2> arrivals_;
    state::StateTable table_;
    state::ConnectionKeeper keeper_;
    FrameQueue queue_;
    loop::NeighborMailbox mailbox_;
    std::unique_ptr<Receiver> receiver_;
};

/// A frame, and whether a correct gateway delivers it here.
struct Made {
    Bytes bytes;
    bool correct = false;
};

std::uint64_t some_time(Script& script) {
    static constexpr std::array<std::uint64_t, 8> times{9000, 5000, now, 9999, 4999, 999, now + 1, ~std::uint64_t{0}};
    return times[script.below(times.size())];
}

class FrameMaker {
public:
    FrameMaker(const Scenario& scenario, const Bench& bench) : scenario_{scenario}, bench_{bench} {}

    Made make(Script& script) const {
        Made made;
        const std::uint8_t kind = script.byte() % 8;
        if (kind < 4) {
            made = forwarded(script);
        } else if (kind == 4) {
            made.bytes = sent(script);
        } else if (kind == 5) {
            made.bytes = raw_frame(script, raw_bytes_max);
        } else if (kind == 6) {
            made.bytes = neighbour_message(script);
        } else {
            made.bytes = icmp(script);
        }
        const Bytes before = made.bytes;
        damage(script, made.bytes);
        made.correct = made.correct && made.bytes == before;
        return made;
    }

private:
    struct Chosen {
        const frame::Stream* stream = nullptr;
        std::size_t direction = 0;
        std::uint64_t index = 0, number_in_class = 0;
    };
    [[nodiscard]] Chosen choose(Script& script) const {
        Chosen chosen{.stream = nullptr, .direction = script.below(2), .index = script.below(frame_count + 4)};
        const auto place = scenario_.mix.place_of(chosen.index);
        chosen.number_in_class = place.number_in_class;
        chosen.stream = &*scenario_.streams[chosen.direction][place.foreground ? 0 : 1];
        return chosen;
    }
    static void put_gateway_mac(Bytes& bytes) { std::ranges::copy(gateway_mac, bytes.begin() + net::ethernet::source); }

    [[nodiscard]] Made forwarded(Script& script) const {
        const Chosen chosen = choose(script);
        const frame::Stream& stream = *chosen.stream;
        const std::uint64_t time = some_time(script);
        Made made{.bytes = test::frame_in(stream.expected(), stream, chosen.number_in_class, chosen.index, time)};
        made.correct = scenario_.arrives_here[chosen.direction] && chosen.index < frame_count && time >= now - timeout && time <= now;
        if (stream.role() == frame::Role::initiator) {
            translate_source(script, chosen, made);
        } else if (stream.role() == frame::Role::responder && script.one_in(4)) {
            deliver_elsewhere(script, chosen, made);
        } else if (stream.has_rule() && script.one_in(4)) {
            confuse_edges(script, chosen, made);
        }
        put_gateway_mac(made.bytes);
        return made;
    }
    /// To an endpoint of the pool: the one that is known, or any.
    void translate_source(Script& script, const Chosen& chosen, Made& made) const {
        const frame::Layout& layout = chosen.stream->expected().layout;
        const std::uint64_t connection = chosen.stream->values(chosen.number_in_class).connection;
        state::Endpoint endpoint = bench_.endpoint_of(connection);
        if (script.one_in(3)) {
            endpoint = {.address = script.below(scenario_.pool.count()), .port = script.word()};
        }
        made.correct = made.correct && endpoint.port != 0 && (!scenario_.edge || scenario_.edge->has_port(endpoint.port)) &&
                       (scenario_.phase == state::Phase::establish || bench_.known(connection) == endpoint);
        scenario_.pool.write(made.bytes.data() + layout.source_address(), endpoint.address);
        store_big_endian(made.bytes.data() + layout.udp + net::udp::source_port, endpoint.port);
        correct_header_checksum(made.bytes);
        if (!chosen.stream->expects_no_checksum()) {
            correct_upper_checksum(made.bytes);
        }
    }
    /// With the address of another customer edge, with its port, or with both.
    static void confuse_edges(Script& script, const Chosen& chosen, Made& made) {
        const frame::Stream& stream = *chosen.stream;
        const frame::FrameValues other = stream.values(script.below(frame_count));
        frame::FrameValues values = stream.values(chosen.number_in_class);
        const std::uint8_t what = script.byte();
        values.connection = (what & 1U) != 0 ? other.connection : values.connection;
        if ((what & 2U) != 0) {
            (stream.comes_from_edges() ? values.source_port : values.destination_port) =
                stream.comes_from_edges() ? other.source_port : other.destination_port;
        }
        frame::write_frame(stream.expected(), made.bytes.data(), values, stream.id(), chosen.index, {9000});
        stream.write_special_expected(made.bytes.data(), values);
        made.correct = false;
    }
    /// To the endpoint of another connection, or of none.
    static void deliver_elsewhere(Script& script, const Chosen& chosen, Made& made) {
        const frame::Stream& stream = *chosen.stream;
        const enumerate::TupleSpace& space = stream.connections().space();
        const enumerate::Tuple other = space.tuple(script.below(static_cast<std::size_t>(space.count())));
        frame::FrameValues values = stream.values(chosen.number_in_class);
        values.destination_port = other.source_port;
        values.destination_host = other.source_host;
        frame::write_frame(stream.expected(), made.bytes.data(), values, stream.id(), chosen.index, {9000});
        stream.write_special_expected(made.bytes.data(), values);
        made.correct = false;
    }
    [[nodiscard]] Bytes sent(Script& script) const {
        const Chosen chosen = choose(script);
        return test::frame_in(chosen.stream->sent(), *chosen.stream, chosen.number_in_class, chosen.index, some_time(script));
    }
    [[nodiscard]] static Bytes neighbour_message(Script& script) {
        const bool ipv4 = script.byte() % 2 == 0;
        const loop::NeighborLink link{.own_mac = gateway_mac,
                                      .vlan_id = script.one_in(3) ? std::optional<std::uint16_t>{100} : std::nullopt};
        const net::Address target = test::address_of(ipv4 ? "198.18.0.2" : "2001:2::2"),
                           asker = test::address_of(ipv4 ? "198.18.0.1" : "2001:2::1");
        const loop::NeighborFrame frame =
            script.one_in(2) ? loop::write_question(link, target, asker) : loop::write_answer(link, {target, asker, gateway_mac});
        return {frame.data.begin(), frame.data.begin() + static_cast<std::ptrdiff_t>(frame.bytes)};
    }
    /// The headers of a test frame with a message of ICMP or ICMPv6 in the place of UDP.
    [[nodiscard]] Bytes icmp(Script& script) const {
        const Chosen chosen = choose(script);
        const frame::Layout& layout = chosen.stream->expected().layout;
        Bytes bytes = chosen.stream->expected().frame;
        const bool ipv4 = layout.family == net::Family::ipv4;
        bytes[layout.ip + (ipv4 ? net::ipv4::protocol : net::ipv6::next_header)] =
            static_cast<std::byte>(ipv4 ? net::protocol_icmp : net::protocol_icmpv6);
        bytes[layout.udp] = static_cast<std::byte>(script.byte());
        bytes[layout.udp + 1] = static_cast<std::byte>(script.byte());
        correct_header_checksum(bytes);
        put_gateway_mac(bytes);
        return bytes;
    }

    const Scenario& scenario_;
    const Bench& bench_;
};

/// Every frame offered ends in exactly one class, and faults are counted where they belong.
void expect_balance(const Step& step, std::uint64_t newly_arrived, std::size_t scenario) {
    const std::uint64_t arrivals =
        step.of(Outcome::received) + step.of(Outcome::late) + step.of(Outcome::faulty) + step.of(Outcome::duplicate);
    const std::uint64_t others = step.of(Outcome::other_trial) + step.of(Outcome::neighbour) + step.of(Outcome::later_fragment) +
                                 step.of(Outcome::foreign) + step.of(Outcome::icmp_error);
    const std::uint64_t not_arrived = arrivals == 0 && step.faults.sum() > 0 ? 1 : 0;
    holds(arrivals + others + not_arrived == 1, "a frame ends in exactly one class");
    holds(others == 0 || step.faults.sum() == 0, "a frame that is not ours has no faults");
    holds(step.of(Outcome::received) + step.of(Outcome::late) == 0 || step.faults.sum() == 0,
          "a frame that counts as correct has no faults");
    holds(step.of(Outcome::faulty) == 0 || step.faults.sum() > 0, "a faulty frame has a fault");
    holds(step.of(Outcome::zero_checksum) <= step.of(Outcome::received), "a zero checksum is one of a frame received");
    holds(newly_arrived == arrivals - step.of(Outcome::duplicate), "a frame is marked as arrived when it arrives for the first time");
    reached_outcomes.note_counted(step.outcomes, scenario);
    if (not_arrived != 0) {
        reached_outcomes.note(Outcome::not_arrived, scenario);
    }
    step.faults.visit([](frame::Fault, std::uint64_t count) { holds(count <= 1, "a frame has each fault once"); });
    reached_faults.note_counted(step.faults, scenario);
}

/// Nor in a tunnel.
Bytes without_extension_headers(std::span<const std::byte> frame, const frame::Layout& layout) {
    Bytes rest(frame.begin(), frame.end());
    if (layout.extension_bytes() != 0) {
        const auto at = [&](std::size_t offset) { return rest.begin() + static_cast<std::ptrdiff_t>(offset); };
        rest.erase(at(layout.header_end()), at(layout.udp));
        rest[layout.ip + net::ipv6::next_header] = std::byte{net::protocol_udp};
        store_big_endian(rest.data() + layout.ip + net::ipv6::payload_length, static_cast<std::uint16_t>(layout.udp_bytes()));
    }
    take_out_of_tunnel(rest);
    return rest;
}

/// Of the outer header: what a correct gateway may choose is put into `expected` as it arrived, and
/// the checksum of IPv4 must hold.
void expect_tunnel(std::span<const std::byte> frame, Bytes& expected, const frame::Stream& stream, const frame::FrameValues& values) {
    const frame::Layout& layout = stream.expected().layout;
    const auto take = [&](std::size_t at, std::size_t bytes) {
        std::copy_n(frame.begin() + static_cast<std::ptrdiff_t>(layout.outer + at), bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(layout.outer + at));
    };
    const bool is_ipv4 = layout.outer_family() == net::Family::ipv4;
    const auto class_at = [&](std::size_t at, net::Family family) { return frame::mark_of(frame.data() + at, family).traffic_class; };
    holds(frame::is_class_of_tunnel(stream.tunnel(), stream.expected_mark(values).traffic_class, class_at(layout.ip, layout.family),
                                    class_at(layout.outer, layout.outer_family())),
          "the outer traffic class is the one that is due");
    if (is_ipv4) {
        take(net::ipv4::traffic_class, 1);
        take(net::ipv4::identification, 2);
        expected[layout.outer + net::ipv4::fragment] |= frame[layout.outer + net::ipv4::fragment] & std::byte{0x40};
        take(net::ipv4::checksum, 2);
        holds(test::slow_sum(frame.subspan(layout.outer, net::ipv4::header_bytes)) == 0xffff, "the checksum of a correct tunnel holds");
    } else {
        holds((frame[layout.outer] >> 4) == std::byte{6}, "the outer header is of IPv6");
        take(net::ipv6::version, 4);
    }
    if (!stream.expected_tunnel_hop_limit()) {
        take(is_ipv4 ? net::ipv4::time_to_live : net::ipv6::hop_limit, 1);
    }
}

/// What a correct gateway delivers, compared octet by octet: all but what it may choose, and the
/// checksums, which must hold.
void expect_correct(std::span<const std::byte> frame, const Scenario& scenario) {
    const frame::Arrival arrival = frame::classify(frame, test::trial_id());
    holds(arrival.kind == frame::ArrivalKind::ours, "only frames of the trial are received");
    const std::byte* const mark = frame.data() + arrival.payload;
    const std::uint8_t id = frame::signature::stream(mark);
    const std::uint64_t index = frame::signature::index(mark);
    const auto place = scenario.mix.place_of(index);
    const auto& stream = scenario.streams[(id >> 1) & 1U][id & 1U];
    holds(stream && stream->id() == id && place.foreground == ((id & 1U) == 0) && index < frame_count, "the mark is that of a frame");
    holds(scenario.arrives_here[(id >> 1) & 1U], "what was not forwarded is not received");
    Bytes expected = test::frame_in(stream->expected(), *stream, place.number_in_class, index, frame::signature::timestamp(mark));
    holds(frame.size() >= expected.size(), "a correct frame is whole");
    const frame::Layout& layout = stream->expected().layout;
    expect_mark(frame, expected, layout, *stream, stream->values(place.number_in_class));
    std::vector<bool> free(expected.size());
    const auto leave_out = [&](std::size_t at, std::size_t bytes) {
        std::fill_n(free.begin() + static_cast<std::ptrdiff_t>(at), bytes, true);
    };
    leave_out(net::ethernet::source, net::mac_bytes);
    if (layout.in_tunnel()) {
        expect_tunnel(frame, expected, *stream, stream->values(place.number_in_class));
    }
    if (layout.family == net::Family::ipv4) {
        leave_out(layout.ip + net::ipv4::checksum, 2);
        holds(test::slow_sum(frame.subspan(layout.ip, net::ipv4::header_bytes)) == 0xffff, "the header checksum of a correct frame holds");
        if (!stream->identification_kept()) {
            leave_out(layout.ip + net::ipv4::identification, 2);
        }
    }
    if (stream->role() == frame::Role::initiator) {
        leave_out(layout.source_address(), net::address_bytes(layout.family));
        leave_out(layout.udp + net::udp::source_port, 2);
        holds(scenario.pool.number_of(frame.data() + layout.source_address()).has_value(), "the source is of the pool");
    }
    leave_out(layout.udp + net::udp::checksum, 2);
    const bool zero = load_raw<std::uint16_t>(frame.data() + layout.udp + net::udp::checksum) == 0;
    holds(stream->expects_no_checksum() ? zero
          : zero                        ? stream->zero_checksum_for_ones()
                                        : has_sound_udp_checksum(without_extension_headers(frame, layout)),
          "the UDP checksum of a correct frame holds");
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::byte mask = i == net::ethernet::header_bytes && stream->expected_vlan() ? std::byte{0x0f} : std::byte{0xff};
        holds(free[i] || (frame[i] & mask) == (expected[i] & mask), "a correct frame is as expected in every octet");
    }
}

/// Octets behind the packet are counted.
void expect_trailer(std::span<const std::byte> frame, std::uint64_t counted) {
    const frame::Arrival arrival = frame::classify(frame, test::trial_id());
    const auto word_at = [&](std::size_t at) -> std::size_t { return load_big_endian<std::uint16_t>(frame.data() + arrival.ip + at); };
    const std::size_t packet = arrival.family == net::Family::ipv4 ? word_at(net::ipv4::total_length)
                                                                   : net::ipv6::header_bytes + word_at(net::ipv6::payload_length);
    holds(counted == (frame.size() > arrival.ip + packet ? 1U : 0U), "octets behind a packet are counted");
}

/// What the recognizer accepts, `verify` accepts.
void expect_agreement(std::span<const std::byte> frame, const Scenario& scenario, const frame::Recognizer& recognizer) {
    if (!recognizer.matches(frame)) {
        return;
    }
    const frame::Stream& stream = recognizer.stream();
    const std::uint64_t index = recognizer.index(frame.data());
    const auto place = scenario.mix.place_of(index);
    const frame::FrameValues values = stream.values(place.number_in_class);
    if (index >= frame_count || place.foreground != ((stream.id() & 1U) == 0) ||
        !test::recognizes(recognizer, frame, place.number_in_class)) {
        return;
    }
    const frame::Arrival arrival = frame::classify(frame, test::trial_id());
    const frame::Arrival& known = recognizer.arrival();
    holds(arrival.kind == frame::ArrivalKind::ours && arrival.family == known.family && arrival.ip == known.ip &&
              arrival.udp == known.udp && arrival.payload == known.payload && arrival.fragmented == stream.has_fragment_header(),
          "the recognizer and `classify` see the same frame");
    holds(frame::verify(frame, arrival, stream, values).none(), "what the recognizer accepts, `verify` accepts");
}

using Entries = std::vector<std::optional<state::Endpoint>>;

/// The table learns an endpoint of the pool, of a frame without faults or of one whose mapping has
/// changed, and at most one.
void expect_table(const Scenario& scenario, const Step& step, const Entries& before, const Entries& after) {
    std::size_t changes = 0;
    for (std::size_t k = 0; k < after.size(); ++k) {
        holds(!after[k] || (after[k]->address < scenario.pool.count() && after[k]->port != 0), "an entry is an endpoint of the pool");
        holds(after[k] || !before[k], "no entry is forgotten");
        if (after[k] != before[k]) {
            ++changes;
            reached_table.note(before[k] ? std::size_t{1} : 0);
        }
    }
    if (changes == 0 && !after.empty()) {
        reached_table.note(2);
    }
    const std::uint64_t moved = step.faults[frame::Fault::mapping_changed];
    holds(changes <= 1 && (changes == 0 || step.faults.sum() == moved), "the table changes by one connection, and by correct frames only");
    holds(changes == 0 || scenario.phase == state::Phase::establish || moved == 1, "a changed mapping is named");
}

void expect_letter(Bench& bench, const Step& step, const Bytes& frame) {
    std::size_t letters = 0;
    while (bench.mailbox().take([&](const loop::NeighborMailbox::Letter& letter) {
        holds(std::ranges::equal(letter.frame(), frame), "a letter is the frame");
        return true;
    })) {
        ++letters;
    }
    const std::uint64_t neighbours = frame.size() <= loop::NeighborMailbox::bytes_max ? step.of(Outcome::neighbour) : 0;
    const loop::NeighborMessage message = loop::read_neighbor_message(frame);
    const bool says_something = message.question || message.fact;
    holds(letters == neighbours || (letters == 0 && !says_something), "what a neighbour asks or announces is handed on");
}

/// One scenario with two receivers: one gets every frame alone, the other all in a burst.
struct World {
    explicit World(std::size_t of_number, const Scenario& of) : number{of_number}, scenario{of}, alone{of}, together{of}, maker{of, alone} {
        for (const auto& direction : of.streams) {
            for (const auto& stream : direction) {
                if (stream) {
                    recognizers.emplace_back(*stream);
                }
            }
        }
    }
    std::size_t number;
    const Scenario& scenario;
    Bench alone, together;
    FrameMaker maker;
    std::vector<frame::Recognizer> recognizers;
};

World& world(std::size_t number) {
    static std::vector<std::unique_ptr<World>> worlds(scenarios().size());
    if (!worlds[number]) {
        worlds[number] = std::make_unique<World>(number, scenarios()[number]);
    }
    return *worlds[number];
}

void receive_alone(World& world, const Made& made) {
    Bench& bench = world.alone;
    const Step before = bench.counted(made.bytes);
    const Entries entries = bench.entries();
    const std::uint64_t arrived = bench.arrived();
    const bool is_new = !made.correct || !bench.has_arrived(made.bytes);
    bench.receive({&made.bytes, 1});
    const Step after = bench.counted(made.bytes);
    const Step step{.outcomes = after.outcomes.since(before.outcomes), .faults = after.faults.since(before.faults)};
    expect_balance(step, bench.arrived() - arrived, world.number);
    expect_table(world.scenario, step, entries, bench.entries());
    expect_letter(bench, step, made.bytes);
    for (const frame::Recognizer& recognizer : world.recognizers) {
        expect_agreement(made.bytes, world.scenario, recognizer);
    }
    if (step.of(Outcome::received) + step.of(Outcome::late) != 0) {
        expect_correct(made.bytes, world.scenario);
    }
    if (step.of(Outcome::received) != 0) {
        expect_trailer(made.bytes, step.of(Outcome::with_trailer));
    }
    holds(step.of(Outcome::with_trailer) <= step.of(Outcome::received), "a trailer is one of a frame received");
    holds(!made.correct || step.of(is_new ? Outcome::received : Outcome::duplicate) == 1, "a correct frame is received, and once");
}

}  // namespace

void run(Script& script) {
    World& world = fuzz::world(script.below(scenarios().size()));
    world.alone.begin();
    world.together.begin();
    std::vector<Bytes> frames;
    while (!script.at_end() && frames.size() < frames_max) {
        const Made made = world.maker.make(script);
        receive_alone(world, made);
        frames.push_back(made.bytes);
    }
    if (frames.empty()) {
        return;
    }
    world.together.receive(frames);
    while (world.together.mailbox().take([](const auto&) { return true; })) {}
    const Step alone = world.alone.counted(frames.back()), together = world.together.counted(frames.back());
    holds(alone.outcomes == together.outcomes && alone.faults == together.faults, "a burst is counted as its frames one by one");
    holds(world.alone.entries() == world.together.entries(), "a burst teaches what its frames one by one teach");
}

}  // namespace gatemark::fuzz
