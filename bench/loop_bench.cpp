#include "bench_streams.hpp"
#include "io/dpdk_environment.hpp"
#include "io/dpdk_queue.hpp"
#include "loop/receiver.hpp"
#include "loop/sender.hpp"

#include <memory>

/// What one frame costs with its loop around it: the sender on a `null` port (which frees what it is given), the receiver on frames that
/// lie in memory.
namespace gatemark::bench {

namespace {

constexpr std::uint32_t tag = 0x12345678;

io::DpdkPort& null_port() {
    static auto environment =
        std::get<io::DpdkEnvironment>(io::DpdkEnvironment::start({.pci_addresses = {}, .huge_pages_allowed = true, .memory_mib = 512}));
    static auto port = std::get<io::DpdkPort>(io::open_port({.side = "left", .name = std::get<io::PortName>(io::parse_port_name("null"))}));
    return port;
}

void send_stream_on_null(benchmark::State& state, const frame::Stream& stream) {
    static unsigned pools_made = 0;
    io::DpdkPort& port = null_port();
    std::vector<io::FramePool> pools;
    pools.push_back(std::get<io::FramePool>(io::FramePool::create(port, "bench" + std::to_string(pools_made++), 128)));
    pools[0].set_template(stream.sent().frame);
    io::TransmitQueue queue{port, 0, pools};
    const pace::CycleClock clock;
    // Everything is due at once, so every poll takes a full burst.
    const loop::SenderPlan plan{.frame_count = ~std::uint64_t{0} >> 24,
                                .schedule = pace::Schedule{{}, 1'000'000'000, 1'000'000'000},
                                .mix = pace::Mix{1, 1},
                                .give_up_lateness = {~std::uint64_t{0}},
                                .foreground = &stream};
    auto sender = std::make_unique<loop::Sender<io::TransmitQueue, pace::CycleClock>>(plan, queue, clock);
    TickCounter counter{state};
    for (auto unused : state) {
        sender->poll();
    }
    counter.add(sender->counts().offered_foreground);
}

void send_on_null(benchmark::State& state, net::Family family, Varying varying) {
    send_stream_on_null(state, stream_for(family, varying, tag));
}

/// The Initiator of test phase 1, with the same content of frames but enumerated four-tuples.
void send_phase_one_on_null(benchmark::State& state) {
    send_stream_on_null(state, connection_stream(frame::Role::initiator, static_cast<std::uint64_t>(state.range(0)),
                                                 enumerate::ConnectionChoice::Mode::increasing));
}

/// Frames of one stream in memory, received over and over, each time for the first time.
class StoredQueue {
public:
    using Buffer = const std::vector<std::byte>*;

    StoredQueue(const std::vector<std::vector<std::byte>>& frames, record::ArrivalBitmap& arrivals)
        : frames_{frames}, arrivals_{arrivals} {}
    std::size_t receive(std::span<Buffer> burst) noexcept {
        if (next_ == frames_.size()) {
            next_ = 0;
            arrivals_.reset(frames_.size());
        }
        for (Buffer& buffer : burst) {
            buffer = &frames_[next_++];
        }
        return burst.size();
    }
    static std::span<const std::byte> octets(Buffer buffer) noexcept { return *buffer; }
    static pace::Ticks arrival(Buffer /*buffer*/, pace::Ticks polled) noexcept { return polled; }
    void release(std::span<Buffer> /*burst*/) noexcept {}

private:
    const std::vector<std::vector<std::byte>>& frames_;
    record::ArrivalBitmap& arrivals_;
    std::size_t next_ = 0;
};

/// Costs what a reading costs, but frames that were written at `written` have delays of up to 60 microseconds.
struct NearClock {
    static constexpr std::uint64_t written = std::uint64_t{1} << 40;
    [[nodiscard]] pace::Ticks now() const noexcept { return {written + (pace::CycleClock{}.now().value & 0x1ffff)}; }
};

enum class Delays : std::uint8_t { all, tags_and_variation };

void receive_and_verify(benchmark::State& state, net::Family family, Delays delays) {
    const frame::Stream stream = stream_for(family, Varying::ports_and_hosts, tag);
    std::vector<std::vector<std::byte>> frames(4096, stream.sent().frame);
    for (std::uint64_t index = 0; auto& frame : frames) {
        frame::write_frame(stream.sent(), frame.data(), stream.values(index), stream.octet(), index, {NearClock::written});
        ++index;
    }
    record::ArrivalBitmap bitmap;
    bitmap.reset(frames.size());
    loop::ReceiverPlan plan{.tag = tag, .directions = {}};
    plan.directions[0] = {.active = true,
                          .arrives_here = true,
                          .frame_count = frames.size(),
                          .mix = {1, 1},
                          .streams = {&stream, nullptr},
                          .arrivals = &bitmap};
    record::DelayWindow window;
    record::TaggedDelays tags;
    if (delays == Delays::tags_and_variation) {
        window.reset();
        tags.reset({.first = 0, .frames = frames.size(), .count = 40});
        plan.directions[0].delays.windows[0] = &window;
        plan.directions[0].delays.tags = &tags;
    }
    StoredQueue queue{frames, bitmap};
    const auto mailbox = std::make_unique<loop::NeighborMailbox>();
    loop::Receiver<StoredQueue, NearClock> receiver{plan, queue, *mailbox};
    TickCounter counter{state};
    for (auto unused : state) {
        receiver.poll();
        counter.add(loop::burst_frames_max);
    }
}

BENCHMARK_CAPTURE(send_on_null, ipv4_fixed, net::Family::ipv4, Varying::nothing);
BENCHMARK_CAPTURE(send_on_null, ipv4_random_ports, net::Family::ipv4, Varying::ports);
BENCHMARK_CAPTURE(send_on_null, ipv4_random_both, net::Family::ipv4, Varying::ports_and_hosts);
BENCHMARK_CAPTURE(send_on_null, ipv6_random_both, net::Family::ipv6, Varying::ports_and_hosts);
BENCHMARK(send_phase_one_on_null)->Arg(400'000'000);
BENCHMARK_CAPTURE(receive_and_verify, ipv4, net::Family::ipv4, Delays::all);
BENCHMARK_CAPTURE(receive_and_verify, ipv6, net::Family::ipv6, Delays::all);
BENCHMARK_CAPTURE(receive_and_verify, ipv4_tags_and_variation, net::Family::ipv4, Delays::tags_and_variation);

}  // namespace

}  // namespace gatemark::bench
