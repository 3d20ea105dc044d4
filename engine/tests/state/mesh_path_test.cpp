#include "frame/stream_writer.hpp"
#include "frame/streams.hpp"
#include "golden/slow_tunnel.hpp"
#include "state/path_end.hpp"

#include <gtest/gtest.h>

#include <set>

/// A customer edge of a mesh (RFC 7597 section 5): the hosts outside are other customer edges of
/// its rule, which it reaches without the border relay, by translation (MAP-T) or in tunnels
/// (MAP-E).
namespace gatemark::state::mesh {
namespace {

using frame::Role;
using frame::signature::Direction, frame::signature::TrafficClass;
using record::Count;
using test::Bytes, test::SlowPacket;
using Choice = enumerate::ConnectionChoice::Mode;

enum class Way : std::uint8_t { translation, tunnels };

constexpr std::uint64_t mesh_connections = 200;
constexpr std::uint16_t psid_of_gateway = 0x34, psid_of_others = 0x51;
constexpr const char *shared_address = "192.0.2.18", *address_of_gateway = "2001:db8:12:3400:0:c000:212:34",
                     *address_of_relay = "2001:db8:ffff::1";

/// The MAP address of an edge of the rule 2001:db8::/40, 192.0.2.0/24 with 16 EA bits (RFC 7597
/// sections 5.2 and 6), octet by octet.
net::Address map_address(const net::Address& ipv4, std::uint16_t psid) {
    net::Address address = test::address_of("2001:db8::c000:200:0");
    address.bytes[5] = address.bytes[13] = ipv4.bytes[3];
    address.bytes[6] = address.bytes[15] = static_cast<std::byte>(psid);
    return address;
}

class MeshPath : public testing::TestWithParam<Way> {
protected:
    MeshPath() {
        EXPECT_EQ(table_.reset(mesh_connections), std::nullopt);
        const bool in_tunnels = GetParam() == Way::tunnels;
        pool_ = std::get<net::AddressPool>(net::AddressPool::make(
            {{test::address_of(in_tunnels ? shared_address : address_of_gateway), in_tunnels ? 32U : 128U}}, "pool"));
    }
    [[nodiscard]] static net::MapRule rule() {
        net::MapRule rule = test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6).rule;
        if (GetParam() == Way::tunnels) {
            rule.dmr.reset();
        }
        return rule;
    }
    /// 8 hosts x 5 source ports to 5 edges x 2 ports of their sets: 400 four-tuples, of which 200
    /// are connections.
    [[nodiscard]] static frame::StreamRequest request_of(Role role, Choice choice = Choice::increasing) {
        const bool initiator = role == Role::initiator, in_tunnels = GetParam() == Way::tunnels;
        const frame::HostSet inside = test::varying_host("10.0.0.0", 2, frame::ValueMode::pseudorandom, 1, 8),
                             outside = test::varying_host("192.0.2.19", 2, frame::ValueMode::pseudorandom, 0x0213, 0x0217);
        const frame::ValueRange inner{frame::ValueMode::pseudorandom, 5000, 5004}, outer{frame::ValueMode::pseudorandom, 1348, 1349};
        frame::StreamRequest request;
        request.frame_octets = initiator ? 64 : in_tunnels ? 104 : 84;
        request.source = initiator ? inside : outside;
        request.destination = initiator ? outside : inside;
        request.source_ports = initiator ? inner : outer;
        request.destination_ports = initiator ? outer : inner;
        (initiator ? request.destination_peers : request.source_peers) = frame::PeersRequest{.rule = rule(), .psid = psid_of_others};
        if (in_tunnels) {
            (initiator ? request.destination_tunnel : request.source_tunnel) =
                frame::TunnelRequest{.gateway = test::address_of(address_of_gateway), .expected_hop_limit = 64};
        } else {
            request.dont_fragment_rule = frame::DontFragmentRule::rfc7915;
        }
        const enumerate::TupleRanges ranges{
            .source_ports = {5000, 5}, .destination_ports = {1348, 2}, .source_hosts = {1, 8}, .destination_hosts = {0x0213, 5}};
        request.connections = frame::ConnectionTraffic{.role = role,
                                                       .set = {ranges, enumerate::Order::pseudorandom, mesh_connections, test::seed},
                                                       .choice = choice,
                                                       .nat_side = frame::NatSide::inside};
        return request;
    }
    [[nodiscard]] static frame::Stream stream(Role role, Choice choice = Choice::increasing) {
        return test::make_stream(request_of(role, choice), {}, TrafficClass::foreground,
                                 role == Role::initiator ? Direction::forward : Direction::reverse);
    }

    /// What the edge sends of a connection is from this port of its set.
    [[nodiscard]] static std::uint16_t port_of(std::uint64_t connection) {
        return static_cast<std::uint16_t>(1024 * (connection / 4 + 1) + 4U * psid_of_gateway + connection % 4);
    }
    /// A sent frame behind the NAT of the edge, still as IPv4.
    [[nodiscard]] SlowPacket behind_nat(std::uint64_t connection) const {
        SlowPacket packet = test::read_packet(test::sent_frame(upload_, connection, connection));
        packet.source = test::address_of(shared_address);
        packet.source_port = port_of(connection);
        return packet;
    }
    /// As the edge sends it to an IPv6 address, or through a tunnel to there.
    [[nodiscard]] static Bytes sent_to(const net::Address& end, const SlowPacket& packet) {
        const net::Address gateway = test::address_of(address_of_gateway);
        if (GetParam() == Way::tunnels) {
            return test::SlowTunnel{.source = gateway, .destination = end}.around(test::write_packet(test::routed(packet, 1)));
        }
        return test::write_packet(
            test::translated(packet, 1, [&](const net::Address& ipv4) { return ipv4 == packet.source ? gateway : end; }));
    }
    /// As a correct edge forwards it.
    [[nodiscard]] Bytes outwards(std::uint64_t connection) const {
        const SlowPacket packet = behind_nat(connection);
        return sent_to(map_address(packet.destination, psid_of_others), packet);
    }
    /// What a correct edge makes of an answer.
    [[nodiscard]] Bytes inwards(const Bytes& answer, std::uint64_t connection) const {
        const auto taken_from = [](const net::Address& ipv6) {
            net::Address ipv4{.family = net::Family::ipv4, .bytes = {}};
            std::copy_n(ipv6.bytes.begin() + 10, 4, ipv4.bytes.begin());
            return ipv4;
        };
        SlowPacket packet = GetParam() == Way::tunnels ? test::routed(test::read_packet(test::taken_out(answer)), 1)
                                                       : test::translated(test::read_packet(answer), 1, taken_from, 0xbeef);
        EXPECT_EQ(packet.destination, test::address_of(shared_address));
        EXPECT_EQ(packet.destination_port, port_of(connection));
        const SlowPacket sent = test::read_packet(test::sent_frame(upload_, connection, connection));
        packet.destination = sent.source;
        packet.destination_port = sent.source_port;
        return test::write_packet(packet);
    }
    [[nodiscard]] Bytes reply(const frame::Stream& download, std::uint64_t number, pace::Ticks now = {7}) const {
        return reply_of(download, table_, pool_, number, now);
    }
    void establish() {
        PathEnd end{upload_, Direction::forward, mesh_connections, &establishing_};
        for (std::uint64_t k = 0; k < mesh_connections; ++k) {
            end.receive(outwards(k));
        }
        EXPECT_EQ(end.counts()[Count::received], mesh_connections);
        EXPECT_EQ(end.counts()[Count::faulty] + end.counts()[Count::duplicate], 0U);
        EXPECT_EQ(table_.filled(), mesh_connections);
    }

    StateTable table_;
    net::AddressPool pool_;
    const frame::GatewayEdge edge_ = std::get<frame::GatewayEdge>(frame::GatewayEdge::make(rule(), 0x1234, "edge"));
    const frame::Stream upload_ = stream(Role::initiator), download_ = stream(Role::responder);
    const ConnectionKeeper establishing_{Phase::establish, table_, pool_, &edge_}, using_{Phase::use, table_, pool_, &edge_};
};

/// In both ways the first header outside is one of IPv6.
TEST_P(MeshPath, EachEdgeIsReachedAtItsAddressAndAnswersFromIt) {
    establish();
    PathEnd left{download_, Direction::reverse, mesh_connections, nullptr};
    std::set<std::string> edges;
    for (std::uint64_t k = 0; k < mesh_connections; ++k) {
        const Bytes answer = reply(download_, k);
        const net::Address edge = map_address(behind_nat(k).destination, psid_of_others);
        edges.insert(net::to_text(edge));
        EXPECT_EQ(test::to_hex(Bytes(answer.begin() + 22, answer.begin() + 54)),
                  test::to_hex(edge.bytes) + test::to_hex(test::address_of(address_of_gateway).bytes));
        left.receive(inwards(answer, k));
    }
    EXPECT_EQ(edges.size(), 5U);
    EXPECT_EQ(left.counts()[Count::received], mesh_connections);
    EXPECT_EQ(left.counts()[Count::faulty], 0U);
}

TEST_P(MeshPath, TheSecondPhaseHasTheSameConnectionsInEveryOrder) {
    establish();
    for (const Choice choice : {Choice::fixed, Choice::increasing, Choice::decreasing, Choice::pseudorandom}) {
        const frame::Stream upload = stream(Role::initiator, choice), download = stream(Role::responder, choice);
        PathEnd right{upload, Direction::forward, mesh_connections, &using_}, left{download, Direction::reverse, mesh_connections, nullptr};
        for (std::uint64_t number = 0; number < mesh_connections; ++number) {
            SlowPacket packet = test::read_packet(test::sent_frame(upload, number, number));
            packet.source = test::address_of(shared_address);
            packet.source_port = port_of(upload.values(number).connection);
            right.receive(sent_to(map_address(packet.destination, psid_of_others), packet));
            left.receive(inwards(reply(download, number), download.values(number).connection));
        }
        EXPECT_EQ(right.counts()[Count::received], mesh_connections);
        EXPECT_EQ(left.counts()[Count::received], mesh_connections);
        EXPECT_EQ(right.counts()[Count::faulty] + left.counts()[Count::faulty], 0U);
    }
}

TEST_P(MeshPath, IsWrittenABurstAtATimeAsFrameByFrame) {
    establish();
    const auto written = [](const frame::Stream& stream, auto&& write) {
        std::vector<Bytes> buffers(frame::burst_frames_max, stream.sent().frame);
        frame::BurstFrames frames;
        for (; frames.count < frame::burst_frames_max; ++frames.count) {
            frames.numbers[frames.count] = frames.indexes[frames.count] = 7 + frames.count;
            frames.frames[frames.count] = buffers[frames.count].data();
        }
        write(frames);
        return buffers;
    };
    frame::StreamWriter writer{upload_};
    const std::vector<Bytes> sent = written(upload_, [&](frame::BurstFrames& frames) { writer.write(frames, {0x0123456789abcdef}); });
    ReplyWriter reply_writer{download_, table_, pool_, 1};
    const std::vector<Bytes> answers = written(download_, [&](frame::BurstFrames& frames) { reply_writer.write(frames, {7}); });
    for (std::size_t k = 0; k < frame::burst_frames_max; ++k) {
        EXPECT_EQ(test::to_hex(sent[k]), test::to_hex(test::sent_frame(upload_, 7 + k, 7 + k))) << k;
        EXPECT_EQ(test::to_hex(answers[k]), test::to_hex(reply(download_, 7 + k))) << k;
    }
}

/// The recognizer takes exactly the frames that verification finds no fault in.
TEST_P(MeshPath, FramesAreRecognizedIfAndOnlyIfTheyAreCorrect) {
    establish();
    for (const auto& [stream, correct] : {std::pair{&upload_, outwards(5)}, {&download_, inwards(reply(download_, 5), 5)}}) {
        const frame::Recognizer recognizer{*stream};
        ASSERT_EQ(test::faults_of(*stream, correct), "");
        ASSERT_TRUE(test::recognizes(recognizer, correct, 5));
        for (std::size_t bit = 0; bit < 8 * correct.size(); ++bit) {
            Bytes bytes = correct;
            bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            ASSERT_EQ(test::recognizes(recognizer, bytes, 5), test::faults_of(*stream, bytes).empty()) << "bit " << bit;
        }
    }
}

TEST_P(MeshPath, NamesEachFaultOfWhereAFrameWent) {
    const bool in_tunnels = GetParam() == Way::tunnels;
    using Names = std::set<std::string_view>;
    PathEnd end{upload_, Direction::forward, mesh_connections, &establishing_};
    std::uint64_t k = 0;
    const auto faults = [&](const net::Address& to) {
        const Names names = end.faults_in(sent_to(to, behind_nat(k)));
        EXPECT_FALSE(table_.read(k++)) << "a faulty frame establishes nothing";
        return names;
    };
    const auto edge = [&] { return map_address(behind_nat(k).destination, psid_of_others); };
    const auto name_of = [&](std::string_view translated, std::string_view tunnelled) {
        Names names{in_tunnels ? "tunnel_destination" : "destination_address", in_tunnels ? tunnelled : translated};
        names.erase("");
        return names;
    };
    const Names to_relay = name_of("outside_rule", ""), to_another = name_of("other_edge_address", "other_subscriber"),
                wrong_identifier = name_of("interface_identifier", "");
    // As without the forwarding rule: by the default mapping rule, or to the relay.
    net::Address by_default = test::address_of("2001:db8:ffff::");  // RFC 6052, 64 bits
    std::copy_n(behind_nat(k).destination.bytes.begin(), 4, by_default.bytes.begin() + 9);
    EXPECT_EQ(faults(by_default), to_relay);
    EXPECT_EQ(faults(test::address_of(address_of_relay)), to_relay);
    for (const char* const other : {"192.0.2.1", "192.0.2.19", "192.0.2.20", "192.0.2.23"}) {
        if (behind_nat(k).destination != test::address_of(other)) {
            EXPECT_EQ(faults(map_address(test::address_of(other), psid_of_others)), to_another) << other;
        }
    }
    EXPECT_EQ(faults(map_address(behind_nat(k).destination, psid_of_others ^ 1)), to_another) << "another PSID";
    for (const std::size_t octet : {7U, 8U, 13U, 15U}) {  // between the prefix and the identifier, and in this
        net::Address address = edge();
        address.bytes[octet] ^= std::byte{1};
        EXPECT_EQ(faults(address), wrong_identifier) << octet;
    }
    net::Address outside = edge();
    outside.bytes[3] ^= std::byte{1};
    EXPECT_EQ(faults(outside), to_relay);
}

/// What does not depend on where a frame went.
TEST_P(MeshPath, NamesEveryOtherFaultAsOfAnyCustomerEdge) {
    const bool in_tunnels = GetParam() == Way::tunnels;
    using Names = std::set<std::string_view>;
    PathEnd end{upload_, Direction::forward, mesh_connections, &establishing_};
    const auto faults = [&](std::uint64_t k, auto&& change) {
        SlowPacket packet = behind_nat(k);
        const net::Address edge = map_address(packet.destination, psid_of_others);
        change(packet);
        return end.faults_in(sent_to(edge, packet));
    };
    EXPECT_EQ(faults(0, [](SlowPacket& packet) { packet.source_port += 4; }), (Names{"source_port", "outside_port_set"}));
    EXPECT_EQ(faults(1, [](SlowPacket& packet) { packet.destination_port ^= 1; }), Names{"destination_port"});
    const Names inner_destination = faults(2, [](SlowPacket& packet) { packet.destination.bytes[3] ^= std::byte{1}; });
    EXPECT_EQ(inner_destination, in_tunnels ? Names{"destination_address"} : Names{}) << "of which translation leaves nothing";
    if (in_tunnels) {
        EXPECT_EQ(end.faults_in(test::taken_out(outwards(3))), Names{"tunnel_missing"});
    } else {
        const test::SlowTunnel tunnel{.source = test::address_of(address_of_gateway), .destination = test::address_of(address_of_relay)};
        EXPECT_EQ(end.faults_in(tunnel.around(test::write_packet(test::routed(behind_nat(3), 1)))), Names{"encapsulated"});
    }
}

TEST_P(MeshPath, RequestsThatMakeNoSenseAreRefused) {
    const bool in_tunnels = GetParam() == Way::tunnels;
    const auto where_of = [](auto&& change, bool inside_macs = false, bool outside_macs = false) -> std::string {
        frame::StreamRequest request = request_of(Role::initiator);
        request.frame_octets = 200;
        change(request);
        frame::LinkAddresses inside{.source = test::sending_mac, .destination = test::receiving_mac, .vlan_id = {}}, outside = inside;
        inside.host_macs = inside_macs ? std::optional{test::sending_macs(test::seed)} : std::nullopt;
        outside.host_macs = outside_macs ? std::optional{test::receiving_macs(test::seed)} : std::nullopt;
        const auto stream = frame::Stream::make(request, Direction::forward, TrafficClass::foreground, 1, 1, inside, outside, "stream");
        const Error* const error = error_of(stream);
        return error == nullptr ? "" : error->where;
    };
    using Request = frame::StreamRequest;
    const std::string place = "stream.destination_peers";
    EXPECT_EQ(where_of([](Request&) {}), "");
    EXPECT_EQ(where_of([](Request&) {}, true), "");
    EXPECT_EQ(where_of([](Request&) {}, false, true), in_tunnels ? "stream.destination_tunnel" : place);
    EXPECT_EQ(where_of([](Request& r) { r.connections.reset(); }), place);
    EXPECT_EQ(where_of([](Request& r) { r.connections->role = Role::responder; }), place);
    EXPECT_EQ(where_of([](Request& r) { r.as_sent = true; }), place);
    EXPECT_EQ(where_of([](Request& r) {
                  std::swap(r.source, r.destination);
                  std::swap(r.source_peers, r.destination_peers);
                  std::swap(r.source_tunnel, r.destination_tunnel);
              }),
              "stream.source_peers");
    EXPECT_EQ(where_of([](Request& r) { r.destination_peers->psid = 0x100; }), place + ".psid");
    EXPECT_EQ(where_of([](Request& r) { r.destination_peers->rule.ipv4 = net::parse_prefix("192.0.3.0/24").value(); }),
              place + ".rule.ipv4");
    EXPECT_EQ(where_of([](Request& r) { r.destination = test::fixed_host("2001:db8::1"); }), place + ".rule.ipv4");
    for (const Role role : {Role::initiator, Role::responder}) {
        EXPECT_EQ(where_of([&](Request& r) {
                      r.connections->role = role;
                      r.source = r.destination;
                      r.source_peers = r.destination_peers;
                  }),
                  in_tunnels ? "stream.destination_tunnel" : "stream.source_peers")
            << "at both ends";
    }
    if (in_tunnels) {
        EXPECT_EQ(where_of([](Request& r) { r.destination_tunnel->subscribers = test::fixed_host(address_of_relay); }),
                  "stream.destination_tunnel.subscribers");
    } else {
        const frame::EdgesRequest edges{.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)}, .count = 8};
        EXPECT_EQ(where_of([&](Request& r) { r.source_edges = edges; }), "stream.source");
    }
}

INSTANTIATE_TEST_SUITE_P(All, MeshPath, testing::Values(Way::translation, Way::tunnels));

}  // namespace
}  // namespace gatemark::state::mesh
