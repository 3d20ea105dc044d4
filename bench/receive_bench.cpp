#include "loops.hpp"

#include <algorithm>
#include <functional>

/// The whole receiver on frames in memory: what it costs apart from its port.
namespace gatemark::bench {

namespace {

/// Costs what a reading costs, but frames that were written at `written` have delays of up to 60
/// microseconds.
struct NearClock {
    static constexpr std::uint64_t written = std::uint64_t{1} << 40;
    [[nodiscard]] pace::Ticks now() const noexcept { return {written + (pace::CycleClock{}.now().value & 0x1ffff)}; }
};

constexpr std::size_t frames_in_cache = 4096;
constexpr std::uint64_t million = 1'000'000;

/// As many frames as together touch twice the lines of the largest cache, in whole bursts. The
/// system says which one that is: sysconf adds up those of all cores of some processors, and so
/// many frames would measure the page tables of gigabytes that no port has.
std::size_t beyond_caches(const frame::Stream& stream) {
    constexpr std::size_t line = 64;
    std::size_t bytes = std::size_t{32} << 20;
    for (const auto& cache : benchmark::CPUInfo::Get().caches) {
        bytes = std::max(bytes, static_cast<std::size_t>(cache.size));
    }
    const std::size_t lines = (stream.expected().frame.size() + line - 1) / line;
    return 2 * bytes / line / lines / burst_frames * burst_frames;
}

/// Every frame is a new one of the trial; its buffer is in no cache unless `count` are few.
void receive_stored(
    benchmark::State& state, const frame::Stream& stream, std::size_t count,
    const std::function<void(ReceiverParts&)>& prepare = [](ReceiverParts&) {}) {
    constexpr std::uint64_t rounds = 16;
    StoredFrames frames{stream, count, {NearClock::written}};
    ReceiverParts parts{stream, rounds * count};
    prepare(parts);
    StoredQueue queue{frames, parts.arrivals, rounds};
    receive<NearClock>(state, queue, parts);
}

enum class Place : std::uint8_t { memory, cache };

void receive_plain(benchmark::State& state, net::Family family, std::size_t frame_octets, Place place) {
    const frame::Stream stream = stream_for(family, Varying::ports_and_hosts, frame_octets);
    receive_stored(state, stream, place == Place::cache ? frames_in_cache : beyond_caches(stream));
}

void receive_tags_and_variation(benchmark::State& state) {
    const frame::Stream stream = stream_for(net::Family::ipv4, Varying::ports_and_hosts);
    receive_stored(state, stream, beyond_caches(stream), [](ReceiverParts& parts) { parts.record_tags_and_variation(); });
}

/// The Initiator's frames as they leave a NAT44: connections in turn, or drawn from all of them.
void receive_connections(benchmark::State& state, state::Phase phase, ConnectionStream stream_of = nat44_stream) {
    const auto connections = static_cast<std::uint64_t>(state.range(0));
    const frame::Stream stream =
        stream_of(frame::Role::initiator, connections, phase == state::Phase::establish ? Choice::increasing : Choice::pseudorandom);
    receive_stored(state, stream, beyond_caches(stream), [&](ReceiverParts& parts) { parts.keep_connections(phase, connections); });
}

/// What a gateway delivers to all its customer edges, and from them.
void receive_edges(benchmark::State& state, const frame::Stream& stream) { receive_stored(state, stream, beyond_caches(stream)); }

BENCHMARK_CAPTURE(receive_plain, in_memory / ipv4, net::Family::ipv4, 64, Place::memory)->Name("receive_in_memory/ipv4");
BENCHMARK_CAPTURE(receive_plain, in_memory / ipv6, net::Family::ipv6, 84, Place::memory)->Name("receive_in_memory/ipv6");
BENCHMARK_CAPTURE(receive_plain, in_memory / ipv4_512, net::Family::ipv4, 512, Place::memory)->Name("receive_in_memory/ipv4_512");
BENCHMARK_CAPTURE(receive_plain, in_memory / ipv4_1518, net::Family::ipv4, 1518, Place::memory)->Name("receive_in_memory/ipv4_1518");
BENCHMARK_CAPTURE(receive_plain, in_memory / ipv6_1518, net::Family::ipv6, 1518, Place::memory)->Name("receive_in_memory/ipv6_1518");
BENCHMARK(receive_tags_and_variation)->Name("receive_in_memory/ipv4_tags_and_variation");
BENCHMARK_CAPTURE(receive_plain, in_cache / ipv4, net::Family::ipv4, 64, Place::cache)->Name("receive_in_cache/ipv4");
BENCHMARK_CAPTURE(receive_plain, in_cache / ipv6, net::Family::ipv6, 84, Place::cache)->Name("receive_in_cache/ipv6");
BENCHMARK_CAPTURE(receive_connections, phase_1, state::Phase::establish)->Arg(40 * million)->Arg(200 * million);
BENCHMARK_CAPTURE(receive_connections, phase_2, state::Phase::use)->Arg(40 * million)->Arg(200 * million);
BENCHMARK_CAPTURE(receive_connections, phase_1_aftr, state::Phase::establish, aftr_stream)
    ->Name("receive_connections_of_aftr/phase_1")
    ->Arg(40 * million);
BENCHMARK_CAPTURE(receive_edges, map_t_6to4, edges_stream(Relay::map_t, frame::signature::Direction::forward));
BENCHMARK_CAPTURE(receive_edges, map_t_4to6, edges_stream(Relay::map_t, frame::signature::Direction::reverse));
BENCHMARK_CAPTURE(receive_edges, map_e_up, edges_stream(Relay::map_e, frame::signature::Direction::forward));
BENCHMARK_CAPTURE(receive_edges, map_e_down, edges_stream(Relay::map_e, frame::signature::Direction::reverse));
BENCHMARK_CAPTURE(receive_edges, lwaftr_up, edges_stream(Relay::lwaftr, frame::signature::Direction::forward));
BENCHMARK_CAPTURE(receive_edges, lwaftr_down, edges_stream(Relay::lwaftr, frame::signature::Direction::reverse));
BENCHMARK_CAPTURE(receive_edges, sixrd_up, sixrd_stream(frame::signature::Direction::forward));
BENCHMARK_CAPTURE(receive_edges, sixrd_down, sixrd_stream(frame::signature::Direction::reverse));

}  // namespace

}  // namespace gatemark::bench
