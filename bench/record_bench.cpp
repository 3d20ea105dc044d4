#include "base/random.hpp"
#include "record/arrival_bitmap.hpp"
#include "record/delay_recorder.hpp"
#include "record/lateness.hpp"
#include "record/loss.hpp"
#include "record/loss_ages.hpp"
#include "record/loss_table.hpp"
#include "streams.hpp"
#include "tick_counter.hpp"

#include <array>
#include <utility>

/// What is recorded for each frame: bitmap, delay histogram, tags, delay variation, lateness. With
/// two threads, both write to the same recorder.
namespace gatemark::bench {

namespace {

constexpr std::uint64_t batch = 1024;

/// Delays of 20 to 150 microseconds, like those of a loaded gateway.
pace::Ticks delay_at(std::uint64_t i) { return {0xc000 + (mix_bits(i) & 0x3ffff)}; }

record::Receivers receivers_of(const benchmark::State& state) {
    return state.threads() == 1 ? record::Receivers::one : record::Receivers::many;
}

/// Calls each(index) for frames 0, 1, 2, ..., of which thread t of n takes t, t + n, t + 2n, ...
template <class Each>
void for_frames(benchmark::State& state, Each&& each) {
    pin_from_last(state.thread_index());
    const auto threads = static_cast<std::uint64_t>(state.threads());
    auto index = static_cast<std::uint64_t>(state.thread_index());
    TickCounter counter{state};
    bool first = true;
    for (auto unused : state) {
        if (std::exchange(first, false)) {
            counter.restart();  // the threads waited for each other
        }
        for (std::uint64_t i = 0; i < batch; ++i, index += threads) {
            each(index);
        }
        counter.add(batch);
    }
}

void mark_bitmap(benchmark::State& state) {
    static record::ArrivalBitmap bitmap;
    constexpr std::uint64_t frames = std::uint64_t{1} << 28;  // 32 MiB, as for a trial of 27 s at 10 million frames/s
    if (state.thread_index() == 0) {
        bitmap.reset(frames, receivers_of(state));
    }
    for_frames(state, [](std::uint64_t index) { benchmark::DoNotOptimize(bitmap.mark(index % frames)); });
}

void make_delay(benchmark::State& state) {
    for_frames(state, [](std::uint64_t index) { benchmark::DoNotOptimize(delay_at(index)); });
}

void add_delay(benchmark::State& state) {
    record::DelayHistogram histogram;
    for_frames(state, [&](std::uint64_t index) { histogram.add(delay_at(index)); });
}

void put_delay_variation(benchmark::State& state) {
    static record::DelayWindow window;
    if (state.thread_index() == 0) {
        window.reset(receivers_of(state));
    }
    record::DelayVariation variation;
    for_frames(state, [&](std::uint64_t index) {
        const auto differences = window.put(index, delay_at(index));
        for (const auto& difference : {differences.to_before, differences.to_after}) {
            if (difference) {
                variation.add(*difference);
            }
        }
    });
}

void find_tag(benchmark::State& state) {
    record::TagFinder finder{{.first = 0, .frames = std::uint64_t{1} << 40, .count = 500'000'000}};
    for_frames(state, [&](std::uint64_t index) { benchmark::DoNotOptimize(finder.find(index)); });
}

void add_lateness(benchmark::State& state) {
    record::LatenessHistogram lateness;
    for_frames(state, [&](std::uint64_t index) { lateness.add(delay_at(index)); });
    benchmark::DoNotOptimize(lateness);
}

/// Derives the losses of a trial from its bitmap, where a percentage of the frames is lost, either
/// singly or, as when a gateway's queue overflows, eight in a row.
void find_losses(benchmark::State& state) {
    constexpr std::uint64_t frames = 16'000'000;
    const auto percent = static_cast<std::uint64_t>(state.range(0)), in_a_row = static_cast<std::uint64_t>(state.range(1));
    record::ArrivalBitmap bitmap;
    bitmap.reset(frames);
    for (std::uint64_t i = 0; i < frames; ++i) {
        if (mix_bits(i / in_a_row) % 100 >= percent) {
            bitmap.mark(i);
        }
    }
    TickCounter counter{state};
    for (auto unused : state) {
        benchmark::DoNotOptimize(record::find_losses(bitmap, pace::Mix{1, 1}, std::array<std::uint64_t, 1>{frames}));
        counter.add(frames);
    }
}

/// Which of 16 million frames were lost, by what they differ by: everything that is done only where
/// frames were lost. A million of them takes 200 ms at most.
void explain_losses(benchmark::State& state) {
    constexpr std::uint64_t frames = 16'000'000;
    const auto per_1000 = static_cast<std::uint64_t>(state.range(0));
    const frame::Stream stream = stream_for(net::Family::ipv6, Varying::ports_and_hosts);
    record::ArrivalBitmap bitmap;
    bitmap.reset(frames);
    std::uint64_t lost = 0;
    for (std::uint64_t i = 0; i < frames; ++i) {
        if (mix_bits(i) % 1000 >= per_1000) {
            bitmap.mark(i);
        } else {
            ++lost;
        }
    }
    TickCounter counter{state};
    for (auto unused : state) {
        benchmark::DoNotOptimize(record::find_longest_runs(bitmap, std::array<std::uint64_t, 1>{frames}));
        benchmark::DoNotOptimize(
            record::tabulate_losses(bitmap, pace::Mix{1, 1}, std::array<std::uint64_t, 1>{frames},
                                    {record::LossyClass{.stream = &stream, .lost = lost, .arrived = frames - lost}, {}}));
        counter.add(frames);
    }
    state.counters["lost"] = static_cast<double>(lost);
}

/// How long the connections of lost frames had been silent, in both directions of a trial with as
/// many frames as are ever gone through.
void find_loss_ages(benchmark::State& state) {
    const auto connections = static_cast<std::uint64_t>(state.range(0));
    const frame::Stream replies = connection_stream(frame::Role::responder, connections, Choice::pseudorandom);
    const frame::Stream requests = connection_stream(frame::Role::initiator, connections, Choice::pseudorandom);
    const pace::Mix mix{1, 1};
    const std::array<std::uint64_t, 1> end{record::aged_frames_max};
    record::ArrivalBitmap bitmap;
    bitmap.reset(end[0]);
    for (std::uint64_t i = 0; i < end[0]; ++i) {
        if (mix_bits(i) % 10 != 0) {
            bitmap.mark(i);
        }
    }
    const record::UsedDirection first{&bitmap, &mix, &replies, end, 1'000'000}, second{&bitmap, &mix, &requests, end, 1'000'000};
    TickCounter counter{state};
    for (auto unused : state) {
        benchmark::DoNotOptimize(
            record::find_loss_ages({first, second}, connections, [](std::uint64_t) { return std::chrono::nanoseconds{-1'000'000'000}; }));
        counter.add(2 * end[0]);
    }
}

BENCHMARK(make_delay);  // what the cases below spend on computing the delay
BENCHMARK(mark_bitmap)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(add_delay);
BENCHMARK(put_delay_variation)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(find_tag);
BENCHMARK(add_lateness);
BENCHMARK(find_losses)->ArgNames({"percent", "in_a_row"})->Args({0, 1})->Args({1, 1})->Args({50, 1})->Args({50, 8})->Args({100, 1});
BENCHMARK(explain_losses)->ArgName("per_1000")->Arg(1)->Arg(63)->Arg(500)->Unit(benchmark::kMillisecond);
BENCHMARK(find_loss_ages)->ArgName("connections")->Arg(10'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

}  // namespace

}  // namespace gatemark::bench
