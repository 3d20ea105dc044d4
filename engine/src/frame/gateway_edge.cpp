#include "frame/gateway_edge.hpp"

namespace gatemark::frame {

Fault fault_of_edge_address(const std::byte* field, net::Family family, const net::MapDomain& map, std::uint64_t ea,
                            Fault unnamed) noexcept {
    if (family == net::Family::ipv4) {
        const auto address = load_big_endian<std::uint32_t>(field);
        return !map.contains_ipv4(address) ? Fault::outside_rule : map.has_suffix(address, ea) ? unnamed : Fault::other_edge_address;
    }
    const Wide address = net::load_wide(field);
    return !map.contains_ipv6(address) ? Fault::outside_rule
           : map.ea_of(address) != ea  ? Fault::other_edge_address
                                       : Fault::interface_identifier;
}

std::variant<GatewayEdge, Errors> GatewayEdge::make(const net::MapRule& rule, std::uint64_t ea, const std::string& where) {
    Errors errors = net::problems_of(rule, where);
    if (errors.empty() && ea >> rule.ea_bits != 0) {
        errors.push_back({"EA value " + std::to_string(ea) + " is longer than ea_bits", where + ".ea", "choose a smaller one"});
    }
    if (!errors.empty()) {
        return errors;
    }
    return GatewayEdge{net::MapDomain{rule}, ea};
}

}  // namespace gatemark::frame
