#include "state/behaviour.hpp"

#include <algorithm>
#include <bitset>
#include <optional>
#include <unordered_set>

namespace gatemark::state {

namespace {

constexpr std::uint64_t entries_max = std::uint64_t{1} << 22, sources_max = 4096, destinations_max = 8;
constexpr std::size_t addresses_max = 65536;
constexpr std::uint16_t first_user_port = 1024;

void observe_ports(const enumerate::ConnectionSet& connections, const StateTable& table, Behaviour& behaviour) {
    std::bitset<65536> ports;
    std::unordered_set<std::uint64_t> addresses;
    const std::uint64_t step = (connections.count() + entries_max - 1) / entries_max;
    for (std::uint64_t connection = 0; connection < connections.count(); connection += step) {
        const auto endpoint = table.read(connection);
        if (!endpoint) {
            continue;
        }
        const std::uint16_t original = connections.tuple_of(connection).source_port;
        ++behaviour[Observation::examined];
        behaviour[Observation::port_preserved] += endpoint->port == original ? 1 : 0;
        behaviour[Observation::parity_preserved] += (endpoint->port ^ original) % 2 == 0 ? 1 : 0;
        behaviour[Observation::port_class_preserved] += (endpoint->port < first_user_port) == (original < first_user_port) ? 1 : 0;
        ports.set(endpoint->port);
        if (addresses.size() < addresses_max) {
            addresses.insert(endpoint->address);
        }
    }
    behaviour[Observation::public_addresses] = addresses.size();
    behaviour[Observation::public_ports] = ports.count();
    for (std::size_t port = 0; port < ports.size(); ++port) {
        if (ports.test(port)) {
            behaviour[Observation::public_port_minimum] = behaviour[Observation::public_port_minimum] == 0
                                                              ? static_cast<std::uint16_t>(port)
                                                              : behaviour[Observation::public_port_minimum];
            behaviour[Observation::public_port_maximum] = static_cast<std::uint16_t>(port);
        }
    }
}

/// Compares the public endpoints that one Initiator endpoint has for its destinations.
void observe_source(const enumerate::ConnectionSet& connections, const StateTable& table, enumerate::Tuple tuple, Behaviour& behaviour) {
    const enumerate::TupleRanges& ranges = connections.space().ranges();
    const std::uint64_t destinations = std::uint64_t{ranges.destination_ports.count} * ranges.destination_hosts.count;
    std::optional<Endpoint> first;
    bool compared = false, same = true;
    for (std::uint64_t i = 0; i < std::min(destinations, destinations_max); ++i) {
        tuple.destination_port = static_cast<std::uint16_t>(ranges.destination_ports.minimum + i % ranges.destination_ports.count);
        tuple.destination_host = static_cast<std::uint16_t>(ranges.destination_hosts.minimum + i / ranges.destination_ports.count);
        const auto connection = connections.connection_of(tuple);
        const auto endpoint = connection ? table.read(*connection) : std::nullopt;
        if (!endpoint) {
            continue;
        }
        compared |= first.has_value();
        same &= !first || *first == *endpoint;
        first = endpoint;
    }
    behaviour[Observation::sources_compared] += compared ? 1 : 0;
    behaviour[Observation::sources_endpoint_independent] += compared && same ? 1 : 0;
}

void observe_mapping(const enumerate::ConnectionSet& connections, const StateTable& table, Behaviour& behaviour) {
    const enumerate::TupleRanges& ranges = connections.space().ranges();
    const std::uint64_t sources = std::uint64_t{ranges.source_ports.count} * ranges.source_hosts.count;
    const std::uint64_t step = (sources + sources_max - 1) / sources_max;
    for (std::uint64_t source = 0; source < sources; source += step) {
        observe_source(connections, table,
                       {.source_port = static_cast<std::uint16_t>(ranges.source_ports.minimum + source % ranges.source_ports.count),
                        .source_host = static_cast<std::uint16_t>(ranges.source_hosts.minimum + source / ranges.source_ports.count)},
                       behaviour);
    }
}

}  // namespace

Behaviour observe(const enumerate::ConnectionSet& connections, const StateTable& table) {
    Behaviour behaviour;
    observe_ports(connections, table, behaviour);
    observe_mapping(connections, table, behaviour);
    return behaviour;
}

}  // namespace gatemark::state
