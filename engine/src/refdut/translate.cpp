#include "refdut/translate.hpp"

#include "refdut/rewrite.hpp"

#include <algorithm>

namespace gatemark::refdut {

namespace {

constexpr std::uint32_t longest_fragmentable_ipv4 = 1260;  // RFC 7915 section 5.1

net::Family inside_family(Mode mode) noexcept {
    return mode == Mode::nat64 || mode == Mode::nat66 || mode == Mode::map_t_br ? net::Family::ipv6 : net::Family::ipv4;
}
net::Family outside_family(Mode mode) noexcept {
    return mode == Mode::nat46 || mode == Mode::nat66 || mode == Mode::map_t_ce ? net::Family::ipv6 : net::Family::ipv4;
}

Ipv4Number ipv4_at(const AddressBytes& address) noexcept { return load_big_endian<Ipv4Number>(address.data()); }

AddressBytes bytes_of(Ipv6Number number) noexcept {
    AddressBytes address{};
    store_ipv6(address.data(), number);
    return address;
}
AddressBytes bytes_of(Ipv4Number number) noexcept {
    AddressBytes address{};
    store_big_endian(address.data(), number);
    return address;
}

/// The address in the other family.
std::optional<AddressBytes> represented(const AddressMap& map, const AddressBytes& address, net::Family family) noexcept {
    if (family == net::Family::ipv4) {
        const auto ipv6 = map.to_ipv6(ipv4_at(address));
        return ipv6 ? std::optional{bytes_of(*ipv6)} : std::nullopt;
    }
    const auto ipv4 = map.to_ipv4(load_ipv6(address.data()));
    return ipv4 ? std::optional{bytes_of(*ipv4)} : std::nullopt;
}

bool has_udp_checksum(const Packet& packet, const View& view) noexcept {
    return load_raw<std::uint16_t>(packet.at(view.upper + udp_at::checksum)) != 0;
}

/// Those by which a gateway finds customers.
std::vector<MapRuleSpec> rules_of(const TranslationConfig& config) {
    std::vector<MapRuleSpec> rules = config.domains;
    if (is_edge(config.mode)) {
        std::erase_if(rules, [](const MapRuleSpec& rule) { return !rule.forwarding; });
    }
    return rules;
}

std::optional<MapEdge> edge_in(const TranslationConfig& config) {
    return is_edge(config.mode) ? std::optional{edge_of(config.domains, *config.end_user_prefix)} : std::nullopt;
}

std::optional<net::Address> own_end_of(const TranslationConfig& config, const std::optional<MapEdge>& edge) {
    if (!is_subscriber(config.mode)) {
        return config.tunnel.relay;
    }
    return edge ? std::optional{net::Address{.family = net::Family::ipv6, .bytes = edge->address}} : config.tunnel.subscriber;
}

}  // namespace

Translator::Translator(TranslationConfig config, NatTable* table)
    : config_{std::move(config)},
      map_{config_.pref64, config_.eam},
      rules_{rules_of(config_)},
      edge_{edge_in(config_)},
      own_end_{own_end_of(config_, edge_)},
      table_{is_stateful(config_.mode) ? table : nullptr},
      inside_family_{inside_family(config_.mode)},
      outside_family_{outside_family(config_.mode)} {
    config_.assigned_addresses = own_addresses(config_);
}

NatPool public_endpoints(const TranslationConfig& config) {
    const auto edge = edge_in(config);
    if (!edge) {
        NatPool pool = config.pool;
        pool.behind_b4s = config.mode == Mode::aftr;
        return pool;
    }
    constexpr std::uint32_t all_ports = 65536;
    const PortSet ports = edge->rule.ports_of(edge->customer);
    return {.prefixes = {{.address = {.family = net::Family::ipv4, .bytes = edge->customer.ipv4}, .length = 32}},
            .port_min = static_cast<std::uint16_t>(ports.size() == all_ports ? 1024 : 1),  // of a whole address no system port
            .port_max = 65535,
            .port_set = ports,
            .mapping = config.pool.mapping};
}

std::vector<net::Address> own_addresses(const TranslationConfig& config) {
    std::vector<net::Address> addresses = config.assigned_addresses;
    if (const auto edge = edge_in(config)) {  // what is sent to the MAP address is the customer's
        std::erase(addresses, net::Address{.family = net::Family::ipv6, .bytes = edge->address});
    }
    for (const auto& end : {config.tunnel.relay, config.tunnel.subscriber}) {  // what comes in tunnels is the customers'
        if (end) {
            std::erase(addresses, *end);
        }
    }
    return addresses;
}

Drop Translator::translate(Side from, Packet& packet, std::uint64_t now_ns, Notes& notes) noexcept {
    notes = {};
    View view;
    if (const Drop drop = read_headers(packet, view); drop != Drop::none) {
        return drop;
    }
    notes.udp = view.udp;
    notes.echo = view.echo;
    if (stays_on_link(packet, view)) {
        return Drop::not_for_us;
    }
    const bool from_inside = from == config_.inside;
    const bool to_pool = table_ != nullptr && !from_inside && view.family == outside_family_ &&
                         table_->in_pool(address_at(packet, view.destination(), view.family));
    if (!to_pool && is_own(packet, view)) {
        return Drop::not_for_us;
    }
    if (is_to_own_end(packet, view)) {
        return from_inside != is_subscriber(config_.mode) ? end_tunnel(packet, view, now_ns, notes) : Drop::not_for_us;
    }
    if (hop_limit_of(packet, view) <= config_.hop_limit_decrement) {
        return Drop::hop_limit;
    }
    if (has_tunnels(config_.mode)) {
        return pass_tunnels(from, packet, view, now_ns, notes);
    }
    if (config_.mode == Mode::siit) {
        return translate_stateless(packet, view, notes);
    }
    if (config_.mode == Mode::map_t_br) {
        return relay(from, packet, view, notes);
    }
    if (edge_) {
        return pass_edge(from, packet, view, now_ns, notes);
    }
    if (to_pool) {
        return translate_inward(packet, view, now_ns, notes);
    }
    if (table_ != nullptr && from_inside && view.family == inside_family_) {
        return translate_outward(packet, view, now_ns, notes);
    }
    // A translator has no route for untranslated IPv4; IPv6 that it does not translate is
    // background.
    return table_ != nullptr && view.family == net::Family::ipv4 && config_.mode != Mode::nat66 ? Drop::no_mapping : route(packet, view);
}

NatTable::Clue Translator::clue_of(Side from, const Packet& packet) const noexcept {
    View view;
    const bool from_inside = from == config_.inside;
    const EchoMessage passing = from_inside ? EchoMessage::request : EchoMessage::reply;
    if (read_headers(packet, view) != Drop::none || (!view.udp && view.echo != passing) ||
        view.family != (from_inside ? inside_family_ : outside_family_)) {
        return {};
    }
    const Endpoints endpoints = endpoints_of(packet, view);
    const NatEndpoint source{.address = endpoints.source, .port = endpoints.source_port};
    NatEndpoint destination{.address = endpoints.destination, .port = endpoints.destination_port};
    if (edge_) {
        return from_inside ? table_->clue_from_inside(source, destination) : NatTable::Clue{};
    }
    if (!from_inside) {
        return table_->clue_from_outside(source, destination);
    }
    if (inside_family_ != outside_family_) {
        const auto outside = represented(map_, destination.address, view.family);
        if (!outside) {
            return {};
        }
        destination.address = *outside;
    }
    return table_->clue_from_inside(source, destination);
}

bool Translator::is_own(const Packet& packet, const View& view) const noexcept {
    return std::any_of(config_.assigned_addresses.begin(), config_.assigned_addresses.end(), [&](const net::Address& assigned) {
        return assigned.family == view.family &&
               std::equal(assigned.bytes.begin(), assigned.bytes.begin() + static_cast<int>(view.address_bytes()),
                          packet.at(view.destination()));
    });
}

bool Translator::can_cross(const Packet& packet, const View& view) const noexcept {
    const bool is_echo = view.echo != EchoMessage::none;
    if ((!view.udp && !is_echo) || view.source_route) {
        return false;
    }
    if (view.family == net::Family::ipv6) {
        return is_echo || has_udp_checksum(packet, view);  // UDP over IPv6 must have a checksum (RFC 8200 section 8.1)
    }
    const bool may_be_fragmented = (load_big_endian<std::uint16_t>(packet.at(view.ip + ipv4_at::flags)) & flag_dont_fragment) == 0;
    const bool would_be_fragmented = may_be_fragmented && ipv6_bytes + view.end() - view.upper > config_.lowest_ipv6_mtu;
    return !would_be_fragmented && has_room_for_ipv6(packet, view);
}

Drop Translator::route(Packet& packet, const View& view) const noexcept {
    lower_hop_limit(packet, view, config_.hop_limit_decrement);
    return Drop::none;
}

Drop Translator::translate_stateless(Packet& packet, const View& view, Notes& notes) noexcept {
    Endpoints to;
    to.source = address_at(packet, view.source(), view.family);
    to.destination = address_at(packet, view.destination(), view.family);
    const auto source = represented(map_, to.source, view.family), destination = represented(map_, to.destination, view.family);
    if (!source || !destination) {
        const bool native =
            view.family == net::Family::ipv6 && !(destination && map_.only_embedded(load_ipv6(packet.at(view.destination()))));
        return native ? route(packet, view) : Drop::no_mapping;
    }
    if (!can_cross(packet, view)) {
        return Drop::unsupported;
    }
    to = endpoints_of(packet, view);
    to.source = *source;
    to.destination = *destination;
    notes.treatment = Treatment::stateless;
    notes.crossed = true;
    cross(packet, view, to);
    return Drop::none;
}

void Translator::cross(Packet& packet, const View& view, const Endpoints& to) noexcept {
    const auto hop_limit = static_cast<std::uint8_t>(hop_limit_of(packet, view) - config_.hop_limit_decrement);
    if (view.family == net::Family::ipv4) {
        make_ipv6(packet, view, to, hop_limit);
        return;
    }
    const std::size_t bytes = ipv4_bytes + view.end() - view.upper;
    make_ipv4(packet, view, to,
              {.hop_limit = hop_limit,
               .identification = identification_++,
               .dont_fragment = config_.dont_fragment_always || bytes > longest_fragmentable_ipv4});
}

void Translator::finish_nat(Packet& packet, const View& view, const Endpoints& to) noexcept {
    if (inside_family_ != outside_family_) {
        cross(packet, view, to);
        return;
    }
    write_endpoints(packet, view, to);
    lower_hop_limit(packet, view, config_.hop_limit_decrement);
}

Drop Translator::connect(const NatEndpoint& inside, const NatEndpoint& remote, std::uint64_t now_ns, Notes& notes) noexcept {
    const NatTable::Lookup lookup = table_->from_inside(inside, remote, now_ns);
    switch (lookup.outcome) {
        case NatTable::Outcome::known:
        case NatTable::Outcome::created: break;
        case NatTable::Outcome::refused: notes.error_wanted = true; return Drop::table_full;
        case NatTable::Outcome::dropped: return Drop::table_full;
        case NatTable::Outcome::rate_limited: return Drop::rate_limited;
        case NatTable::Outcome::pool_exhausted: return Drop::pool_exhausted;
        case NatTable::Outcome::untranslated: notes.treatment = Treatment::untranslated; return Drop::none;
    }
    notes.treatment = Treatment::outward;
    notes.new_connection = lookup.outcome == NatTable::Outcome::created;
    notes.connection = lookup.connection;
    return Drop::none;
}

Drop Translator::translate_outward(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept {
    const bool crosses = inside_family_ != outside_family_;
    AddressBytes destination = address_at(packet, view.destination(), view.family);
    if (crosses) {
        const auto outside = represented(map_, destination, view.family);
        if (!outside) {
            return view.family == net::Family::ipv6 ? route(packet, view) : Drop::no_mapping;
        }
        destination = *outside;
    }
    if ((!view.udp && view.echo != EchoMessage::request) || view.source_route || (crosses && !can_cross(packet, view))) {
        return Drop::unsupported;
    }
    Endpoints to = endpoints_of(packet, view);
    if (const Drop drop =
            connect({.address = to.source, .port = to.source_port}, {.address = destination, .port = to.destination_port}, now_ns, notes);
        drop != Drop::none) {
        return drop;
    }
    if (notes.treatment == Treatment::untranslated) {
        return route(packet, view);
    }
    notes.crossed = crosses;
    const NatEndpoint pool = table_->pool_of(notes.connection);
    to.source = pool.address;
    to.source_port = pool.port;
    to.destination = destination;
    finish_nat(packet, view, to);
    return Drop::none;
}

Drop Translator::translate_inward(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept {
    const bool crosses = inside_family_ != outside_family_;
    if ((!view.udp && view.echo != EchoMessage::reply) || view.source_route || (crosses && !can_cross(packet, view))) {
        return Drop::unsupported;
    }
    Endpoints to = endpoints_of(packet, view);
    const NatTable::Connection connection = table_->from_outside({.address = to.source, .port = to.source_port},
                                                                 {.address = to.destination, .port = to.destination_port}, now_ns);
    if (connection == NatTable::none) {
        return Drop::no_state;
    }
    if (crosses) {
        const auto source = represented(map_, to.source, view.family);
        if (!source) {
            return Drop::no_mapping;
        }
        to.source = *source;
    }
    notes.treatment = Treatment::inward;
    notes.crossed = crosses;
    notes.connection = connection;
    const NatEndpoint inside = table_->inside_of(connection);
    to.destination = inside.address;
    to.destination_port = inside.port;
    finish_nat(packet, view, to);
    return Drop::none;
}

}  // namespace gatemark::refdut
