#include "loop/recognition.hpp"

#include "frame/header_checks.hpp"

namespace gatemark::loop {

namespace {

/// What is wrong with the connection of a frame of a stateful gateway that has `others` beside.
frame::Faults verify_connection(std::span<const std::byte> bytes, const frame::Arrival& arrival, const ExpectedDirection& direction,
                                const frame::Stream& stream, const frame::FrameValues& values, const frame::Faults& others) noexcept {
    frame::Faults faults;
    if (stream.role() == frame::Role::stateless || arrival.misplaced || others.has(frame::Fault::encapsulated)) {
        return faults;
    }
    if (stream.role() == frame::Role::initiator) {
        return direction.keeper->learn(bytes.data(), arrival, stream, values, others);
    }
    if (others.has(frame::Fault::destination_address) || others.has(frame::Fault::destination_port)) {
        faults.add(state::misdelivery(bytes, arrival, stream, values));
    }
    return faults;
}

}  // namespace

VerifiedFrame verify(std::span<const std::byte> bytes, const frame::Arrival& arrival, const ReceiverPlan& plan) noexcept {
    const std::byte* const mark = bytes.data() + arrival.payload;
    const std::uint8_t stream_id = frame::signature::stream(mark);
    VerifiedFrame verified{.direction_number = (stream_id >> 1) & 1U,
                           .class_number = stream_id & 1U,
                           .index = frame::signature::index(mark),
                           .sent = {frame::signature::timestamp(mark)}};
    const ExpectedDirection& direction = plan.directions[verified.direction_number];
    const frame::Stream* const stream = direction.streams[verified.class_number];
    const auto place = direction.mix.place_of(verified.index);
    verified.number_in_class = place.number_in_class;
    const bool exists = direction.active && stream != nullptr && stream->id() == stream_id && verified.index < direction.frame_count &&
                        place.foreground == (verified.class_number == 0);
    frame::Faults& faults = verified.faults;
    faults.add_if(!exists, frame::Fault::index);
    faults.add_if(exists && !direction.arrives_here, frame::Fault::wrong_port);
    verified.has_arrived = exists && direction.arrives_here;
    const frame::FrameValues values = verified.has_arrived ? stream->values(place.number_in_class) : frame::FrameValues{};
    if (verified.has_arrived) {
        faults = frame::verify(bytes, arrival, *stream, values);
    }
    verified.is_of_other_trial = verified.sent < plan.earliest && frame::time_stamp_is_intact(faults);
    if (verified.has_arrived && !verified.is_of_other_trial) {
        faults.add(verify_connection(bytes, arrival, direction, *stream, values, faults));
        if (faults.none()) {
            const frame::Mark due = stream->expected_mark(values);
            verified.remarks = frame::remarks_of(bytes, arrival, stream->expected(), due, stream->tunnel_traffic_class(due.traffic_class));
            verified.remarks.add_if(
                stream->zero_checksum_for_ones() && !stream->expects_no_checksum() && frame::has_zero_checksum(bytes, arrival),
                frame::Remark::zero_checksum);
        }
    }
    return verified;
}

const ArrivingStream* stream_of_damaged_mark(std::span<const ArrivingStream> streams, std::span<const std::byte> bytes,
                                             const frame::Arrival& arrival, pace::Ticks earliest, pace::Ticks arrived) noexcept {
    if (arrival.kind == frame::ArrivalKind::other_trial) {
        const pace::Ticks sent{frame::signature::timestamp(bytes.data() + arrival.payload)};
        if (sent < earliest || sent > arrived) {
            return nullptr;
        }
    }
    for (const ArrivingStream& stream : streams) {
        if (frame::goes_between_hosts(bytes, arrival, stream.stream())) {
            return &stream;
        }
    }
    return nullptr;
}

}  // namespace gatemark::loop
