#include "frame/stream.hpp"

#include <algorithm>

namespace gatemark::frame {

namespace {

struct HeaderFields {
    std::uint8_t hop_limit;
    Mark mark;
    DontFragment dont_fragment;
};

void write_ethernet(std::vector<std::byte>& frame, const LinkAddresses& link, net::Family family) {
    std::copy(link.destination.begin(), link.destination.end(), frame.begin());
    std::copy(link.source.begin(), link.source.end(), frame.begin() + net::ethernet::source);
    std::byte* type = frame.data() + net::ethernet::type;
    if (link.vlan_id) {
        store_big_endian(type, net::ethernet::type_vlan);
        store_big_endian(type + 2, *link.vlan_id);
        type += net::ethernet::vlan_tag_bytes;
    }
    store_big_endian(type, family == net::Family::ipv4 ? net::ethernet::type_ipv4 : net::ethernet::type_ipv6);
}

/// What an IP header says of a packet, but for its addresses.
struct PacketFields {
    std::size_t bytes;  ///< with the header
    std::uint8_t protocol;
    HeaderFields header;
};

void write_ip_header(std::byte* ip, net::Family family, const PacketFields& packet) {
    write_mark(ip, family, packet.header.mark);
    if (family == net::Family::ipv4) {
        ip[net::ipv4::version] = std::byte{0x45};
        store_big_endian(ip + net::ipv4::total_length, static_cast<std::uint16_t>(packet.bytes));
        store_big_endian(ip + net::ipv4::fragment,
                         packet.header.dont_fragment == DontFragment::set ? net::ipv4::dont_fragment : std::uint16_t{0});
        ip[net::ipv4::time_to_live] = static_cast<std::byte>(packet.header.hop_limit);
        ip[net::ipv4::protocol] = static_cast<std::byte>(packet.protocol);
    } else {
        store_big_endian(ip + net::ipv6::payload_length, static_cast<std::uint16_t>(packet.bytes - net::ipv6::header_bytes));
        ip[net::ipv6::next_header] = static_cast<std::byte>(packet.protocol);
        ip[net::ipv6::hop_limit] = static_cast<std::byte>(packet.header.hop_limit);
    }
}

void put_base(std::byte* at, const AddressField& field) { std::copy_n(field.base().bytes.begin(), field.bytes(), at); }

void write_ip(std::byte* ip, const FrameTemplate& frame_template, const HeaderFields& fields, std::span<const ExtensionHeader> extensions) {
    const Layout& layout = frame_template.layout;
    const std::uint8_t protocol = extensions.empty() ? net::protocol_udp : protocol_of(extensions.front());
    write_ip_header(ip, layout.family, {.bytes = layout.ip_bytes(), .protocol = protocol, .header = fields});
    put_base(ip + (layout.source_address() - layout.ip), frame_template.source);
    put_base(ip + (layout.destination_address() - layout.ip), frame_template.destination);
    std::ranges::copy(write_extension_headers(extensions, frame_template.destination.base().bytes), ip + (layout.header_end() - layout.ip));
}

/// The outer header of a frame that `build` has built, but for the subscriber's address.
void write_outer(FrameTemplate& frame_template, const HeaderFields& fields) {
    const Layout& layout = frame_template.layout;
    std::byte* const frame = frame_template.frame.data();
    write_ip_header(frame + layout.outer, layout.outer_family(),
                    {.bytes = layout.end - layout.outer, .protocol = protocol_of_inner(layout.family), .header = fields});
    put_base(frame + layout.outer_source_address(), frame_template.outer_source);
    put_base(frame + layout.outer_destination_address(), frame_template.outer_destination);
}

/// Of a frame in a tunnel that is complete but for this.
void write_outer_checksum(const Layout& layout, std::byte* frame) noexcept {
    if (layout.outer_family() == net::Family::ipv4) {
        std::byte* const outer = frame + layout.outer;
        store_raw(outer + net::ipv4::checksum, std::uint16_t{0});
        store_raw(outer + net::ipv4::checksum, header_checksum(sum_of({outer, net::ipv4::header_bytes})));
    }
}

/// Into a frame that is complete but for its mark; in a tunnel, the outer header has this class.
void write_varying_mark(const Layout& layout, const Mark& mark, std::uint8_t outer_traffic_class, std::byte* frame) noexcept {
    if (layout.in_tunnel()) {
        write_mark(frame + layout.outer, layout.outer_family(), {.traffic_class = outer_traffic_class});
        write_outer_checksum(layout, frame);
    }
    std::byte* const ip = frame + layout.ip;
    write_mark(ip, layout.family, mark);
    if (layout.family == net::Family::ipv4) {
        store_raw(ip + net::ipv4::checksum, std::uint16_t{0});
        store_raw(ip + net::ipv4::checksum, header_checksum(sum_of({ip, net::ipv4::header_bytes})));
    }
}

/// UDP data: the signature's fixed part, then incrementing bytes (RFC 2544 appendix C.2.6.4).
void write_payload(std::span<std::byte> payload, std::uint32_t trial_id, std::uint8_t stream) {
    for (std::size_t i = signature::bytes; i < payload.size(); ++i) {
        payload[i] = static_cast<std::byte>(i & 0xff);
    }
    store_big_endian(payload.data() + signature::trial_id_offset, trial_id);
    payload[signature::stream_offset] = static_cast<std::byte>(stream);
}

/// Octets behind the packet: numbers from 1, so that a sum over them is not that over nothing.
void add_trailer(std::vector<std::byte>& frame, std::size_t octets) {
    for (std::size_t number = 1; number <= octets; ++number) {
        frame.push_back(static_cast<std::byte>(number));
    }
}

void build(FrameTemplate& frame_template, const LinkAddresses& link, const HeaderFields& fields,
           std::span<const ExtensionHeader> extensions, std::uint32_t trial_id, std::uint8_t stream) {
    const Layout& layout = frame_template.layout;
    frame_template.frame.assign(layout.end, std::byte{0});
    write_ethernet(frame_template.frame, link, layout.outer_family());
    std::byte* const frame = frame_template.frame.data();
    write_ip(frame + layout.ip, frame_template, fields, extensions);
    store_big_endian(frame + layout.udp + net::udp::length, static_cast<std::uint16_t>(layout.udp_bytes()));
    write_payload(std::span{frame_template.frame}.subspan(layout.payload), trial_id, stream);

    // Sums for the incremental checksums. What varies per frame (ports, stream and index,
    // timestamp, varying address bytes) counts as zero here.
    std::vector<std::byte> constant = frame_template.frame;
    constant[layout.payload + signature::stream_offset] = std::byte{0};
    const std::span bytes{constant};
    frame_template.header_sum = sum_of(bytes.subspan(layout.ip, net::header_bytes_of(layout.family)));
    const std::size_t addresses = layout.source_address();
    frame_template.udp_sum = sum_of(bytes.subspan(addresses, layout.header_end() - addresses)) + sum_of(bytes.subspan(layout.udp)) +
                             swap_bytes(static_cast<std::uint16_t>(layout.udp_bytes())) + swap_bytes(std::uint16_t{net::protocol_udp});
}

std::optional<Error> problem_of(const StreamRequest& request, const std::string& where) {
    const std::size_t extension_bytes = bytes_of(request.extension_headers);
    const std::size_t outer_bytes = request.source_tunnel ? net::header_bytes_of(request.source_tunnel->gateway.family) : 0;
    const std::size_t beside_min = request.trailer_octets + outer_bytes;
    const std::size_t ipv4_min = 64 + beside_min, ipv6_min = 84 + extension_bytes + beside_min;
    const std::size_t ipv4_max = frame_octets_max + outer_bytes, ipv6_max = ipv4_max + 20;
    const bool is_ipv4 = request.source_family() == net::Family::ipv4;
    if (request.frame_octets < (is_ipv4 ? ipv4_min : ipv6_min) || request.frame_octets > (is_ipv4 ? ipv4_max : ipv6_max)) {
        return Error{std::to_string(request.frame_octets) + " octets is not a frame size", where + ".frame_octets",
                     "choose " + std::to_string(ipv4_min) + " to " + std::to_string(ipv4_max) + " for IPv4 and " +
                         std::to_string(ipv6_min) + " to " + std::to_string(ipv6_max) +
                         " for IPv6: the signature needs 18 octets of UDP data"};
    }
    if (extension_bytes != 0 &&
        (request.source_family() != net::Family::ipv6 || request.destination_family() != net::Family::ipv6 || request.connections)) {
        return Error{"extension headers go from IPv6 to IPv6, without connections", where + ".extension_headers", "send none"};
    }
    if (request.hop_limit <= request.hop_limit_decrement) {
        return Error{
            "hop limit " + std::to_string(request.hop_limit) + " does not survive " + std::to_string(request.hop_limit_decrement) + " hops",
            where + ".hop_limit", "raise it above the gateway's decrement"};
    }
    if (request.source_family() == net::Family::ipv4 && (request.marking.labels_flows || request.marking.flow_label != 0)) {
        return Error{"an IPv4 packet has no flow label", where + ".flow_label", "send 0"};
    }
    if (request.without_checksum && request.source_family() == net::Family::ipv6) {
        return Error{"UDP over IPv6 needs a checksum", where + ".udp_checksum", "send computed (RFC 8200 section 8.1)"};
    }
    return std::nullopt;
}

/// In a tunnel or behind it, without the outer header.
std::size_t bytes_when_translated(std::size_t frame_octets, net::Family from, net::Family to) noexcept {
    constexpr std::size_t longer_by = net::ipv6::header_bytes - net::ipv4::header_bytes;
    return from == to ? frame_octets : to == net::Family::ipv6 ? frame_octets + longer_by : frame_octets - longer_by;
}

/// As frames are sent, and as they must arrive.
std::pair<Layout, Layout> layouts_of(const StreamRequest& request, bool sent_with_vlan, bool received_with_vlan) noexcept {
    const std::size_t outer_bytes = request.tunnel() != nullptr ? net::header_bytes_of(request.tunnel()->gateway.family) : 0;
    const std::size_t sent_octets = request.frame_octets - request.trailer_octets;
    const net::Family sent = request.source_family(), expected = request.as_sent ? sent : request.destination_family();
    const std::size_t inside_octets = bytes_when_translated(sent_octets - (request.source_tunnel ? outer_bytes : 0), sent, expected);
    const std::size_t extension_bytes = bytes_of(request.extension_headers);
    return {Layout::make({.family = sent,
                          .frame_octets = sent_octets,
                          .with_vlan = sent_with_vlan,
                          .in_tunnel = request.source_tunnel.has_value(),
                          .extension_bytes = extension_bytes}),
            Layout::make({.family = expected,
                          .frame_octets = inside_octets + (request.arrives_in_tunnel() ? outer_bytes : 0),
                          .with_vlan = received_with_vlan,
                          .in_tunnel = request.arrives_in_tunnel(),
                          .extension_bytes = extension_bytes})};
}

}  // namespace

DontFragment expected_dont_fragment(const StreamRequest& request, const Layout& expected) noexcept {
    const DontFragmentRule rule = request.as_sent ? DontFragmentRule::kept : request.dont_fragment_rule;
    const bool is_set =
        rule == DontFragmentRule::kept ? request.dont_fragment : rule == DontFragmentRule::rfc6145 || expected.ip_bytes() > 1260;
    return is_set ? DontFragment::set : DontFragment::clear;
}

Layout Layout::make(const LayoutRequest& request) noexcept {
    const std::size_t tag_bytes = request.with_vlan ? net::ethernet::vlan_tag_bytes : 0;
    Layout layout;
    layout.family = request.family;
    layout.outer = net::ethernet::header_bytes + tag_bytes;
    layout.ip = layout.outer + (request.in_tunnel ? net::header_bytes_of(net::other_family(request.family)) : 0);
    layout.udp = layout.header_end() + request.extension_bytes;
    layout.payload = layout.udp + net::udp::header_bytes;
    layout.end = request.frame_octets - net::ethernet::fcs_bytes + tag_bytes;
    return layout;
}

void write_tunnel(const FrameTemplate& frame_template, std::byte* frame, const FrameValues& values) noexcept {
    const Layout& layout = frame_template.layout;
    frame_template.outer_source.write(frame + layout.outer_source_address(), values.source_host, 0, values.edge());
    frame_template.outer_destination.write(frame + layout.outer_destination_address(), values.destination_host, values.network,
                                           values.edge());
    write_outer_checksum(layout, frame);
}

Result<Stream> Stream::make(const StreamRequest& request, signature::Direction direction, signature::TrafficClass traffic_class,
                            std::uint64_t seed, std::uint32_t trial_id, const LinkAddresses& sent_link, const LinkAddresses& received_link,
                            const std::string& where) {
    const net::Family expected_family = request.as_sent ? request.source_family() : request.destination_family();
    if (auto error = problem_of(request, where)) {
        return *std::move(error);
    }
    Stream stream;
    stream.id_ = signature::stream_id(direction, traffic_class);
    stream.expected_hop_limit_ = static_cast<std::uint8_t>(request.hop_limit - request.hop_limit_decrement);
    stream.expected_vlan_ = received_link.vlan_id;
    stream.networks_ = request.destination.networks;
    stream.source_ports_ = ValueSequence{request.source_ports};
    stream.destination_ports_ = ValueSequence{request.destination_ports};
    stream.source_hosts_ = ValueSequence{request.source.part};
    stream.destination_hosts_ = ValueSequence{request.destination.part};
    const std::uint64_t purpose = std::uint64_t{stream.id_} << 8;
    stream.port_words_ = RandomSequence{seed, purpose};
    stream.host_words_ = RandomSequence{seed, purpose + 1};
    stream.network_words_ = RandomSequence{seed, purpose + 2};
    stream.marking_ = {request.marking, RandomSequence{seed, purpose + 5}.at(0)};

    stream.as_sent_ = request.as_sent;
    stream.zero_checksum_for_ones_ = request.zero_checksum_for_ones;
    stream.take_special(request, expected_family, sent_link, received_link);
    if (request.connections) {
        stream.role_ = request.connections->role;
        stream.nat_side_ = request.connections->nat_side;
        stream.set_ = request.connections->set;
        stream.choice_ = {request.connections->choice, request.connections->set.count(), RandomSequence{seed, purpose + 3}};
    }

    if (auto error = stream.take_tunnel(request, sent_link, received_link, where)) {
        return *std::move(error);
    }
    if (auto error = stream.take_edges(request, seed, sent_link, received_link, where)) {
        return *std::move(error);
    }
    if (auto error = stream.take_peers(request, sent_link, received_link, where)) {
        return *std::move(error);
    }
    stream.hosts_are_drawn_ = stream.networks_ == 1 && !stream.source_ports_.counts() && !stream.destination_ports_.counts() &&
                              !stream.source_hosts_.counts() && !stream.destination_hosts_.counts();
    stream.draws_ = stream.hosts_are_drawn_ && !request.connections && !stream.edges_;

    stream.has_fragment_header_ = std::ranges::count(request.extension_headers, ExtensionHeader::fragment) != 0;
    const auto [sent, expected] = layouts_of(request, sent_link.vlan_id.has_value(), received_link.vlan_id.has_value());
    for (const auto& [side, layout] : {std::pair{&stream.sent_, sent}, std::pair{&stream.expected_, expected}}) {
        if (auto error = stream.lay_out(*side, layout, request, where)) {
            return *error;
        }
    }
    const DontFragment asked = request.dont_fragment ? DontFragment::set : DontFragment::clear;
    stream.expected_dont_fragment_ = frame::expected_dont_fragment(request, stream.expected_.layout);
    const Mark sent_mark = stream.marks_vary() ? Mark{} : stream.sent_mark({}),
               expected_mark = stream.marks_vary() ? Mark{} : stream.expected_mark({});
    build(stream.sent_, sent_link, {request.hop_limit, sent_mark, asked}, request.extension_headers, trial_id, stream.id_);
    build(stream.expected_, {.source = received_link.destination, .destination = received_link.source, .vlan_id = received_link.vlan_id},
          {stream.expected_hop_limit_, expected_mark, stream.expected_dont_fragment_}, request.extension_headers, trial_id, stream.id_);
    stream.build_tunnels(sent_mark, expected_mark);
    add_trailer(stream.sent_.frame, request.trailer_octets);
    if (request.as_sent) {
        add_trailer(stream.expected_.frame, request.trailer_octets);
    }
    return stream;
}

std::optional<Error> Stream::take_tunnel(const StreamRequest& request, const LinkAddresses& sent_link, const LinkAddresses& received_link,
                                         const std::string& where) {
    const TunnelRequest* const tunnel = request.tunnel();
    if (tunnel == nullptr) {
        return std::nullopt;
    }
    const bool at_source = request.source_tunnel.has_value();
    const std::string name = where + (at_source ? ".source_tunnel" : ".destination_tunnel");
    const net::Family inner = at_source ? request.source_family() : request.destination_family();
    const bool has_edges =
        at_source ? request.source_edges || request.source_peers : request.destination_edges || request.destination_peers;
    if (request.source_family() != request.destination_family() || (request.source_tunnel && request.destination_tunnel)) {
        return Error{"a tunnel is at one end of packets that keep their family", name, "send null"};
    }
    const bool at_responder = request.connections && (request.connections->role == Role::initiator) != at_source;
    if (at_responder && !tunnel->is_single() && request.peers() == nullptr) {
        return Error{"subscribers of connections are at the Initiator's end", name, "give a single address, or send null"};
    }
    if ((request.connections || tunnel->is_single()) && (at_source ? sent_link : received_link).host_macs) {
        return Error{"ends of tunnels have the port's link-layer address", name, "send host_macs fixed for their side"};
    }
    if (tunnel->gateway.family == inner) {
        return Error{"the outer header is of the other family than the packet inside", name + ".gateway", "give an address of that family"};
    }
    if (has_edges == tunnel->subscribers.has_value()) {
        return Error{"subscribers are customer edges, or hosts with tunnels of their own", name + ".subscribers",
                     has_edges ? "send null" : "give a set of as many hosts"};
    }
    tunnel_ = *tunnel;
    return tunnel->subscribers ? take_subscribers(request, name) : std::nullopt;
}

std::optional<Error> Stream::take_subscribers(const StreamRequest& request, const std::string& name) {
    const HostSet& hosts = request.source_tunnel ? request.source : request.destination;
    const HostSet& subscribers = *tunnel_.subscribers;
    const bool are_counted = request.connections && (request.connections->role == Role::initiator) == request.source_tunnel.has_value();
    const bool is_one_before_all = tunnel_.is_single() && !are_counted;
    if (subscribers.address.family == hosts.address.family || subscribers.many_networks() ||
        (hosts.many_networks() && !is_one_before_all) || (!request.connections && !is_one_before_all && subscribers.part != hosts.part)) {
        return Error{
            "the hosts of a tunnel and its subscribers do not go together", name + ".subscribers",
            request.connections ? "give outer addresses of the other family" : "give an outer address for each value of the hosts"};
    }
    if (are_counted) {
        subscriber_hosts_.emplace(hosts, subscribers);
    }
    return std::nullopt;
}

bool Stream::is_of_any_subscriber(const std::byte* outer_address, const AddressField& field) const noexcept {
    return edges_   ? edges_->edges().is_of_any(net::load_wide(outer_address))
           : peers_ ? peers_->is_of_any(net::load_wide(outer_address))
                    : field.contains(outer_address);
}

/// The outer headers, where there are any; DF is clear in those of IPv4, which hold packets of IPv6
/// whose source has learned how long they may be.
void Stream::build_tunnels(const Mark& sent_mark, const Mark& expected_mark) {
    if (sent_.layout.in_tunnel()) {
        const Mark mark{.traffic_class = tunnel_traffic_class(sent_mark.traffic_class)};
        write_outer(sent_, {tunnel_.hop_limit, mark, DontFragment::clear});
    }
    if (expected_.layout.in_tunnel()) {
        const Mark mark{.traffic_class = tunnel_traffic_class(expected_mark.traffic_class)};
        write_outer(expected_, {tunnel_.expected_hop_limit.value_or(0), mark, DontFragment::clear});
    }
}

std::optional<Error> Stream::take_edges(const StreamRequest& request, std::uint64_t seed, const LinkAddresses& sent_link,
                                        const LinkAddresses& received_link, const std::string& where) {
    const EdgesRequest* const wanted = request.edges();
    if (wanted == nullptr) {
        return std::nullopt;
    }
    comes_from_edges_ = request.source_edges.has_value();
    const std::string end = where + (comes_from_edges_ ? ".source" : ".destination");
    const bool in_tunnel = request.tunnel() != nullptr;
    if (std::ranges::any_of(wanted->domains, [&](const EdgeDomain& domain) { return domain.rule.dmr.has_value() == in_tunnel; })) {
        return Error{in_tunnel ? "in a tunnel, hosts outside have their own addresses" : "without a tunnel, hosts outside need a prefix",
                     end + ".edges", in_tunnel ? "send dmr null in each domain" : "give a dmr in each domain (RFC 7599 section 5.1)"};
    }
    const HostSet& others = comes_from_edges_ ? request.destination : request.source;
    if (request.connections || (request.source_edges && request.destination_edges) || others.address.family != net::Family::ipv4) {
        return Error{"customer edges talk to IPv4 hosts outside, without connections", end, "give such hosts at the other end"};
    }
    if ((comes_from_edges_ ? sent_link : received_link).host_macs) {
        return Error{"customer edges have the port's link-layer address", end, "send host_macs fixed for their side"};
    }
    const ValueRange& ports = comes_from_edges_ ? request.source_ports : request.destination_ports;
    if (wanted->choice == EdgeChoice::pseudorandom && ValueSequence{ports}.counts()) {
        return Error{"edges that are drawn cannot take their ports in turn",
                     where + (comes_from_edges_ ? ".source_ports" : ".destination_ports"),
                     "let edges take turns (choice cycle), or draw the ports"};
    }
    auto edges = CustomerEdges::make(*wanted, seed, end + ".edges");
    if (const auto* errors = std::get_if<Errors>(&edges)) {
        return errors->front();
    }
    edges_.emplace(std::make_shared<const CustomerEdges>(std::get<CustomerEdges>(std::move(edges))), *wanted, ports,
                   RandomSequence{seed, (std::uint64_t{id_} << 8) + 4}.at(0));
    return std::nullopt;
}

std::optional<Error> Stream::take_peers(const StreamRequest& request, const LinkAddresses& sent_link, const LinkAddresses& received_link,
                                        const std::string& where) {
    const PeersRequest* const wanted = request.peers();
    if (wanted == nullptr) {
        return std::nullopt;
    }
    const bool at_source = request.source_peers.has_value();
    const std::string name = where + (at_source ? ".source_peers" : ".destination_peers");
    if (!request.connections || (request.connections->role == Role::responder) != at_source || request.as_sent ||
        (request.source_peers && request.destination_peers)) {
        return Error{"other customer edges are at the Responder's end of connections through a gateway", name, "send null"};
    }
    if ((at_source ? sent_link : received_link).host_macs) {
        return Error{"other customer edges have the port's link-layer address", name, "send host_macs fixed for their side"};
    }
    auto peers = PeerEdges::make(*wanted, at_source ? request.source : request.destination, name);
    if (const auto* errors = std::get_if<Errors>(&peers)) {
        return errors->front();
    }
    peers_ = std::get<PeerEdges>(std::move(peers));
    return std::nullopt;
}

/// The gateway chooses the translated source of an Initiator's frame, which is also the Responder's
/// destination; neither follows from a host.
std::optional<Error> Stream::lay_out(FrameTemplate& frame_template, const Layout& layout, const StreamRequest& request,
                                     const std::string& where) const {
    const net::AddressMapping* const mapping = request.mapping ? &*request.mapping : nullptr;
    const net::Family family = layout.family;
    const HostSet& shared = role_ == Role::initiator ? source_set_ : destination_set_;  // by subscribers, if there are any
    const auto field_of = [&](const HostSet& hosts, bool is_chosen, bool is_edge, const char* end) -> Result<AddressField> {
        return is_chosen                                  ? AddressField::chosen_by_gateway(family)
               : subscriber_hosts_ && &hosts == &shared   ? subscriber_hosts_->host_field(where + end)
               : peers_ && hosts.address.family != family ? peers_->field()
               : is_edge                                  ? edge_address(edges_->shared_edges(), family)
               : edges_ && hosts.address.family != family ? outside_address(edges_->shared_edges(), hosts, where + end)
                                                          : AddressField::make(hosts, family, mapping, where + end);
    };
    auto source = field_of(source_set_, role_ == Role::initiator && &frame_template == &expected_, edges_ && comes_from_edges_, ".source");
    auto destination =
        field_of(destination_set_, role_ == Role::responder && &frame_template == &sent_, edges_ && !comes_from_edges_, ".destination");
    for (const auto* field : {&source, &destination}) {
        if (const Error* error = error_of(*field)) {
            return *error;
        }
    }
    if (layout.in_tunnel()) {
        auto subscriber = subscriber_hosts_     ? subscriber_hosts_->subscriber_field(where)
                          : peers_              ? peers_->field()
                          : tunnel_.subscribers ? AddressField::make(*tunnel_.subscribers, layout.outer_family(), nullptr, where)
                                                : edge_address(edges_->shared_edges(), layout.outer_family());
        if (const Error* error = error_of(subscriber)) {
            return *error;
        }
        const AddressField gateway = AddressField::constant(tunnel_.gateway);
        (request.source_tunnel ? frame_template.outer_source : frame_template.outer_destination) = std::get<AddressField>(subscriber);
        (request.source_tunnel ? frame_template.outer_destination : frame_template.outer_source) = gateway;
    }
    frame_template.layout = layout;
    frame_template.source = std::get<AddressField>(std::move(source));
    frame_template.destination = std::get<AddressField>(std::move(destination));
    return std::nullopt;
}

void Stream::take_special(const StreamRequest& request, net::Family expected_family, const LinkAddresses& sent_link,
                          const LinkAddresses& received_link) {
    sent_without_checksum_ = request.without_checksum;
    expects_no_checksum_ = request.without_checksum && expected_family == net::Family::ipv4;
    source_set_ = request.source;
    source_set_.networks = 1;  // RFC 2544 section 12 varies the destination network
    destination_set_ = request.destination;
    source_macs_ = sent_link.host_macs;
    destination_macs_ = received_link.host_macs;
    sent_destination_macs_ = request.as_sent && received_link.host_macs.has_value();
}

FrameValues Stream::values_of_prepared(std::uint64_t number) const noexcept {
    return role_ == Role::stateless ? values(number) : values_of(number);
}

void Stream::write_special(std::byte* frame, const FrameValues& values) const noexcept {
    if (marks_vary()) {
        const Mark mark = sent_mark(values);
        write_varying_mark(sent_.layout, mark, tunnel_traffic_class(mark.traffic_class), frame);
    }
    if (sent_.layout.in_tunnel()) {
        write_tunnel(sent_, frame, values);
    }
    if (sent_without_checksum_) {
        store_raw(frame + sent_.layout.udp + net::udp::checksum, std::uint16_t{0});
    }
    if (const auto mac = host_source_mac(values)) {
        std::copy(mac->begin(), mac->end(), frame + net::ethernet::source);
    }
    if (sent_destination_macs_) {
        const net::MacAddress mac = expected_destination_mac(values);
        std::copy(mac.begin(), mac.end(), frame + net::ethernet::destination);
    }
}

void Stream::write_special_expected(std::byte* frame, const FrameValues& values) const noexcept {
    if (expected_.layout.in_tunnel()) {
        write_tunnel(expected_, frame, values);
    }
    if (marks_vary()) {
        const Mark mark = expected_mark(values);
        write_varying_mark(expected_.layout, mark, tunnel_traffic_class(mark.traffic_class), frame);
    }
    if (expects_no_checksum_) {
        store_raw(frame + expected_.layout.udp + net::udp::checksum, std::uint16_t{0});
    }
    if (destination_macs_) {
        const net::MacAddress mac = expected_destination_mac(values);
        std::copy(mac.begin(), mac.end(), frame + net::ethernet::destination);
    }
}

net::MacAddress Stream::expected_destination_mac(const FrameValues& values) const noexcept {
    if (destination_macs_) {
        return destination_macs_->at(destination_set_.number_of(destination_set_.host(values.destination_host, values.network)));
    }
    net::MacAddress mac;
    std::copy_n(expected_.frame.begin() + net::ethernet::destination, mac.size(), mac.begin());
    return mac;
}

FrameValues Stream::other_values(std::uint64_t j) const noexcept {
    if (role_ != Role::stateless) {
        return values_of(connection_of(j));
    }
    if (edges_) {
        return values_of_edge(j, edges_->edge_of(j));
    }
    return values_of_hosts(j);
}

FrameValues Stream::values_of_hosts(std::uint64_t j) const noexcept {
    const std::uint64_t ports = port_words_.at(j), hosts = host_words_.at(j);
    return {.source_port = source_ports_.at(j, static_cast<std::uint32_t>(ports >> 32)),
            .destination_port = destination_ports_.at(j, static_cast<std::uint32_t>(ports)),
            .source_host = source_hosts_.at(j, static_cast<std::uint32_t>(hosts >> 32)),
            .destination_host = destination_hosts_.at(j, static_cast<std::uint32_t>(hosts)),
            .network = static_cast<std::uint8_t>(scale_to(static_cast<std::uint32_t>(network_words_.at(j) >> 32), networks_))};
}

void Stream::prepare_by_rule(std::span<const std::uint64_t> numbers, std::span<std::uint64_t> tuples) const noexcept {
    std::ranges::copy(numbers, tuples.begin());
    edges_->put_edges(tuples);
}

FrameValues Stream::values_of_edge_in_turn(std::uint64_t j, Edge edge) const noexcept {
    FrameValues values = values_of_hosts(j);
    const std::uint64_t ports = port_words_.at(j);
    const std::uint16_t host = edge_draws().at(j, edge, edges_->of_domain(edge)).edge_host;
    if (comes_from_edges_) {
        values.source_port = edges_->port_of(j, edge, static_cast<std::uint32_t>(ports >> 32));
        values.source_host = host;
    } else {
        values.destination_port = edges_->port_of(j, edge, static_cast<std::uint32_t>(ports));
        values.destination_host = host;
    }
    values.connection = edge.number;
    return values;
}

Sum Stream::write_addresses_by_rule(std::byte* frame, const FrameValues& values) const noexcept {
    const CustomerEdges& edges = edges_->edges();
    const Layout& layout = sent_.layout;
    std::byte* const source = frame + layout.source_address();
    std::byte* const destination = frame + layout.destination_address();
    const Sum edge =
        layout.family == net::Family::ipv6
            ? write_map_address(comes_from_edges_ ? source : destination, edges.address_of(values.edge()))
            : write_shared_address(comes_from_edges_ ? source : destination,
                                   edges.ipv4_of(values.edge(), comes_from_edges_ ? values.source_host : values.destination_host));
    return edge + (comes_from_edges_ ? sent_.destination.write_outside(destination, values.destination_host, values.network, values.edge())
                                     : sent_.source.write(source, values.source_host, 0, values.edge()));
}

}  // namespace gatemark::frame
