#pragma once

#include "frame/streams.hpp"
#include "io/memory_port.hpp"
#include "loop/receiver.hpp"
#include "state/reply_writer.hpp"

#include <memory>
#include <set>
#include <string_view>

/// The Tester's ends of a path with connections, for tests that put a gateway of their own between
/// them.
namespace gatemark::state {

/// The plan of a receiver that takes frames of one stream, as many as `arrivals` has room for.
[[nodiscard]] inline loop::ReceiverPlan receiver_plan_of(const frame::Stream& stream, frame::signature::Direction direction,
                                                         std::uint64_t frame_count, record::ArrivalBitmap& arrivals,
                                                         const ConnectionKeeper* keeper, bool arrives_here = true) {
    arrivals.reset(frame_count);
    loop::ReceiverPlan plan{.trial_id = test::trial_id(), .directions = {}, .kept_frames_max = 1};
    plan.directions[static_cast<std::size_t>(direction)] = {.active = true,
                                                            .arrives_here = arrives_here,
                                                            .frame_count = frame_count,
                                                            .mix = {1, 1},
                                                            .streams = {&stream, nullptr},
                                                            .arrivals = &arrivals,
                                                            .keeper = keeper};
    return plan;
}

/// The receivers at the far end of `stream`, for `frame_count` frames.
class PathEnd {
public:
    PathEnd(const frame::Stream& stream, frame::signature::Direction direction, std::uint64_t frame_count, const ConnectionKeeper* keeper,
            std::size_t queues = 1)
        : direction_{direction}, wires_(queues) {
        const loop::ReceiverPlan plan = receiver_plan_of(stream, direction, frame_count, arrivals_, keeper);
        for (io::MemoryWire& wire : wires_) {
            queues_.push_back(std::make_unique<io::MemoryReceiveQueue>(wire));
            receivers_.push_back(std::make_unique<loop::Receiver<io::MemoryReceiveQueue>>(plan, *queues_.back(), mailbox_));
        }
    }
    void receive(const test::SlowPacket& packet, std::uint64_t number = 0) { receive(test::write_packet(packet), number); }
    void receive(const test::Bytes& bytes, std::uint64_t number = 0) {
        const std::size_t queue = number % wires_.size();
        wires_[queue].frames.push_back(bytes);
        while (receivers_[queue]->poll()) {}
    }
    [[nodiscard]] record::ClassCounts counts() const {
        record::ClassCounts sum;
        for (const auto& receiver : receivers_) {
            sum.add(receiver->counts(direction_, frame::signature::TrafficClass::foreground));
        }
        return sum;
    }
    /// The faults of a frame that it receives.
    [[nodiscard]] std::set<std::string_view> faults_in(const test::Bytes& bytes) {
        const record::ClassCounts before = counts();
        receive(bytes);
        std::set<std::string_view> names;
        counts().faults.since(before.faults).visit([&](frame::Fault fault, std::uint64_t count) {
            if (count != 0) {
                names.insert(name_of(fault));
            }
        });
        return names;
    }
    [[nodiscard]] std::uint64_t faults(frame::Fault fault) const { return counts().faults[fault]; }

private:
    frame::signature::Direction direction_;
    record::ArrivalBitmap arrivals_;
    std::vector<io::MemoryWire> wires_;
    std::vector<std::unique_ptr<io::MemoryReceiveQueue>> queues_;
    loop::NeighborMailbox mailbox_;
    std::vector<std::unique_ptr<loop::Receiver<io::MemoryReceiveQueue>>> receivers_;
};

/// A Responder's frame with this number, as it is sent.
[[nodiscard]] inline test::Bytes reply_of(const frame::Stream& download, const StateTable& table, const net::AddressPool& pool,
                                          std::uint64_t number, pace::Ticks now) {
    test::Bytes bytes = download.sent().frame;
    frame::BurstFrames frames{.count = 1, .numbers = {number}, .indexes = {number}, .frames = {bytes.data()}};
    ReplyWriter{download, table, pool}.write(frames, now);
    return bytes;
}

}  // namespace gatemark::state
