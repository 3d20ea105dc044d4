#pragma once

#include "base/counts.hpp"
#include "enumerate/connection_set.hpp"
#include "state/state_table.hpp"

#include <cstdint>

namespace gatemark::state {

/// What is read from a filled state table.
enum class Observation : std::uint8_t {
    established,
    examined,
    port_preserved,  ///< of the entries examined, as all of ports and addresses
    parity_preserved,
    port_class_preserved,
    public_addresses,  ///< distinct ones
    public_ports,
    public_port_minimum,
    public_port_maximum,
    sources_compared,
    sources_endpoint_independent,
};

/// What a filled state table says about the gateway. It costs no extra frames.
using Behaviour = Counts<Observation>;

/// Looks at up to 4,194,304 entries, evenly spaced, for ports and addresses (RFC 4787 section 4.2),
/// and at the connections of up to 4096 Initiator endpoints for Endpoint-Independent Mapping (RFC
/// 4787 section 4.1).
[[nodiscard]] Behaviour observe(const enumerate::ConnectionSet& connections, const StateTable& table);

}  // namespace gatemark::state
