#include "loops.hpp"

/// The whole receiver on frames in memory: what it costs apart from its port.
namespace gatemark::bench {

namespace {

/// Costs what a reading costs, but frames that were written at `written` have delays of up to 60
/// microseconds.
struct NearClock {
    static constexpr std::uint64_t written = std::uint64_t{1} << 40;
    [[nodiscard]] pace::Ticks now() const noexcept { return {written + (pace::CycleClock{}.now().value & 0x1ffff)}; }
};

constexpr std::size_t frames_stored = 4096;
constexpr std::uint64_t million = 1'000'000;

void receive_stored(benchmark::State& state, const frame::Stream& stream, ReceiverParts& parts) {
    const StoredFrames frames = received_frames(stream, frames_stored, {NearClock::written});
    StoredQueue queue{frames, parts.arrivals};
    receive<NearClock>(state, queue, parts);
}

enum class Delays : std::uint8_t { all, tags_and_variation };

void receive_in_memory(benchmark::State& state, net::Family family, std::size_t frame_octets, Delays delays) {
    const frame::Stream stream = stream_for(family, Varying::ports_and_hosts, frame_octets);
    ReceiverParts parts{stream, frames_stored};
    if (delays == Delays::tags_and_variation) {
        parts.record_tags_and_variation();
    }
    receive_stored(state, stream, parts);
}

/// The Initiator's frames as they leave a NAT44, with connections drawn from 40 million.
void receive_connections(benchmark::State& state, state::Phase phase) {
    constexpr std::uint64_t connections = 40 * million;
    const frame::Stream stream = connection_stream(frame::Role::initiator, connections,
                                                   phase == state::Phase::establish ? Choice::increasing : Choice::pseudorandom);
    ReceiverParts parts{stream, frames_stored};
    parts.keep_connections(phase, connections);
    receive_stored(state, stream, parts);
}

/// What a border relay delivers of 65,536 customer edges.
void receive_map_t(benchmark::State& state, frame::signature::Direction direction) {
    const frame::Stream stream = map_t_stream(direction);
    ReceiverParts parts{stream, frames_stored};
    receive_stored(state, stream, parts);
}

BENCHMARK_CAPTURE(receive_in_memory, ipv4, net::Family::ipv4, 64, Delays::all);
BENCHMARK_CAPTURE(receive_in_memory, ipv6, net::Family::ipv6, 84, Delays::all);
BENCHMARK_CAPTURE(receive_in_memory, ipv4_1518, net::Family::ipv4, 1518, Delays::all);
BENCHMARK_CAPTURE(receive_in_memory, ipv6_1518, net::Family::ipv6, 1518, Delays::all);
BENCHMARK_CAPTURE(receive_in_memory, ipv4_tags_and_variation, net::Family::ipv4, 64, Delays::tags_and_variation);
BENCHMARK_CAPTURE(receive_connections, phase_1, state::Phase::establish);
BENCHMARK_CAPTURE(receive_connections, phase_2, state::Phase::use);
BENCHMARK_CAPTURE(receive_map_t, 6to4, frame::signature::Direction::forward);
BENCHMARK_CAPTURE(receive_map_t, 4to6, frame::signature::Direction::reverse);

}  // namespace

}  // namespace gatemark::bench
