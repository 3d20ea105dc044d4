#include "frame/peer_edges.hpp"

#include "frame/edge_address.hpp"

namespace gatemark::frame {

namespace {

class PeerAddress final : public AddressRule {
public:
    explicit PeerAddress(const PeerEdges& peers) : peers_{peers} {}

    Sum write(std::byte* field, const AddressValues& values) const noexcept override {
        return write_map_address(field, peers_.address_of(values.host));
    }
    [[nodiscard]] bool contains(const std::byte* field) const noexcept override { return peers_.contains(net::load_wide(field)); }

private:
    PeerEdges peers_;
};

}  // namespace

bool PeerEdges::contains(Wide address) const noexcept {
    if (!is_of_any(address)) {
        return false;
    }
    const std::uint64_t ea = map_.ea_of(address);
    return map_.psid_of(ea) == psid_ && hosts_.contains(net::ipv4_of(map_.ipv4_of(ea)));
}

AddressField PeerEdges::field() const { return AddressField::of_rule(net::Family::ipv6, std::make_shared<const PeerAddress>(*this)); }

std::variant<PeerEdges, Errors> PeerEdges::make(const PeersRequest& request, const HostSet& hosts, const std::string& where) {
    Errors errors = net::problems_of(request.rule, where + ".rule");
    if (!errors.empty()) {
        return errors;
    }
    const net::MapDomain map{request.rule};
    if (request.rule.ea_bits == 0 || request.rule.ipv4.length + request.rule.ea_bits < 32) {
        errors.push_back({"this rule has no customer edges with an address each", where + ".rule.ea_bits",
                          "give a rule with the rest of the IPv4 address in its EA bits"});
    }
    if (request.psid >> map.psid_bits() != 0) {
        errors.push_back({"PSID " + std::to_string(request.psid) + " is longer than the rule's", where + ".psid", "choose a smaller one"});
    }
    const auto in_rule = [&](std::uint16_t value) { return request.rule.ipv4.contains(hosts.host(value, 0)); };
    if (hosts.address.family != net::Family::ipv4 || hosts.many_networks() || !in_rule(hosts.part.minimum) ||
        !in_rule(hosts.part.maximum)) {
        errors.push_back({"the hosts have addresses outside the rule", where + ".rule.ipv4", "give one network of IPv4 hosts inside it"});
    }
    if (!errors.empty()) {
        return errors;
    }
    return PeerEdges{request, hosts};
}

}  // namespace gatemark::frame
