#include "fuzz/frames.hpp"
#include "fuzz/holds.hpp"
#include "fuzz/reached.hpp"
#include "fuzz/scenarios.hpp"
#include "loop/neighbor_messages.hpp"
#include "refdut/classify.hpp"
#include "refdut/neighbours.hpp"

#include "frame/recognizer.hpp"

#include <algorithm>
#include <memory>

/// One frame, whatever its bytes are, through every function that reads received bytes; in a heap
/// buffer of exactly its size. The fastest of the fuzzers: it keeps nothing from input to input.
namespace gatemark::fuzz {
namespace {

using test::Bytes;

constexpr std::array<std::string_view, 6> kind_names{"ours", "other_trial", "neighbour", "icmp_error", "fragment", "foreign"};
Reached reached_kinds{"kind", kind_names};
/// Those that `verify` gives; `index` to `unknown_connection` and `outside_port_set` are the
/// receiver's, what follows is of echo messages.
constexpr bool is_verified(std::size_t fault) {
    const bool is_before = fault < static_cast<std::size_t>(frame::Fault::index);
    const bool is_behind = fault > static_cast<std::size_t>(frame::Fault::unknown_connection);
    return is_before || (is_behind && fault < static_cast<std::size_t>(frame::Fault::outside_port_set));
}
constexpr std::size_t other_faults = static_cast<std::size_t>(frame::Fault::unknown_connection) -
                                     static_cast<std::size_t>(frame::Fault::index) + 1 + frame::fault_count -
                                     static_cast<std::size_t>(frame::Fault::outside_port_set);
constexpr auto verified_faults = [] {
    std::array<std::string_view, frame::fault_count - other_faults> names;
    std::size_t count = 0;
    for (std::size_t i = 0; i < frame::fault_count; ++i) {
        if (is_verified(i)) {
            names[count++] = frame::fault_names[i];
        }
    }
    return names;
}();
Reached reached_faults{"fault", verified_faults};
constexpr std::array<std::string_view, 6> other_names{"recognized",      "question",          "fact",
                                                      "refdut_forwards", "refdut_test_frame", "refdut_neighbour"};
Reached reached_others{"read", other_names};

/// Bytes of the input, the first of a frame of ours, or such a frame damaged.
Bytes some_frame(Script& script, const Scenario& scenario) {
    const std::uint8_t kind = script.byte();
    const auto& streams = scenario.streams[kind & 1U];
    const frame::Stream& stream = streams[1] && (kind & 2U) != 0 ? *streams[1] : *streams[0];
    Bytes bytes = test::frame_in((kind & 4U) != 0 ? stream.sent() : stream.expected(), stream, 3, 6);
    if ((kind & 0x38U) == 0) {
        const auto raw = script.take(script.below(bytes.size() + 40));
        return {raw.begin(), raw.end()};
    }
    if ((kind & 0x38U) == 8U) {  // a question or an announcement in its place
        bytes = neighbor_message((kind & 0x80U) != 0, (kind & 0x40U) != 0 ? net::Family::ipv4 : net::Family::ipv6);
    }
    damage(script, bytes);
    return bytes;
}

void read_as_tester(std::span<const std::byte> frame, const Scenario& scenario) {
    const frame::Arrival arrival = frame::classify(frame, test::trial_id());
    reached_kinds.note(arrival.kind);
    holds(std::max({arrival.ip, arrival.udp, arrival.payload}) <= frame.size(), "offsets lie within the frame");
    if (arrival.kind != frame::ArrivalKind::ours && arrival.kind != frame::ArrivalKind::other_trial) {
        return;
    }
    holds(arrival.payload + frame::signature::bytes <= frame.size(), "a mark lies within the frame");
    for (const auto& direction : scenario.streams) {
        for (const auto& stream : direction) {
            if (!stream) {
                continue;
            }
            const frame::Faults faults = frame::verify(frame, arrival, *stream, stream->values(3));
            std::size_t name = 0;
            for (std::size_t i = 0; i < frame::fault_count; ++i) {
                if (faults.has(static_cast<frame::Fault>(i))) {
                    holds(is_verified(i), "`verify` gives no fault of the receiver's");
                    reached_faults.note(name);
                }
                name += is_verified(i) ? 1 : 0;
            }
        }
    }
}

/// What the recognizer takes for a frame of the stream has no fault.
void recognize(std::span<const std::byte> frame, const Scenario& scenario, const frame::Recognizer& recognizer) {
    if (!recognizer.matches(frame)) {
        return;
    }
    const auto place = scenario.mix.place_of(recognizer.index(frame.data()));
    const frame::FrameValues values = recognizer.stream().values(place.number_in_class);
    if (test::recognizes(recognizer, frame, place.number_in_class)) {
        const frame::Arrival arrival = frame::classify(frame, test::trial_id());
        holds(arrival.kind == frame::ArrivalKind::ours && arrival.payload == recognizer.arrival().payload, "a recognized frame is ours");
        holds(frame::verify(frame, arrival, recognizer.stream(), values).none(), "a recognized frame has no fault");
        reached_others.note(0);
    }
}

void read_as_neighbour(std::span<const std::byte> frame) {
    const loop::NeighborMessage message = loop::read_neighbor_message(frame);
    if (message.question) {
        reached_others.note(1);
    }
    if (message.fact) {
        reached_others.note(2);
    }
}

/// The reference gateway only looks; refdut_translator has it forward frames.
void read_as_gateway(std::span<std::byte> frame) {
    static const net::Address own = test::address_of("198.18.0.1");
    static const refdut::TestFrames test_frames{{own, test::address_of("2001:2::1")}, nullptr, refdut::Mode::map_e_br};
    const refdut::Packet packet{.begin = frame.data(), .bytes = frame.size()};
    refdut::View view;
    if (refdut::read_headers(packet, view) == refdut::Drop::none) {
        holds(view.ip <= view.upper && view.upper <= view.end() && view.end() <= frame.size(), "the parts of a packet lie within it");
        reached_others.note(3);
    }
    if (test_frames.has(packet)) {
        reached_others.note(4);
    }
    refdut::Neighbours neighbours{{.own_mac = {}, .vlan_id = {}, .ipv4 = own, .ipv6 = {}, .peer_mac = {}}};
    refdut::Neighbours::Taken taken;
    neighbours.take(frame, taken);
    holds(taken.answer_frame.bytes <= taken.answer_frame.data.size() && (!taken.answer || taken.consumed), "an answer fits");
    if (taken.consumed) {
        reached_others.note(5);
    }
}

const std::vector<frame::Recognizer>& recognizers_of(std::size_t number) {
    static const std::vector<std::vector<frame::Recognizer>> all = [] {
        std::vector<std::vector<frame::Recognizer>> list;
        for (const Scenario& scenario : scenarios()) {
            auto& recognizers = list.emplace_back();
            for (const auto& direction : scenario.streams) {
                for (const auto& stream : direction) {
                    if (stream) {
                        recognizers.emplace_back(*stream);
                    }
                }
            }
        }
        return list;
    }();
    return all[number];
}

}  // namespace

void run(Script& script) {
    const std::size_t number = script.below(scenarios().size());
    const Scenario& scenario = scenarios()[number];
    const Bytes bytes = some_frame(script, scenario);
    const auto exact = std::make_unique_for_overwrite<std::byte[]>(bytes.size());
    std::ranges::copy(bytes, exact.get());
    const std::span frame{exact.get(), bytes.size()};
    read_as_tester(frame, scenario);
    for (const frame::Recognizer& recognizer : recognizers_of(number)) {
        recognize(frame, scenario, recognizer);
    }
    read_as_neighbour(frame);
    read_as_gateway(frame);
}

}  // namespace gatemark::fuzz
