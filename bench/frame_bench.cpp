#include "frame/arrival.hpp"
#include "frame/verification.hpp"
#include "loops.hpp"

/// What one frame costs in cache: written from its template, verified.
namespace gatemark::bench {

namespace {

constexpr std::size_t frames_in_flight = 64;

void write_frame(benchmark::State& state, net::Family family, Varying varying) {
    const frame::Stream stream = stream_for(family, varying);
    std::vector<std::vector<std::byte>> frames(frames_in_flight, stream.sent().frame);
    std::uint64_t index = 0;
    TickCounter counter{state};
    for (auto unused : state) {
        for (auto& frame : frames) {
            frame::write_frame(stream.sent(), frame.data(), stream.values(index), stream.id(), index, pace::Ticks{index});
            ++index;
        }
        benchmark::ClobberMemory();
        counter.add(frames.size());
    }
}

void verify_frame(benchmark::State& state, net::Family family, std::size_t frame_octets) {
    const frame::Stream stream = stream_for(family, Varying::ports_and_hosts, frame_octets);
    const StoredFrames stored{stream, frames_in_flight, {}};
    std::vector<std::span<const std::byte>> frames;
    for (std::size_t i = 0; i < frames_in_flight; ++i) {
        frames.emplace_back(stored.at(i), stored.frame_bytes());
    }
    TickCounter counter{state};
    for (auto unused : state) {
        for (const auto& frame : frames) {
            const frame::Arrival arrival = frame::classify(frame, trial_id);
            const std::uint64_t index = frame::signature::index(frame.data() + arrival.payload);
            const frame::Faults faults = frame::verify(frame, arrival, stream, stream.values(index));
            if (arrival.kind != frame::ArrivalKind::ours || !faults.none()) {
                state.SkipWithError("a correct frame was found faulty");
            }
        }
        counter.add(frames.size());
    }
}

/// The whole sender, without a port.
void send_to_memory(benchmark::State& state, net::Family family, Varying varying) {
    const frame::Stream stream = stream_for(family, varying);
    DiscardingQueue queue{stream};
    send(state, stream, queue, frame::StreamWriter{stream});
}

BENCHMARK_CAPTURE(write_frame, ipv4_fixed, net::Family::ipv4, Varying::nothing);
BENCHMARK_CAPTURE(write_frame, ipv4_ports, net::Family::ipv4, Varying::ports);
BENCHMARK_CAPTURE(write_frame, ipv4_hosts, net::Family::ipv4, Varying::hosts);
BENCHMARK_CAPTURE(write_frame, ipv4_both, net::Family::ipv4, Varying::ports_and_hosts);
BENCHMARK_CAPTURE(write_frame, ipv6_both, net::Family::ipv6, Varying::ports_and_hosts);
BENCHMARK_CAPTURE(verify_frame, ipv4, net::Family::ipv4, 64);
BENCHMARK_CAPTURE(verify_frame, ipv6, net::Family::ipv6, 84);
BENCHMARK_CAPTURE(verify_frame, ipv4_1518, net::Family::ipv4, 1518);
BENCHMARK_CAPTURE(send_to_memory, ipv4_both, net::Family::ipv4, Varying::ports_and_hosts);
BENCHMARK_CAPTURE(send_to_memory, ipv6_both, net::Family::ipv6, Varying::ports_and_hosts);

}  // namespace

}  // namespace gatemark::bench
