#include "refdut/translate.hpp"

/// Gateways whose inside has packets of the other family in its own (RFC 2473, RFC 4213).
namespace gatemark::refdut {

namespace {

/// With ports if it has any.
Endpoints ends_of(const Packet& packet, const View& view) noexcept {
    if (view.udp || view.echo != EchoMessage::none) {
        return endpoints_of(packet, view);
    }
    return {.source = address_at(packet, view.source(), view.family), .destination = address_at(packet, view.destination(), view.family)};
}

std::uint8_t class_outside(const TunnelConfig& tunnel, std::uint8_t of_packet) noexcept {
    const std::uint8_t octet = tunnel.traffic_class.value_or(of_packet);
    if (!tunnel.ecn) {
        return octet;
    }
    unsigned ecn = *tunnel.ecn == EcnMode::compatibility ? 0 : of_packet % 4;
    if (*tunnel.ecn == EcnMode::full_functionality && ecn == 3) {  // congestion experienced
        ecn = 2;
    }
    return static_cast<std::uint8_t>((octet >> 2U << 2U) + ecn);
}

/// What B4s have inside (RFC 1918; RFC 6333 section 5.7).
bool is_private(const AddressBytes& ipv4) noexcept {
    const auto word = load_big_endian<std::uint32_t>(ipv4.data());
    return word >> 24 == 10 || word >> 20 == 0xac1 || word >> 16 == 0xc0a8 || word >> 3 == 0xc000'0000 >> 3;
}

}  // namespace

bool Translator::can_carry(const View& inner) const noexcept {
    // By whom a packet is sent follows from its port only in UDP datagrams and echo messages.
    const bool carries_all = config_.mode == Mode::sixrd_br || config_.mode == Mode::b4;
    return carries_all || ((inner.udp || inner.echo != EchoMessage::none) && !inner.source_route);
}

bool Translator::is_customers(const AddressBytes& address) const noexcept {
    return (config_.mode == Mode::sixrd_br ? rules_.of_ipv6(address) : rules_.of_ipv4(address)) != nullptr;
}

Drop Translator::check_end(const AddressBytes& end, const View& inner, const Endpoints& ends, Notes& notes) const noexcept {
    if (is_subscriber(config_.mode)) {
        if (end == config_.tunnel.relay->bytes) {
            return Drop::none;
        }
        if (rules_.of_ipv6(end) == nullptr) {
            return Drop::no_mapping;
        }
        const Drop drop = check_softwire(end, inner, ends, notes);  // from another customer
        notes.map = {};
        return drop;
    }
    if (config_.mode != Mode::sixrd_br) {
        return check_softwire(end, inner, ends, notes);
    }
    const MapRule* const rule = rules_.of_ipv6(ends.source);
    if (rule == nullptr) {
        return Drop::no_rule;
    }
    return rule->customer_of(ends.source).ipv4 == end ? Drop::none : Drop::not_map_address;  // RFC 5969 section 9.2
}

Drop Translator::find_end(const View& inner, const Endpoints& ends, AddressBytes& end, Notes& notes) const noexcept {
    if (is_subscriber(config_.mode) && !is_customers(ends.destination)) {
        end = config_.tunnel.relay->bytes;
        return Drop::none;
    }
    if (is_subscriber(config_.mode)) {
        const auto own = notes.map;
        const Drop drop = find_softwire(inner, ends, end, notes);  // to another customer
        notes.map = own;
        return drop;
    }
    if (config_.mode != Mode::sixrd_br) {
        return find_softwire(inner, ends, end, notes);
    }
    end = rules_.of_ipv6(ends.destination)->customer_of(ends.destination).ipv4;
    return stays_on_link(end.data(), net::Family::ipv4) || end == config_.tunnel.relay->bytes ? Drop::not_for_us : Drop::none;
}

bool Translator::is_to_own_end(const Packet& packet, const View& view) const noexcept {
    return own_end_ && own_end_->family == view.family && address_at(packet, view.destination(), view.family) == own_end_->bytes;
}

OuterHeader Translator::outer_header(const Packet& packet, const View& inner, const AddressBytes& destination) noexcept {
    const TunnelConfig& tunnel = config_.tunnel;
    return {.source = own_end_->bytes,
            .destination = destination,
            .hop_limit = tunnel.hop_limit,
            .traffic_class = class_outside(tunnel, traffic_class_of(packet, inner)),
            .identification = tunnel.dont_fragment ? std::uint16_t{0} : identification_++,
            .dont_fragment = tunnel.dont_fragment};
}

Drop Translator::end_tunnel(Packet& packet, const View& outer, std::uint64_t now_ns, Notes& notes) noexcept {
    if (!outer.carries_packet()) {  // fragments, extension headers, or nothing for a customer
        return Drop::unsupported;
    }
    View inner;
    if (const Drop drop = read_carried(packet, outer, inner); drop != Drop::none) {
        return drop;
    }
    notes.udp = inner.udp;
    notes.echo = inner.echo;
    if (stays_on_link(packet, inner) || is_own(packet, inner)) {
        return Drop::not_for_us;
    }
    if (hop_limit_of(packet, inner) <= config_.hop_limit_decrement) {
        return Drop::hop_limit;
    }
    if (!can_carry(inner)) {
        return Drop::unsupported;
    }
    notes.outer = outer_header_of(packet, outer);
    if (config_.mode == Mode::aftr) {
        return leave_b4(packet, outer, inner, now_ns, notes);
    }
    const Endpoints ends = ends_of(packet, inner);
    if (const Drop drop = check_end(notes.outer.source, inner, ends, notes); drop != Drop::none) {
        return drop;
    }
    if (edge_) {
        return leave_by_nat(packet, outer, inner, now_ns, notes);
    }
    notes.tunnel = Tunnel::left;
    if (!is_customers(ends.destination)) {
        lower_hop_limit(packet, inner, config_.hop_limit_decrement);
        decapsulate(packet, outer, inner);
        return Drop::none;
    }
    AddressBytes end;  // of another customer
    if (const Drop drop = find_end(inner, ends, end, notes); drop != Drop::none) {
        return drop;
    }
    lower_hop_limit(packet, inner, config_.hop_limit_decrement);
    notes.tunnel = Tunnel::entered;
    notes.hairpinned = true;
    notes.outer = outer_header(packet, inner, end);
    write_outer_header(packet, outer, notes.outer);
    return Drop::none;
}

Drop Translator::pass_tunnels(Side from, Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept {
    const bool from_inside = from == config_.inside;
    if (view.family == tunnel_family(config_.mode)) {  // background, but no tunnel to anybody else
        const bool in_tunnel = view.protocol == (view.family == net::Family::ipv6 ? protocol_ipv4 : protocol_ipv6);
        return in_tunnel ? Drop::no_mapping : route(packet, view);
    }
    if (is_subscriber(config_.mode)) {
        return !from_inside ? Drop::no_mapping : edge_ ? enter_by_nat(packet, view, now_ns, notes) : enter_tunnel(packet, view, notes);
    }
    if (config_.mode == Mode::aftr) {
        const bool to_pool = !from_inside && table_->in_pool(address_at(packet, view.destination(), view.family));
        return to_pool ? enter_b4(packet, view, now_ns, notes) : Drop::no_mapping;
    }
    const AddressBytes source = address_at(packet, view.source(), view.family),
                       destination = address_at(packet, view.destination(), view.family);
    const bool is_background = view.family == net::Family::ipv6 && !is_customers(destination) && !(from_inside && is_customers(source));
    if (is_background) {
        return route(packet, view);
    }
    if (from_inside) {
        return Drop::no_mapping;
    }
    return is_customers(destination) ? enter_tunnel(packet, view, notes) : Drop::no_rule;
}

Drop Translator::ask(Packet& packet, const View& view, const NatEndpoint& inside, std::uint64_t now_ns, Notes& notes) noexcept {
    Endpoints to = endpoints_of(packet, view);
    if (const Drop drop = connect(inside, {.address = to.destination, .port = to.destination_port}, now_ns, notes); drop != Drop::none) {
        return drop;
    }
    if (notes.treatment != Treatment::untranslated) {
        const NatEndpoint pool = table_->pool_of(notes.connection);
        to.source = pool.address;
        to.source_port = pool.port;
        write_endpoints(packet, view, to);
    }
    return Drop::none;
}

Drop Translator::leave_b4(Packet& packet, const View& outer, const View& inner, std::uint64_t now_ns, Notes& notes) noexcept {
    const Endpoints ends = endpoints_of(packet, inner);
    if (inner.echo == EchoMessage::reply) {
        return Drop::unsupported;
    }
    if (!is_private(ends.source)) {
        return Drop::no_mapping;
    }
    const auto inside = table_->behind_b4({.address = ends.source, .port = ends.source_port}, notes.outer.source);
    if (!inside) {
        return Drop::table_full;
    }
    if (const Drop drop = ask(packet, inner, *inside, now_ns, notes); drop != Drop::none) {
        return drop;
    }
    notes.tunnel = Tunnel::left;
    lower_hop_limit(packet, inner, config_.hop_limit_decrement);
    decapsulate(packet, outer, inner);
    return Drop::none;
}

Drop Translator::answer(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) const noexcept {
    Endpoints to = endpoints_of(packet, view);
    const NatTable::Connection connection = table_->from_outside({.address = to.source, .port = to.source_port},
                                                                 {.address = to.destination, .port = to.destination_port}, now_ns);
    if (connection == NatTable::none) {
        return Drop::no_state;
    }
    notes.treatment = Treatment::inward;
    notes.connection = connection;
    const NatEndpoint inside = table_->inside_of(connection);
    to.destination = inside.address;
    to.destination_port = inside.port;
    write_endpoints(packet, view, to);
    return Drop::none;
}

Drop Translator::enter_b4(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept {
    if (!can_carry(view) || view.echo == EchoMessage::request) {
        return Drop::unsupported;
    }
    if (const Drop drop = answer(packet, view, now_ns, notes); drop != Drop::none) {
        return drop;
    }
    lower_hop_limit(packet, view, config_.hop_limit_decrement);
    notes.outer = outer_header(packet, view, table_->b4_of(notes.connection));
    if (!encapsulate(packet, view, notes.outer)) {
        return Drop::unsupported;
    }
    notes.tunnel = Tunnel::entered;
    return Drop::none;
}

Drop Translator::enter_by_nat(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept {
    if (!can_carry(view) || view.echo == EchoMessage::reply) {
        return Drop::unsupported;
    }
    const Endpoints ends = endpoints_of(packet, view);
    if (const Drop drop = ask(packet, view, {.address = ends.source, .port = ends.source_port}, now_ns, notes); drop != Drop::none) {
        return drop;
    }
    if (notes.treatment != Treatment::untranslated) {
        notes.map = {.rule = &edge_->rule, .customer = edge_->customer, .is_source = true, .embedded = false};
    }
    return enter_tunnel(packet, view, notes);
}

Drop Translator::leave_by_nat(Packet& packet, const View& outer, const View& inner, std::uint64_t now_ns, Notes& notes) noexcept {
    if (inner.echo == EchoMessage::request) {
        return Drop::unsupported;
    }
    const Endpoints ends = endpoints_of(packet, inner);
    if (ends.destination != edge_->customer.ipv4) {
        return Drop::no_mapping;
    }
    if (!edge_->rule.has_port(edge_->customer, ends.destination_port)) {
        return Drop::outside_port_set;
    }
    if (const Drop drop = answer(packet, inner, now_ns, notes); drop != Drop::none) {
        return drop;
    }
    notes.tunnel = Tunnel::left;
    lower_hop_limit(packet, inner, config_.hop_limit_decrement);
    decapsulate(packet, outer, inner);
    return Drop::none;
}

Drop Translator::enter_tunnel(Packet& packet, const View& view, Notes& notes) noexcept {
    if (!can_carry(view)) {
        return Drop::unsupported;
    }
    AddressBytes end;
    if (const Drop drop = find_end(view, ends_of(packet, view), end, notes); drop != Drop::none) {
        return drop;
    }
    notes.outer = outer_header(packet, view, end);
    lower_hop_limit(packet, view, config_.hop_limit_decrement);
    if (!encapsulate(packet, view, notes.outer)) {
        return Drop::unsupported;
    }
    notes.tunnel = Tunnel::entered;
    return Drop::none;
}

}  // namespace gatemark::refdut
