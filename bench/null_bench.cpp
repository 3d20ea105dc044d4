#include "loops.hpp"
#include "ports.hpp"
#include "state/reply_writer.hpp"

/// Complete senders and receivers of the engine on DPDK's null port, in one thread, as fast as
/// possible.
namespace gatemark::bench {

namespace {

template <class Foreground>
void send_to_port(benchmark::State& state, const frame::Stream& stream, Foreground foreground) {
    io::TransmitQueue queue{null_port(), 0, pools_for(null_port(), stream.sent().frame)};
    send(state, stream, queue, foreground);
}

void send_on_null(benchmark::State& state, net::Family family, Varying varying, std::size_t frame_octets = 0) {
    const frame::Stream stream = stream_for(family, varying, frame_octets);
    send_to_port(state, stream, frame::StreamWriter{stream});
}

void send_one_by_one_on_null(benchmark::State& state, net::Family family) {
    const frame::Stream stream = stream_for(family, Varying::ports_and_hosts);
    io::TransmitQueue queue{null_port(), 0, pools_for(null_port(), stream.sent().frame)};
    send_one_by_one(state, stream, queue);
}

/// What all customer edges of a gateway send, and what is sent to them.
void send_edges_on_null(benchmark::State& state, const frame::Stream& stream) { send_to_port(state, stream, frame::StreamWriter{stream}); }

/// The Initiator: enumerated four-tuples in test phase 1, drawn ones in test phase 2.
void initiate_on_null(benchmark::State& state, Choice choice, ConnectionStream stream_of = nat44_stream) {
    const frame::Stream stream = stream_of(frame::Role::initiator, static_cast<std::uint64_t>(state.range(0)), choice);
    send_to_port(state, stream, frame::StreamWriter{stream});
}

/// The Responder, in the orders of reading that RFC 9693 section 4.10 names.
void respond_on_null(benchmark::State& state, Choice order, ConnectionStream stream_of = nat44_stream) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    const frame::Stream stream = stream_of(frame::Role::responder, count, order);
    send_to_port(state, stream, state::ReplyWriter{stream, full_table(count), public_pool(stream.sent().layout.family), 1});
}

/// A port whose receive buffers all hold a frame of the stream, so that a driver that delivers them
/// as they are delivers a trial's frames.
class EndlessQueue : public io::ReceiveQueue {
public:
    explicit EndlessQueue(const frame::Stream& stream) : io::ReceiveQueue{endless_port(stream.expected().frame.size()), 0} {
        std::vector<rte_mbuf*> all;
        std::array<rte_mbuf*, burst_frames> some{};
        while (const std::size_t got = io::ReceiveQueue::receive(some)) {
            for (rte_mbuf* buffer : std::span{some}.first(got)) {
                std::copy(stream.expected().frame.begin(), stream.expected().frame.end(), rte_pktmbuf_mtod(buffer, std::byte*));
                write_as_received(stream, rte_pktmbuf_mtod(buffer, std::byte*), all.size(), pace::CycleClock{}.now());
                all.push_back(buffer);
            }
        }
        frame_count_ = all.size();
        release(all);
    }
    void arrive_in(record::ArrivalBitmap& arrivals) { arrivals_ = &arrivals; }
    [[nodiscard]] std::uint64_t frame_count() const { return frame_count_; }

    /// Each time as if for the first time: the bitmap of a few hundred bytes is cleared for every
    /// burst.
    std::size_t receive(std::span<Buffer> wanted) noexcept {
        arrivals_->reset(frame_count_, record::Receivers::one);
        return io::ReceiveQueue::receive(wanted);
    }

private:
    record::ArrivalBitmap* arrivals_ = nullptr;
    std::uint64_t frame_count_ = 0;
};

void receive_on_null(benchmark::State& state, net::Family family) {
    const frame::Stream stream = stream_for(family, Varying::ports_and_hosts);
    EndlessQueue queue{stream};
    ReceiverParts parts{stream, queue.frame_count()};
    queue.arrive_in(parts.arrivals);
    receive(state, queue, parts);
}

/// One sender and one receiver, polled in turn: a frame sent and a frame received count as one, as
/// in a forwarder.
void send_and_receive_on_null(benchmark::State& state) {
    const frame::Stream stream = stream_for(net::Family::ipv4, Varying::ports_and_hosts);
    EndlessQueue queue{stream};
    ReceiverParts parts{stream, queue.frame_count()};
    queue.arrive_in(parts.arrivals);
    const auto receiver = std::make_unique<loop::Receiver<EndlessQueue>>(parts.plan, queue, parts.mailbox);
    io::TransmitQueue transmit{null_port(), 0, pools_for(null_port(), stream.sent().frame)};
    const pace::CycleClock clock;
    const auto sender = std::make_unique<loop::Sender<io::TransmitQueue, pace::CycleClock>>(flat_out(stream), transmit, clock);
    TickCounter counter{state};
    for (auto unused : state) {
        sender->poll();
        receiver->poll();
    }
    receiver->finish();
    counter.add(sender->counts().offered_foreground);
    expect_received(state, *receiver, sender->counts().offered_foreground);
}

constexpr std::int64_t million = 1'000'000;

BENCHMARK_CAPTURE(send_on_null, ipv4_fixed, net::Family::ipv4, Varying::nothing);
BENCHMARK_CAPTURE(send_on_null, ipv4_ports, net::Family::ipv4, Varying::ports);
BENCHMARK_CAPTURE(send_on_null, ipv4_hosts, net::Family::ipv4, Varying::hosts);
BENCHMARK_CAPTURE(send_on_null, ipv4_both, net::Family::ipv4, Varying::ports_and_hosts);
BENCHMARK_CAPTURE(send_on_null, ipv6_fixed, net::Family::ipv6, Varying::nothing);
BENCHMARK_CAPTURE(send_on_null, ipv6_ports, net::Family::ipv6, Varying::ports);
BENCHMARK_CAPTURE(send_on_null, ipv6_hosts, net::Family::ipv6, Varying::hosts);
BENCHMARK_CAPTURE(send_on_null, ipv6_both, net::Family::ipv6, Varying::ports_and_hosts);
BENCHMARK_CAPTURE(send_on_null, ipv4_both_1518, net::Family::ipv4, Varying::ports_and_hosts, 1518);
BENCHMARK_CAPTURE(send_one_by_one_on_null, ipv4, net::Family::ipv4);
BENCHMARK_CAPTURE(send_one_by_one_on_null, ipv6, net::Family::ipv6);
BENCHMARK_CAPTURE(send_edges_on_null, map_t_6to4, edges_stream(Relay::map_t, frame::signature::Direction::forward));
BENCHMARK_CAPTURE(send_edges_on_null, map_t_4to6, edges_stream(Relay::map_t, frame::signature::Direction::reverse));
BENCHMARK_CAPTURE(send_edges_on_null, map_e_up, edges_stream(Relay::map_e, frame::signature::Direction::forward));
BENCHMARK_CAPTURE(send_edges_on_null, map_e_down, edges_stream(Relay::map_e, frame::signature::Direction::reverse));
BENCHMARK_CAPTURE(send_edges_on_null, lwaftr_up, edges_stream(Relay::lwaftr, frame::signature::Direction::forward));
BENCHMARK_CAPTURE(send_edges_on_null, lwaftr_down, edges_stream(Relay::lwaftr, frame::signature::Direction::reverse));
BENCHMARK_CAPTURE(send_edges_on_null, sixrd_up, sixrd_stream(frame::signature::Direction::forward));
BENCHMARK_CAPTURE(send_edges_on_null, sixrd_down, sixrd_stream(frame::signature::Direction::reverse));
BENCHMARK_CAPTURE(initiate_on_null, phase_1, Choice::increasing)->Arg(4 * million)->Arg(40 * million)->Arg(400 * million);
BENCHMARK_CAPTURE(initiate_on_null, phase_2, Choice::pseudorandom)->Arg(400 * million);
BENCHMARK_CAPTURE(initiate_on_null, phase_1_aftr, Choice::increasing, aftr_stream)
    ->Name("initiate_through_aftr_on_null/phase_1")
    ->Arg(400 * million);
BENCHMARK_CAPTURE(respond_on_null, pseudorandom_aftr, Choice::pseudorandom, aftr_stream)
    ->Name("respond_through_aftr_on_null/pseudorandom")
    ->Arg(4 * million);
BENCHMARK_CAPTURE(respond_on_null, fixed, Choice::fixed)->Arg(4 * million);
BENCHMARK_CAPTURE(respond_on_null, increasing, Choice::increasing)->Arg(4'000)->Arg(4 * million)->Arg(40 * million);
BENCHMARK_CAPTURE(respond_on_null, decreasing, Choice::decreasing)->Arg(4'000)->Arg(4 * million)->Arg(40 * million);
BENCHMARK_CAPTURE(respond_on_null, pseudorandom, Choice::pseudorandom)->Arg(4'000)->Arg(4 * million)->Arg(40 * million)->Arg(200 * million);
BENCHMARK_CAPTURE(respond_on_null, ipv6_pseudorandom, Choice::pseudorandom, nat66_stream)->Arg(4 * million)->Arg(200 * million);
BENCHMARK_CAPTURE(receive_on_null, ipv4, net::Family::ipv4);
BENCHMARK_CAPTURE(receive_on_null, ipv6, net::Family::ipv6);
BENCHMARK(send_and_receive_on_null);

}  // namespace

}  // namespace gatemark::bench
