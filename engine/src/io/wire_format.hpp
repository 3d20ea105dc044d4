#pragma once

struct rte_mbuf;

namespace gatemark::io {

/// Restores a frame as it was on the wire, if the driver split it or removed its VLAN tag:
/// contiguous, with the tag. Of a frame that is too long for its first buffer only the beginning
/// remains. That is still longer than any expected frame, so the frame is counted as faulty, not as
/// lost.
void restore_wire_format(rte_mbuf& frame) noexcept;

}  // namespace gatemark::io
