#pragma once

#include "frame/verification.hpp"
#include "net/map_domain.hpp"

#include <string>
#include <variant>

namespace gatemark::frame {

/// What the fault in an address is that should be the MAP address, or the IPv4 address, of the
/// customer edge with this EA value. `unnamed` stands for an IPv4 address of its own prefix.
[[nodiscard]] Fault fault_of_edge_address(const std::byte* field, net::Family family, const net::MapDomain& map, std::uint64_t ea,
                                          Fault unnamed) noexcept;

/// The gateway itself as a customer edge: it has one public address, and the ports of its set. Of
/// MAP-T that is its MAP address (RFC 7599 section 8.1); behind the tunnel of MAP-E (RFC 7597
/// section 8) or lightweight 4over6 (RFC 7596 section 5) its IPv4 address.
class GatewayEdge {
public:
    /// Returns all problems at once; `where` names the request of the edge.
    [[nodiscard]] static std::variant<GatewayEdge, Errors> make(const net::MapRule& rule, std::uint64_t ea, const std::string& where);

    [[nodiscard]] net::Address address(net::Family family) const noexcept {
        return family == net::Family::ipv6 ? net::ipv6_of(map_.address_of(ea_)) : net::ipv4_of(map_.ipv4_of(ea_));
    }
    /// Without a PSID every port but 0 is the edge's, whatever the offset.
    [[nodiscard]] bool has_port(std::uint16_t port) const noexcept {
        return port != 0 && (!map_.restricts_ports() || map_.psid_of_port(port) == map_.psid_of(ea_));
    }
    /// Those of echo messages are ports of its set (RFC 7599 section 9), but 0 is one as well.
    [[nodiscard]] bool has_identifier(std::uint16_t identifier) const noexcept {
        return !map_.restricts_ports() || map_.psid_of_port(identifier) == map_.psid_of(ea_);
    }
    /// What became of the edge's public address if another one is at `field`.
    [[nodiscard]] Fault fault_of_address(const std::byte* field, net::Family family) const noexcept {
        return fault_of_edge_address(field, family, map_, ea_, Fault::source_address);
    }
    friend bool operator==(const GatewayEdge&, const GatewayEdge&) = default;

private:
    GatewayEdge(const net::MapDomain& map, std::uint64_t ea) noexcept : map_{map}, ea_{ea} {}

    net::MapDomain map_;
    std::uint64_t ea_;
};

}  // namespace gatemark::frame
