#include "base/random.hpp"
#include "memory_queues.hpp"
#include "state/reply_writer.hpp"

#include <valgrind/callgrind.h>

#include <cstdio>

/// The hot path without a port, for callgrind, which counts instructions and so is free of noise.
/// Everything is seeded and the clock is simulated, so two runs execute the same instructions.
/// instructions.py runs this program and compares.
namespace gatemark::bench {

namespace {

constexpr std::uint64_t frames_counted = 8192;
constexpr std::uint64_t connections = 40'000;  // more than frames: in test phase 1 each of them is of another one

/// Keeps the compiler from removing a result.
template <class Value>
void keep(const Value& value) {
    asm volatile("" : : "g"(&value) : "memory");
}

/// Does `work` for frames_counted frames twice: first to touch what is touched once, then counted.
/// Callgrind writes the count under `name`.
template <class Work>
void count(const char* name, Work&& work) {
    work();
    CALLGRIND_TOGGLE_COLLECT;
    work();
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS_AT(name);
}

template <class Each>
void count_each(const char* name, Each&& each) {
    count(name, [&] {
        for (std::uint64_t i = 0; i < frames_counted; ++i) {
            each(i);
        }
    });
}

/// Each reading gives another delay, of up to 65535 ticks.
struct CountingClock {
    static constexpr std::uint64_t written = std::uint64_t{1} << 40;
    [[nodiscard]] pace::Ticks now() const noexcept { return {written + (++readings * 977 & 0xffff)}; }
    mutable std::uint64_t readings = 0;
};

void count_frames(const char* written, const char* verified, const frame::Stream& stream) {
    std::vector<std::byte> bytes = stream.sent().frame;
    count_each(written, [&](std::uint64_t i) {
        frame::write_frame(stream.sent(), bytes.data(), stream.values(i), stream.id(), i, {i});
        keep(*bytes.data());
    });
    write_as_received(stream, bytes.data(), 7, {});
    count_each(verified, [&](std::uint64_t) {
        const frame::Arrival arrival = frame::classify(bytes, trial_id);
        keep(frame::verify(bytes, arrival, stream, stream.values(frame::signature::index(bytes.data() + arrival.payload))));
    });
}

template <class Foreground>
void count_sender(const char* name, const frame::Stream& stream, Foreground foreground,
                  std::optional<pace::BurstyTraffic> bursts = std::nullopt) {
    DiscardingQueue queue{stream};
    const CountingClock clock;
    loop::SenderPlan plan = flat_out(stream);
    plan.schedule = pace::Schedule{{.frames_per_second = 1'000'000'000, .bursts = bursts}, {}, 1'000'000'000};
    loop::Sender<DiscardingQueue, CountingClock, Foreground> sender{plan, queue, clock, foreground};
    count(name, [&] {
        for (std::uint64_t i = 0; i < frames_counted; i += burst_frames) {
            sender.poll();
        }
    });
}

void count_receiver(const char* name, const frame::Stream& stream, ReceiverParts& parts) {
    StoredFrames frames{stream, 2 * frames_counted, {CountingClock::written}};
    StoredQueue queue{frames, parts.arrivals, 1};
    const auto receiver = std::make_unique<loop::Receiver<StoredQueue, CountingClock>>(parts.plan, queue, parts.mailbox);
    count(name, [&] {
        for (std::uint64_t i = 0; i < frames_counted; i += burst_frames) {
            receiver->poll();
        }
    });
    receiver->finish();
    const auto direction = static_cast<frame::signature::Direction>((stream.id() >> 1) & 1U);
    const auto& counts = receiver->counts(direction, frame::signature::TrafficClass::foreground);
    if (counts[record::Count::received] != 2 * frames_counted) {
        std::fprintf(stderr, "%s: %llu of %llu frames were received\n", name,
                     static_cast<unsigned long long>(counts[record::Count::received]), static_cast<unsigned long long>(2 * frames_counted));
        std::exit(1);
    }
}

void count_receivers(const frame::Stream& ipv4, const frame::Stream& ipv6) {
    const auto plain4 = std::make_unique<ReceiverParts>(ipv4, 2 * frames_counted),
               plain6 = std::make_unique<ReceiverParts>(ipv6, 2 * frames_counted);
    count_receiver("receive_ipv4", ipv4, *plain4);
    count_receiver("receive_ipv6", ipv6, *plain6);
    const auto delays = std::make_unique<ReceiverParts>(ipv4, 2 * frames_counted);
    delays->record_tags_and_variation();
    count_receiver("receive_ipv4_tags_and_variation", ipv4, *delays);
    for (const auto& [name, phase, stream_of] : {std::tuple{"receive_phase_1", state::Phase::establish, &nat44_stream},
                                                 {"receive_phase_2", state::Phase::use, &nat44_stream},
                                                 {"receive_aftr_phase_1", state::Phase::establish, &aftr_stream}}) {
        const frame::Stream initiator =
            stream_of(frame::Role::initiator, connections, phase == state::Phase::establish ? Choice::increasing : Choice::pseudorandom);
        const auto parts = std::make_unique<ReceiverParts>(initiator, 2 * frames_counted);
        parts->keep_connections(phase, connections);
        count_receiver(name, initiator, *parts);
    }
}

void count_records() {
    record::ArrivalBitmap bitmap;
    record::DelayWindow window;
    const auto delay = [](std::uint64_t i) { return pace::Ticks{mix_bits(i) & 0x3ffff}; };
    const auto mark_and_put = [&](record::Receivers receivers, const char* mark, const char* put) {
        bitmap.reset(2 * frames_counted, receivers);
        count_each(mark, [&](std::uint64_t i) { keep(bitmap.mark(i)); });
        window.reset(receivers);
        count_each(put, [&](std::uint64_t i) { keep(window.put(i, delay(i))); });
    };
    mark_and_put(record::Receivers::one, "mark_bitmap", "put_delay_variation");
    mark_and_put(record::Receivers::many, "mark_shared_bitmap", "put_shared_delay_variation");
    record::DelayHistogram histogram;
    count_each("add_delay", [&](std::uint64_t i) {
        histogram.add(delay(i));
        keep(histogram);
    });
    record::LatenessHistogram lateness;
    count_each("add_lateness", [&](std::uint64_t i) {
        lateness.add(delay(i));
        keep(lateness);
    });
}

void count_all() {
    const frame::Stream ipv4 = stream_for(net::Family::ipv4, Varying::ports_and_hosts);
    const frame::Stream ipv6 = stream_for(net::Family::ipv6, Varying::ports_and_hosts);
    count_frames("write_ipv4", "verify_ipv4", ipv4);
    count_frames("write_ipv6", "verify_ipv6", ipv6);
    count_sender("send_ipv4", ipv4, frame::StreamWriter{ipv4});
    count_sender("send_ipv4_bursts", ipv4, frame::StreamWriter{ipv4},
                 pace::BurstyTraffic{.frames = 16, .frames_per_second = 1'000'000'000});
    count_sender("send_ipv6", ipv6, frame::StreamWriter{ipv6});
    const frame::Stream special = special_stream();
    count_sender("send_special", special, frame::StreamWriter{special});
    const frame::Stream initiator = connection_stream(frame::Role::initiator, connections, Choice::increasing),
                        aftr_initiator = aftr_stream(frame::Role::initiator, connections, Choice::increasing);
    for (const auto& [name, stream] : {std::pair{"send_phase_1", &initiator}, {"send_aftr_phase_1", &aftr_initiator}}) {
        count_sender(name, *stream, frame::StreamWriter{*stream});
    }
    const frame::Stream responder = connection_stream(frame::Role::responder, connections, Choice::pseudorandom),
                        aftr_responder = aftr_stream(frame::Role::responder, connections, Choice::pseudorandom);
    const net::AddressPool pool = public_pool();
    for (const auto& [name, stream] : {std::pair{"respond", &responder}, {"respond_aftr", &aftr_responder}}) {
        count_sender(name, *stream, state::ReplyWriter{*stream, full_table(connections), pool, 1});
    }
    count_receivers(ipv4, ipv6);
    for (const auto& [name, stream] : {std::pair{"receive_special", &special}, {"receive_aftr_reply", &aftr_responder}}) {
        const auto parts = std::make_unique<ReceiverParts>(*stream, 2 * frames_counted);
        count_receiver(name, *stream, *parts);
    }
    for (const auto& [send, receive, relay, direction] :
         {std::tuple{"send_map_t_6to4", "receive_map_t_6to4", Relay::map_t, frame::signature::Direction::forward},
          {"send_map_t_4to6", "receive_map_t_4to6", Relay::map_t, frame::signature::Direction::reverse},
          {"send_map_e_up", "receive_map_e_up", Relay::map_e, frame::signature::Direction::forward},
          {"send_map_e_down", "receive_map_e_down", Relay::map_e, frame::signature::Direction::reverse}}) {
        const frame::Stream edges = edges_stream(relay, direction);
        count_sender(send, edges, frame::StreamWriter{edges});
        const auto edge_parts = std::make_unique<ReceiverParts>(edges, 2 * frames_counted);
        count_receiver(receive, edges, *edge_parts);
    }
    const enumerate::Permutation permutation{1'600'000'000, 1};
    count_each("permute", [&](std::uint64_t i) { keep(permutation.at(i)); });
    count_records();
}

}  // namespace

}  // namespace gatemark::bench

/// With an argument, only prints how it was built and how many frames each count is for.
int main(int argc, char** /*argv*/) {
    if (argc > 1) {
        std::printf("g++ %s %s\n%llu\n", __VERSION__, GATEMARK_BUILD, static_cast<unsigned long long>(gatemark::bench::frames_counted));
    } else {
        gatemark::bench::count_all();
    }
    return 0;
}
