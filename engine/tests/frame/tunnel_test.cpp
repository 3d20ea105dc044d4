#include "frame/tunnel.hpp"

#include "frame/header_checks.hpp"
#include "frame/recognizer.hpp"
#include "frame/stream_writer.hpp"
#include "frame/streams.hpp"
#include "golden/slow_tunnel.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <set>

/// Frames in tunnels against headers that are written octet by octet.
namespace gatemark::frame {
namespace {

using signature::Direction, signature::TrafficClass;
using test::Bytes, test::SlowPacket, test::SlowTunnel, test::faults_of;

constexpr std::uint64_t in_class = 5;

StreamRequest map_e(Direction direction, std::size_t inner_octets = 64, std::uint64_t count = 1000) {
    return test::map_e_request({.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)}, .count = count}, direction,
                               inner_octets);
}

/// Sixteen customer edges with sixteen addresses each (RFC 7597 section 5.2).
StreamRequest map_e_of_prefixes(Direction direction) {
    return test::map_e_request({.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 4, 0)}, .count = 16}, direction, 64);
}

/// 6rd (RFC 5969): 198.18.0.2 is 2001:db8:c612:2::/64 under 2001:db8::/32.
StreamRequest six_rd(Direction direction) {
    const HostSet inner = test::varying_host("2001:db8:c612::1", 6, ValueMode::pseudorandom, 2, 60000),
                  outer = test::varying_host("198.18.0.0", 2, ValueMode::pseudorandom, 2, 60000),
                  outside = test::varying_host("2001:2:0:8000::", 14, ValueMode::increasing, 2, 254);
    const bool forward = direction == Direction::forward;
    StreamRequest request = test::request_for(test::Gateway::router66, forward ? 104 : 84);
    (forward ? request.source : request.destination) = inner;
    (forward ? request.destination : request.source) = outside;
    (forward ? request.source_tunnel : request.destination_tunnel) =
        TunnelRequest{.gateway = test::address_of("198.18.0.1"), .subscribers = outer};
    return request;
}

/// A B4 (RFC 6333 section 5): all hosts outside are behind one AFTR.
StreamRequest b4(Direction direction) {
    const bool forward = direction == Direction::forward;
    StreamRequest request = test::request_for(test::Gateway::router44, forward ? 64 : 104);
    if (!forward) {
        std::swap(request.source, request.destination);
    }
    (forward ? request.destination_tunnel : request.source_tunnel) = TunnelRequest{
        .gateway = test::address_of("2001:db8:0:1::1"), .subscribers = test::fixed_host("2001:db8:0:2::1"), .expected_hop_limit = 64};
    return request;
}

std::vector<std::pair<StreamRequest, Direction>> all_requests() {
    std::vector<std::pair<StreamRequest, Direction>> requests;
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        requests.emplace_back(map_e(direction), direction);
        requests.emplace_back(map_e(direction), direction);
        requests.back().first.marking.traffic_classes = {0, 0xb8, 0x28};
        requests.emplace_back(map_e(direction, 1500), direction);
        requests.emplace_back(map_e_of_prefixes(direction), direction);
        requests.emplace_back(map_e_of_prefixes(direction), direction);
        (direction == Direction::forward ? requests.back().first.source_ports : requests.back().first.destination_ports).mode =
            ValueMode::increasing;
        requests.emplace_back(six_rd(direction), direction);
        requests.emplace_back(b4(direction), direction);
        requests.emplace_back(b4(direction), direction);
        requests.back().first.marking.traffic_classes = {0, 0xb8, 0x28};
    }
    return requests;
}

Stream stream_of(const StreamRequest& request, Direction direction) {
    return test::make_stream(request, {}, TrafficClass::foreground, direction);
}

/// The outer addresses of frame number `in_class`, subscriber first.
std::pair<net::Address, net::Address> ends_of(const Stream& stream, const StreamRequest& request) {
    const FrameValues values = stream.values(in_class);
    const TunnelRequest& tunnel = *request.tunnel();
    const std::uint16_t host = request.source_tunnel ? values.source_host : values.destination_host;
    return {tunnel.subscribers ? tunnel.subscribers->host(host, 0) : net::ipv6_of(stream.edges()->edges().address_of(values.edge())),
            tunnel.gateway};
}

/// What arrives of frame number `in_class`: a router has worked on the packet inside.
SlowPacket inner_of(const Stream& stream, const StreamRequest& request) {
    const Bytes sent = test::sent_frame(stream, in_class, in_class);
    SlowPacket packet = test::routed(test::read_packet(request.source_tunnel ? test::taken_out(sent) : sent), request.hop_limit_decrement);
    packet.link_source = *net::parse_mac("02:00:00:00:00:09");
    return packet;
}
SlowTunnel tunnel_of(const Stream& stream, const StreamRequest& request) {
    const auto [subscriber, gateway] = ends_of(stream, request);
    return {.source = gateway,
            .destination = subscriber,
            .traffic_class = stream.expected_mark(stream.values(in_class)).traffic_class,
            .flow_label = subscriber.family == net::Family::ipv6 ? 0x12345U : 0,
            .identification = 0xbeef};
}
Bytes arrived(const Stream& stream, const StreamRequest& request) {
    const Bytes inner = test::write_packet(inner_of(stream, request));
    return request.arrives_in_tunnel() ? tunnel_of(stream, request).around(inner) : inner;
}

/// RFC 7597 appendix A, example 1: 192.0.2.18 and PSID 0x34.
TEST(Tunnel, HasTheHeadersOfAnExampleOfMapE) {
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        StreamRequest request = map_e(direction);
        EdgeDomain domain = test::edge_domain("2001:db8:12:3400::/56", "192.0.2.18/32", 0, 6);
        domain.rule.dmr.reset();
        domain.rule.psid_bits = 8;
        domain.rule.psid = 0x34;
        const bool forward = direction == Direction::forward;
        (forward ? request.source_edges : request.destination_edges) = EdgesRequest{.domains = {domain}};
        (forward ? request.destination : request.source) = test::fixed_host("1.2.3.4");
        request.source_ports = request.destination_ports = {ValueMode::fixed, 5, 5};
        const Stream stream = stream_of(request, direction);
        const std::string edge = "20010db8001234000000c00002120034", br = "20010db8ffff00000000000000000001",
                          outer = "60000000002e0440" + (forward ? edge + br : br + edge);
        const std::string sent = test::to_hex(test::sent_frame(stream, 0, 0)),
                          expected = test::to_hex(test::frame_in(stream.expected(), stream, 0, 0));
        EXPECT_EQ((forward ? sent : expected).substr(28, 80), outer);
        const std::string up = "c0000212 01020304 04d0 0005 001a", down = "01020304 c0000212 0005 04d0 001a";
        const auto inner = [&](const std::string& hop_limit, const std::string& checksum) {
            return test::to_hex(test::from_hex("4500002e 0000 0000" + hop_limit + "11" + checksum + (forward ? up : down)));
        };
        EXPECT_EQ(sent.substr(forward ? 108 : 28, 52), inner("0a", "eaa7"));
        EXPECT_EQ(expected.substr(forward ? 28 : 108, 52), inner("09", "eba7"));
    }
}

TEST(Tunnel, HoldsEveryAddressOfAnEdgesPrefix) {
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        const Stream stream = stream_of(map_e_of_prefixes(direction), direction);
        const bool forward = direction == Direction::forward;
        std::set<std::pair<std::string, std::string>> seen;  // of an edge: the end of its tunnel, and an address inside
        for (std::uint64_t j = 0; j < 4000; ++j) {
            const std::string frame =
                forward ? test::to_hex(test::sent_frame(stream, j, j)) : test::to_hex(test::frame_in(stream.expected(), stream, j, j));
            seen.emplace(frame.substr(forward ? 44 : 76, 32), frame.substr(forward ? 132 : 140, 8));
        }
        EXPECT_EQ(seen.size(), 256U);
        for (const auto& [end, address] : seen) {  // bits 40 to 43 of the one are bits 24 to 27 of the other
            EXPECT_EQ(end.substr(10, 1), address.substr(6, 1)) << end << ' ' << address;
        }
    }
}

TEST(Tunnel, LeadsFromAB4ToItsAftrWhateverTheHosts) {
    const std::string b4_end = "20010db8000000010000000000000001", aftr = "20010db8000000020000000000000001";
    StreamRequest out = b4(Direction::forward);
    out.destination = test::varying_host("198.19.0.0", 2, ValueMode::pseudorandom, 2, 254);
    out.destination.networks = 256;
    const Stream upload = stream_of(out, Direction::forward), download = stream_of(b4(Direction::reverse), Direction::reverse);
    std::set<std::string> inside;
    for (std::uint64_t j = 0; j < 100; ++j) {
        const std::string up = test::to_hex(test::frame_in(upload.expected(), upload, j, j)),
                          down = test::to_hex(test::sent_frame(download, j, j));
        EXPECT_EQ(up.substr(28, 80), "60000000002e0440" + b4_end + aftr);
        EXPECT_EQ(down.substr(28, 80), "60000000002e0440" + aftr + b4_end);
        inside.insert(up.substr(132, 16));
    }
    EXPECT_GT(inside.size(), 90U);
}

TEST(Tunnel, LeadsToTheSubscriberOf6rd) {
    StreamRequest request = six_rd(Direction::forward);
    request.source.part = request.source_tunnel->subscribers->part = {ValueMode::increasing, 2, 2};
    const std::string sent = test::to_hex(test::sent_frame(stream_of(request, Direction::forward), 0, 0));
    EXPECT_EQ(sent.substr(28, 40),
              "450000560000000040"
              "29"
              "ee57"
              "c6120002"
              "c6120001");
    EXPECT_EQ(sent.substr(28 + 40 + 16, 32), "20010db8c61200020000000000000001");
}

TEST(Tunnel, IsSentAsItIsWrittenOctetByOctet) {
    for (const auto& [request, direction] : all_requests()) {
        const Stream stream = stream_of(request, direction);
        const Bytes sent = test::sent_frame(stream, in_class, in_class);
        const Bytes inner = request.source_tunnel ? test::taken_out(sent) : sent;
        EXPECT_EQ(test::to_hex(test::write_packet(test::read_packet(inner))), test::to_hex(inner)) << "its checksums hold";
        if (request.source_tunnel) {
            const auto [subscriber, gateway] = ends_of(stream, request);
            const SlowTunnel tunnel{
                .source = subscriber, .destination = gateway, .traffic_class = stream.sent_mark(stream.values(in_class)).traffic_class};
            EXPECT_EQ(test::to_hex(tunnel.around(inner)), test::to_hex(sent));
        }
    }
}

TEST(Tunnel, IsWrittenABurstAtATimeAsOneByOne) {
    for (const auto& [request, direction] : all_requests()) {
        const Stream stream = stream_of(request, direction);
        StreamWriter writer{stream};
        std::vector<Bytes> buffers(burst_frames_max, stream.sent().frame);
        BurstFrames frames;
        for (; frames.count < burst_frames_max; ++frames.count) {
            frames.numbers[frames.count] = frames.indexes[frames.count] = 7 + frames.count;
            frames.frames[frames.count] = buffers[frames.count].data();
        }
        writer.write(frames, {0x0123456789abcdef});
        for (std::size_t k = 0; k < frames.count; ++k) {
            ASSERT_EQ(test::to_hex(buffers[k]), test::to_hex(test::sent_frame(stream, 7 + k, 7 + k))) << k;
        }
    }
}

/// The recognizer takes exactly the frames that verification finds no fault in.
TEST(Tunnel, ItsFramesAreRecognizedIfAndOnlyIfTheyAreCorrect) {
    for (const auto& [request, direction] : all_requests()) {
        const Stream stream = stream_of(request, direction);
        const Recognizer recognizer{stream};
        const Bytes correct = arrived(stream, request);
        ASSERT_EQ(faults_of(stream, correct), "");
        std::size_t accepted = 0;
        for (std::size_t bit = 0; bit <= 8 * std::min<std::size_t>(correct.size(), 130); ++bit) {
            Bytes bytes = correct;
            if (bit < 8 * correct.size()) {
                bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            }
            const bool is_correct = faults_of(stream, bytes).empty();
            ASSERT_EQ(test::recognizes(recognizer, bytes, in_class), is_correct) << "bit " << bit;
            accepted += is_correct ? 1 : 0;
        }
        EXPECT_GE(accepted, 47U) << "other link-layer addresses of the gateway";
    }
}

/// Damages the outer header of frame number `in_class` and returns the reasons.
template <class Damage>
std::string faults_after(const StreamRequest& request, Damage&& damage) {
    const Stream stream = stream_of(request, Direction::reverse);
    SlowTunnel tunnel = tunnel_of(stream, request);
    damage(tunnel);
    return faults_of(stream, tunnel.around(test::write_packet(inner_of(stream, request))));
}

TEST(Tunnel, WhatIsWrongWithItsHeaderIsNamed) {
    const StreamRequest request = map_e(Direction::reverse);
    EXPECT_EQ(faults_after(request, [](SlowTunnel&) {}), "");
    EXPECT_EQ(faults_after(request, [](SlowTunnel& t) { t.hop_limit = 63; }), "tunnel_header");
    EXPECT_EQ(faults_after(request, [](SlowTunnel& t) { t.longer_by = 8; }), "tunnel_header");
    EXPECT_EQ(faults_after(request, [](SlowTunnel& t) { t.traffic_class = 0x20; }), "tunnel_traffic_class");
    EXPECT_EQ(faults_after(request, [](SlowTunnel& t) { t.source.bytes[15] ^= std::byte{1}; }), "tunnel_source");
    EXPECT_EQ(faults_after(request, [](SlowTunnel& t) { t.destination.bytes[15] ^= std::byte{1}; }), "tunnel_destination")
        << "the address of nobody: its PSID differs from that in the prefix";
    EXPECT_EQ(faults_after(request,
                           [](SlowTunnel& t) {
                               t.next_header = 60;
                               t.extension = test::from_hex("0400 0401 0401 0100");
                           }),
              "tunnel_option")
        << "a tunnel encapsulation limit (RFC 2473 section 4.1.1)";
    EXPECT_EQ(faults_after(request,
                           [](SlowTunnel& t) {
                               t.destination.bytes[6] ^= std::byte{1};  // the PSID, in the prefix and in the identifier
                               t.destination.bytes[15] ^= std::byte{1};
                           }),
              "tunnel_destination other_subscriber");
    const StreamRequest copies_any = [] {
        StreamRequest any = map_e(Direction::reverse);
        any.destination_tunnel->expected_hop_limit.reset();
        any.destination_tunnel->traffic_class = 0x20;
        return any;
    }();
    EXPECT_EQ(faults_after(copies_any,
                           [](SlowTunnel& t) {
                               t.hop_limit = 9;
                               t.traffic_class = 0x20;
                           }),
              "");
    EXPECT_EQ(faults_after(copies_any, [](SlowTunnel&) {}), "tunnel_traffic_class");
    const StreamRequest rd = six_rd(Direction::reverse);
    EXPECT_EQ(faults_after(rd, [](SlowTunnel& t) { t.longer_by = 8; }), "tunnel_header");
    EXPECT_EQ(faults_after(rd, [](SlowTunnel& t) { t.destination.bytes[3] ^= std::byte{1}; }), "tunnel_destination other_subscriber");
    EXPECT_EQ(faults_after(rd, [](SlowTunnel& t) { t.destination.bytes[0] ^= std::byte{1}; }), "tunnel_destination");
}

/// What becomes of a congestion field where there may be congestion (RFC 3168 section 5).
std::set<unsigned> on_the_way(unsigned traffic_class) {
    const unsigned field = traffic_class & 3U;
    return field == 1 || field == 2 ? std::set{traffic_class, traffic_class | 3U} : std::set{traffic_class};
}

/// The outer header at the entry of a tunnel, by the tables of RFC 6040 section 4.1 and RFC 3168
/// section 9.1.1.
unsigned at_the_entry(OuterCongestion mode, std::optional<std::uint8_t> stated, unsigned inside) {
    constexpr std::array<std::array<unsigned, 4>, 3> by_mode{{{0, 1, 2, 3}, {0, 0, 0, 0}, {0, 1, 2, 2}}};
    const unsigned rest = (stated ? *stated : inside) / 4;
    return rest * 4 + by_mode[static_cast<std::size_t>(mode)][inside % 4];
}

/// Routers before the tunnel, in it and both may mark congestion where that is understood: all of
/// these frames are right, and those with another traffic class or a mark that nobody understands
/// are not.
TEST(Tunnel, CongestionThatARouterMayMarkIsNoFault) {
    for (const OuterCongestion mode : {OuterCongestion::normal, OuterCongestion::compatibility, OuterCongestion::full_functionality}) {
        for (const auto stated : {std::optional<std::uint8_t>{}, std::optional<std::uint8_t>{0x20}}) {
            for (const unsigned sent : {0x00U, 0x01U, 0x02U, 0x03U, 0xb8U, 0xb9U, 0xbaU, 0xbbU}) {
                StreamRequest request = map_e(Direction::reverse);
                request.marking.traffic_classes = {static_cast<std::uint8_t>(sent)};
                request.destination_tunnel->traffic_class = stated;
                request.destination_tunnel->congestion = mode;
                const Stream stream = stream_of(request, Direction::reverse);
                const Recognizer recognizer{stream};
                for (const unsigned inside : on_the_way(sent)) {
                    SlowPacket inner = inner_of(stream, request);
                    inner.traffic_class = static_cast<std::uint8_t>(inside);
                    SlowTunnel tunnel = tunnel_of(stream, request);
                    const unsigned first = at_the_entry(mode, stated, sent), second = at_the_entry(mode, stated, inside);
                    std::set<unsigned> right = on_the_way(first);
                    right.merge(on_the_way(second));
                    for (unsigned outside = 0; outside < 0x100; ++outside) {
                        tunnel.traffic_class = static_cast<std::uint8_t>(outside);
                        const Bytes frame = tunnel.around(test::write_packet(inner));
                        const bool is_right = right.contains(outside);
                        ASSERT_EQ(faults_of(stream, frame), is_right ? "" : "tunnel_traffic_class") << sent << inside << outside;
                        ASSERT_EQ(test::recognizes(recognizer, frame, in_class), inside == sent && outside == first);
                        const Mark due = stream.expected_mark(stream.values(in_class));
                        const Remarks remarks = remarks_of(frame, classify(frame, test::trial_id()), stream.expected(), due,
                                                           stream.tunnel_traffic_class(due.traffic_class));
                        ASSERT_EQ(is_right && remarks.has(Remark::congestion_outside), is_right && outside % 4 == 3 && first % 4 != 3);
                        ASSERT_EQ(remarks.has(Remark::congestion_experienced), inside != sent);
                    }
                }
            }
        }
    }
}

TEST(Tunnel, TheTesterWritesTheCongestionFieldThatIsStated) {
    for (const OuterCongestion mode : {OuterCongestion::normal, OuterCongestion::compatibility, OuterCongestion::full_functionality}) {
        for (const unsigned sent : {0x00U, 0x01U, 0x02U, 0x03U, 0xb9U, 0xbbU}) {
            StreamRequest request = map_e(Direction::forward);
            request.marking.traffic_classes = {static_cast<std::uint8_t>(sent)};
            request.source_tunnel->congestion = mode;
            const Stream stream = stream_of(request, Direction::forward);
            const Bytes frame = test::sent_frame(stream, in_class, in_class);
            EXPECT_EQ(mark_of(frame.data() + 14, net::Family::ipv6).traffic_class, at_the_entry(mode, {}, sent));
        }
    }
}

TEST(Tunnel, ALongerPacketInsideIsNoFaultOfItsHeader) {
    const StreamRequest request = six_rd(Direction::reverse);
    const Stream stream = stream_of(request, Direction::reverse);
    Bytes inner = test::write_packet(inner_of(stream, request));
    const Bytes padding = test::from_hex("1100 0104 0000 0000");  // destination options, before UDP
    const auto header = inner.begin() + 14;
    header[5] = static_cast<std::byte>(std::to_integer<unsigned>(header[5]) + padding.size());
    header[6] = std::byte{60};
    inner.insert(inner.begin() + 14 + 40, padding.begin(), padding.end());
    SlowTunnel tunnel = tunnel_of(stream, request);
    EXPECT_EQ(faults_of(stream, tunnel.around(inner)), "extension_headers");
    tunnel.longer_by = 8;
    EXPECT_EQ(faults_of(stream, tunnel.around(inner)), "extension_headers tunnel_header");
}

TEST(Tunnel, APacketThatShouldBeInOneOrShouldNotIsToldSo) {
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        const StreamRequest request = map_e(direction);
        const Stream stream = stream_of(request, direction);
        const Bytes inner = test::write_packet(inner_of(stream, request));
        const auto [subscriber, gateway] = ends_of(stream, request);
        const Bytes outer = SlowTunnel{.source = gateway, .destination = subscriber}.around(inner);
        const bool in_tunnel = request.arrives_in_tunnel();
        EXPECT_EQ(faults_of(stream, in_tunnel ? inner : outer), in_tunnel ? "tunnel_missing" : "tunnel_left");
        const SlowTunnel twice{.source = test::address_of("2001:db8::1"), .destination = test::address_of("2001:db8::2")};
        EXPECT_EQ(faults_of(stream, twice.around(outer)), "encapsulated") << "a tunnel of the same family around it";
    }
}

TEST(Tunnel, NeighboursAreNotAskedForInOne) {
    Bytes solicitation = test::from_hex("0200000000020200000000018600 6000000000203aff");
    const SlowTunnel tunnel{.source = test::address_of("198.18.0.1"), .destination = test::address_of("198.18.0.2")};
    solicitation.resize(14 + 40);
    solicitation.push_back(std::byte{135});
    solicitation.resize(14 + 40 + 32);
    const Arrival arrival = classify(tunnel.around(solicitation), test::trial_id());
    EXPECT_EQ(arrival.kind, ArrivalKind::foreign);
    EXPECT_FALSE(arrival.asks_or_answers);
}

TEST(Tunnel, NoFrameIsReadBeyondItsEnd) {
    for (const auto& [request, direction] : all_requests()) {
        const Stream stream = stream_of(request, direction);
        const Bytes whole = arrived(stream, request);
        for (std::size_t octets = 0; octets < std::min<std::size_t>(whole.size(), 200); ++octets) {
            const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(octets));
            EXPECT_NE(faults_of(stream, cut), "") << octets;
        }
    }
}

/// The outer addresses enter no checksum of the packet inside: in and out of the tunnel it is the
/// same, but for its hop limit.
TEST(Tunnel, OuterAddressesEnterNoChecksum) {
    StreamRequest request = map_e(Direction::forward, 64, 65'536);
    const Stream stream = stream_of(request, Direction::forward);
    request.source_tunnel->gateway = test::address_of("2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff");
    const Stream other = stream_of(request, Direction::forward);
    for (std::uint64_t j = 0; j < 1000; ++j) {
        const Bytes a = test::sent_frame(stream, j, j), b = test::sent_frame(other, j, j);
        EXPECT_NE(test::to_hex(a), test::to_hex(b));
        EXPECT_EQ(test::to_hex(test::taken_out(a)), test::to_hex(test::taken_out(b)));
    }
}

TEST(Tunnel, RequestsThatMakeNoSenseAreRefused) {
    const auto where_of = [](const StreamRequest& request) -> std::string {
        const LinkAddresses link{.source = test::sending_mac, .destination = test::receiving_mac, .vlan_id = {}};
        const auto stream = Stream::make(request, Direction::forward, TrafficClass::foreground, 1, 1, link, link, "stream");
        const Error* const error = error_of(stream);
        return error == nullptr ? "" : error->where;
    };
    const auto with = [](StreamRequest request, auto&& change) {
        change(request);
        return request;
    };
    const StreamRequest edges = map_e(Direction::forward), rd = six_rd(Direction::forward);
    EXPECT_EQ(where_of(edges), "");
    EXPECT_EQ(where_of(rd), "");
    EXPECT_EQ(where_of(with(edges, [](auto& r) { r.frame_octets = 103; })), "stream.frame_octets");
    EXPECT_EQ(where_of(with(edges, [](auto& r) { r.frame_octets = 9256; })), "");
    EXPECT_EQ(where_of(with(edges, [](auto& r) { r.frame_octets = 9257; })), "stream.frame_octets");
    EXPECT_EQ(where_of(with(edges, [](auto& r) { r.source_tunnel.reset(); })), "stream.source.edges");
    EXPECT_EQ(where_of(with(edges, [](auto& r) { r.destination_tunnel = r.source_tunnel; })), "stream.source_tunnel");
    EXPECT_EQ(where_of(with(edges, [](auto& r) { r.source_tunnel->gateway = test::address_of("192.0.2.1"); })),
              "stream.source_tunnel.gateway");
    EXPECT_EQ(where_of(with(edges, [](auto& r) { r.source_tunnel->subscribers = test::fixed_host("2001:db8::1"); })),
              "stream.source_tunnel.subscribers");
    EXPECT_EQ(where_of(with(edges, [](auto& r) { r.source_edges->domains[0].rule.dmr = net::parse_prefix("64:ff9b::/96"); })),
              "stream.source.edges");
    EXPECT_EQ(where_of(with(rd, [](auto& r) { r.source_tunnel->subscribers.reset(); })), "stream.source_tunnel.subscribers");
    EXPECT_EQ(where_of(with(rd, [](auto& r) { r.source_tunnel->subscribers->part.maximum = 3; })), "stream.source_tunnel.subscribers");
    EXPECT_EQ(where_of(with(rd, [](auto& r) { r.destination.networks = 2; })), "");
    EXPECT_EQ(where_of(with(b4(Direction::forward), [](auto& r) { r.destination.networks = 256; })), "");
    EXPECT_EQ(where_of(with(b4(Direction::forward), [](auto& r) { r.destination_tunnel->subscribers->networks = 2; })),
              "stream.destination_tunnel.subscribers");
}

}  // namespace
}  // namespace gatemark::frame
