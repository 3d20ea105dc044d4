#include "frame/echo_verification.hpp"
#include "frame/echoes.hpp"
#include "golden/slow_packet.hpp"
#include "golden/slow_tunnel.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

/// Echo messages of clients behind tunnels, against headers that are written octet by octet.
namespace gatemark::frame {
namespace {

using signature::Direction;
using test::Bytes, test::small_shape, test::SlowPacket, test::SlowTunnel;

constexpr const char* public_address = "192.0.2.1/32";
/// Whose messages are looked at one by one: client 2, destination 3, round 1.
constexpr std::uint64_t looked_at = 29;

/// A gateway with clients behind tunnels on the left: its requests, and the address of each
/// client's end.
struct Tunneled {
    const char* name;
    Echo echo;
    std::function<net::Address(const Echo&, const FrameValues&)> client;
    const char* gateway;
    bool is_stateful = false;

    [[nodiscard]] FrameValues values_of(std::uint64_t index) const { return echo.values_of(echo.numbers().place_of(index)); }
    [[nodiscard]] net::Address client_of(std::uint64_t index) const { return client(echo, values_of(index)); }
    /// As the gateway sends a reply.
    [[nodiscard]] SlowTunnel tunnel_to(std::uint64_t index) const {
        return {.source = test::address_of(gateway), .destination = client_of(index)};
    }
    [[nodiscard]] EchoAnswer answer_to(std::uint64_t index) const {
        return {.index = index, .sent = {1000}, .source = {.address = 0, .identifier = static_cast<std::uint16_t>(40'000 + index)}};
    }
    /// The request as it arrives.
    [[nodiscard]] SlowPacket request_through(std::uint64_t index) const {
        SlowPacket packet = test::routed(test::read_packet(test::taken_out(test::sent_request(echo, index))), 1);
        if (is_stateful) {
            packet.source = test::address_of("192.0.2.1");
            packet.echo->identifier = answer_to(index).source.identifier;
        }
        return packet;
    }
    /// What is in the tunnel of its reply.
    [[nodiscard]] SlowPacket reply_through(std::uint64_t index) const {
        SlowPacket packet = test::routed(test::read_packet(test::sent_reply(echo, answer_to(index))), 1);
        if (is_stateful) {
            const SlowPacket asked = test::read_packet(test::taken_out(test::sent_request(echo, index)));
            packet.destination = asked.source;
            packet.echo->identifier = asked.echo->identifier;
        }
        return packet;
    }
    [[nodiscard]] std::string faults_of(EchoKind kind, const Bytes& frame, std::uint64_t index = looked_at) const {
        const Arrival arrival = classify_echo(frame, test::trial_id());
        return arrival.kind == ArrivalKind::ours ? test::names_of(verify_echo(frame, arrival, echo, kind, echo.numbers().place_of(index)))
                                                 : "not ours";
    }
};

StreamRequest edges_behind_relay() {
    StreamRequest request = test::map_e_request(
        {.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)}, .count = small_shape.clients}, Direction::forward, 102);
    request.destination.part = {ValueMode::increasing, 2, 65535};
    request.source_ports = request.destination_ports = {};
    request.source_tunnel->expected_hop_limit = 64;
    return request;
}

/// 6rd (RFC 5969): 198.18.0.2 is 2001:db8:c612:2::/64 under 2001:db8::/32.
StreamRequest edges_of_6rd() {
    StreamRequest request = test::echo_request(test::Gateway::router66, 142);
    request.source = test::varying_host("2001:db8:c612::1", 6, ValueMode::increasing, 2, 60000);
    request.source_tunnel = TunnelRequest{.gateway = test::address_of("198.18.0.1"),
                                          .subscribers = test::varying_host("198.18.0.0", 2, ValueMode::increasing, 2, 60000),
                                          .expected_hop_limit = 64};
    return request;
}

/// An AFTR (RFC 6333) with 2 B4s and 2 hosts behind each, at the same addresses.
StreamRequest hosts_behind_b4s() {
    StreamRequest request = test::echo_request(test::Gateway::router44, 142);
    request.source = test::varying_host("10.0.0.0", 2, ValueMode::increasing, 1, 2);
    request.source_tunnel = TunnelRequest{.gateway = test::address_of("2001:db8:0:1::1"),
                                          .subscribers = test::varying_host("2001:2::", 14, ValueMode::increasing, 2, 3),
                                          .expected_hop_limit = 64};
    return request;
}

std::vector<Tunneled> all_tunneled() {
    std::vector<Tunneled> list;
    list.push_back({.name = "MAP-E border relay",
                    .echo = test::make_echo(edges_behind_relay()),
                    .client = [](const Echo& echo,
                                 const FrameValues& values) { return net::ipv6_of(echo.edges()->edges().address_of(values.edge())); },
                    .gateway = "2001:db8:ffff::1"});
    list.push_back({.name = "6rd border relay",
                    .echo = test::make_echo(edges_of_6rd()),
                    .client = [](const Echo& echo,
                                 const FrameValues& values) { return echo.stream().tunnel().subscribers->host(values.source_host, 0); },
                    .gateway = "198.18.0.1"});
    list.push_back({.name = "AFTR",
                    .echo = test::make_echo(hosts_behind_b4s(), small_shape, public_address),
                    .client = [](const Echo& echo,
                                 const FrameValues& values) { return echo.stream().subscriber_hosts()->subscriber(values.source_host); },
                    .gateway = "2001:db8:0:1::1",
                    .is_stateful = true});
    return list;
}

TEST(EchoInTunnels, MessagesAreThoseThatTheSlowGatewayForwards) {
    for (const Tunneled& path : all_tunneled()) {
        std::set<std::string> tunnels;
        for (std::uint64_t i = 0; i < small_shape.requests(); ++i) {
            const Bytes sent = test::sent_request(path.echo, i);
            const SlowTunnel up{.source = path.client_of(i), .destination = test::address_of(path.gateway)};
            ASSERT_EQ(test::to_hex(sent), test::to_hex(up.around(test::taken_out(sent)))) << path.name << i;
            tunnels.insert(to_text(up.source));
            const Bytes there = test::write_packet(path.request_through(i));
            const Bytes back = path.tunnel_to(i).around(test::write_packet(path.reply_through(i)));
            EXPECT_EQ(test::to_hex(there), test::to_hex(test::expected_request(path.echo, path.answer_to(i)))) << path.name;
            EXPECT_EQ(test::to_hex(back), test::to_hex(test::expected_reply(path.echo, i))) << path.name;
            EXPECT_EQ(path.faults_of(EchoKind::request, there, i), "") << path.name;
            EXPECT_EQ(path.faults_of(EchoKind::reply, back, i), "") << path.name;
        }
        EXPECT_EQ(tunnels.size(), path.is_stateful ? 2 : small_shape.clients) << path.name;
    }
}

TEST(EchoInTunnels, EachDamageToATunnelHasItsReason) {
    const struct {
        std::function<void(SlowTunnel&, const Tunneled&)> apply;
        const char* faults;
    } damages[]{
        {[](SlowTunnel&, const Tunneled&) {}, ""},
        {[](SlowTunnel& tunnel, const Tunneled&) { tunnel.hop_limit = 63; }, "tunnel_header"},
        {[](SlowTunnel& tunnel, const Tunneled&) { tunnel.longer_by = 8; }, "tunnel_header"},
        {[](SlowTunnel& tunnel, const Tunneled&) { tunnel.traffic_class = 0x20; }, "tunnel_traffic_class"},
        {[](SlowTunnel& tunnel, const Tunneled&) { tunnel.source.bytes[3] ^= std::byte{0x10}; }, "tunnel_source"},
        {[](SlowTunnel& tunnel, const Tunneled&) { tunnel.destination.bytes[0] ^= std::byte{0x10}; }, "tunnel_destination"},
        {[](SlowTunnel& tunnel, const Tunneled& path) { tunnel.destination = path.client_of(0); }, "tunnel_destination other_subscriber"},
    };
    for (const Tunneled& path : all_tunneled()) {
        const Bytes inside = test::write_packet(path.reply_through(looked_at));
        for (const auto& damage : damages) {
            SlowTunnel tunnel = path.tunnel_to(looked_at);
            damage.apply(tunnel, path);
            EXPECT_EQ(path.faults_of(EchoKind::reply, tunnel.around(inside)), damage.faults) << path.name;
        }
        EXPECT_EQ(path.faults_of(EchoKind::reply, inside), "tunnel_missing") << path.name;
        const Bytes there = test::write_packet(path.request_through(looked_at));
        EXPECT_EQ(path.faults_of(EchoKind::request, path.tunnel_to(looked_at).around(there)), "tunnel_left") << path.name;
    }
}

TEST(EchoInTunnels, InLoopBackNothingChanges) {
    for (StreamRequest request : {edges_behind_relay(), edges_of_6rd()}) {
        request.as_sent = true;
        request.hop_limit_decrement = 0;
        const Echo echo = test::make_echo(request);
        for (std::uint64_t i = 0; i < small_shape.requests(); ++i) {
            const Bytes there = test::sent_request(echo, i), back = test::sent_reply(echo, {.index = i, .sent = {1000}});
            EXPECT_EQ(test::to_hex(there), test::to_hex(test::expected_request(echo, {.index = i, .sent = {1000}})));
            EXPECT_EQ(test::to_hex(back), test::to_hex(test::expected_reply(echo, i)));
            const EchoPlace place = echo.numbers().place_of(i);
            EXPECT_TRUE(verify_echo(there, classify_echo(there, test::trial_id()), echo, EchoKind::request, place).none());
            EXPECT_TRUE(verify_echo(back, classify_echo(back, test::trial_id()), echo, EchoKind::reply, place).none());
        }
    }
}

}  // namespace
}  // namespace gatemark::frame
