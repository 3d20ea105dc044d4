#pragma once

#include "enumerate/connection_set.hpp"
#include "state/state_table.hpp"

#include <cstdint>

namespace gatemark::state {

/// What a filled state table says about the gateway. It costs no extra frames.
struct Behaviour {
    std::uint64_t established = 0, examined = 0;
    std::uint64_t port_preserved = 0, parity_preserved = 0, port_class_preserved = 0;  ///< of the entries examined
    std::uint64_t public_addresses = 0, public_ports = 0;                              ///< distinct ones of the entries examined
    std::uint16_t public_port_minimum = 0, public_port_maximum = 0;
    std::uint64_t sources_compared = 0, sources_endpoint_independent = 0;
};

/// Looks at up to 4,194,304 entries, evenly spaced, for ports and addresses (RFC 4787 section 4.2),
/// and at the connections of up to 4096 Initiator endpoints for Endpoint-Independent Mapping (RFC
/// 4787 section 4.1).
[[nodiscard]] Behaviour observe(const enumerate::ConnectionSet& connections, const StateTable& table);

}  // namespace gatemark::state
