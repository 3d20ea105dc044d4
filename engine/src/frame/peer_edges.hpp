#pragma once

#include "frame/address_field.hpp"
#include "net/map_domain.hpp"

#include <string>
#include <variant>

namespace gatemark::frame {

/// Hosts of one end of a stream as other customer edges, as requested.
struct PeersRequest {
    net::MapRule rule;
    std::uint16_t psid = 0;
    friend bool operator==(const PeersRequest&, const PeersRequest&) = default;
};

/// Other customer edges, which the gateway, a customer edge itself, reaches by a forwarding mapping
/// rule and not through the border relay (RFC 7597 section 5). Each has the IPv4 address of a host;
/// all have the same PSID, so that one range of ports is in the sets of all.
class PeerEdges {
public:
    /// Returns all problems at once; `where` names the request.
    [[nodiscard]] static std::variant<PeerEdges, Errors> make(const PeersRequest& request, const HostSet& hosts, const std::string& where);

    [[nodiscard]] const net::MapDomain& map() const noexcept { return map_; }
    /// Of the host with this value.
    [[nodiscard]] std::uint64_t ea_of(std::uint16_t value) const noexcept {
        return map_.ea_of_ipv4(load_big_endian<std::uint32_t>(hosts_.host(value, 0).bytes.data()), psid_);
    }
    /// Its MAP address, to which its packets are translated, or where their tunnels lead.
    [[nodiscard]] Wide address_of(std::uint16_t value) const noexcept { return map_.address_of(ea_of(value)); }
    /// Whether this is the MAP address of one of the hosts.
    [[nodiscard]] bool contains(Wide address) const noexcept;
    /// Whether it is that of any customer edge of the rule.
    [[nodiscard]] bool is_of_any(Wide address) const noexcept { return map_.contains_ipv6(address) && map_.owner_of(address).has_value(); }
    /// The address as a field of a frame.
    [[nodiscard]] AddressField field() const;

private:
    PeerEdges(const PeersRequest& request, const HostSet& hosts) : map_{request.rule}, hosts_{hosts}, psid_{request.psid} {}

    net::MapDomain map_;
    HostSet hosts_;
    std::uint16_t psid_;
};

}  // namespace gatemark::frame
