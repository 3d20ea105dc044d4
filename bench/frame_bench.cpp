#include "bench_streams.hpp"
#include "frame/arrival.hpp"
#include "frame/verification.hpp"

#include <array>

/// What one frame costs in cache: written by the sender, verified by the receiver.
namespace gatemark::bench {

namespace {

constexpr std::size_t frames_in_flight = 64;
constexpr std::uint32_t tag = 0x12345678;

void write_frames(benchmark::State& state, net::Family family, Varying varying) {
    const frame::Stream stream = stream_for(family, varying, tag);
    std::vector<std::vector<std::byte>> frames(frames_in_flight, stream.sent().frame);
    std::uint64_t index = 0;
    TickCounter counter{state};
    for (auto unused : state) {
        for (auto& frame : frames) {
            frame::write_frame(stream.sent(), frame.data(), stream.values(index), stream.octet(), index, pace::Ticks{index});
            ++index;
        }
        benchmark::ClobberMemory();
        counter.add(frames.size());
    }
}

void verify_frames(benchmark::State& state, net::Family family) {
    const frame::Stream stream = stream_for(family, Varying::ports_and_hosts, tag);
    std::vector<std::vector<std::byte>> frames(frames_in_flight, stream.sent().frame);
    for (std::uint64_t index = 0; auto& frame : frames) {
        frame::write_frame(stream.sent(), frame.data(), stream.values(index), stream.octet(), index, {});
        ++index;
    }
    TickCounter counter{state};
    for (auto unused : state) {
        for (const auto& frame : frames) {
            const frame::Arrival arrival = frame::classify(frame, tag);
            const std::uint64_t index = frame::signature::index(frame.data() + arrival.payload);
            const frame::Faults faults = frame::verify(frame, arrival, stream, stream.values(index));
            if (arrival.kind != frame::ArrivalKind::ours || !faults.none()) {
                state.SkipWithError("a correct frame was found faulty");
            }
        }
        counter.add(frames.size());
    }
}

BENCHMARK_CAPTURE(write_frames, ipv4_fixed, net::Family::ipv4, Varying::nothing);
BENCHMARK_CAPTURE(write_frames, ipv4_random_ports, net::Family::ipv4, Varying::ports);
BENCHMARK_CAPTURE(write_frames, ipv4_random_hosts, net::Family::ipv4, Varying::hosts);
BENCHMARK_CAPTURE(write_frames, ipv4_random_both, net::Family::ipv4, Varying::ports_and_hosts);
BENCHMARK_CAPTURE(write_frames, ipv6_random_both, net::Family::ipv6, Varying::ports_and_hosts);
BENCHMARK_CAPTURE(verify_frames, ipv4, net::Family::ipv4);
BENCHMARK_CAPTURE(verify_frames, ipv6, net::Family::ipv6);

}  // namespace

}  // namespace gatemark::bench
