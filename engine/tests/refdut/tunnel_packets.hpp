#pragma once

#include "golden/slow_tunnel.hpp"
#include "refdut/packets.hpp"

namespace gatemark::refdut {

using test::SlowTunnel;

/// Without a VLAN tag, padded to the Ethernet minimum, as the slow writer does not.
inline test::Bytes padded(test::Bytes frame) {
    frame.resize(std::max<std::size_t>(frame.size(), 60));
    return frame;
}

}  // namespace gatemark::refdut
