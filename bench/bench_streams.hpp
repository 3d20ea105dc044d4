#pragma once

#include "frame/stream.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

/// Streams that the benchmarks share, and their unit: cycles of the constant-rate counter per frame.
namespace gatemark::bench {

enum class Varying { nothing, ports, hosts, ports_and_hosts };

inline frame::StreamRequest stream_request(net::Family family, Varying varying) {
    const bool ipv4 = family == net::Family::ipv4;
    const bool hosts = varying == Varying::hosts || varying == Varying::ports_and_hosts;
    const bool ports = varying == Varying::ports || varying == Varying::ports_and_hosts;
    const auto host_set = [&](const char* address) {
        frame::HostSet set{.address = *net::parse_address(address)};
        if (hosts) {
            set.offset = ipv4 ? 2 : 12;
            set.part = {.mode = frame::ValueMode::pseudorandom, .minimum = 2, .maximum = 65534};
        }
        return set;
    };
    const auto port_range = [&](std::uint16_t minimum, std::uint16_t maximum) {
        return frame::ValueRange{
            .mode = ports ? frame::ValueMode::pseudorandom : frame::ValueMode::fixed, .minimum = minimum, .maximum = maximum};
    };
    return {.frame_octets = ipv4 ? std::size_t{64} : std::size_t{84},
            .source = host_set(ipv4 ? "198.18.0.2" : "2001:2::2"),
            .destination = host_set(ipv4 ? "198.19.0.2" : "2001:2:0:8000::2"),
            .source_ports = port_range(1024, 65535),
            .destination_ports = port_range(1, 49151),
            .as_sent = true,
            .hop_limit_decrement = 0};
}

inline frame::Stream stream_for(net::Family family, Varying varying, std::uint32_t tag) {
    auto stream = frame::Stream::make(stream_request(family, varying), frame::signature::Direction::forward,
                                      frame::signature::TrafficClass::foreground, 1, tag, {}, std::nullopt, "bench");
    return std::get<frame::Stream>(std::move(stream));
}

/// 40,000 source ports and as many destination ports as it takes.
inline enumerate::TupleRanges ranges_for(std::uint64_t count) {
    const auto destinations = static_cast<std::uint32_t>((count + 39'999) / 40'000);
    return {.source_ports = {1024, 40'000}, .destination_ports = {1, destinations}, .source_hosts = {}, .destination_hosts = {}};
}

inline frame::Stream connection_stream(frame::Role role, std::uint64_t count, enumerate::ConnectionChoice::Mode choice) {
    frame::StreamRequest request = stream_request(net::Family::ipv4, Varying::nothing);
    request.as_sent = false;
    request.hop_limit_decrement = 1;
    request.connections =
        frame::ConnectionTraffic{.role = role, .set = {ranges_for(count), enumerate::Order::pseudorandom, count, 1}, .choice = choice};
    auto stream = frame::Stream::make(request, frame::signature::Direction::forward, frame::signature::TrafficClass::foreground, 1,
                                      0x12345678, {}, std::nullopt, "bench");
    return std::get<frame::Stream>(std::move(stream));
}

/// Counts ticks of the loop around it and reports them per frame.
class TickCounter {
public:
    explicit TickCounter(benchmark::State& state) : state_{state}, start_{pace::CycleClock{}.now()} {}
    TickCounter(const TickCounter&) = delete;
    TickCounter& operator=(const TickCounter&) = delete;
    ~TickCounter() {
        const double ticks = static_cast<double>(pace::CycleClock{}.now().value - start_.value);
        state_.counters["ticks/frame"] = ticks / static_cast<double>(frames_);
        state_.counters["Mframes/s"] = benchmark::Counter(static_cast<double>(frames_) / 1e6, benchmark::Counter::kIsRate);
    }
    void add(std::uint64_t frames) { frames_ += frames; }

private:
    benchmark::State& state_;
    pace::Ticks start_;
    std::uint64_t frames_ = 0;
};

}  // namespace gatemark::bench
