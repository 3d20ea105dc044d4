#pragma once

#include "frame/header_checks.hpp"
#include "fuzz/holds.hpp"
#include "golden/bytes.hpp"

namespace gatemark::fuzz {

/// A correct frame has the mark that is due, or one that a gateway may have written: then it is put
/// into what is expected.
inline void expect_mark(std::span<const std::byte> frame, test::Bytes& expected, const frame::Layout& layout, const frame::Stream& stream,
                        const frame::FrameValues& values) {
    const frame::Mark due = stream.expected_mark(values), arrived = frame::mark_of(frame.data() + layout.ip, layout.family);
    holds(arrived.traffic_class == due.traffic_class || frame::reports_congestion(due.traffic_class, arrived.traffic_class),
          "the traffic class of a correct frame is the one that is due, but for congestion experienced");
    holds(arrived.flow_label == due.flow_label || stream.may_be_labelled(due), "a router labels only what has no label");
    frame::write_mark(expected.data() + layout.ip, layout.family, arrived);
}

}  // namespace gatemark::fuzz
