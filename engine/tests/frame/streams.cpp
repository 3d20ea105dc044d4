#include "frame/streams.hpp"

#include <stdexcept>

namespace gatemark::test {

namespace {

constexpr unsigned decrement_of(Gateway gateway) { return gateway == Gateway::siit64 || gateway == Gateway::siit46 ? 3 : 1; }

template <class T>
T value_of(Result<T> result) {
    if (const Error* const error = error_of(result)) {
        throw std::invalid_argument{error->where + ": " + error->what};
    }
    return std::get<T>(std::move(result));
}

}  // namespace

frame::HostSet fixed_host(const std::string& address) { return {.address = address_of(address), .offset = 0, .part = {}, .networks = 1}; }

frame::HostSet varying_host(const std::string& address, std::size_t offset, frame::ValueMode mode, std::uint16_t minimum,
                            std::uint16_t maximum, std::uint16_t networks) {
    return {.address = address_of(address), .offset = offset, .part = {mode, minimum, maximum}, .networks = networks};
}

net::AddressMapping mapping_of(const std::string& prefix, const std::vector<std::pair<std::string, std::string>>& explicit_mappings) {
    std::vector<net::ExplicitMapping> mappings;
    for (const auto& [ipv4, ipv6] : explicit_mappings) {
        mappings.push_back({net::parse_prefix(ipv4).value(), net::parse_prefix(ipv6).value()});
    }
    return value_of(net::AddressMapping::make(prefix.empty() ? std::nullopt : net::parse_prefix(prefix), mappings));
}

frame::EdgeDomain edge_domain(const std::string& ipv6, const std::string& ipv4, unsigned ea_bits, unsigned psid_offset) {
    frame::EdgeDomain domain;
    domain.rule = {.ipv6 = net::parse_prefix(ipv6).value(),
                   .ipv4 = net::parse_prefix(ipv4).value(),
                   .ea_bits = ea_bits,
                   .psid_offset = psid_offset,
                   .dmr = net::parse_prefix("2001:db8:ffff::/64").value()};
    return domain;
}

frame::StreamRequest request_for(Gateway gateway, std::size_t frame_octets) {
    using frame::ValueMode;
    const auto ipv4_left = varying_host("198.18.0.0", 2, ValueMode::pseudorandom, 2, 254),
               ipv4_right = varying_host("198.19.0.0", 2, ValueMode::increasing, 2, 254);
    const auto ipv6_left = varying_host("2001:2::", 14, ValueMode::pseudorandom, 2, 254),
               ipv6_right = varying_host("2001:2:0:8000::", 14, ValueMode::decreasing, 2, 65535);
    // An IPv6 host that a translator without explicit mappings can represent lies within its
    // prefix.
    const auto ipv6_translatable = varying_host("64:ff9b::c612:0", 14, ValueMode::pseudorandom, 2, 254);
    frame::StreamRequest request;
    request.frame_octets = frame_octets == 0 ? smallest_frame(gateway) : frame_octets;
    request.source_ports = {ValueMode::pseudorandom, 1024, 65535};
    request.destination_ports = {ValueMode::pseudorandom, 1, 49151};
    request.hop_limit_decrement = static_cast<std::uint8_t>(decrement_of(gateway));
    switch (gateway) {
        case Gateway::router44:
            request.source = ipv4_left;
            request.destination = ipv4_right;
            break;
        case Gateway::router66:
            request.source = ipv6_left;
            request.destination = ipv6_right;
            break;
        case Gateway::siit64:
            request.source = ipv6_translatable;
            request.destination = ipv4_right;
            break;
        case Gateway::siit46:
            request.source = ipv4_left;
            request.destination = ipv6_translatable;
            break;
    }
    request.marking.flow_label = request.source.address.family == net::Family::ipv6 ? 0x5a5a5 : 0;
    if (request.source.address.family != request.destination.address.family) {
        request.mapping = mapping_of(std::string{prefix_96} + "/96");
        request.dont_fragment_rule = frame::DontFragmentRule::rfc7915;
    }
    return request;
}

frame::StreamRequest edges_request(const frame::EdgesRequest& edges, frame::signature::Direction direction, frame::ValueMode ports,
                                   bool as_sent, std::size_t frame_octets) {
    const bool forward = direction == frame::signature::Direction::forward;
    frame::StreamRequest request;
    request.frame_octets = frame_octets == 0 ? (forward ? 84 : 64) : frame_octets;
    (forward ? request.source_edges : request.destination_edges) = edges;
    (forward ? request.destination : request.source) = varying_host("198.19.0.0", 2, frame::ValueMode::pseudorandom, 2, 254);
    request.source_ports = {forward ? ports : frame::ValueMode::increasing, 1024, 65535};
    request.destination_ports = {forward ? frame::ValueMode::pseudorandom : ports, 1024, 49151};
    request.as_sent = as_sent;
    request.hop_limit_decrement = as_sent ? 0 : 1;
    if (!as_sent) {
        request.mapping = mapping_of("");
        request.dont_fragment_rule = frame::DontFragmentRule::rfc7915;
    }
    return request;
}

frame::StreamRequest map_e_request(frame::EdgesRequest edges, frame::signature::Direction direction, std::size_t inner_octets) {
    for (frame::EdgeDomain& domain : edges.domains) {
        domain.rule.dmr.reset();
    }
    const bool forward = direction == frame::signature::Direction::forward;
    frame::StreamRequest request =
        edges_request(edges, direction, frame::ValueMode::pseudorandom, false, inner_octets + (forward ? net::ipv6::header_bytes : 0));
    request.mapping.reset();
    request.dont_fragment_rule = frame::DontFragmentRule::kept;
    (forward ? request.source_tunnel : request.destination_tunnel) =
        frame::TunnelRequest{.gateway = address_of("2001:db8:ffff::1"), .expected_hop_limit = 64};
    return request;
}

frame::StreamRequest aftr_request(frame::Role role, const frame::HostSet& subscribers, const frame::HostSet& hosts, std::uint64_t count,
                                  enumerate::ConnectionChoice::Mode choice) {
    const bool initiator = role == frame::Role::initiator;
    const frame::HostSet outside = varying_host("198.51.100.0", 2, frame::ValueMode::pseudorandom, 1, 5);
    const frame::ValueRange inner{frame::ValueMode::pseudorandom, 5000, 5004}, outer{frame::ValueMode::pseudorandom, 80, 81};
    frame::StreamRequest request;
    request.frame_octets = 64 + (initiator ? net::ipv6::header_bytes : 0);
    request.source = initiator ? hosts : outside;
    request.destination = initiator ? outside : hosts;
    request.source_ports = initiator ? inner : outer;
    request.destination_ports = initiator ? outer : inner;
    (initiator ? request.source_tunnel : request.destination_tunnel) =
        frame::TunnelRequest{.gateway = address_of("2001:db8:0:2::1"), .subscribers = subscribers, .expected_hop_limit = 64};
    const frame::ValueRange values = frame::SubscriberHosts{hosts, subscribers}.values();
    const enumerate::TupleRanges ranges{.source_ports = {5000, 5},
                                        .destination_ports = {80, 2},
                                        .source_hosts = {values.minimum, values.count()},
                                        .destination_hosts = {1, 5}};
    request.connections =
        frame::ConnectionTraffic{.role = role, .set = {ranges, enumerate::Order::pseudorandom, count, seed}, .choice = choice};
    return request;
}

frame::Stream make_stream(const frame::StreamRequest& request, const Vlans& vlans, frame::signature::TrafficClass traffic_class,
                          frame::signature::Direction direction, const std::optional<std::uint64_t>& host_macs_seed) {
    frame::LinkAddresses sent{.source = sending_mac, .destination = receiving_mac, .vlan_id = vlans.sent};
    frame::LinkAddresses received{.source = receiving_mac, .destination = sending_mac, .vlan_id = vlans.received};
    if (host_macs_seed) {
        sent.host_macs = sending_macs(*host_macs_seed);
        received.host_macs = receiving_macs(*host_macs_seed);
    }
    return value_of(frame::Stream::make(request, direction, traffic_class, seed, trial_id(), sent, received, "stream"));
}

Bytes frame_in(const frame::FrameTemplate& frame_template, const frame::Stream& stream, std::uint64_t number_in_class, std::uint64_t index,
               std::uint64_t ticks) {
    Bytes bytes = frame_template.frame;
    const frame::FrameValues values = stream.values(number_in_class);
    frame::write_frame(frame_template, bytes.data(), values, stream.id(), index, {ticks});
    if (&frame_template == &stream.sent()) {
        stream.write_special(bytes.data(), values);
    } else {
        stream.write_special_expected(bytes.data(), values);
    }
    return bytes;
}

Bytes sent_frame(const frame::Stream& stream, std::uint64_t number_in_class, std::uint64_t index) {
    return frame_in(stream.sent(), stream, number_in_class, index);
}

std::string names_of(const frame::Faults& faults) {
    std::string names;
    for (std::size_t i = 0; i < frame::fault_count; ++i) {
        if (faults.has(static_cast<frame::Fault>(i))) {
            names += std::string{names.empty() ? "" : " "} + std::string{frame::fault_names[i]};
        }
    }
    return names;
}

std::string faults_of(const frame::Stream& stream, std::span<const std::byte> frame, std::uint64_t number_in_class) {
    const frame::Arrival arrival = frame::classify(frame, trial_id());
    return arrival.kind == frame::ArrivalKind::ours ? names_of(frame::verify(frame, arrival, stream, stream.values(number_in_class)))
                                                    : "not ours";
}

bool recognizes(const frame::Recognizer& recognizer, std::span<const std::byte> frame, std::uint64_t number_in_class) {
    if (!recognizer.matches(frame)) {
        return false;
    }
    frame::MatchedFrames matched;
    recognizer.gather(frame.data(), recognizer.index(frame.data()), number_in_class, matched);
    recognizer.compute(matched);
    return recognizer.compare(matched) == 0;
}

SlowPacket forwarded(std::span<const std::byte> sent, Gateway gateway, std::optional<std::uint16_t> received_vlan) {
    const SlowPacket packet = read_packet(sent);
    SlowPacket result = gateway == Gateway::router44 || gateway == Gateway::router66
                            ? routed(packet, decrement_of(gateway))
                            : translated(packet, decrement_of(gateway), embedding_96(prefix_96), 0xbeef);
    result.vlan = received_vlan;
    return result;
}

}  // namespace gatemark::test
