#pragma once

#include "frame/echo.hpp"
#include "frame/verification.hpp"
#include "state/state_table.hpp"

namespace gatemark::state {

/// Learns which source a stateful gateway gave to the requests of each (client, destination). A
/// NAT maps identifiers as ports (RFC 6146 section 3.5.3), and nothing is assumed of them.
class EchoKeeper {
public:
    EchoKeeper(StateTable& table, const frame::EchoNumbers& numbers) noexcept
        : table_{table}, destinations_{numbers.shape().destinations} {}

    /// The fault of a request that has no other.
    [[nodiscard]] frame::Faults learn(const frame::EchoPlace& place, const frame::PublicSource& source) const noexcept {
        const std::uint64_t entry = place.client * destinations_ + place.destination;
        const Endpoint endpoint{.address = source.address, .port = source.identifier};
        const auto known = table_.read(entry);
        frame::Faults faults;
        if (known == endpoint) {
            return faults;
        }
        faults.add_if(known.has_value(), frame::Fault::mapping_changed);
        table_.write(entry, endpoint);
        return faults;
    }

private:
    StateTable& table_;
    std::uint64_t destinations_;
};

}  // namespace gatemark::state
