#pragma once

struct rte_mbuf;

namespace gatemark::io {

/// Puts a frame that a driver split, or took the VLAN tag out of, into one piece as on the wire. Of a frame too long for its first buffer
/// the beginning is left, which is longer than any frame expected: so it is seen to be wrong, and not taken for lost.
void restore_wire_format(rte_mbuf& frame) noexcept;

}  // namespace gatemark::io
