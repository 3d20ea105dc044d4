#include "frame/echo_verification.hpp"

#include "frame/header_checks.hpp"

#include <algorithm>
#include <cstring>

namespace gatemark::frame {

namespace {

const EchoFrame& expected_of(const Echo& echo, EchoKind kind) noexcept {
    return kind == EchoKind::request ? echo.expected_request() : echo.expected_reply();
}

/// The offset of an address in the header that arrived. Both headers of a family have it at the
/// same distance from their beginning.
std::size_t source_in(const Arrival& arrival) noexcept {
    return arrival.ip + (arrival.family == net::Family::ipv4 ? net::ipv4::source : net::ipv6::source);
}
std::size_t destination_in(const Arrival& arrival) noexcept {
    return arrival.ip + (arrival.family == net::Family::ipv4 ? net::ipv4::destination : net::ipv6::destination);
}

void check_link_of(std::span<const std::byte> frame, const Echo& echo, EchoKind kind, const FrameValues& values, Faults& faults) noexcept {
    const std::byte* const port_mac = expected_of(echo, kind).frame_template.frame.data() + net::ethernet::destination;
    const auto host_mac = kind == EchoKind::reply         ? echo.stream().host_source_mac(values)
                          : echo.stream().has_host_macs() ? std::optional{echo.stream().expected_destination_mac(values)}
                                                          : std::nullopt;
    check_link(frame.data(), host_mac ? host_mac->data() : port_mac, faults);
    faults.add_if(host_mac && std::memcmp(frame.data() + net::ethernet::source, port_mac, net::mac_bytes) == 0, Fault::source_mac);
}

/// Whether the address at `field` is that of another client, in the clients' own family.
bool is_other_client(const std::byte* field, const Echo& echo, const EchoPlace& place) noexcept {
    const HostSet& clients = echo.clients();
    net::Address address{.family = clients.address.family, .bytes = {}};
    std::copy_n(field, net::address_bytes(address.family), address.bytes.begin());
    const auto value = clients.value_of(address);
    const std::uint64_t client = value ? *value - std::uint64_t{clients.part.minimum} : echo.numbers().shape().clients;
    return client < echo.numbers().shape().clients && client != place.client;
}

/// Whether an identifier is one that another slot of the client has: nearby, because identifiers
/// come again after 65,536 destinations.
bool is_of_other_slot(std::uint16_t identifier, const EchoShape& shape, const EchoPlace& place) noexcept {
    const std::uint64_t destination = (place.destination & ~std::uint64_t{0xffff}) | identifier;
    return destination < shape.destinations && destination % shape.window != place.slot;
}

void check_addresses(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo, EchoKind kind, const EchoPlace& place,
                     const FrameValues& values, Faults& faults) noexcept {
    const FrameTemplate& expected = expected_of(echo, kind).frame_template;
    const std::byte *const source = frame.data() + source_in(arrival), *const destination = frame.data() + destination_in(arrival);
    if (kind == EchoKind::reply) {
        faults.add_if(!expected.source.matches(source, values.destination_host, values.network), Fault::source_address);
        if (!expected.destination.matches(destination, values.source_host, 0)) {
            faults.add(Fault::destination_address);
            faults.add_if(is_other_client(destination, echo, place), Fault::wrong_client);
        }
        return;
    }
    faults.add_if(!expected.destination.matches(destination, values.destination_host, values.network), Fault::destination_address);
    if (echo.pool() == nullptr) {
        faults.add_if(!expected.source.matches(source, values.source_host, 0), Fault::source_address);
        return;
    }
    const FrameTemplate& sent = echo.sent_request().frame_template;
    if (!echo.stream().as_sent() && sent.layout.family == arrival.family && sent.source.matches(source, values.source_host, 0)) {
        faults.add(Fault::untranslated_source);
    } else {
        faults.add_if(!echo.pool()->number_of(source), Fault::source_address);
    }
}

void check_message(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo, EchoKind kind, const EchoPlace& place,
                   Faults& faults) noexcept {
    const EchoFrame& expected = expected_of(echo, kind);
    const std::byte* const message = frame.data() + arrival.udp;
    faults.add_if(arrival.icmp_type != expected.type || arrival.icmp_code != 0, Fault::icmp_type);
    const auto identifier = load_big_endian<std::uint16_t>(message + net::icmp::identifier);
    if (identifier != place.identifier() && (kind == EchoKind::reply || echo.pool() == nullptr)) {
        faults.add(Fault::identifier);
        faults.add_if(is_of_other_slot(identifier, echo.numbers().shape(), place), Fault::wrong_slot);
    }
    faults.add_if(load_big_endian<std::uint16_t>(message + net::icmp::sequence) != place.sequence(), Fault::sequence);
    const FrameTemplate& frame_template = expected.frame_template;
    const Layout& layout = frame_template.layout;
    const std::size_t bytes = layout.udp_bytes(), end = arrival.udp + bytes;
    faults.add_if(!ends_at(frame, end), Fault::length);
    if (end > frame.size()) {
        return;
    }
    Sum sum = sum_of(frame.subspan(arrival.udp, bytes));
    if (arrival.family == net::Family::ipv6) {
        sum += sum_of(frame.subspan(source_in(arrival), 32)) + swap_bytes(static_cast<std::uint16_t>(bytes)) +
               swap_bytes(std::uint16_t{net::protocol_icmpv6});
    }
    faults.add_if(fold(sum) != 0xffff && !faults.has(Fault::length), Fault::icmp_checksum);  // of another length it covers other octets
    const std::size_t rest = layout.end - layout.payload - signature::bytes;
    faults.add_if(std::memcmp(frame.data() + arrival.payload + signature::bytes,
                              frame_template.frame.data() + layout.payload + signature::bytes, rest) != 0,
                  Fault::payload);
}

}  // namespace

Faults verify_echo(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo, EchoKind kind,
                   const EchoPlace& place) noexcept {
    const EchoFrame& expected = expected_of(echo, kind);
    const Layout& layout = expected.frame_template.layout;
    const FrameValues values = echo.values_of(place);
    Faults faults;
    check_link_of(frame, echo, kind, values, faults);
    if (arrival.misplaced) {
        faults.add(arrival.payload > layout.payload ? Fault::encapsulated : Fault::headers);
        return faults;
    }
    faults.add_if(arrival.vlan_id != (kind == EchoKind::request ? echo.stream().expected_vlan() : echo.client_vlan()), Fault::vlan);
    faults.add_if(arrival.fragmented, Fault::fragment);
    if (arrival.family != layout.family) {
        faults.add(Fault::family);
    } else {
        check_ip(frame.data() + arrival.ip, arrival,
                 {.layout = layout,
                  .hop_limit = expected.hop_limit,
                  .traffic_class = echo.stream().traffic_class(),
                  .dont_fragment = expected.dont_fragment,
                  .identification_kept = echo.stream().identification_kept()},
                 faults);
        check_addresses(frame, arrival, echo, kind, place, values, faults);
    }
    check_message(frame, arrival, echo, kind, place, faults);
    return faults;
}

std::optional<PublicSource> public_source(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo) noexcept {
    if (arrival.misplaced || echo.pool() == nullptr || arrival.family != echo.pool()->family()) {
        return std::nullopt;
    }
    const auto address = echo.pool()->number_of(frame.data() + source_in(arrival));
    return address
               ? std::optional{PublicSource{
                     .address = *address, .identifier = load_big_endian<std::uint16_t>(frame.data() + arrival.udp + net::icmp::identifier)}}
               : std::nullopt;
}

bool came_back(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo, EchoKind kind) noexcept {
    const EchoFrame& sent = kind == EchoKind::reply ? echo.sent_request() : echo.sent_reply();
    return !arrival.misplaced && arrival.family == sent.frame_template.layout.family && arrival.icmp_type == sent.type &&
           sent.frame_template.source.contains(frame.data() + source_in(arrival));
}

bool goes_between_echo_hosts(std::span<const std::byte> frame, const Arrival& arrival, const Echo& echo, EchoKind kind) noexcept {
    const EchoFrame& expected = expected_of(echo, kind);
    const FrameTemplate& frame_template = expected.frame_template;
    if (!arrival.is_icmp || arrival.misplaced || arrival.family != frame_template.layout.family || arrival.icmp_type != expected.type) {
        return false;
    }
    const std::byte *const source = frame.data() + source_in(arrival), *const destination = frame.data() + destination_in(arrival);
    const bool is_from_us = kind == EchoKind::request && echo.pool() != nullptr ? echo.pool()->number_of(source).has_value()
                                                                                : frame_template.source.contains(source);
    return is_from_us && frame_template.destination.contains(destination);
}

}  // namespace gatemark::frame
