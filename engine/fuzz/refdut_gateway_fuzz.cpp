#include "fuzz/frames.hpp"
#include "fuzz/holds.hpp"
#include "fuzz/reached.hpp"
#include "loop/neighbor_messages.hpp"
#include "refdut/gateway.hpp"
#include "refdut/map_vectors.hpp"
#include "refdut/memory_forwarding_port.hpp"
#include "refdut/packets.hpp"
#include "refdut/tunnel_packets.hpp"

#include <algorithm>

/// The whole reference gateway between two ports of memory: frames on both sides, time that passes,
/// commands in between. Its counts balance at every moment, and no buffer is lost.
namespace gatemark::fuzz {
namespace {

using namespace refdut;
using test::Bytes;

using TestGateway = refdut::Gateway<MemoryForwardingPort, StoppedClock>;

constexpr std::uint64_t second = 1'000'000'000, ms = 1'000'000;  // ticks are nanoseconds
constexpr std::size_t steps_max = 24, raw_bytes_max = 160;
const std::array<net::MacAddress, 2> own{*net::parse_mac("02:00:00:00:00:01"), *net::parse_mac("02:00:00:00:00:02")},
    peers{*net::parse_mac("02:00:00:00:01:01"), *net::parse_mac("02:00:00:00:01:02")};

/// The buffers of the ports always have room for a tag.
constexpr std::array<OwnDrop, 7> own_drops{OwnDrop::queue_full, OwnDrop::recovery,  OwnDrop::reset,        OwnDrop::no_neighbour,
                                           OwnDrop::too_long,   OwnDrop::hold_full, OwnDrop::transmit_full};
constexpr auto own_drops_reached = names_of_these(own_drops);
Reached reached_drops{"own_drop", own_drops_reached};
constexpr std::array fates{DirectionCount::forwarded,    DirectionCount::lost,           DirectionCount::held,
                           DirectionCount::duplicated,   DirectionCount::reordered,      DirectionCount::reorder_short,
                           DirectionCount::carried_over, DirectionCount::not_applicable, DirectionCount::late,
                           DirectionCount::hairpinned};
constexpr auto fates_reached = names_of_these(fates);
Reached reached_fates{"fate", fates_reached};
Reached reached_neighbours{"neighbour", names_of<NeighbourCount>};
Reached reached_others{"other", names_of<OtherCount>};

constexpr const char* relay = "2001:2:ffff::1";

SelectorSpec some_selector(Script& script) {
    switch (script.byte() % 4) {
        case 0: return {.kind = SelectorSpec::Kind::every, .count = 1 + script.below(4)};
        case 1: return {.kind = SelectorSpec::Kind::probability, .count = 1, .probability = script.byte() / 255.0};
        case 2: return {.kind = SelectorSpec::Kind::first, .count = script.below(8)};
        default:
            return {.kind = SelectorSpec::Kind::window,
                    .count = 1,
                    .probability = 0,
                    .from_ns = script.byte() * ms,
                    .to_ns = script.byte() * ms};
    }
}

/// Of 64, so that inputs keep their meaning when there are more.
Field some_field(Script& script) {
    const std::size_t number = script.below(64);
    return number < field_count ? static_cast<Field>(number) : Field::payload;
}

DirectionSettings some_direction(Script& script) {
    DirectionSettings direction;
    const std::uint8_t kinds = script.byte();
    if ((kinds & 1U) != 0) {
        direction.shaper = {.frames_per_second = 1 + script.below(2000),
                            .queue_frames = script.below(3),
                            .recovery_ns = script.byte() * ms,
                            .recovery_loss = 1 + script.below(3)};
    }
    if ((kinds & 2U) != 0) {
        direction.delay = {.kind = DelaySpec::Kind::periodic, .values_ns = {script.byte() * ms, script.byte() * ms}};
    }
    direction.keep_order = (kinds & 4U) == 0;
    if ((kinds & 8U) != 0) {
        direction.impairments.loss = {some_selector(script)};
    }
    if ((kinds & 16U) != 0) {
        direction.impairments.duplicate = {some_selector(script)};
    }
    if ((kinds & 32U) != 0) {
        direction.impairments.reorder = {{.selector = some_selector(script), .by = 1 + static_cast<std::uint32_t>(script.below(3))}};
    }
    if ((kinds & 64U) != 0) {
        direction.impairments.corrupt = {{.selector = some_selector(script), .field = some_field(script)}};
    }
    return direction;
}

Settings some_settings(Script& script) {
    Settings settings;
    settings.held_frames = 1 + script.below(8);
    settings.sides[0].ipv4 = test::address_of("198.18.0.1");
    settings.sides[0].ipv6 = test::address_of("2001:2::1");
    settings.sides[1].ipv4 = test::address_of("198.19.0.1");
    const std::uint8_t sides = script.byte();
    for (std::size_t i = 0; i < 2; ++i) {
        settings.sides[i].vlan_id = (sides >> i & 1U) != 0 ? std::optional<std::uint16_t>{100} : std::nullopt;
        settings.sides[i].peer_mac = (sides >> i & 4U) != 0 ? std::nullopt : std::optional{peers[i]};
        settings.sides[i].mtu = (sides >> i & 16U) != 0 ? 100 : 1500;
    }
    static constexpr std::array modes{Mode::router, Mode::nat44, Mode::map_e_br, Mode::map_t_br};
    settings.translation.mode = modes[sides >> 6U];
    settings.translation.assigned_addresses = {*settings.sides[0].ipv4, *settings.sides[0].ipv6, *settings.sides[1].ipv4};
    settings.table.capacity = 2;
    if (settings.translation.mode == Mode::nat44) {
        settings.translation.pool = pool_of({"198.19.0.1/32"}, 5000, 5010);
    } else if (has_rules(settings.translation.mode)) {
        settings.translation.domains = {rule_of("2001:2:100::/56", "198.18.0.0/24", 8, 0)};
        if (has_tunnels(settings.translation.mode)) {
            settings.translation.domains[0].dmr.reset();
            settings.translation.tunnel.relay = test::address_of(relay);
        }
    }
    settings.directions = {some_direction(script), some_direction(script)};
    return settings;
}

Bytes some_frame(Script& script, std::size_t side, bool tagged, Mode mode) {
    const bool map = mode == Mode::map_t_br, in_tunnel = mode == Mode::map_e_br && side == 0;
    const std::uint8_t kind = script.byte() % 8;
    if (kind == 7) {
        return raw_frame(script, raw_bytes_max);
    }
    if (kind == 6) {
        const loop::NeighborLink link{.own_mac = peers[side], .vlan_id = tagged ? std::optional<std::uint16_t>{100} : std::nullopt};
        const bool ipv4 = script.one_in(2);
        const net::Address target = test::address_of(ipv4 ? (side == 0 ? "198.18.0.1" : "198.19.0.1") : "2001:2::1");
        const auto question = loop::write_question(link, target, test::address_of(ipv4 ? "198.18.0.2" : "2001:2::2"));
        return {question.data.begin(), question.data.begin() + static_cast<std::ptrdiff_t>(question.bytes)};
    }
    static constexpr std::array addresses{"198.18.0.2", "198.19.0.2", "198.19.0.1", "224.0.0.1"};
    static constexpr std::array addresses6{"2001:2::2", "2001:2:0:8000::2", "2001:2::1", "fe80::1"};
    // Of a customer, outside, the gateway's, of another customer.
    static constexpr std::array map_addresses6{"2001:2:100:2:0:c612:2:0", "64:ff9b::c613:2", "2001:2::1", "64:ff9b::c612:3"};
    const bool ipv4 = map ? side == 1 : kind < 5;
    const auto address = [&](std::size_t number) { return ipv4 ? addresses[number] : map ? map_addresses6[number] : addresses6[number]; };
    const std::size_t to = script.below(8);
    test::SlowPacket packet = udp_packet(address(side), address(to < 4 ? to : 1 - side), static_cast<std::uint16_t>(5000 + script.below(4)),
                                         static_cast<std::uint16_t>(5000 + script.below(4)), script.below(100));
    packet.link_destination = own[side];
    packet.link_source = peers[side];
    packet.vlan = tagged ? std::optional<std::uint16_t>{100} : std::nullopt;
    if (in_tunnel && ipv4) {
        const SlowTunnel tunnel{.source = test::address_of(map_addresses6[0]), .destination = test::address_of(relay)};
        return tunnel.around(test::write_packet(packet));
    }
    return test::write_packet(packet);
}

class Bed {
public:
    explicit Bed(Script& script)
        : settings_{some_settings(script)},
          program_{make_program(settings_, own, second, nullptr)},
          gateway_{*program_, ports_[0], ports_[1], second, StoppedClock{&now_}} {}
    ~Bed() {
        for (MemoryForwardingPort& port : ports_) {
            port.accepts = SIZE_MAX;
        }
        for (int i = 0; i < 3; ++i) {  // what waits at a port, then what is delayed, then what waits to be overtaken
            gateway_.poll();
            now_ += 3600 * second;
        }
        const Snapshot last = check();
        holds(last.counts.directions[0][DirectionCount::held] + last.counts.directions[1][DirectionCount::held] == 0,
              "nothing is held for ever");
        holds(MemoryForwardingPort::in_use == 0, "no buffer is lost");
    }
    Bed(const Bed&) = delete;
    Bed& operator=(const Bed&) = delete;

    void step(Script& script) {
        const std::uint8_t kind = script.byte() % 16;
        if (kind < 10) {
            const std::size_t side = kind % 2;
            Bytes frame = some_frame(script, side, settings_.sides[side].vlan_id.has_value(), settings_.translation.mode);
            damage(script, frame);
            ports_[side].arrive(frame);
        } else if (kind < 13) {
            now_ += script.byte() * ms / 4;
            gateway_.poll();
            (void)check();
        } else if (kind == 13) {
            ports_[script.below(2)].accepts = script.below(3);
        } else {
            command(script);
        }
    }

private:
    void command(Script& script) {
        static constexpr std::array kinds{Command::Kind::reset_counts, Command::Kind::clear, Command::Kind::reset, Command::Kind::load};
        Command order{.kind = kinds[script.below(kinds.size())], .program = nullptr, .duration_ns = script.byte() * ms, .snapshot = {}};
        std::unique_ptr<Program> next;
        if (order.kind == Command::Kind::load) {
            Settings wanted = some_settings(script);
            wanted.held_frames = settings_.held_frames;
            settings_ = wanted;
            next = make_program(wanted, own, second, program_.get());
            order.program = next.get();
        }
        gateway_.execute(order);
        if (next) {
            program_ = std::move(next);
        }
        (void)check();
    }
    Snapshot check() {
        Command order;
        gateway_.execute(order);
        const GatewayCounts& counts = order.snapshot.counts;
        for (const DirectionCounts& direction : counts.directions) {
            holds(direction.balanced(), "test frames are forwarded, lost, dropped or held");
            holds(direction[DirectionCount::test_frames] <= direction[DirectionCount::received], "a test frame has arrived");
            reached_drops.note_counted(own_drops, direction.own_drops);
            reached_fates.note_counted(fates, direction.frames);
        }
        reached_neighbours.note_counted(counts.neighbour);
        reached_others.note_counted(counts.other);
        holds(order.snapshot.connections <= order.snapshot.capacity || order.snapshot.capacity == 0,
              "the table holds its capacity at most");
        return order.snapshot;
    }

    std::uint64_t now_ = second;
    Settings settings_;
    std::unique_ptr<Program> program_;
    std::array<MemoryForwardingPort, 2> ports_;
    TestGateway gateway_;
};

}  // namespace

void run(Script& script) {
    Bed bed{script};
    for (std::size_t i = 0; i < steps_max && !script.at_end(); ++i) {
        bed.step(script);
    }
}

}  // namespace gatemark::fuzz
