#include "frame/stream_writer.hpp"
#include "frame/streams.hpp"
#include "golden/slow_tunnel.hpp"
#include "golden/tunnel_vectors.hpp"
#include "state/path_end.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

/// The Tester's two ends with a NAT between them that is written apart from the engine: it knows
/// packets, not connection numbers.
namespace gatemark::state {
namespace {

using frame::Fault, frame::Role;
using frame::signature::Direction, frame::signature::TrafficClass;
using record::Count;
using test::Bytes, test::SlowPacket;

enum class Mode : std::uint8_t { nat44, nat64, nat66, nat46 };
enum class PortPolicy : std::uint8_t { preserved, counted_down };

constexpr std::uint64_t connection_count = 200;

struct Endpoint4 {
    net::Address address;
    std::uint16_t port = 0;
    friend bool operator<(const Endpoint4& a, const Endpoint4& b) {
        return std::tie(a.address.bytes, a.port) < std::tie(b.address.bytes, b.port);
    }
};

/// Endpoint-dependent mapping: a public port for each four-tuple, kept where it is free, or counted
/// down from 65,535.
class SlowNat {
public:
    SlowNat(Mode mode, PortPolicy policy) : mode_{mode}, policy_{policy} {}

    SlowPacket outwards(std::span<const std::byte> sent) {
        const SlowPacket packet = test::read_packet(sent);
        SlowPacket result = across(packet);
        const auto [entry, is_new] =
            public_.try_emplace({{packet.source, packet.source_port}, {packet.destination, packet.destination_port}});
        if (is_new) {
            const bool taken = private_.contains({{own_address(), packet.source_port}, {result.destination, result.destination_port}});
            entry->second = policy_ == PortPolicy::preserved && !taken ? packet.source_port : next_port_--;
        }
        result.source = own_address();
        result.source_port = entry->second;
        private_[{{result.source, result.source_port}, {result.destination, result.destination_port}}] = {packet.source,
                                                                                                          packet.source_port};
        return result;
    }
    SlowPacket inwards(std::span<const std::byte> sent) {
        const SlowPacket packet = test::read_packet(sent);
        const Endpoint4 inside = private_.at({{packet.destination, packet.destination_port}, {packet.source, packet.source_port}});
        SlowPacket result = across(packet);
        result.destination = inside.address;
        result.destination_port = inside.port;
        return result;
    }
    [[nodiscard]] net::Address own_address() const {
        return test::address_of(mode_ == Mode::nat44 || mode_ == Mode::nat64 ? "203.0.113.9" : "2001:2:0:8000::9");
    }

private:
    /// Everything but the addresses and ports that the NAT chooses.
    [[nodiscard]] SlowPacket across(const SlowPacket& packet) const {
        SlowPacket result = mode_ == Mode::nat44 || mode_ == Mode::nat66
                                ? test::routed(packet, 1)
                                : test::translated(packet, 3, test::embedding_96(test::prefix_96), 0xbeef);
        return result;
    }

    Mode mode_;
    PortPolicy policy_;
    std::uint16_t next_port_ = 65'535;
    std::map<std::pair<Endpoint4, Endpoint4>, std::uint16_t> public_;
    std::map<std::pair<Endpoint4, Endpoint4>, Endpoint4> private_;
};

class StatefulPath : public testing::TestWithParam<std::tuple<Mode, PortPolicy>> {
protected:
    StatefulPath() : StatefulPath{std::get<0>(GetParam()), std::get<1>(GetParam())} {}
    StatefulPath(Mode mode, PortPolicy policy) : mode_{mode}, nat_{mode, policy} {
        EXPECT_EQ(table_.reset(connection_count), std::nullopt);
        const auto family = nat_.own_address().family;
        pool_ = std::get<net::AddressPool>(
            net::AddressPool::make({{nat_.own_address(), static_cast<unsigned>(8 * net::address_bytes(family))}}, "pool"));
    }

    [[nodiscard]] frame::HostSet inside() const {
        const bool ipv4 = mode_ == Mode::nat44 || mode_ == Mode::nat46;
        return test::varying_host(ipv4 ? "10.0.0.0" : "2001:2::", ipv4 ? 2 : 14, frame::ValueMode::pseudorandom, 2, 9);
    }
    [[nodiscard]] frame::HostSet outside() const {
        switch (mode_) {
            case Mode::nat44:
            case Mode::nat64: return test::varying_host("198.19.0.0", 2, frame::ValueMode::pseudorandom, 2, 6);
            case Mode::nat66: return test::varying_host("2001:2:0:8000::", 14, frame::ValueMode::pseudorandom, 2, 6);
            case Mode::nat46: break;  // an IPv6 host that IPv4 hosts can name lies within the prefix
        }
        return test::varying_host("64:ff9b::c613:0", 14, frame::ValueMode::pseudorandom, 2, 6);
    }
    /// 8 hosts x 5 source ports to 5 hosts x 2 ports: 400 four-tuples, of which 200 are
    /// connections.
    [[nodiscard]] frame::Stream stream(Role role, enumerate::ConnectionChoice::Mode choice, bool zero_checksum_for_ones = false,
                                       bool special = false, frame::NatSide nat_side = frame::NatSide::outside) const {
        const bool initiator = role == Role::initiator;
        const frame::ValueRange inner{frame::ValueMode::pseudorandom, 5000, 5004}, outer{frame::ValueMode::pseudorandom, 80, 81};
        frame::StreamRequest request;
        request.frame_octets = 128;
        request.source = initiator ? inside() : outside();
        request.destination = initiator ? outside() : inside();
        request.source_ports = initiator ? inner : outer;
        request.destination_ports = initiator ? outer : inner;
        request.zero_checksum_for_ones = zero_checksum_for_ones;
        request.hop_limit_decrement = mode_ == Mode::nat44 || mode_ == Mode::nat66 ? 1 : 3;
        if (request.source.address.family != request.destination.address.family) {
            request.mapping = test::mapping_of(std::string{test::prefix_96} + "/96");
        }
        const enumerate::TupleRanges ranges{
            .source_ports = {5000, 5}, .destination_ports = {80, 2}, .source_hosts = {2, 8}, .destination_hosts = {2, 5}};
        request.connections = frame::ConnectionTraffic{.role = role,
                                                       .set = {ranges, enumerate::Order::pseudorandom, connection_count, test::seed},
                                                       .choice = choice,
                                                       .nat_side = nat_side};
        request.without_checksum = special && request.source.address.family == net::Family::ipv4;
        return test::make_stream(request, {}, TrafficClass::foreground, initiator ? Direction::forward : Direction::reverse,
                                 special ? std::optional{test::seed} : std::nullopt);
    }
    /// What a correct NAT makes of a frame of a special stream.
    [[nodiscard]] static SlowPacket delivered(SlowPacket packet, const frame::Stream& stream, std::uint64_t number) {
        packet.udp_checksum_absent = stream.sent_without_checksum() && packet.source.family == net::Family::ipv4;
        packet.link_destination = stream.expected_destination_mac(stream.values(number));
        return packet;
    }

    using End = PathEnd;

    /// Test phase 1 through the NAT; returns what the Responder counted.
    record::ClassCounts establish() {
        const frame::Stream upload = stream(Role::initiator, enumerate::ConnectionChoice::Mode::increasing);
        const ConnectionKeeper keeper{Phase::establish, table_, pool_};
        End end{upload, Direction::forward, connection_count, &keeper};
        for (std::uint64_t k = 0; k < connection_count; ++k) {
            end.receive(nat_.outwards(test::sent_frame(upload, k, k)));
        }
        return end.counts();
    }
    [[nodiscard]] Bytes reply(const frame::Stream& download, std::uint64_t number) const {
        return reply_of(download, table_, pool_, number, {number});
    }

    Mode mode_;
    SlowNat nat_;
    StateTable table_;
    net::AddressPool pool_;
};

TEST_P(StatefulPath, EveryConnectionIsEstablishedOnceAndAnsweredWhereItCameFrom) {
    const record::ClassCounts established = establish();
    EXPECT_EQ(established[Count::received], connection_count);
    EXPECT_EQ(established[Count::faulty] + established[Count::duplicate], 0U);
    for (std::uint64_t k = 0; k < connection_count; ++k) {
        ASSERT_TRUE(table_.read(k)) << k;
    }
    const frame::Stream download = stream(Role::responder, enumerate::ConnectionChoice::Mode::increasing);
    End end{download, Direction::reverse, connection_count, nullptr};
    for (std::uint64_t number = 0; number < connection_count; ++number) {
        end.receive(nat_.inwards(reply(download, number)));
    }
    EXPECT_EQ(end.counts()[Count::received], connection_count);
    EXPECT_EQ(end.counts()[Count::faulty], 0U);
}

/// The NAT spreads what it forwards over the queues of the Tester's ports without rule, and
/// forwards some frames twice.
TEST_P(StatefulPath, OnAnyNumberOfQueuesTheTableIsThatOfOneQueue) {
    using Choice = enumerate::ConnectionChoice::Mode;
    establish();
    std::vector<std::optional<Endpoint>> of_one_queue;
    for (std::uint64_t k = 0; k < connection_count; ++k) {
        of_one_queue.push_back(table_.read(k));
    }
    for (std::size_t queues = 2; queues <= 4; ++queues) {
        ASSERT_EQ(table_.reset(connection_count), std::nullopt);
        const frame::Stream upload = stream(Role::initiator, Choice::increasing);
        const ConnectionKeeper keeper{Phase::establish, table_, pool_};
        End end{upload, Direction::forward, connection_count, &keeper, queues};
        std::uint64_t twice = 0;
        for (std::uint64_t k = 0; k < connection_count; ++k) {
            const SlowPacket forwarded = nat_.outwards(test::sent_frame(upload, k, k));
            const std::uint64_t random = mix_bits(queues * connection_count + k);
            end.receive(forwarded, random);
            if (random % 7 == 0) {
                end.receive(forwarded, random / 7);
                ++twice;
            }
        }
        EXPECT_EQ(end.counts()[Count::received], connection_count);
        EXPECT_EQ(end.counts()[Count::duplicate], twice);
        EXPECT_EQ(end.counts()[Count::faulty], 0U);
        for (std::uint64_t k = 0; k < connection_count; ++k) {
            EXPECT_EQ(table_.read(k), of_one_queue[k]) << k;
        }
        for (const Choice order : {Choice::fixed, Choice::increasing, Choice::decreasing, Choice::pseudorandom}) {
            const frame::Stream download = stream(Role::responder, order);
            End inside{download, Direction::reverse, connection_count, nullptr, queues};
            for (std::uint64_t number = 0; number < connection_count; ++number) {
                inside.receive(nat_.inwards(reply(download, number)), mix_bits(number));
            }
            EXPECT_EQ(inside.counts()[Count::received], connection_count);
            EXPECT_EQ(inside.counts()[Count::faulty], 0U);
        }
    }
}

TEST_P(StatefulPath, TheSecondPhaseUsesWhatTheFirstEstablished) {
    establish();
    const frame::Stream upload = stream(Role::initiator, enumerate::ConnectionChoice::Mode::pseudorandom);
    const frame::Stream download = stream(Role::responder, enumerate::ConnectionChoice::Mode::pseudorandom);
    const ConnectionKeeper keeper{Phase::use, table_, pool_};
    constexpr std::uint64_t frames = 1000;
    End right{upload, Direction::forward, frames, &keeper}, left{download, Direction::reverse, frames, nullptr};
    for (std::uint64_t number = 0; number < frames; ++number) {
        right.receive(nat_.outwards(test::sent_frame(upload, number, number)));
        left.receive(nat_.inwards(reply(download, number)));
    }
    EXPECT_EQ(right.counts()[Count::received], frames);
    EXPECT_EQ(left.counts()[Count::received], frames);
}

TEST_P(StatefulPath, NamesEachFaultOfTheTranslatedSource) {
    const frame::Stream upload = stream(Role::initiator, enumerate::ConnectionChoice::Mode::increasing);
    const ConnectionKeeper keeper{Phase::establish, table_, pool_};
    End end{upload, Direction::forward, connection_count, &keeper};
    const auto faulty = [&](std::uint64_t k, auto&& change) {
        SlowPacket packet = nat_.outwards(test::sent_frame(upload, k, k));
        change(packet);
        end.receive(packet);
        EXPECT_FALSE(table_.read(k)) << "a faulty frame establishes nothing";
    };
    faulty(0, [](SlowPacket& packet) { packet.source_port = 0; });
    EXPECT_EQ(end.faults(Fault::source_port), 1U);
    faulty(1, [](SlowPacket& packet) { packet.source.bytes[3] ^= std::byte{1}; });
    EXPECT_EQ(end.faults(Fault::source_address), 1U);
    faulty(2, [](SlowPacket& packet) { packet.destination_port ^= 1; });
    EXPECT_EQ(end.faults(Fault::destination_port), 1U);
    faulty(3, [](SlowPacket& packet) { packet.hop_limit += 1; });
    EXPECT_EQ(end.faults(Fault::hop_limit), 1U);
    // Forwarded as it is, only the hop limit lower: an overloaded NAT was seen to do that.
    SlowPacket leaked = test::routed(test::read_packet(test::sent_frame(upload, 4, 4)), 1);
    end.receive(leaked);
    EXPECT_EQ(end.faults(Fault::untranslated_source), 1U);
    EXPECT_FALSE(table_.read(4));
    EXPECT_EQ(end.counts()[Count::faulty], 5U);
    EXPECT_EQ(end.counts()[Count::received], 0U);
}

/// Then an address of the pool does not tell that the gateway translated it.
TEST_P(StatefulPath, NamesASourceThatWasLeftAlsoWhereThePoolHoldsIt) {
    const frame::Stream upload = stream(Role::initiator, enumerate::ConnectionChoice::Mode::increasing);
    const unsigned bits = 8 * static_cast<unsigned>(net::address_bytes(pool_.family()));
    std::vector<net::Prefix> prefixes{{nat_.own_address(), bits}};
    if (inside().address.family == pool_.family()) {
        prefixes.push_back({inside().address, bits - 16});
    }
    pool_ = std::get<net::AddressPool>(net::AddressPool::make(prefixes, "pool"));
    const ConnectionKeeper keeper{Phase::establish, table_, pool_};
    End end{upload, Direction::forward, connection_count, &keeper};
    end.receive(test::routed(test::read_packet(test::sent_frame(upload, 0, 0)), 1));
    EXPECT_EQ(end.faults(Fault::untranslated_source), 1U);
    EXPECT_FALSE(table_.read(0));
    end.receive(nat_.outwards(test::sent_frame(upload, 1, 1)));
    EXPECT_EQ(end.counts()[Count::received], 1U);
    EXPECT_TRUE(table_.read(1));
}

TEST_P(StatefulPath, AcceptsAZeroChecksumThatATranslatorBeforeTheNatLeft) {
    std::uint64_t k = 0;
    for (const bool is_known : {false, true}) {
        const frame::Stream upload = stream(Role::initiator, enumerate::ConnectionChoice::Mode::increasing, is_known);
        const ConnectionKeeper keeper{Phase::establish, table_, pool_};
        End end{upload, Direction::forward, connection_count, &keeper};
        SlowPacket packet = nat_.outwards(test::sent_frame(upload, k, k));
        packet.udp_checksum_absent = true;
        end.receive(packet);
        EXPECT_EQ(end.faults(Fault::udp_checksum), is_known ? 0U : 1U);
        EXPECT_EQ(end.counts()[Count::received], is_known ? 1U : 0U);
        EXPECT_EQ(end.counts().remarks[frame::Remark::zero_checksum], is_known ? 1U : 0U);
        EXPECT_EQ(table_.read(k++).has_value(), is_known);
    }
}

/// Without checksums where they are IPv4, and with a link-layer address for each host, at both
/// ends.
TEST_P(StatefulPath, FramesMayBeSpecialAtBothEnds) {
    using Choice = enumerate::ConnectionChoice::Mode;
    const frame::Stream upload = stream(Role::initiator, Choice::increasing, false, true);
    const frame::Stream download = stream(Role::responder, Choice::increasing, false, true);
    const ConnectionKeeper keeper{Phase::establish, table_, pool_};
    End right{upload, Direction::forward, connection_count, &keeper}, left{download, Direction::reverse, connection_count, nullptr};
    for (std::uint64_t k = 0; k < connection_count; ++k) {
        right.receive(delivered(nat_.outwards(test::sent_frame(upload, k, k)), upload, k));
    }
    EXPECT_EQ(right.counts()[Count::received], connection_count);
    for (std::uint64_t number = 0; number < connection_count; ++number) {
        const Bytes sent = reply(download, number);
        const net::Address host = outside().host(download.values(number).source_host, 0);
        const net::MacAddress mac = test::sending_macs(test::seed).at(outside().number_of(host));
        ASSERT_TRUE(std::equal(mac.begin(), mac.end(), sent.begin() + net::ethernet::source));
        const bool zero = load_raw<std::uint16_t>(sent.data() + download.sent().layout.udp + net::udp::checksum) == 0;
        ASSERT_EQ(zero, download.sent().layout.family == net::Family::ipv4);
        left.receive(delivered(nat_.inwards(sent), download, number));
    }
    EXPECT_EQ(left.counts()[Count::received], connection_count);
    // A checksum that is missing or was added, and the link-layer address of another host.
    End again{upload, Direction::forward, connection_count, &keeper};
    SlowPacket packet = delivered(nat_.outwards(test::sent_frame(upload, 1, 1)), upload, 1);
    packet.udp_checksum_absent = !packet.udp_checksum_absent;
    again.receive(packet);
    EXPECT_EQ(again.faults(Fault::udp_checksum), 1U);
    packet.udp_checksum_absent = !packet.udp_checksum_absent;
    packet.link_destination[5] ^= std::byte{1};
    again.receive(packet);
    EXPECT_EQ(again.faults(Fault::destination_mac), 1U);
    EXPECT_EQ(again.counts()[Count::received], 0U);
}

TEST_P(StatefulPath, NoticesAMappingThatChangedAndFollowsIt) {
    establish();
    const frame::Stream upload = stream(Role::initiator, enumerate::ConnectionChoice::Mode::increasing);
    const ConnectionKeeper keeper{Phase::use, table_, pool_};
    End end{upload, Direction::forward, 400, &keeper};
    SlowPacket packet = nat_.outwards(test::sent_frame(upload, 5, 5));
    packet.source_port = 4444;
    end.receive(packet);
    EXPECT_EQ(end.faults(Fault::mapping_changed), 1U);
    EXPECT_EQ(end.counts()[Count::faulty], 1U);
    EXPECT_EQ(table_.read(5)->port, 4444);
    packet = nat_.outwards(test::sent_frame(upload, connection_count + 5, connection_count + 5));  // connection 5 again
    packet.source_port = 4444;
    end.receive(packet);
    EXPECT_EQ(end.faults(Fault::mapping_changed), 1U);
    EXPECT_EQ(end.counts()[Count::received], 1U);
}

TEST_P(StatefulPath, NamesWhoGotAFrameThatWasNotHis) {
    establish();
    const frame::Stream download = stream(Role::responder, enumerate::ConnectionChoice::Mode::increasing);
    End end{download, Direction::reverse, connection_count, nullptr};
    const auto& connections = download.connections();
    const enumerate::Tuple first = connections.tuple_of(0);
    std::uint64_t number = 0, owners = 0, strangers = 0;
    for (std::uint16_t port = 5000; port < 5005; ++port) {
        enumerate::Tuple other = first;
        other.source_port = port;
        if (other == first) {
            continue;
        }
        SlowPacket packet = nat_.inwards(reply(download, 0));
        packet.destination_port = port;
        Bytes bytes = test::write_packet(packet);
        end.receive(packet);
        (connections.connection_of(other) ? owners : strangers) += 1;
        ++number;
        EXPECT_EQ(end.faults(Fault::destination_port), number);
        EXPECT_EQ(end.faults(Fault::wrong_owner), owners);
        EXPECT_EQ(end.faults(Fault::unknown_connection), strangers);
    }
    SlowPacket packet = nat_.inwards(reply(download, 1));
    packet.destination.bytes[packet.is_ipv4() ? 3 : 15] = std::byte{250};  // no host of ours
    end.receive(packet);
    EXPECT_EQ(end.faults(Fault::unknown_connection), strangers + 1);
    EXPECT_EQ(end.faults(Fault::destination_address), 1U);
}

/// A customer edge of MAP-T: it has one address, and the ports of its set.
class StatefulEdge : public StatefulPath {
protected:
    // 192.0.2.18 and PSID 0x34 (RFC 7597 appendix A, example 1).
    static constexpr std::uint64_t ea = 0x1234;
    const net::MapRule rule_{.ipv6 = net::parse_prefix("2001:db8::/40").value(),
                             .ipv4 = net::parse_prefix("192.0.2.0/24").value(),
                             .ea_bits = 16,
                             .dmr = net::parse_prefix("64:ff9b::/96").value()};
    const net::MapDomain map_{rule_};
    const frame::GatewayEdge edge_ = std::get<frame::GatewayEdge>(frame::GatewayEdge::make(rule_, ea, "edge"));
    const frame::Stream upload_;
    const ConnectionKeeper keeper_{Phase::establish, table_, pool_, &edge_};

    StatefulEdge() : upload_{stream(Role::initiator, enumerate::ConnectionChoice::Mode::increasing)} {
        pool_ = std::get<net::AddressPool>(net::AddressPool::make({{test::address_of("2001:db8:12:3400:0:c000:212:34"), 128}}, "pool"));
    }
    /// Frame k as the edge forwards it with the k-th port of its set.
    SlowPacket forwarded(std::uint64_t k) {
        SlowPacket packet = nat_.outwards(test::sent_frame(upload_, k, k));
        packet.source = pool_.at(0);
        packet.source_port = map_.port(map_.psid_of(ea), static_cast<std::uint32_t>(k));
        return packet;
    }
};

TEST_P(StatefulEdge, MayUseEveryPortOfItsSet) {
    End end{upload_, Direction::forward, connection_count, &keeper_};
    for (std::uint64_t k = 0; k < connection_count; ++k) {
        end.receive(forwarded(k));
        EXPECT_EQ(table_.read(k)->port, 1024 * (k / 4 + 1) + 4 * 0x34 + k % 4);
    }
    EXPECT_EQ(end.counts()[Count::received], connection_count);
}

TEST_P(StatefulEdge, MayUseNoOtherPortAndNoOtherAddress) {
    End end{upload_, Direction::forward, connection_count, &keeper_};
    std::uint64_t k = 0;
    const auto faulty = [&](Fault first, Fault second, auto&& change) {
        const std::array before{end.faults(first), end.faults(second)};
        SlowPacket packet = forwarded(k);
        change(packet);
        end.receive(packet);
        EXPECT_FALSE(table_.read(k));
        EXPECT_EQ(end.faults(first), before[0] + 1);
        EXPECT_EQ(end.faults(second), before[1] + 1);
        EXPECT_EQ(end.counts()[Count::faulty], ++k);
    };
    for (const unsigned port : {0U, 1U, 1023U, 1231U, 1236U, 65535U}) {
        faulty(Fault::source_port, Fault::outside_port_set,
               [&](SlowPacket& packet) { packet.source_port = static_cast<std::uint16_t>(port); });
    }
    const auto other_address = [&](Fault fault, const std::string& address) {
        faulty(Fault::source_address, fault, [&](SlowPacket& packet) { packet.source = test::address_of(address); });
    };
    other_address(Fault::interface_identifier, "2001:db8:12:3400:0:c000:212:35");
    other_address(Fault::interface_identifier, "2001:db8:12:3401:0:c000:212:34");
    other_address(Fault::other_edge_address, "2001:db8:12:3500:0:c000:212:35");
    other_address(Fault::outside_rule, "2001:db9:12:3400:0:c000:212:34");
    EXPECT_EQ(end.faults(Fault::outside_port_set), 6U);
}

/// Its NAT is before the translator outwards and behind it inwards; that of a NAT64 is the other
/// way round, that of a NAT46 may be on either side.
TEST_P(StatefulEdge, AcceptsAZeroChecksumWhereItsNatFollowsTheTranslator) {
    using frame::NatSide;
    for (const NatSide side : {NatSide::outside, NatSide::inside, NatSide::either}) {
        const frame::Stream upload = stream(Role::initiator, enumerate::ConnectionChoice::Mode::increasing, true, false, side);
        const frame::Stream download = stream(Role::responder, enumerate::ConnectionChoice::Mode::increasing, true, false, side);
        End right{upload, Direction::forward, connection_count, &keeper_}, left{download, Direction::reverse, connection_count, nullptr};
        ASSERT_EQ(table_.reset(connection_count), std::nullopt);
        SlowPacket out = forwarded(0);
        table_.write(0, {.address = 0, .port = out.source_port});
        SlowPacket back = test::translated(test::read_packet(reply(download, 0)), 3, test::embedding_96(test::prefix_96), 0xbeef);
        const SlowPacket sent = test::read_packet(test::sent_frame(upload, 0, 0));
        back.destination = sent.source;
        back.destination_port = sent.source_port;
        out.udp_checksum_absent = back.udp_checksum_absent = true;
        right.receive(out);
        left.receive(back);
        EXPECT_EQ(right.faults(Fault::udp_checksum), side == NatSide::inside ? 1U : 0U);
        EXPECT_EQ(left.faults(Fault::udp_checksum), side == NatSide::outside ? 1U : 0U);
        EXPECT_EQ(right.counts()[Count::faulty] + left.counts()[Count::faulty], side == NatSide::either ? 0U : 1U);
    }
}

TEST(GatewayEdge, WithAnAddressOfItsOwnHasEveryPortButZero) {
    const net::MapRule rule{.ipv6 = net::parse_prefix("2001:db8:12:3400::/56").value(),
                            .ipv4 = net::parse_prefix("192.0.2.18/32").value(),
                            .dmr = net::parse_prefix("64:ff9b::/96").value()};
    const auto edge = std::get<frame::GatewayEdge>(frame::GatewayEdge::make(rule, 0, "edge"));
    EXPECT_EQ(net::to_text(edge.address(net::Family::ipv6)), "2001:db8:12:3400:0:c000:212:0");
    EXPECT_TRUE(edge.has_port(1) && edge.has_port(1023) && edge.has_port(65535));
    EXPECT_FALSE(edge.has_port(0));
}

/// A customer edge of MAP-E: it has the same ports of its IPv4 address, and a tunnel to its relay.
class StatefulTunnelEdge : public StatefulPath {
protected:
    static constexpr std::uint64_t ea = 0x1234;  // as above
    static constexpr const char *relay = "2001:db8:ffff::1", *map_address = "2001:db8:12:3400:0:c000:212:34";
    const net::MapRule rule_{
        .ipv6 = net::parse_prefix("2001:db8::/40").value(), .ipv4 = net::parse_prefix("192.0.2.0/24").value(), .ea_bits = 16};
    const net::MapDomain map_{rule_};
    const frame::GatewayEdge edge_ = std::get<frame::GatewayEdge>(frame::GatewayEdge::make(rule_, ea, "edge"));
    const frame::Stream upload_ = tunnelled(Role::initiator), download_ = tunnelled(Role::responder);
    const ConnectionKeeper keeper_{Phase::establish, table_, pool_, &edge_};

    StatefulTunnelEdge() { pool_ = std::get<net::AddressPool>(net::AddressPool::make({{edge_.address(net::Family::ipv4), 32}}, "pool")); }
    [[nodiscard]] static frame::Stream tunnelled(Role role) {
        return test::make_stream(request_of(role), {}, TrafficClass::foreground,
                                 role == Role::initiator ? Direction::forward : Direction::reverse);
    }
    /// That of an AFTR's connections, with the tunnel at the other end.
    [[nodiscard]] static frame::StreamRequest request_of(Role role) {
        const bool initiator = role == Role::initiator;
        const frame::HostSet clients = test::varying_host("10.0.0.0", 2, frame::ValueMode::pseudorandom, 1, 8);
        frame::StreamRequest request = test::aftr_request(role, test::fixed_host("2001:db8::1"), clients, connection_count,
                                                          enumerate::ConnectionChoice::Mode::increasing);
        request.source_tunnel.reset();
        request.destination_tunnel.reset();
        (initiator ? request.destination_tunnel : request.source_tunnel) = frame::TunnelRequest{
            .gateway = test::address_of(map_address), .subscribers = test::fixed_host(relay), .expected_hop_limit = 64};
        request.frame_octets = initiator ? 64 : 104;
        return request;
    }
    /// Frame k as the edge forwards it with the k-th port of its set, but for its tunnel.
    SlowPacket forwarded(std::uint64_t k) {
        SlowPacket packet = test::routed(test::read_packet(test::sent_frame(upload_, k, k)), 1);
        packet.source = test::address_of("192.0.2.18");
        packet.source_port = map_.port(map_.psid_of(ea), static_cast<std::uint32_t>(k));
        return packet;
    }
    static Bytes in_tunnel(const SlowPacket& packet, const char* source = map_address, const char* destination = relay) {
        const test::SlowTunnel tunnel{.source = test::address_of(source), .destination = test::address_of(destination)};
        return tunnel.around(test::write_packet(packet));
    }
};

TEST_P(StatefulTunnelEdge, IsAnsweredThroughItsTunnelAtEveryPortOfItsSet) {
    End right{upload_, Direction::forward, connection_count, &keeper_}, left{download_, Direction::reverse, connection_count, nullptr};
    for (std::uint64_t k = 0; k < connection_count; ++k) {
        right.receive(in_tunnel(forwarded(k)));
        const Bytes answer = reply(download_, k);
        EXPECT_EQ(test::to_hex(Bytes(answer.begin() + 14, answer.begin() + 54)),
                  "60000000002e0440" + test::to_hex(test::address_of(relay).bytes) + test::to_hex(test::address_of(map_address).bytes));
        SlowPacket back = test::routed(test::read_packet(test::taken_out(answer)), 1);
        EXPECT_EQ(back.destination, test::address_of("192.0.2.18"));
        EXPECT_EQ(back.destination_port, forwarded(k).source_port);
        const SlowPacket sent = test::read_packet(test::sent_frame(upload_, k, k));
        back.destination = sent.source;
        back.destination_port = sent.source_port;
        left.receive(back);
    }
    EXPECT_EQ(right.counts()[Count::received], connection_count);
    EXPECT_EQ(left.counts()[Count::received], connection_count);
}

TEST_P(StatefulTunnelEdge, MayUseNoOtherPortAddressOrTunnel) {
    End end{upload_, Direction::forward, connection_count, &keeper_};
    std::uint64_t k = 0;
    using Names = std::set<std::string_view>;
    const auto faults = [&](const Bytes& frame) {
        const Names names = end.faults_in(frame);
        EXPECT_FALSE(table_.read(k++));
        return names;
    };
    for (const unsigned port : {1U, 1023U, 1231U, 1236U, 65535U}) {
        SlowPacket packet = forwarded(k);
        packet.source_port = static_cast<std::uint16_t>(port);
        EXPECT_EQ(faults(in_tunnel(packet)), (Names{"source_port", "outside_port_set"})) << port;
    }
    for (const auto& [address, fault] : {std::pair{"192.0.2.19", "other_edge_address"}, {"192.0.3.18", "outside_rule"}}) {
        SlowPacket packet = forwarded(k);
        packet.source = test::address_of(address);
        EXPECT_EQ(faults(in_tunnel(packet)), (Names{"source_address", fault}));
    }
    EXPECT_EQ(faults(test::write_packet(forwarded(k))), Names{"tunnel_missing"});
    EXPECT_EQ(faults(in_tunnel(forwarded(k), "2001:db8:12:3500:0:c000:212:35")), Names{"tunnel_source"});
    EXPECT_EQ(faults(in_tunnel(forwarded(k), map_address, "2001:db8:ffff::2")), Names{"tunnel_destination"});
}

TEST_P(StatefulTunnelEdge, RequestsThatMakeNoSenseAreRefused) {
    const auto where_of = [](auto&& change) -> std::string {
        frame::StreamRequest request = request_of(Role::initiator);
        change(*request.destination_tunnel);
        const frame::LinkAddresses link{.source = test::sending_mac, .destination = test::receiving_mac, .vlan_id = {}};
        const auto stream = frame::Stream::make(request, Direction::forward, TrafficClass::foreground, 1, 1, link, link, "stream");
        const Error* const error = error_of(stream);
        return error == nullptr ? "" : error->where;
    };
    using Tunnel = frame::TunnelRequest;
    EXPECT_EQ(where_of([](Tunnel&) {}), "");
    EXPECT_EQ(where_of([](Tunnel& tunnel) { tunnel.subscribers.reset(); }), "stream.destination_tunnel");
    EXPECT_EQ(
        where_of([](Tunnel& tunnel) { tunnel.subscribers = test::varying_host("2001:db8::", 14, frame::ValueMode::pseudorandom, 1, 2); }),
        "stream.destination_tunnel");
}

/// An AFTR (RFC 6333 section 6.6) that is written apart from the engine: a public port for each
/// address and port of a subscriber.
class SlowAftr {
public:
    SlowPacket outwards(const Bytes& sent) {
        SlowPacket packet = test::routed(test::read_packet(test::taken_out(sent)), 1);
        const Bytes subscriber(sent.begin() + 14 + 8, sent.begin() + 14 + 24);
        const auto [entry, is_new] = public_.try_emplace({subscriber, {packet.source, packet.source_port}}, next_port_);
        if (is_new) {
            private_[next_port_++] = entry->first;
        }
        packet.source = test::address_of("203.0.113.9");
        packet.source_port = entry->second;
        return packet;
    }
    /// In the tunnel of `subscriber`, if it is given.
    [[nodiscard]] Bytes inwards(const Bytes& sent, const std::optional<net::Address>& subscriber = std::nullopt) const {
        SlowPacket packet = test::routed(test::read_packet(sent), 1);
        const auto& [own, inside] = private_.at(packet.destination_port);
        packet.destination = inside.address;
        packet.destination_port = inside.port;
        test::SlowTunnel tunnel{.source = test::address_of("2001:db8:0:2::1"), .destination = subscriber.value_or(test::address_of("::"))};
        if (!subscriber) {
            std::ranges::copy(own, tunnel.destination.bytes.begin());
        }
        return tunnel.around(test::write_packet(packet));
    }

private:
    using Inside = std::pair<Bytes, Endpoint4>;
    std::uint16_t next_port_ = 2000;
    std::map<Inside, std::uint16_t> public_;
    std::map<std::uint16_t, Inside> private_;
};

/// Connections of subscribers that share their addresses.
class StatefulAftr : public StatefulPath {
protected:
    struct Shape {
        frame::HostSet subscribers, hosts;
    };
    [[nodiscard]] static frame::HostSet subscribers(std::uint16_t count) {
        return test::varying_host("2001:db8:0:1::", 14, frame::ValueMode::pseudorandom, 3, static_cast<std::uint16_t>(2 + count));
    }
    [[nodiscard]] static frame::HostSet hosts(std::uint16_t count) {
        return test::varying_host("10.0.0.0", 2, frame::ValueMode::pseudorandom, 1, count);
    }
    [[nodiscard]] static std::vector<Shape> shapes() {
        const frame::HostSet one = test::fixed_host("2001:db8:0:1::1"), shared = test::fixed_host("10.0.0.1");
        return {{one, hosts(8)}, {subscribers(8), shared}, {subscribers(4), hosts(2)}, {subscribers(3), hosts(300)}, {one, hosts(1000)}};
    }
    [[nodiscard]] static frame::Stream stream_of(const Shape& shape, Role role, enumerate::ConnectionChoice::Mode choice) {
        return test::make_stream(test::aftr_request(role, shape.subscribers, shape.hosts, connection_count, choice), {},
                                 TrafficClass::foreground, role == Role::initiator ? Direction::forward : Direction::reverse);
    }
    /// Test phase 1.
    record::ClassCounts establish_through(const Shape& shape) {
        EXPECT_EQ(table_.reset(connection_count), std::nullopt);
        aftr_ = {};
        const frame::Stream upload = stream_of(shape, Role::initiator, enumerate::ConnectionChoice::Mode::increasing);
        const ConnectionKeeper keeper{Phase::establish, table_, pool_};
        End end{upload, Direction::forward, connection_count, &keeper};
        for (std::uint64_t k = 0; k < connection_count; ++k) {
            end.receive(aftr_.outwards(test::sent_frame(upload, k, k)));
        }
        return end.counts();
    }

    SlowAftr aftr_;
};

TEST_P(StatefulAftr, EveryConnectionIsEstablishedOnceAndAnsweredInItsTunnel) {
    for (const Shape& shape : shapes()) {
        const record::ClassCounts established = establish_through(shape);
        EXPECT_EQ(established[Count::received], connection_count);
        EXPECT_EQ(established[Count::faulty] + established[Count::duplicate], 0U);
        EXPECT_EQ(table_.filled(), connection_count);
        using Choice = enumerate::ConnectionChoice::Mode;
        for (const Choice choice : {Choice::fixed, Choice::increasing, Choice::decreasing, Choice::pseudorandom}) {
            const frame::Stream upload = stream_of(shape, Role::initiator, choice), download = stream_of(shape, Role::responder, choice);
            const ConnectionKeeper keeper{Phase::use, table_, pool_};
            End right{upload, Direction::forward, connection_count, &keeper}, left{download, Direction::reverse, connection_count, nullptr};
            for (std::uint64_t number = 0; number < connection_count; ++number) {
                right.receive(aftr_.outwards(test::sent_frame(upload, number, number)));
                left.receive(aftr_.inwards(reply(download, number)));
            }
            EXPECT_EQ(right.counts()[Count::received], connection_count);
            EXPECT_EQ(left.counts()[Count::received], connection_count);
        }
    }
}

TEST_P(StatefulAftr, HasEachTupleOfEachSubscriberOnce) {
    for (const Shape& shape : shapes()) {
        const frame::Stream upload = stream_of(shape, Role::initiator, enumerate::ConnectionChoice::Mode::increasing);
        std::set<std::string> tuples;
        for (std::uint64_t k = 0; k < connection_count; ++k) {
            const Bytes sent = test::sent_frame(upload, k, k);
            const SlowPacket inside = test::read_packet(test::taken_out(sent));
            EXPECT_TRUE(shape.hosts.contains(inside.source));
            net::Address outer = test::address_of("::");
            std::copy_n(sent.begin() + 22, 16, outer.bytes.begin());
            EXPECT_TRUE(shape.subscribers.contains(outer)) << net::to_text(outer);
            const std::uint16_t value = upload.values(k).source_host;
            EXPECT_EQ(upload.subscriber_hosts()->value_of(outer, inside.source), value);
            EXPECT_EQ(upload.subscriber_hosts()->subscriber(value), outer);
            EXPECT_EQ(upload.subscriber_hosts()->host(value), inside.source);
            tuples.insert(test::to_hex(Bytes(sent.begin() + 22, sent.begin() + 38)) + " " +
                          test::to_hex(Bytes(sent.begin() + 66, sent.begin() + 78)));
        }
        EXPECT_EQ(tuples.size(), connection_count);
    }
}

TEST_P(StatefulAftr, IsWrittenABurstAtATimeAsOneByOne) {
    for (const Shape& shape : shapes()) {
        const frame::Stream upload = stream_of(shape, Role::initiator, enumerate::ConnectionChoice::Mode::pseudorandom);
        frame::StreamWriter writer{upload};
        std::vector<Bytes> buffers(frame::burst_frames_max, upload.sent().frame);
        frame::BurstFrames frames;
        for (; frames.count < frame::burst_frames_max; ++frames.count) {
            frames.numbers[frames.count] = frames.indexes[frames.count] = 7 + frames.count;
            frames.frames[frames.count] = buffers[frames.count].data();
        }
        writer.write(frames, {0x0123456789abcdef});
        for (std::size_t k = 0; k < frames.count; ++k) {
            ASSERT_EQ(test::to_hex(buffers[k]), test::to_hex(test::sent_frame(upload, 7 + k, 7 + k))) << k;
        }
    }
}

/// The recognizer takes exactly the replies that verification finds no fault in.
TEST_P(StatefulAftr, RepliesAreRecognizedIfAndOnlyIfTheyAreCorrect) {
    for (const Shape& shape : shapes()) {
        establish_through(shape);
        const frame::Stream download = stream_of(shape, Role::responder, enumerate::ConnectionChoice::Mode::increasing);
        const frame::Recognizer recognizer{download};
        const Bytes correct = aftr_.inwards(reply(download, 5));
        ASSERT_EQ(test::faults_of(download, correct), "");
        ASSERT_TRUE(test::recognizes(recognizer, correct, 5));
        for (std::size_t bit = 0; bit < 8 * correct.size(); ++bit) {
            Bytes bytes = correct;
            bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            ASSERT_EQ(test::recognizes(recognizer, bytes, 5), test::faults_of(download, bytes).empty()) << "bit " << bit;
        }
    }
}

TEST_P(StatefulAftr, NamesAReplyInTheTunnelOfAnotherSubscriber) {
    const Shape shape{subscribers(4), test::fixed_host("10.0.0.1")};
    establish_through(shape);
    const frame::Stream download = stream_of(shape, Role::responder, enumerate::ConnectionChoice::Mode::increasing);
    const std::uint16_t own = download.values(0).destination_host;
    std::uint64_t others = 0;
    End end{download, Direction::reverse, connection_count, nullptr};
    for (std::uint16_t value = 3; value <= 7; ++value) {  // 7 is no subscriber
        if (value == own) {
            continue;
        }
        end.receive(aftr_.inwards(reply(download, 0), subscribers(5).host(value, 0)));
        EXPECT_EQ(end.faults(Fault::tunnel_destination), ++others);
        EXPECT_EQ(end.faults(Fault::other_subscriber), value <= 6 ? others : others - 1);
    }
    EXPECT_EQ(end.faults(Fault::destination_address) + end.faults(Fault::destination_port), 0U) << "inside it is the same";
    end.receive(test::taken_out(aftr_.inwards(reply(download, 1))));
    EXPECT_EQ(end.faults(Fault::tunnel_missing), 1U);
    EXPECT_EQ(end.counts()[Count::received], 0U);
}

/// An endpoint is address and port of a subscriber: where one belongs to nobody, another subscriber
/// may have a connection with the same.
TEST_P(StatefulAftr, NamesWhoGotAFrameThatWasNotHis) {
    const Shape shape{subscribers(8), test::fixed_host("10.0.0.1")};
    establish_through(shape);
    const frame::Stream download = stream_of(shape, Role::responder, enumerate::ConnectionChoice::Mode::increasing);
    End end{download, Direction::reverse, connection_count, nullptr};
    std::uint64_t owners = 0, strangers = 0;
    for (std::uint64_t number = 0; number < 20; ++number) {
        enumerate::Tuple other = download.connections().tuple_of(number);
        SlowPacket packet = test::read_packet(test::taken_out(aftr_.inwards(reply(download, number))));
        other.source_port = packet.destination_port = static_cast<std::uint16_t>(other.source_port == 5004 ? 5000 : other.source_port + 1);
        (download.connections().connection_of(other) ? owners : strangers) += 1;
        const test::SlowTunnel tunnel{.source = test::address_of("2001:db8:0:2::1"),
                                      .destination = download.subscriber_hosts()->subscriber(other.source_host)};
        end.receive(tunnel.around(test::write_packet(packet)));
    }
    EXPECT_TRUE(owners > 0 && strangers > 0);
    EXPECT_EQ(end.faults(Fault::wrong_owner), owners);
    EXPECT_EQ(end.faults(Fault::unknown_connection), strangers);
    EXPECT_EQ(end.faults(Fault::destination_port), 20U);
    EXPECT_EQ(end.faults(Fault::tunnel_destination), 0U);
}

TEST_P(StatefulAftr, HasTheHeadersOfTheVectors) {
    const frame::HostSet subscriber = test::fixed_host(test::aftr_up.subscriber), host = test::fixed_host("10.0.0.1");
    const auto stream = [&](Role role) {
        frame::StreamRequest request = test::aftr_request(role, subscriber, host, 1, enumerate::ConnectionChoice::Mode::fixed);
        const bool initiator = role == Role::initiator;
        (initiator ? request.destination : request.source) = test::fixed_host("198.51.100.1");
        (initiator ? request.source_ports : request.destination_ports) = {frame::ValueMode::fixed, 10000, 10000};
        (initiator ? request.destination_ports : request.source_ports) = {frame::ValueMode::fixed, 80, 80};
        const enumerate::TupleRanges ranges{
            .source_ports = {10000, 1}, .destination_ports = {80, 1}, .source_hosts = {}, .destination_hosts = {}};
        request.connections->set = {ranges, enumerate::Order::increasing, 1, test::seed};
        return test::make_stream(request, {}, TrafficClass::foreground, initiator ? Direction::forward : Direction::reverse);
    };
    const auto headers = [](const Bytes& frame) { return test::to_hex(Bytes(frame.begin() + 14, frame.end() - 18 - 2)); };
    const auto vector = [&](const char* packet) { return headers(test::frame_of_packet(packet)); };
    const frame::Stream upload = stream(Role::initiator), download = stream(Role::responder);
    EXPECT_EQ(headers(test::sent_frame(upload, 0, 0)), vector(test::aftr_up.inside));
    EXPECT_EQ(headers(test::frame_in(download.expected(), download, 0, 0)), vector(test::aftr_down.inside));
    pool_ = std::get<net::AddressPool>(net::AddressPool::make({{test::address_of("192.0.2.1"), 32}}, "pool"));
    table_.write(0, {.address = 0, .port = 5000});
    EXPECT_EQ(headers(reply(download, 0)), vector(test::aftr_down.outside));
    const ConnectionKeeper keeper{Phase::use, table_, pool_};
    End end{upload, Direction::forward, 1, &keeper};
    SlowPacket packet = test::routed(test::read_packet(test::taken_out(test::sent_frame(upload, 0, 0))), 1);
    packet.source = test::address_of("192.0.2.1");
    packet.source_port = 5000;
    EXPECT_EQ(headers(test::write_packet(packet)), vector(test::aftr_up.outside));
    end.receive(packet);
    EXPECT_EQ(end.counts()[Count::received], 1U);
}

TEST_P(StatefulAftr, RequestsThatMakeNoSenseAreRefused) {
    const auto where_of = [](auto&& change, bool host_macs = false) -> std::string {
        frame::StreamRequest request = test::aftr_request(Role::initiator, subscribers(8), test::fixed_host("10.0.0.1"), connection_count,
                                                          enumerate::ConnectionChoice::Mode::increasing);
        change(request);
        frame::LinkAddresses link{.source = test::sending_mac, .destination = test::receiving_mac, .vlan_id = {}};
        link.host_macs = host_macs ? std::optional{test::sending_macs(test::seed)} : std::nullopt;
        const auto stream = frame::Stream::make(request, Direction::forward, TrafficClass::foreground, 1, 1, link, link, "stream");
        const Error* const error = error_of(stream);
        return error == nullptr ? "" : error->where;
    };
    using Request = frame::StreamRequest;
    EXPECT_EQ(where_of([](Request&) {}), "");
    EXPECT_EQ(where_of([](Request&) {}, true), "stream.source_tunnel");
    EXPECT_EQ(where_of([](Request& r) { std::swap(r.source_tunnel, r.destination_tunnel); }), "stream.destination_tunnel");
    EXPECT_EQ(where_of([](Request& r) { r.connections->role = Role::responder; }), "stream.source_tunnel");
    EXPECT_EQ(where_of([](Request& r) { r.source_tunnel->subscribers.reset(); }), "stream.source_tunnel.subscribers");
    EXPECT_EQ(where_of([](Request& r) { r.source_tunnel->subscribers = test::fixed_host("10.0.0.1"); }),
              "stream.source_tunnel.subscribers");
    EXPECT_EQ(where_of([](Request& r) { r.source_tunnel->subscribers->networks = 2; }), "stream.source_tunnel.subscribers");
}

INSTANTIATE_TEST_SUITE_P(All, StatefulAftr, testing::Values(std::tuple{Mode::nat44, PortPolicy::counted_down}));
INSTANTIATE_TEST_SUITE_P(All, StatefulTunnelEdge, testing::Values(std::tuple{Mode::nat44, PortPolicy::counted_down}));
INSTANTIATE_TEST_SUITE_P(All, StatefulEdge, testing::Values(std::tuple{Mode::nat46, PortPolicy::preserved}));
INSTANTIATE_TEST_SUITE_P(All, StatefulPath,
                         testing::Combine(testing::Values(Mode::nat44, Mode::nat64, Mode::nat66, Mode::nat46),
                                          testing::Values(PortPolicy::preserved, PortPolicy::counted_down)));

}  // namespace
}  // namespace gatemark::state
