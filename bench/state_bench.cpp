#include "state/reply_writer.hpp"
#include "streams.hpp"
#include "tick_counter.hpp"

#include <numeric>
#include <vector>

/// The state table alone, and the Responder's frames written from it, without sender or port.
namespace gatemark::bench {

namespace {

void write_table(benchmark::State& state) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    state::StateTable& table = full_table(count);
    const RandomSequence words{1, 1};
    TickCounter counter{state};
    std::uint64_t j = 0;
    for (auto unused : state) {
        for (std::size_t i = 0; i < burst_frames; ++i, ++j) {
            const std::uint64_t connection = scale_wide_to(words.at(j), count);
            table.write(connection, endpoint_of(connection));
        }
        counter.add(burst_frames);
    }
}

/// A burst of entries asked for, then read and written into frames.
void write_reply(benchmark::State& state) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    const frame::Stream stream = connection_stream(frame::Role::responder, count, Choice::pseudorandom);
    const net::AddressPool pool = public_pool();
    state::ReplyWriter writer{stream, full_table(count), pool, 1};
    std::vector<std::byte> bytes = stream.sent().frame;
    frame::BurstFrames frames{.count = burst_frames};
    frames.frames.fill(bytes.data());
    TickCounter counter{state};
    std::uint64_t j = 0;
    for (auto unused : state) {
        for (std::size_t i = 0; i < burst_frames; ++i, ++j) {
            frames.numbers[i] = frames.indexes[i] = j;
        }
        writer.write(frames, {j});
        benchmark::ClobberMemory();
        counter.add(burst_frames);
    }
}

/// A table of 1.6 GB gets its memory; by so many threads.
void touch_table(benchmark::State& state) {
    constexpr std::size_t entries = 200'000'000;
    std::vector<unsigned> cpus(static_cast<std::size_t>(state.range(0)));
    std::iota(cpus.begin(), cpus.end(), 0U);
    TickCounter counter{state};
    for (auto unused : state) {
        const PagedMemory<std::uint64_t> table{entries, PagedMemory<std::uint64_t>::Touch::now, cpus};
        benchmark::DoNotOptimize(table.data());
        counter.add(entries);
    }
}

constexpr std::int64_t million = 1'000'000;

BENCHMARK(write_table)->Arg(4 * million)->Arg(40 * million);
BENCHMARK(write_reply)->Arg(4'000)->Arg(40 * million);
BENCHMARK(touch_table)->Arg(1)->Arg(2);

}  // namespace

}  // namespace gatemark::bench
