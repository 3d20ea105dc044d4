#pragma once

#include "base/paged_memory.hpp"
#include "enumerate/permutation.hpp"
#include "frame/burst.hpp"
#include "frame/stream.hpp"
#include "net/address_pool.hpp"
#include "state/state_table.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <new>
#include <span>
#include <utility>
#include <variant>
#include <vector>

/// What is measured: streams, their frames as they arrive, and state tables. Seeds are fixed, so
/// each run does the same work.
namespace gatemark::bench {

constexpr std::uint32_t trial_id = 0x12345678;
constexpr std::size_t burst_frames = frame::burst_frames_max;
constexpr net::MacAddress left_mac{std::byte{2}, {}, {}, {}, {}, std::byte{1}}, right_mac{std::byte{2}, {}, {}, {}, {}, std::byte{2}};
/// Of the two ports of a loop-back.
constexpr frame::LinkAddresses left_link{.source = left_mac, .destination = right_mac, .vlan_id = {}},
    right_link{.source = right_mac, .destination = left_mac, .vlan_id = {}};

enum class Varying { nothing, ports, hosts, ports_and_hosts };

[[nodiscard]] constexpr std::size_t smallest_frame(net::Family family) { return family == net::Family::ipv4 ? 64 : 84; }

inline frame::StreamRequest stream_request(net::Family family, Varying varying, std::size_t frame_octets) {
    const bool ipv4 = family == net::Family::ipv4;
    const bool hosts = varying == Varying::hosts || varying == Varying::ports_and_hosts;
    const bool ports = varying == Varying::ports || varying == Varying::ports_and_hosts;
    const auto host_set = [&](const char* address) {
        frame::HostSet set{.address = *net::parse_address(address)};
        if (hosts) {
            set.offset = ipv4 ? 2 : 12;
            set.part = {.mode = frame::ValueMode::pseudorandom, .minimum = 2, .maximum = 65534};
        }
        return set;
    };
    const auto port_range = [&](std::uint16_t minimum, std::uint16_t maximum) {
        return frame::ValueRange{
            .mode = ports ? frame::ValueMode::pseudorandom : frame::ValueMode::fixed, .minimum = minimum, .maximum = maximum};
    };
    return {.frame_octets = frame_octets,
            .source = host_set(ipv4 ? "198.18.0.2" : "2001:2::2"),
            .destination = host_set(ipv4 ? "198.19.0.2" : "2001:2:0:8000::2"),
            .source_ports = port_range(1024, 65535),
            .destination_ports = port_range(1, 49151),
            .as_sent = true,
            .hop_limit_decrement = 0};
}

inline frame::Stream make_stream(const frame::StreamRequest& request, frame::signature::Direction direction) {
    return std::get<frame::Stream>(
        frame::Stream::make(request, direction, frame::signature::TrafficClass::foreground, 1, trial_id, left_link, right_link, "bench"));
}

/// A stream of IPv4 without checksums, whose hosts have link-layer addresses of their own.
inline frame::Stream special_stream() {
    frame::StreamRequest request = stream_request(net::Family::ipv4, Varying::ports_and_hosts, smallest_frame(net::Family::ipv4));
    request.without_checksum = true;
    frame::LinkAddresses left = left_link, right = right_link;
    left.host_macs = net::HostMacs{1, 1};
    right.host_macs = net::HostMacs{1, 2};
    return std::get<frame::Stream>(frame::Stream::make(request, frame::signature::Direction::forward,
                                                       frame::signature::TrafficClass::foreground, 1, trial_id, left, right, "bench"));
}

/// A stream that arrives as it was sent. `frame_octets` includes the FCS; 0 means the smallest
/// frame that carries the signature.
inline frame::Stream stream_for(net::Family family, Varying varying, std::size_t frame_octets = 0,
                                frame::signature::Direction direction = frame::signature::Direction::forward) {
    return make_stream(stream_request(family, varying, frame_octets == 0 ? smallest_frame(family) : frame_octets), direction);
}

/// 40,000 source ports and as many destination ports as needed.
inline enumerate::TupleRanges ranges_for(std::uint64_t count) {
    const auto destinations = static_cast<std::uint32_t>((count + 39'999) / 40'000);
    return {.source_ports = {1024, 40'000}, .destination_ports = {1, destinations}, .source_hosts = {}, .destination_hosts = {}};
}

using Choice = enumerate::ConnectionChoice::Mode;

/// Makes the Initiator's or the Responder's frames through a stateful gateway.
using ConnectionStream = frame::Stream (*)(frame::Role role, std::uint64_t count, Choice choice);

/// Those frames through a stateful NAT44 or NAT66.
inline frame::Stream connection_stream(frame::Role role, std::uint64_t count, Choice choice, net::Family family = net::Family::ipv4) {
    frame::StreamRequest request = stream_request(family, Varying::nothing, smallest_frame(family));
    request.as_sent = false;
    request.hop_limit_decrement = 1;
    request.connections =
        frame::ConnectionTraffic{.role = role, .set = {ranges_for(count), enumerate::Order::pseudorandom, count, 1}, .choice = choice};
    return make_stream(request, frame::signature::Direction::forward);
}

inline frame::Stream nat44_stream(frame::Role role, std::uint64_t count, Choice choice) { return connection_stream(role, count, choice); }
inline frame::Stream nat66_stream(frame::Role role, std::uint64_t count, Choice choice) {
    return connection_stream(role, count, choice, net::Family::ipv6);
}

/// The same through an AFTR (RFC 6333) whose 10,000 subscribers share one address.
inline frame::Stream aftr_stream(frame::Role role, std::uint64_t count, Choice choice) {
    const bool initiator = role == frame::Role::initiator;
    frame::StreamRequest request =
        stream_request(net::Family::ipv4, Varying::nothing, smallest_frame(net::Family::ipv4) + (initiator ? net::ipv6::header_bytes : 0));
    request.as_sent = false;
    request.hop_limit_decrement = 1;
    constexpr std::uint16_t subscribers = 10'000;
    (initiator ? request.source_tunnel : request.destination_tunnel) =
        frame::TunnelRequest{.gateway = net::parse_address("2001:db8:ffff::1").value(),
                             .subscribers = frame::HostSet{.address = net::parse_address("2001:db8::").value(),
                                                           .offset = 14,
                                                           .part = {frame::ValueMode::pseudorandom, 1, subscribers}},
                             .expected_hop_limit = 64};
    const enumerate::TupleRanges ranges{.source_ports = {1024, static_cast<std::uint32_t>((count + subscribers - 1) / subscribers)},
                                        .destination_ports = {1, 1},
                                        .source_hosts = {1, subscribers},
                                        .destination_hosts = {}};
    request.connections =
        frame::ConnectionTraffic{.role = role, .set = {ranges, enumerate::Order::pseudorandom, count, 1}, .choice = choice};
    return make_stream(request, initiator ? frame::signature::Direction::forward : frame::signature::Direction::reverse);
}

/// The public addresses of that NAT.
inline const net::AddressPool& public_pool(net::Family family = net::Family::ipv4) {
    static const auto pool_of = [](const char* prefix) {
        return std::get<net::AddressPool>(net::AddressPool::make({net::parse_prefix(prefix).value()}, "bench"));
    };
    static const net::AddressPool ipv4 = pool_of("192.0.2.0/24"), ipv6 = pool_of("2001:db8::/120");
    return family == net::Family::ipv4 ? ipv4 : ipv6;
}

/// The public endpoint of a connection.
[[nodiscard]] constexpr state::Endpoint endpoint_of(std::uint64_t connection) {
    return {.address = connection & 0xff, .port = static_cast<std::uint16_t>(1024 + connection % 60'000)};
}

/// A full state table of `count` connections, filled only once, because that takes longer than a
/// benchmark.
inline state::StateTable& full_table(std::uint64_t count) {
    static std::map<std::uint64_t, state::StateTable> tables;
    state::StateTable& table = tables[count];
    if (table.count() == 0) {
        if (table.reset(count)) {
            throw std::bad_alloc{};
        }
        for (std::uint64_t connection = 0; connection < count; ++connection) {
            table.write(connection, endpoint_of(connection));
        }
    }
    return table;
}

/// Writes frame `number` as a correct gateway delivers it.
inline void write_as_received(const frame::Stream& stream, std::byte* bytes, std::uint64_t number, pace::Ticks sent) {
    const frame::FrameValues values = stream.values(number);
    const frame::FrameTemplate& frame_template = stream.expected();
    if (stream.role() != frame::Role::initiator) {
        frame::write_frame(frame_template, bytes, values, stream.id(), number, sent);
        stream.write_special_expected(bytes, values);
        return;
    }
    const state::Endpoint endpoint = endpoint_of(values.connection);
    const Sum addresses =
        public_pool().write(bytes + frame_template.layout.source_address(), endpoint.address) +
        frame_template.destination.write(bytes + frame_template.layout.destination_address(), values.destination_host, values.network);
    frame::complete_frame(frame_template, bytes, addresses, endpoint.port, values.destination_port, stream.id(), number, sent);
}

/// How a gateway reaches its customer edges: by translation (MAP-T), or through tunnels to the
/// addresses that a rule (MAP-E) or bindings (lwAFTR) give them.
enum class Relay : std::uint8_t { map_t, map_e, lwaftr };

/// 65,536 customer edges that share 256 addresses, and servers outside.
inline frame::Stream edges_stream(Relay relay, frame::signature::Direction direction) {
    frame::EdgeDomain domain;
    domain.rule = {
        .ipv6 = net::parse_prefix("2001:db8::/40").value(), .ipv4 = net::parse_prefix("192.0.2.0/24").value(), .ea_bits = 16, .dmr = {}};
    if (relay == Relay::map_t) {
        domain.rule.dmr = net::parse_prefix("2001:db8:ffff::/64");
    } else if (relay == Relay::lwaftr) {
        domain.rule.ipv6 = net::parse_prefix("2001:db8:1:2::/64").value();
        domain.rule.psid_offset = 0;
        domain.rule.in_identifier = true;
    }
    const frame::EdgesRequest edges{.domains = {domain}, .count = 65'536};
    const bool forward = direction == frame::signature::Direction::forward;
    frame::StreamRequest request =
        stream_request(net::Family::ipv4, Varying::ports_and_hosts, smallest_frame(forward ? net::Family::ipv6 : net::Family::ipv4));
    request.as_sent = false;
    request.hop_limit_decrement = 1;
    (forward ? request.source_edges : request.destination_edges) = edges;
    if (relay != Relay::map_t) {
        const frame::TunnelRequest tunnel{.gateway = net::parse_address("2001:db8:ffff::1").value(), .expected_hop_limit = 64};
        (forward ? request.source_tunnel : request.destination_tunnel) = tunnel;
        request.frame_octets = 64 + (forward ? net::ipv6::header_bytes : 0);
    }
    return make_stream(request, direction);
}

/// 65,533 customer edges of 6rd (RFC 5969), whose prefixes hold their IPv4 addresses, and servers
/// outside.
inline frame::Stream sixrd_stream(frame::signature::Direction direction) {
    const bool forward = direction == frame::signature::Direction::forward;
    const frame::ValueRange edges{frame::ValueMode::pseudorandom, 2, 65534};
    frame::StreamRequest request = stream_request(net::Family::ipv6, Varying::ports_and_hosts,
                                                  smallest_frame(net::Family::ipv6) + (forward ? net::ipv4::header_bytes : 0));
    request.as_sent = false;
    request.hop_limit_decrement = 1;
    const frame::HostSet servers = request.destination;
    const frame::HostSet hosts{.address = net::parse_address("2001:db8:c612::2").value(), .offset = 6, .part = edges};
    request.source = forward ? hosts : servers;
    request.destination = forward ? servers : hosts;
    (forward ? request.source_tunnel : request.destination_tunnel) =
        frame::TunnelRequest{.gateway = net::parse_address("198.18.0.1").value(),
                             .subscribers = frame::HostSet{.address = net::parse_address("198.18.0.0").value(), .offset = 2, .part = edges},
                             .expected_hop_limit = 64};
    return make_stream(request, direction);
}

/// Frames of one stream as they arrive. Their buffers are in no order, so that the CPU cannot guess
/// where the next one is: so are a port's after a while.
class StoredFrames {
public:
    StoredFrames(const frame::Stream& stream, std::size_t count, pace::Ticks sent)
        : stream_{stream}, sent_{sent}, order_{count, 1}, distance_{distance_of(stream)}, memory_{count * distance_} {
        for (std::size_t i = 0; i < count; ++i) {
            std::ranges::copy(stream.expected().frame, memory_.data() + i * distance_);
        }
        write_from(0);
    }
    /// Makes them frames `first`, `first` + 1 and so on of the stream.
    void write_from(std::uint64_t first) {
        for (std::size_t i = 0; i < size(); ++i) {
            write_as_received(stream_, memory_.data() + place_of(i) * distance_, first + i, sent_);
        }
    }
    [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(order_.count()); }
    /// The number of the buffer in which frame `i` of them is.
    [[nodiscard]] std::uint32_t place_of(std::size_t i) const noexcept { return static_cast<std::uint32_t>(order_.at(i)); }
    [[nodiscard]] const std::byte* at_place(std::uint32_t place) const noexcept { return memory_.data() + place * distance_; }
    /// Where frame `i` of them is.
    [[nodiscard]] const std::byte* at(std::size_t i) const noexcept { return at_place(place_of(i)); }
    [[nodiscard]] std::size_t frame_bytes() const noexcept { return stream_.expected().frame.size(); }

private:
    /// An odd number of lines, so that the first ones of all buffers share every set of a cache, as
    /// those of DPDK's pools do.
    [[nodiscard]] static std::size_t distance_of(const frame::Stream& stream) { return ((stream.expected().frame.size() | 0xff) + 1) | 64; }

    const frame::Stream& stream_;
    pace::Ticks sent_;
    enumerate::Permutation order_;
    std::size_t distance_;
    PagedMemory<std::byte> memory_;
};

}  // namespace gatemark::bench
