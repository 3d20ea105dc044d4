#include "enumerate/connection_set.hpp"
#include "streams.hpp"
#include "tick_counter.hpp"

/// Which connection a frame belongs to, and a proof that 2^32 connections are enumerated once each.
namespace gatemark::bench {

namespace {

void set_up(benchmark::State& state) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    TickCounter counter{state};
    for (auto unused : state) {
        const enumerate::ConnectionSet set{ranges_for(count), enumerate::Order::pseudorandom, count, 1};
        benchmark::DoNotOptimize(set.tuple_of(0));
        counter.add(1);
    }
    state.counters["bytes"] = sizeof(enumerate::ConnectionSet);
}

/// All that is done before the first frame of customer edges.
void set_up_edges(benchmark::State& state) {
    const net::Prefix ipv6 = net::parse_prefix("2001:db8::/32").value(), ipv4 = net::parse_prefix("0.0.0.0/0").value(),
                      dmr = net::parse_prefix("64:ff9b::/96").value();
    const frame::EdgesRequest request{.domains = {{.rule = {.ipv6 = ipv6, .ipv4 = ipv4, .ea_bits = 48, .psid_offset = 0, .dmr = dmr}}},
                                      .count = static_cast<std::uint64_t>(state.range(0))};
    TickCounter counter{state};
    for (auto unused : state) {
        auto edges = std::get<frame::CustomerEdges>(frame::CustomerEdges::make(request, 1, "bench"));
        const frame::EdgeTraffic traffic{std::make_shared<const frame::CustomerEdges>(std::move(edges)), request, {}, 1};
        benchmark::DoNotOptimize(traffic.edge_of(0));
        counter.add(1);
    }
}

void permute(benchmark::State& state) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    const enumerate::Permutation permutation{count, 1};
    TickCounter counter{state};
    std::uint64_t place = 0;
    for (auto unused : state) {
        for (std::size_t i = 0; i < burst_frames; ++i) {
            benchmark::DoNotOptimize(permutation.at(place));
            place = place + 1 < count ? place + 1 : 0;
        }
        counter.add(burst_frames);
    }
}

/// As in a sender: for a whole burst at once.
void permute_burst(benchmark::State& state) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    const enumerate::Permutation permutation{count, 1};
    TickCounter counter{state};
    std::array<std::uint64_t, burst_frames> places{};
    for (auto unused : state) {
        for (std::uint64_t& place : places) {
            place = place + 1 < count ? place + 1 : 0;  // depends on the last burst
        }
        permutation.put_at(places);
        benchmark::DoNotOptimize(places);
        counter.add(burst_frames);
    }
}

void enumerate_tuples(benchmark::State& state, enumerate::Order order) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    const enumerate::ConnectionSet set{ranges_for(count), order, count, 1};
    TickCounter counter{state};
    std::uint64_t connection = 0;
    for (auto unused : state) {
        for (std::size_t i = 0; i < burst_frames; ++i) {
            benchmark::DoNotOptimize(set.tuple_of(connection));
            connection = connection + 1 < count ? connection + 1 : 0;
        }
        counter.add(burst_frames);
    }
}

/// Checks with a bitmap of 512 MiB that every number below 2^32 comes exactly once. Not part of
/// `make bench`: it takes a minute.
void proof_of_bijection(benchmark::State& state) {
    const std::uint64_t count = std::uint64_t{1} << 32;
    std::vector<std::uint64_t> visited(count / 64);
    const enumerate::Permutation permutation{count, 42};
    TickCounter counter{state};
    for (auto unused : state) {
        std::uint64_t distinct = 0;
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t number = permutation.at(i), bit = std::uint64_t{1} << (number % 64);
            distinct += (visited[number / 64] & bit) == 0 ? 1 : 0;
            visited[number / 64] |= bit;
        }
        if (distinct != count) {
            state.SkipWithError("not every number was taken once");
        }
        counter.add(count);
        state.counters["distinct"] = static_cast<double>(distinct);
    }
}

constexpr std::int64_t million = 1'000'000;

BENCHMARK(set_up)->Arg(1600 * million);
BENCHMARK(set_up_edges)->Arg(1'000)->Arg(16'777'216)->Arg(std::int64_t{1} << 40);
BENCHMARK(permute)->Arg(4 * million)->Arg(1600 * million);
BENCHMARK(permute_burst)->Arg(4 * million)->Arg(1600 * million);
BENCHMARK_CAPTURE(enumerate_tuples, increasing, enumerate::Order::increasing)->Arg(400 * million);
BENCHMARK_CAPTURE(enumerate_tuples, pseudorandom, enumerate::Order::pseudorandom)->Arg(400 * million)->Arg(1600 * million);
BENCHMARK(proof_of_bijection)->Iterations(1)->Repetitions(1)->Unit(benchmark::kSecond);

}  // namespace

}  // namespace gatemark::bench
