#pragma once

#include "frame/streams.hpp"
#include "golden/bytes.hpp"
#include "net/address_pool.hpp"
#include "pace/mix.hpp"
#include "state/connection_keeper.hpp"

#include <array>
#include <optional>
#include <vector>

namespace gatemark::fuzz {

/// What a port may have to receive: streams of every kind of gateway, in both directions. The
/// directions and classes have the numbers that they have in a mark.
struct Scenario {
    std::array<std::array<std::optional<frame::Stream>, 2>, 2> streams;
    std::array<bool, 2> arrives_here{true, true};
    pace::Mix mix{1, 1};
    net::AddressPool pool;                   ///< of a stateful gateway
    std::optional<frame::GatewayEdge> edge;  ///< that the gateway is
    std::uint64_t connections = 0;           ///< 0: stateless
    state::Phase phase = state::Phase::establish;
};

/// Every technology, customer edges and tunnels among them, stateless ones and those of an AFTR;
/// with VLAN tags, many networks, the known fault of the checksum, no checksums and a link-layer
/// address for each host in some, jumbo frames in one; for stateful gateways both phases and both
/// ends.
[[nodiscard]] const std::vector<Scenario>& scenarios();

/// The frame of a question of neighbour discovery, or of an announcement, as the Tester sends it.
[[nodiscard]] test::Bytes neighbor_message(bool is_question, net::Family family);

}  // namespace gatemark::fuzz
