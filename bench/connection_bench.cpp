#include "bench_streams.hpp"
#include "enumerate/connection_set.hpp"
#include "state/connection_keeper.hpp"
#include "state/reply_writer.hpp"

#include <memory>
#include <vector>

/// What enumeration and the state table cost a frame, without the port; and the proof that 2^32 connections are enumerated each once.
namespace gatemark::bench {

namespace {

constexpr std::size_t burst = 32;

net::AddressPool one_address() {
    return std::get<net::AddressPool>(net::AddressPool::make({net::parse_prefix("198.18.0.2/32").value()}, "bench"));
}

void fill(state::StateTable& table, std::uint64_t count) {
    if (table.reset(count)) {
        throw std::bad_alloc{};
    }
    for (std::uint64_t connection = 0; connection < count; ++connection) {
        table.write(connection, {.address = 0, .port = static_cast<std::uint16_t>(1024 + connection % 60'000)});
    }
}

void set_up(benchmark::State& state) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    for (auto unused : state) {
        const enumerate::ConnectionSet set{ranges_for(count), enumerate::Order::pseudorandom, count, 1};
        benchmark::DoNotOptimize(set.tuple_of(0));
    }
    state.counters["octets"] = sizeof(enumerate::ConnectionSet);
}

void enumerate_tuples(benchmark::State& state, enumerate::Order order) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    const enumerate::ConnectionSet set{ranges_for(count), order, count, 1};
    TickCounter counter{state};
    std::uint64_t connection = 0;
    for (auto unused : state) {
        for (std::size_t i = 0; i < burst; ++i) {
            benchmark::DoNotOptimize(set.tuple_of(connection));
            connection = connection + 1 < count ? connection + 1 : 0;
        }
        counter.add(burst);
    }
}

/// The Initiator of test phase 1: enumerated four-tuple, index, timestamp, both checksums.
void write_phase_one_frame(benchmark::State& state) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    const frame::Stream stream = connection_stream(frame::Role::initiator, count, enumerate::ConnectionChoice::Mode::increasing);
    std::vector<std::byte> octets = stream.sent().frame;
    TickCounter counter{state};
    std::uint64_t j = 0;
    for (auto unused : state) {
        for (std::size_t i = 0; i < burst; ++i, ++j) {
            frame::write_frame(stream.sent(), octets.data(), stream.values(j), stream.octet(), j, {j});
            benchmark::ClobberMemory();
        }
        counter.add(burst);
    }
}

/// The Responder of test phase 2: a burst of entries asked for, then read and written into frames.
void write_reply(benchmark::State& state, enumerate::ConnectionChoice::Mode order) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    const frame::Stream stream = connection_stream(frame::Role::responder, count, order);
    const net::AddressPool pool = one_address();
    state::StateTable table;
    fill(table, count);
    const state::ReplyWriter writer{stream, table, pool};
    std::vector<std::byte> octets = stream.sent().frame;
    TickCounter counter{state};
    std::uint64_t j = 0;
    for (auto unused : state) {
        for (std::size_t i = 0; i < burst; ++i) {
            writer.prefetch(j + i);
        }
        for (std::size_t i = 0; i < burst; ++i, ++j) {
            writer.write(octets.data(), j, j, {j});
            benchmark::ClobberMemory();
        }
        counter.add(burst);
    }
}

void write_table(benchmark::State& state) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    state::StateTable table;
    fill(table, count);
    const RandomSequence words{1, 1};
    TickCounter counter{state};
    std::uint64_t j = 0;
    for (auto unused : state) {
        for (std::size_t i = 0; i < burst; ++i, ++j) {
            table.write(scale_wide_to(words.at(j), count), {.address = j & 0xff, .port = static_cast<std::uint16_t>(j)});
        }
        counter.add(burst);
    }
}

/// Every number below 2^32 exactly once, by a bitmap of 512 MiB; fails loudly if not.
void proof_of_bijection(benchmark::State& state) {
    const std::uint64_t count = std::uint64_t{1} << 32;
    std::vector<std::uint64_t> seen(count / 64);
    const enumerate::Permutation permutation{count, 42};
    TickCounter counter{state};
    for (auto unused : state) {
        std::uint64_t distinct = 0;
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t number = permutation.at(i), bit = std::uint64_t{1} << (number % 64);
            distinct += (seen[number / 64] & bit) == 0 ? 1 : 0;
            seen[number / 64] |= bit;
        }
        if (distinct != count) {
            state.SkipWithError("not every number was taken once");
        }
        counter.add(count);
        state.counters["distinct"] = static_cast<double>(distinct);
    }
}

using Choice = enumerate::ConnectionChoice::Mode;
constexpr std::int64_t thousand = 1000, million = 1'000'000;

BENCHMARK(set_up)->Arg(4 * million)->Arg(1600 * million);
BENCHMARK_CAPTURE(enumerate_tuples, increasing, enumerate::Order::increasing)->Arg(400 * million);
BENCHMARK_CAPTURE(enumerate_tuples, pseudorandom, enumerate::Order::pseudorandom)
    ->Arg(4 * million)
    ->Arg(400 * million)
    ->Arg(1600 * million);
BENCHMARK(write_phase_one_frame)->Arg(4 * million)->Arg(400 * million);
BENCHMARK_CAPTURE(write_reply, increasing, Choice::increasing)->Arg(40 * million);
BENCHMARK_CAPTURE(write_reply, pseudorandom, Choice::pseudorandom)->Arg(4 * thousand)->Arg(4 * million)->Arg(40 * million);
BENCHMARK(write_table)->Arg(4 * million)->Arg(40 * million);
BENCHMARK(proof_of_bijection)->Iterations(1)->Repetitions(1)->Unit(benchmark::kSecond);

}  // namespace

}  // namespace gatemark::bench
