#include "frame/echo.hpp"

#include <algorithm>
#include <utility>

namespace gatemark::frame {

namespace {

/// Replaces the fields of UDP in a template by those of an echo message without identifier and
/// sequence number, and computes the sums anew.
EchoFrame echo_of(FrameTemplate frame_template, bool is_request, std::uint8_t hop_limit, DontFragment dont_fragment) {
    const Layout& layout = frame_template.layout;
    const bool is_ipv4 = layout.family == net::Family::ipv4;
    std::byte* const frame = frame_template.frame.data();
    std::byte* const ip = frame + layout.ip;
    if (is_ipv4) {
        ip[net::ipv4::protocol] = std::byte{net::protocol_icmp};
        ip[net::ipv4::time_to_live] = std::byte{hop_limit};
        store_big_endian(ip + net::ipv4::fragment, dont_fragment == DontFragment::set ? net::ipv4::dont_fragment : std::uint16_t{0});
    } else {
        ip[net::ipv6::next_header] = std::byte{net::protocol_icmpv6};
        ip[net::ipv6::hop_limit] = std::byte{hop_limit};
    }
    const std::uint8_t type = is_ipv4 ? (is_request ? net::icmp::echo_request : net::icmp::echo_reply)
                                      : (is_request ? net::icmpv6::echo_request : net::icmpv6::echo_reply);
    std::fill_n(frame + layout.udp, net::icmp::header_bytes, std::byte{0});
    frame[layout.udp + net::icmp::type] = std::byte{type};

    // What varies per frame counts as zero here: the stream's number is written with the index.
    std::vector<std::byte> constant = frame_template.frame;
    constant[layout.payload + signature::stream_offset] = std::byte{0};
    const std::span bytes{constant};
    frame_template.header_sum = sum_of(bytes.subspan(layout.ip, layout.udp - layout.ip));
    frame_template.udp_sum = sum_of(bytes.subspan(layout.udp));
    if (!is_ipv4) {  // RFC 4443 section 2.3; ICMPv4 has no pseudo-header
        frame_template.udp_sum += sum_of(bytes.subspan(layout.source_address(), layout.udp - layout.source_address())) +
                                  swap_bytes(static_cast<std::uint16_t>(layout.udp_bytes())) +
                                  swap_bytes(std::uint16_t{net::protocol_icmpv6});
    }
    return {.frame_template = std::move(frame_template), .hop_limit = hop_limit, .type = type, .dont_fragment = dont_fragment};
}

/// What the header of a tunnel says, apart from its addresses.
struct OuterFields {
    std::uint8_t hop_limit = 0, traffic_class = 0;
};

/// Of a frame in a tunnel; the addresses of both ends swapped.
void turn_tunnel_round(FrameTemplate& frame_template, const OuterFields& fields) {
    const Layout& layout = frame_template.layout;
    std::byte* const frame = frame_template.frame.data();
    std::byte* const outer = frame + layout.outer;
    const net::Family family = layout.outer_family();
    write_mark(outer, family, {.traffic_class = fields.traffic_class});
    outer[family == net::Family::ipv4 ? net::ipv4::time_to_live : net::ipv6::hop_limit] = std::byte{fields.hop_limit};
    std::swap_ranges(frame + layout.outer_source_address(), frame + layout.outer_destination_address(),
                     frame + layout.outer_destination_address());
    std::swap(frame_template.outer_source, frame_template.outer_destination);
}

/// A template of what goes the other way on the same side: link-layer and IP addresses swapped, in
/// a tunnel those of both headers. A reply has the mark of the request that came in.
FrameTemplate turned_round(FrameTemplate frame_template, const Mark& mark, const OuterFields& outer) {
    const Layout& layout = frame_template.layout;
    std::byte* const frame = frame_template.frame.data();
    write_mark(frame + layout.ip, layout.family, mark);
    std::swap_ranges(frame, frame + net::mac_bytes, frame + net::ethernet::source);
    std::swap_ranges(frame + layout.source_address(), frame + layout.destination_address(), frame + layout.destination_address());
    std::swap(frame_template.source, frame_template.destination);
    if (layout.in_tunnel()) {
        turn_tunnel_round(frame_template, outer);
    }
    return frame_template;
}

void write_mac(std::byte* field, const net::MacAddress& mac) noexcept { std::copy(mac.begin(), mac.end(), field); }

/// Completes a frame whose varying address bytes are written and sum to `addresses`.
void complete(const FrameTemplate& frame_template, std::byte* frame, Sum addresses, std::uint16_t identifier, std::uint16_t sequence,
              std::uint8_t stream, std::uint64_t index, pace::Ticks now) noexcept {
    const Layout& layout = frame_template.layout;
    const bool is_ipv4 = layout.family == net::Family::ipv4;
    if (is_ipv4) {
        store_raw(frame + layout.ip + net::ipv4::checksum, header_checksum(frame_template.header_sum + addresses));
    }
    const std::uint32_t numbers = swap_bytes((static_cast<std::uint32_t>(identifier) << 16) | sequence);
    store_raw(frame + layout.udp + net::icmp::identifier, numbers);
    const Sum mark = signature::write_stream_and_index(frame + layout.payload, stream, index) +
                     signature::write_timestamp(frame + layout.payload, now.value);
    store_raw(frame + layout.udp + net::icmp::checksum,
              header_checksum(frame_template.udp_sum + (is_ipv4 ? 0 : addresses) + numbers + mark));
}

Sum write_client(const AddressField& field, std::byte* at, const FrameValues& values) noexcept {
    return field.write(at, values.source_host, 0, values.edge());
}
Sum write_destination(const AddressField& field, std::byte* at, const FrameValues& values) noexcept {
    return field.write(at, values.destination_host, values.network, values.edge());
}
/// The outer addresses of a frame, if it is in a tunnel; `values` are those of the direction in
/// which it goes.
void write_tunnel_of(const FrameTemplate& frame_template, std::byte* frame, const FrameValues& values) noexcept {
    if (frame_template.layout.in_tunnel()) {
        write_tunnel(frame_template, frame, values);
    }
}

}  // namespace

Result<Echo> Echo::make(const StreamRequest& request, const EchoShape& shape, std::optional<PublicSide> outside, std::uint64_t seed,
                        std::uint32_t trial_id, const LinkAddresses& left, const LinkAddresses& right, const std::string& where) {
    if (request.destination_tunnel) {
        return Error{"what answers echo requests is in no tunnel", where + ".destination_tunnel", "send null"};
    }
    StreamRequest whole = request;
    if (outside) {  // the gateway chooses the source; of the connections nothing else is used
        whole.connections = ConnectionTraffic{.role = Role::initiator, .set = {{}, enumerate::Order::increasing, 1, 0}};
    }
    if (whole.source_edges) {
        whole.source_ports = {.mode = ValueMode::increasing, .minimum = 0, .maximum = 0xffff};  // an edge's own address has all identifiers
    }
    auto stream =
        Stream::make(whole, signature::Direction::forward, signature::TrafficClass::foreground, seed, trial_id, left, right, where);
    if (const Error* error = error_of(stream)) {
        return *error;
    }
    Echo echo;
    echo.numbers_ = EchoNumbers{shape};
    echo.stream_ = std::get<Stream>(std::move(stream));
    echo.clients_ = request.source;
    for (std::uint64_t client = 0; echo.edges() != nullptr && client < shape.clients; ++client) {
        echo.client_edges_.push_back(echo.edges()->edges().edge_of(client).number);
    }
    echo.client_vlan_ = left.vlan_id;
    const SubscriberHosts* const behind = echo.stream_->subscriber_hosts();
    echo.first_client_ = behind != nullptr ? behind->values().minimum : request.source.part.minimum;
    echo.first_destination_ = request.destination.part.minimum;
    echo.values_ = Divider{request.destination.part.count()};
    echo.hosts_ = Divider{std::uint64_t{request.destination.part.count()} * request.destination.networks};
    echo.outside_ = std::move(outside);
    const FrameTemplate &sent = echo.stream_->sent(), &expected = echo.stream_->expected();
    const DontFragment asked = request.dont_fragment ? DontFragment::set : DontFragment::clear;
    const std::uint8_t arriving = echo.stream_->expected_hop_limit();
    const Mark mark = echo.stream_->expected_mark({});
    const TunnelRequest& tunnel = echo.stream_->tunnel();
    const std::uint8_t outer_class = tunnel.outer_class(mark.traffic_class);
    const OuterFields sent_outer{tunnel.hop_limit, outer_class}, expected_outer{tunnel.expected_hop_limit.value_or(0), outer_class};
    echo.sent_request_ = echo_of(sent, true, request.hop_limit, asked);
    echo.expected_request_ = echo_of(expected, true, arriving, echo.stream_->expected_dont_fragment());
    echo.sent_reply_ = echo_of(turned_round(expected, mark, sent_outer), false, request.hop_limit, asked);
    echo.expected_reply_ = echo_of(turned_round(sent, mark, expected_outer), false, arriving, expected_dont_fragment(request, sent.layout));
    return echo;
}

FrameValues Echo::values_of(const EchoPlace& place) const noexcept {
    const auto host = values_.divide(hosts_.remainder(place.client * numbers_.shape().destinations + place.destination));
    return {.source_port = 0,
            .destination_port = 0,
            .source_host = static_cast<std::uint16_t>(first_client_ + place.client),
            .destination_host = static_cast<std::uint16_t>(first_destination_ + host.remainder),
            .network = static_cast<std::uint8_t>(host.quotient),
            .connection = client_edges_.empty() ? 0 : client_edges_[static_cast<std::size_t>(place.client)]};
}

void Echo::write_request(std::byte* frame, std::uint64_t index, pace::Ticks now) const noexcept {
    const FrameTemplate& sent = sent_request_.frame_template;
    const EchoPlace place = numbers_.place_of(index);
    const FrameValues values = values_of(place);
    const Sum addresses = write_client(sent.source, frame + sent.layout.source_address(), values) +
                          write_destination(sent.destination, frame + sent.layout.destination_address(), values);
    complete(sent, frame, addresses, identifier_of(place, values), place.sequence(), stream_->id(), index, now);
    write_tunnel_of(sent, frame, values);
    if (stream_->is_special()) [[unlikely]] {
        stream_->write_special(frame, values);
    }
}

void Echo::write_expected_request(std::byte* frame, const EchoAnswer& answer) const noexcept {
    const FrameTemplate& expected = expected_request_.frame_template;
    const EchoPlace place = numbers_.place_of(answer.index);
    const FrameValues values = values_of(place);
    std::byte* const source = frame + expected.layout.source_address();
    const Sum addresses = (outside_ ? outside_->pool.write(source, answer.source.address) : write_client(expected.source, source, values)) +
                          write_destination(expected.destination, frame + expected.layout.destination_address(), values);
    complete(expected, frame, addresses, public_identifier(place, values, answer.source), place.sequence(), stream_->id(), answer.index,
             answer.sent);
    write_tunnel_of(expected, frame, values);
    if (stream_->has_host_macs()) {
        write_mac(frame + net::ethernet::destination, stream_->expected_destination_mac(values));
    }
}

void Echo::write_reply(std::byte* frame, const EchoAnswer& answer) const noexcept {
    const FrameTemplate& sent = sent_reply_.frame_template;
    const EchoPlace place = numbers_.place_of(answer.index);
    const FrameValues values = values_of(place);
    std::byte* const destination = frame + sent.layout.destination_address();
    const Sum addresses =
        write_destination(sent.source, frame + sent.layout.source_address(), values) +
        (outside_ ? outside_->pool.write(destination, answer.source.address) : write_client(sent.destination, destination, values));
    complete(sent, frame, addresses, public_identifier(place, values, answer.source), place.sequence(), stream_->id(), answer.index,
             answer.sent);
    write_tunnel_of(sent, frame, turned_round(values));
    if (stream_->has_host_macs()) [[unlikely]] {
        write_mac(frame + net::ethernet::source, stream_->expected_destination_mac(values));
    }
    if (stream_->as_sent()) [[unlikely]] {
        if (const auto mac = stream_->host_source_mac(values)) {  // no gateway: the reply goes to the host itself
            write_mac(frame + net::ethernet::destination, *mac);
        }
    }
}

void Echo::write_expected_reply(std::byte* frame, std::uint64_t index, pace::Ticks now) const noexcept {
    const FrameTemplate& expected = expected_reply_.frame_template;
    const EchoPlace place = numbers_.place_of(index);
    const FrameValues values = values_of(place);
    const Sum addresses = write_destination(expected.source, frame + expected.layout.source_address(), values) +
                          write_client(expected.destination, frame + expected.layout.destination_address(), values);
    complete(expected, frame, addresses, identifier_of(place, values), place.sequence(), stream_->id(), index, now);
    write_tunnel_of(expected, frame, turned_round(values));
    if (const auto mac = stream_->host_source_mac(values)) {
        write_mac(frame + net::ethernet::destination, *mac);
    }
}

}  // namespace gatemark::frame
