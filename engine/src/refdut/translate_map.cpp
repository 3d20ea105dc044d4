#include "refdut/translate.hpp"

/// MAP-T (RFC 7599): both gateways of a domain. MAP-E (RFC 7597) and
/// lightweight 4over6 (RFC 7596): whose packet it is.
namespace gatemark::refdut {

namespace {

/// The port by which a customer is known: of an echo message the identifier, in requests and
/// replies of either side (RFC 7599 section 9).
std::uint16_t port_of_source(const View& view, const Endpoints& ends) noexcept {
    return view.echo == EchoMessage::reply ? ends.destination_port : ends.source_port;
}
std::uint16_t port_of_destination(const View& view, const Endpoints& ends) noexcept {
    return view.echo == EchoMessage::request ? ends.source_port : ends.destination_port;
}

/// The customer who has the port.
Drop find_customer(const MapDomains& rules, const AddressBytes& ipv4, std::uint16_t port, MapNotes& notes) noexcept {
    notes.rule = rules.of_endpoint(ipv4, port);
    if (notes.rule == nullptr) {
        return Drop::outside_port_set;
    }
    notes.customer = notes.rule->customer_at(ipv4, port);
    return Drop::none;
}

/// The same, if the IPv4 address has one inside the domain.
Drop find_translated(const MapDomains& rules, const AddressBytes& ipv4, std::uint16_t port, MapNotes& notes) noexcept {
    if (const Drop drop = find_customer(rules, ipv4, port, notes); drop != Drop::none) {
        return drop;
    }
    // Of an IPv4 prefix only the address without host bits has a MAP address (RFC 7597 section 6).
    return notes.customer.ipv4 == ipv4 ? Drop::none : Drop::no_mapping;
}

/// Whether an IPv6 source is the MAP address of the customer whose prefix it has, and the port one
/// of the customer's (RFC 7597 section 8.1). If only the port is wrong, the sender must be told.
Drop check_source(const MapRule& rule, const AddressBytes& source, std::uint16_t port, MapCustomer& customer, bool& error_wanted) noexcept {
    customer = rule.customer_of(source);
    if (rule.address_of(customer) != source) {
        return Drop::not_map_address;
    }
    error_wanted = !rule.has_port(customer, port);
    return error_wanted ? Drop::outside_port_set : Drop::none;
}

}  // namespace

Drop Translator::relay(Side from, Packet& packet, const View& view, Notes& notes) noexcept {
    const bool from_inside = from == config_.inside;
    if (view.family == net::Family::ipv4) {
        return from_inside ? Drop::no_mapping : relay_to_ipv6(packet, view, notes);
    }
    if (!rules_.embeds(address_at(packet, view.destination(), view.family))) {
        return route(packet, view);  // background
    }
    return from_inside ? relay_to_ipv4(packet, view, notes) : Drop::no_mapping;
}

Drop Translator::relay_to_ipv4(Packet& packet, const View& view, Notes& notes) noexcept {
    const MapRule* const rule = rules_.of_ipv6(address_at(packet, view.source(), view.family));
    if (rule == nullptr) {
        return Drop::no_rule;
    }
    const auto outside = rule->extracted(address_at(packet, view.destination(), view.family));
    if (!outside) {
        return Drop::no_mapping;  // the prefix of another domain
    }
    if (!can_cross(packet, view)) {
        return Drop::unsupported;
    }
    Endpoints to = endpoints_of(packet, view);
    MapCustomer customer;
    if (const Drop drop = check_source(*rule, to.source, port_of_source(view, to), customer, notes.error_wanted); drop != Drop::none) {
        return drop;
    }
    to.source = customer.ipv4;
    to.destination = *outside;
    if (rules_.of_ipv4(to.destination) != nullptr) {
        return hairpin(packet, view, to, notes);
    }
    notes.treatment = Treatment::stateless;
    notes.crossed = true;
    notes.map = {.rule = rule, .customer = customer, .is_source = true, .embedded = false};
    cross(packet, view, to);
    return Drop::none;
}

Drop Translator::relay_to_ipv6(Packet& packet, const View& view, Notes& notes) noexcept {
    if (rules_.of_ipv4(address_at(packet, view.destination(), view.family)) == nullptr) {
        return Drop::no_rule;
    }
    if (!can_cross(packet, view)) {
        return Drop::unsupported;
    }
    Endpoints to = endpoints_of(packet, view);
    MapNotes map{.rule = nullptr, .customer = {}, .is_source = false, .embedded = true};
    if (const Drop drop = find_translated(rules_, to.destination, port_of_destination(view, to), map); drop != Drop::none) {
        return drop;
    }
    to.source = map.rule->embedded(to.source);
    to.destination = map.rule->address_of(map.customer);
    notes.treatment = Treatment::stateless;
    notes.crossed = true;
    notes.map = map;
    cross(packet, view, to);
    return Drop::none;
}

Drop Translator::hairpin(Packet& packet, const View& view, Endpoints to, Notes& notes) noexcept {
    MapNotes map{.rule = nullptr, .customer = {}, .is_source = false, .embedded = true};
    if (const Drop drop = find_translated(rules_, to.destination, port_of_destination(view, to), map); drop != Drop::none) {
        return drop;
    }
    cross(packet, view, to);
    View between;
    if (const Drop drop = read_headers(packet, between); drop != Drop::none) {
        return drop;  // cannot happen: it was written a moment ago
    }
    to.source = map.rule->embedded(to.source);
    to.destination = map.rule->address_of(map.customer);
    make_ipv6(packet, between, to, hop_limit_of(packet, between));  // one gateway, one hop
    notes.treatment = Treatment::stateless;
    notes.hairpinned = true;
    notes.map = map;
    return Drop::none;
}

Drop Translator::pass_edge(Side from, Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept {
    const bool from_inside = from == config_.inside;
    if (view.family == net::Family::ipv4) {
        return from_inside ? leave_edge(packet, view, now_ns, notes) : Drop::no_mapping;
    }
    return from_inside ? route(packet, view) : enter_edge(packet, view, now_ns, notes);
}

Drop Translator::leave_edge(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept {
    if (!can_cross(packet, view) || view.echo == EchoMessage::reply) {
        return Drop::unsupported;
    }
    Endpoints to = endpoints_of(packet, view);
    AddressBytes destination = edge_->rule.embedded(to.destination);
    const bool to_customer = rules_.of_ipv4(to.destination) != nullptr;
    if (to_customer) {
        MapNotes other;
        if (const Drop drop = find_translated(rules_, to.destination, port_of_destination(view, to), other); drop != Drop::none) {
            return drop;
        }
        destination = other.rule->address_of(other.customer);
    }
    if (const Drop drop = connect({.address = to.source, .port = to.source_port}, {.address = to.destination, .port = to.destination_port},
                                  now_ns, notes);
        drop != Drop::none) {
        return drop;
    }
    if (notes.treatment == Treatment::untranslated) {
        return route(packet, view);
    }
    notes.crossed = true;
    notes.map = {.rule = &edge_->rule, .customer = edge_->customer, .is_source = true, .embedded = !to_customer};
    to.source = edge_->address;
    to.source_port = table_->pool_of(notes.connection).port;
    to.destination = destination;
    cross(packet, view, to);
    return Drop::none;
}

Drop Translator::source_at_edge(const View& view, const Endpoints& from, AddressBytes& ipv4, Notes& notes) const noexcept {
    if (const auto outside = edge_->rule.extracted(from.source)) {
        ipv4 = *outside;
        return Drop::none;
    }
    const MapRule* const rule = rules_.of_ipv6(from.source);
    if (rule == nullptr) {
        return Drop::no_rule;
    }
    MapCustomer customer;
    const Drop drop = check_source(*rule, from.source, port_of_source(view, from), customer, notes.error_wanted);
    ipv4 = customer.ipv4;
    return drop;
}

Drop Translator::enter_edge(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept {
    const AddressBytes destination = address_at(packet, view.destination(), view.family);
    if (destination != edge_->address) {
        return edge_->is_beside(destination) ? Drop::not_map_address : route(packet, view);
    }
    if (!can_cross(packet, view) || view.echo == EchoMessage::request) {
        return Drop::unsupported;
    }
    Endpoints to = endpoints_of(packet, view);
    AddressBytes remote;
    if (const Drop drop = source_at_edge(view, to, remote, notes); drop != Drop::none) {
        return drop;
    }
    if (!edge_->rule.has_port(edge_->customer, to.destination_port)) {
        return Drop::outside_port_set;
    }
    const NatTable::Connection connection = table_->from_outside({.address = remote, .port = to.source_port},
                                                                 {.address = edge_->customer.ipv4, .port = to.destination_port}, now_ns);
    if (connection == NatTable::none) {
        return Drop::no_state;
    }
    notes.treatment = Treatment::inward;
    notes.crossed = true;
    notes.connection = connection;
    const NatEndpoint inside = table_->inside_of(connection);
    to.source = remote;
    to.destination = inside.address;
    to.destination_port = inside.port;
    cross(packet, view, to);
    return Drop::none;
}

Drop Translator::check_softwire(const AddressBytes& outer_source, const View& inner, const Endpoints& ends, Notes& notes) const noexcept {
    const MapRule* const rule = rules_.of_ipv6(outer_source);
    if (rule == nullptr) {
        return Drop::no_rule;
    }
    const std::uint16_t port = port_of_source(inner, ends);
    notes.map = {.rule = rule, .customer = {}, .is_source = true, .embedded = false};
    if (const Drop drop = check_source(*rule, outer_source, port, notes.map.customer, notes.error_wanted); drop != Drop::none) {
        return drop;
    }
    const bool is_his = rule->has_ipv4(ends.source) && rule->customer_at(ends.source, port) == notes.map.customer;
    return is_his ? Drop::none : Drop::not_map_address;
}

Drop Translator::find_softwire(const View& inner, const Endpoints& ends, AddressBytes& end, Notes& notes) const noexcept {
    notes.map = {};
    const Drop drop = find_customer(rules_, ends.destination, port_of_destination(inner, ends), notes.map);
    if (drop == Drop::none) {
        end = notes.map.rule->address_of(notes.map.customer);
    }
    return drop;
}

}  // namespace gatemark::refdut
