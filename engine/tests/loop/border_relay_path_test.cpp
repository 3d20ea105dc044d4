#include "frame/recognizer.hpp"
#include "frame/streams.hpp"
#include "golden/slow_border_relay.hpp"
#include "io/memory_port.hpp"
#include "loop/receiver.hpp"
#include "loop/sender.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>

/// Frames of customer edges through a border relay that reads the RFCs bit by bit.
namespace gatemark::loop {
namespace {

using enumerate::Order;
using frame::EdgesRequest, frame::Fault, frame::ValueMode;
using frame::signature::Direction, frame::signature::TrafficClass;
using record::Count;
using test::Bytes, test::SlowBorderRelay, test::SlowPacket, test::edge_domain;

struct LateClock {
    std::uint64_t* ticks;
    [[nodiscard]] pace::Ticks now() const noexcept { return {*ticks}; }
};

SlowBorderRelay relay_of(const EdgesRequest& edges) {
    std::vector<test::SlowRule> rules;
    for (const frame::EdgeDomain& domain : edges.domains) {
        const net::MapRule& rule = domain.rule;
        rules.push_back({.ipv6 = rule.ipv6,
                         .ipv4 = rule.ipv4,
                         .ea_bits = rule.ea_bits,
                         .psid_offset = rule.psid_offset,
                         .psid_bits = rule.psid_bits.value_or(0),
                         .psid = rule.psid.value_or(0),
                         .dmr = rule.dmr.value()});
    }
    return SlowBorderRelay{std::move(rules)};
}

EdgesRequest usual_edges(std::uint64_t count = 1000) {
    return {.domains = {edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)}, .count = count};
}
/// Domains of every form: shared addresses, whole ones, prefixes, a rule for one edge, a prefix
/// beyond 64 bits, each with its own length of the default mapping rule's prefix.
EdgesRequest many_domains(std::uint64_t count = 77) {
    EdgesRequest request{
        .domains = {edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6), edge_domain("2001:db8:8000::/50", "198.51.100.0/24", 8, 0),
                    edge_domain("2001:db8:a0::/44", "10.0.0.0/20", 8, 4), edge_domain("2001:db8:ce::/51", "198.18.0.0/24", 20, 0),
                    edge_domain("2001:db8:1200::/56", "203.0.113.77/32", 0, 6),
                    edge_domain("2001:db8:1300::/50", "203.0.113.78/32", 12, 4)},
        .count = count};
    const std::array<const char*, 6> dmrs{"2001:dba::/32",       "2001:dbb:ff00::/40", "2001:dbb:1::/48",
                                          "2001:dbb:2:300::/56", "2001:dbb:3::/64",    "64:ff9b::/96"};
    for (std::size_t i = 0; i < dmrs.size(); ++i) {
        request.domains[i].rule.dmr = net::parse_prefix(dmrs[i]).value();
        request.domains[i].weight = i == 4 ? 1 : 15;
    }
    request.domains[4].rule.psid_bits = 8;
    request.domains[4].rule.psid = 0x34;
    return request;
}

struct Case {
    EdgesRequest edges;
    Direction direction = Direction::forward;
    ValueMode ports = ValueMode::pseudorandom;
    bool as_sent = false;
    bool zero_checksum_for_ones = false;
    std::uint8_t traffic_class = 0;
};

frame::StreamRequest request_of(const Case& given, std::size_t frame_octets) {
    frame::StreamRequest request = test::edges_request(given.edges, given.direction, given.ports, given.as_sent, frame_octets);
    request.zero_checksum_for_ones = given.zero_checksum_for_ones;
    request.marking.traffic_classes = {given.traffic_class};
    return request;
}

class Path {
public:
    static constexpr std::uint64_t frame_count = 400;
    static constexpr pace::Mix mix{3, 4};

    explicit Path(const Case& given, std::size_t frame_octets = 0)
        : case_{given},
          relay_{relay_of(given.edges)},
          stream_{test::make_stream(request_of(given, frame_octets), {}, TrafficClass::foreground, given.direction)},
          background_{test::make_stream(test::request_for(test::Gateway::router66), {}, TrafficClass::background, given.direction)} {
        arrivals_.reset(frame_count);
        ReceiverPlan plan{.trial_id = test::trial_id(), .directions = {}, .kept_frames_max = 1};
        plan.directions[static_cast<std::size_t>(given.direction)] = {.active = true,
                                                                      .arrives_here = true,
                                                                      .frame_count = frame_count,
                                                                      .mix = mix,
                                                                      .streams = {&stream_, &background_},
                                                                      .arrivals = &arrivals_};
        receiver_ = std::make_unique<Receiver<io::MemoryReceiveQueue>>(plan, queue_, mailbox_);
    }

    [[nodiscard]] const frame::Stream& stream() const { return stream_; }
    /// What the sender makes of all frames, in bursts.
    [[nodiscard]] std::vector<Bytes> sent() const {
        io::MemoryWire wire;
        io::MemoryTransmitQueue queue{wire};
        queue.set_template(0, stream_.sent().frame);
        queue.set_template(1, background_.sent().frame);
        std::uint64_t ticks = 1;
        const LateClock clock{&ticks};
        const SenderPlan plan{.frame_count = frame_count,
                              .schedule = pace::Schedule{{.frames_per_second = 1'000'000}, {}, 1'000'000},
                              .mix = mix,
                              .give_up_lateness = {1'000'000'000},
                              .foreground = &stream_,
                              .background = &background_};
        Sender<io::MemoryTransmitQueue, LateClock> sender{plan, queue, clock};
        while (!sender.finished()) {
            ticks += 29;
            sender.poll();
        }
        return {wire.frames.begin(), wire.frames.end()};
    }
    /// As the gateway delivers it; the background goes through a router.
    [[nodiscard]] std::optional<SlowPacket> delivered(const Bytes& sent, bool foreground) const {
        const SlowPacket packet = test::read_packet(sent);
        if (case_.as_sent && foreground) {
            return packet;
        }
        return foreground ? relay_.forwarded(packet, 1) : test::routed(packet, 1);
    }
    void receive(const std::vector<SlowPacket>& packets) {
        for (const SlowPacket& packet : packets) {
            receive_frame(test::write_packet(packet));
        }
    }
    void receive_frame(Bytes frame) {
        wire_.frames.push_back(std::move(frame));
        while (receiver_->poll()) {}
    }
    [[nodiscard]] const record::ClassCounts& counts(TrafficClass traffic_class = TrafficClass::foreground) const {
        return receiver_->counts(case_.direction, traffic_class);
    }
    /// The reasons of all faults, with their counts.
    [[nodiscard]] std::map<std::string, std::uint64_t> faults() const {
        std::map<std::string, std::uint64_t> list;
        counts().faults.visit([&](frame::Fault fault, std::uint64_t count) {
            if (count != 0) {
                list.emplace(name_of(fault), count);
            }
        });
        return list;
    }
    [[nodiscard]] std::uint64_t foreign() const {
        return receiver_->foreign()[record::ForeignFrame::foreign] + receiver_->foreign()[record::ForeignFrame::other_trial];
    }

private:
    Case case_;
    SlowBorderRelay relay_;
    frame::Stream stream_, background_;
    record::ArrivalBitmap arrivals_;
    io::MemoryWire wire_;
    io::MemoryReceiveQueue queue_{wire_};
    NeighborMailbox mailbox_;
    std::unique_ptr<Receiver<io::MemoryReceiveQueue>> receiver_;
};

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        for (const bool as_sent : {false, true}) {
            for (const EdgesRequest& edges : {usual_edges(), usual_edges(65536), usual_edges(1), many_domains()}) {
                for (const Order order : {Order::increasing, Order::decreasing, Order::pseudorandom}) {
                    for (const ValueMode ports :
                         {ValueMode::fixed, ValueMode::increasing, ValueMode::decreasing, ValueMode::pseudorandom}) {
                        cases.push_back({edges, direction, ports, as_sent});
                        cases.back().edges.order = order;
                        if (ports == ValueMode::fixed || ports == ValueMode::pseudorandom) {
                            cases.push_back(cases.back());
                            cases.back().edges.choice = frame::EdgeChoice::pseudorandom;
                        }
                    }
                }
            }
        }
    }
    return cases;
}

TEST(BorderRelayPath, DeliversEveryFrameOfEveryEdge) {
    for (const Case& given : all_cases()) {
        Path path{given};
        const std::vector<Bytes> sent = path.sent();
        ASSERT_EQ(sent.size(), Path::frame_count);
        std::vector<SlowPacket> packets;
        std::uint64_t number = 0;
        for (std::uint64_t index = 0; index < sent.size(); ++index) {
            const bool foreground = Path::mix.place_of(index).foreground;
            const auto packet = path.delivered(sent[index], foreground);
            ASSERT_TRUE(packet) << "the relay drops frame " << index;
            packets.push_back(*packet);
            if (foreground && index % 50 == 0) {  // what is sent and expected, one by one, is what bursts are made of
                const auto ticks = frame::signature::timestamp(sent[index].data() + path.stream().sent().layout.payload);
                ASSERT_EQ(test::to_hex(sent[index]),
                          test::to_hex(test::frame_in(path.stream().sent(), path.stream(), number, index, ticks)));
            }
            number += foreground ? 1 : 0;
        }
        path.receive(packets);
        EXPECT_EQ(path.counts()[Count::received], 300U);
        EXPECT_EQ(path.counts(TrafficClass::background)[Count::received], 100U);
        EXPECT_EQ(path.faults(), (std::map<std::string, std::uint64_t>{}));
    }
}

TEST(BorderRelayPath, KnowsFramesOfAllSizes) {
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        for (const std::size_t octets : {101U, 1044U, 1262U, 1500U}) {
            Path path{{.edges = usual_edges(), .direction = direction}, octets};
            const auto packet = path.delivered(path.sent()[0], true);
            path.receive({*packet});
            EXPECT_EQ(path.counts()[Count::received], 1U) << octets;
        }
    }
}

/// The recognizer takes exactly the frames that verification finds no fault in.
TEST(BorderRelayPath, RecognizesNoFrameThatVerificationRefuses) {
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        for (const EdgesRequest& edges : {usual_edges(), many_domains()}) {
            const Path path{{.edges = edges, .direction = direction}};
            const frame::Stream& stream = path.stream();
            const frame::Recognizer recognizer{stream};
            for (std::uint64_t number = 0; number < 12; ++number) {
                SlowPacket packet = *path.delivered(test::sent_frame(stream, number, number), true);
                packet.link_source = *net::parse_mac("02:00:00:00:00:09");
                const Bytes correct = test::write_packet(packet);
                std::uint64_t accepted = 0;
                for (std::size_t bit = 0; bit <= 8 * correct.size(); ++bit) {
                    Bytes bytes = correct;
                    if (bit < 8 * correct.size()) {
                        bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
                    }
                    const frame::Arrival arrival = frame::classify(bytes, test::trial_id());
                    const bool is_correct = arrival.kind == frame::ArrivalKind::ours &&
                                            frame::signature::stream(bytes.data() + arrival.payload) == stream.id() &&
                                            frame::verify(bytes, arrival, stream, stream.values(number)).none();
                    const bool by_rule = test::recognizes(recognizer, bytes, number);
                    ASSERT_EQ(by_rule, is_correct) << "bit " << bit;
                    accepted += by_rule ? 1 : 0;
                }
                EXPECT_EQ(accepted, 1U + 47) << "the frame itself, and other link-layer addresses of the gateway";
            }
        }
    }
}

/// Damages frame `index` of a path and returns the reasons.
template <class Damage>
std::map<std::string, std::uint64_t> faults_after(const Case& given, Damage&& damage, std::uint64_t index = 5) {
    Path path{given};
    SlowPacket packet = *path.delivered(path.sent()[index], true);
    damage(packet);
    path.receive({packet});
    EXPECT_EQ(path.counts()[Count::faulty], 1U);
    return path.faults();
}

using Reasons = std::map<std::string, std::uint64_t>;

TEST(BorderRelayPath, NamesWhatBecameOfTheAddressOfAnEdge) {
    const Case forward{.edges = usual_edges(), .direction = Direction::forward},
        reverse{.edges = usual_edges(), .direction = Direction::reverse};
    EXPECT_EQ(faults_after(forward, [](SlowPacket& p) { p.source.bytes[3] ^= std::byte{1}; }),
              (Reasons{{"source_address", 1}, {"other_edge_address", 1}}));
    EXPECT_EQ(faults_after(forward, [](SlowPacket& p) { p.source.bytes[2] ^= std::byte{1}; }),
              (Reasons{{"source_address", 1}, {"outside_rule", 1}}));
    EXPECT_EQ(faults_after(reverse, [](SlowPacket& p) { p.destination.bytes[5] ^= std::byte{1}; }),
              (Reasons{{"destination_address", 1}, {"other_edge_address", 1}}))
        << "the last bit of the suffix";
    EXPECT_EQ(faults_after(reverse, [](SlowPacket& p) { p.destination.bytes[6] ^= std::byte{1}; }),
              (Reasons{{"destination_address", 1}, {"other_edge_address", 1}}))
        << "the last bit of the PSID";
    for (const std::size_t byte : {7U, 8U, 9U, 10U, 13U, 14U, 15U}) {  // the subnet's bits, then the identifier
        EXPECT_EQ(faults_after(reverse, [&](SlowPacket& p) { p.destination.bytes[byte] ^= std::byte{0x80}; }),
                  (Reasons{{"destination_address", 1}, {"interface_identifier", 1}}))
            << byte;
    }
    EXPECT_EQ(faults_after(reverse, [](SlowPacket& p) { p.destination.bytes[4] ^= std::byte{1}; }),
              (Reasons{{"destination_address", 1}, {"outside_rule", 1}}));
    EXPECT_EQ(faults_after(reverse, [](SlowPacket& p) { p.source.bytes[12] ^= std::byte{1}; }), (Reasons{{"source_address", 1}}))
        << "a server is no edge";
    EXPECT_EQ(faults_after(forward, [](SlowPacket& p) { p.destination.bytes[3] ^= std::byte{1}; }), (Reasons{{"destination_address", 1}}));
}

/// The same in a loop-back, where the other form of the address arrives.
TEST(BorderRelayPath, NamesWhatBecameOfTheAddressInALoopBack) {
    const Case forward{.edges = usual_edges(), .direction = Direction::forward, .as_sent = true},
        reverse{.edges = usual_edges(), .direction = Direction::reverse, .as_sent = true};
    EXPECT_EQ(faults_after(forward, [](SlowPacket& p) { p.source.bytes[15] ^= std::byte{1}; }),
              (Reasons{{"source_address", 1}, {"interface_identifier", 1}}));
    EXPECT_EQ(faults_after(reverse, [](SlowPacket& p) { p.destination.bytes[3] ^= std::byte{1}; }),
              (Reasons{{"destination_address", 1}, {"other_edge_address", 1}}));
}

TEST(BorderRelayPath, NamesThePortOfAnotherEdge) {
    const auto in_other_set = [](std::uint16_t& port) { port ^= 4; };  // the last bit of the PSID
    const auto in_own_set = [](std::uint16_t& port) { port ^= 1; };
    const auto nobodys = [](std::uint16_t& port) { port &= 0x3ff; };  // below 1024
    const Case forward{.edges = usual_edges(), .direction = Direction::forward},
        reverse{.edges = usual_edges(), .direction = Direction::reverse};
    EXPECT_EQ(faults_after(forward, [&](SlowPacket& p) { in_other_set(p.source_port); }),
              (Reasons{{"source_port", 1}, {"other_edge_port", 1}}));
    EXPECT_EQ(faults_after(forward, [&](SlowPacket& p) { in_own_set(p.source_port); }), (Reasons{{"source_port", 1}}));
    EXPECT_EQ(faults_after(forward, [&](SlowPacket& p) { nobodys(p.source_port); }), (Reasons{{"source_port", 1}}));
    EXPECT_EQ(faults_after(forward, [](SlowPacket& p) { p.destination_port ^= 4; }), (Reasons{{"destination_port", 1}}));
    EXPECT_EQ(faults_after(reverse, [&](SlowPacket& p) { in_other_set(p.destination_port); }),
              (Reasons{{"destination_port", 1}, {"other_edge_port", 1}}));
    EXPECT_EQ(faults_after(reverse, [](SlowPacket& p) { p.source_port ^= 4; }), (Reasons{{"source_port", 1}}));
    const Case unrestricted{.edges = {.domains = {edge_domain("2001:db8::/40", "192.0.2.0/24", 8, 6)}, .count = 256},
                            .direction = Direction::forward};
    EXPECT_EQ(faults_after(unrestricted, [&](SlowPacket& p) { in_other_set(p.source_port); }), (Reasons{{"source_port", 1}}));
}

/// A relay of two programs: the translator writes zero, then the address of the edge is changed.
TEST(BorderRelayPath, TakesAnyZeroChecksumFromARelayThatIsKnownForIt) {
    for (const Direction direction : {Direction::forward, Direction::reverse}) {
        for (const bool known : {false, true}) {
            Path path{{.edges = usual_edges(), .direction = direction, .zero_checksum_for_ones = known}};
            SlowPacket packet = *path.delivered(path.sent()[0], true);
            packet.udp_checksum_absent = true;
            path.receive({packet});
            const bool passes = known && direction == Direction::forward;
            EXPECT_EQ(path.faults(), passes ? Reasons{} : (Reasons{{"udp_checksum", 1}}));
            EXPECT_EQ(path.counts().remarks[frame::Remark::zero_checksum], passes ? 1U : 0U);
        }
    }
}

TEST(BorderRelayPath, CountsFramesWithOctetsBehindThePacket) {
    Path path{{.edges = usual_edges(), .direction = Direction::forward}};
    const std::vector<Bytes> sent = path.sent();
    for (std::uint64_t index = 0; index < 8; ++index) {  // the last one of four is background
        Bytes frame = test::write_packet(*path.delivered(sent[index], Path::mix.place_of(index).foreground));
        frame.resize(frame.size() + (index < 5 ? 4 : 0));
        path.receive_frame(std::move(frame));
    }
    EXPECT_EQ(path.counts()[Count::received], 6U);
    EXPECT_EQ(path.counts().remarks[frame::Remark::with_trailer], 4U);
    EXPECT_EQ(path.counts(TrafficClass::background)[Count::received], 2U);
    EXPECT_EQ(path.counts(TrafficClass::background).remarks[frame::Remark::with_trailer], 1U);
    EXPECT_EQ(path.faults(), Reasons{});
}

TEST(BorderRelayPath, CountsFramesThatWereMarkedAsCongestionExperienced) {
    constexpr std::uint8_t understands = 2, experienced = 3;
    Path path{{.edges = usual_edges(), .direction = Direction::forward, .traffic_class = understands}};
    const std::vector<Bytes> sent = path.sent();
    for (std::uint64_t index = 0; index < 8; ++index) {  // the last one of four is background
        SlowPacket packet = *path.delivered(sent[index], Path::mix.place_of(index).foreground);
        packet.traffic_class = index < 5 ? experienced : packet.traffic_class;
        path.receive({packet});
    }
    EXPECT_EQ(path.counts()[Count::received], 6U);
    EXPECT_EQ(path.counts().remarks[frame::Remark::congestion_experienced], 4U);
    EXPECT_EQ(path.faults(), Reasons{});
    EXPECT_EQ(path.counts(TrafficClass::background).remarks[frame::Remark::congestion_experienced], 0U);
    EXPECT_EQ(path.counts(TrafficClass::background)[Count::faulty], 1U) << "sent as not understanding it";
}

TEST(BorderRelayPath, CountsEachReasonAsOftenAsItOccurs) {
    Path path{{.edges = usual_edges(), .direction = Direction::forward}};
    const std::vector<Bytes> sent = path.sent();
    std::vector<SlowPacket> packets;
    for (std::uint64_t index = 0; index < sent.size(); ++index) {
        const bool foreground = Path::mix.place_of(index).foreground;
        SlowPacket packet = *path.delivered(sent[index], foreground);
        if (foreground && index % 8 == 0) {
            packet.source_port ^= 4;
        } else if (foreground && index % 8 == 1) {
            packet.source.bytes[3] ^= std::byte{1};
        } else if (foreground && index % 8 == 2) {
            packet.source.bytes[0] ^= std::byte{1};
            packet.source_port ^= 8;
        }
        packets.push_back(packet);
    }
    path.receive(packets);
    EXPECT_EQ(path.counts()[Count::received], 150U);
    EXPECT_EQ(path.counts()[Count::faulty], 150U);
    EXPECT_EQ(
        path.faults(),
        (Reasons{
            {"source_address", 100}, {"source_port", 100}, {"other_edge_port", 100}, {"other_edge_address", 50}, {"outside_rule", 50}}));
}

/// The mark is beyond recognition, but nobody else sends from edges to servers.
TEST(BorderRelayPath, ADamagedMarkBetweenEdgesAndServersIsAFault) {
    for (const EdgesRequest& edges : {usual_edges(), many_domains()}) {
        for (const Direction direction : {Direction::forward, Direction::reverse}) {
            Path path{{.edges = edges, .direction = direction}};
            SlowPacket packet = *path.delivered(path.sent()[0], true);
            packet.payload[0] ^= std::byte{1};
            path.receive({packet});
            EXPECT_EQ(path.faults(), (Reasons{{"mark", 1}}));
            (direction == Direction::forward ? packet.source : packet.destination).bytes[0] ^= std::byte{1};
            path.receive({packet});
            EXPECT_EQ(path.foreign(), 1U);
        }
    }
}

TEST(BorderRelayPath, TakesDontFragmentAsTheTranslatorsRuleHasIt) {
    for (const bool always : {false, true}) {
        frame::StreamRequest request = test::edges_request(usual_edges(), Direction::forward);
        request.dont_fragment_rule = always ? frame::DontFragmentRule::rfc6145 : frame::DontFragmentRule::rfc7915;
        const frame::Stream stream = test::make_stream(request);
        EXPECT_EQ(stream.expected_dont_fragment() == frame::DontFragment::set, always);
    }
}

TEST(BorderRelayPath, RefusesWhatNoBorderRelayTranslates) {
    const auto where_of = [](const frame::StreamRequest& request, std::optional<std::uint64_t> host_macs = std::nullopt) -> std::string {
        frame::LinkAddresses link{.source = test::sending_mac, .destination = test::receiving_mac, .vlan_id = {}};
        if (host_macs) {
            link.host_macs = net::HostMacs{*host_macs, 1};
        }
        const auto stream = frame::Stream::make(request, Direction::forward, TrafficClass::foreground, 1, 1, link, link, "stream");
        const Error* const error = error_of(stream);
        return error == nullptr ? "" : error->where;
    };
    frame::StreamRequest request = test::edges_request(usual_edges(), Direction::forward);
    EXPECT_EQ(where_of(request), "");
    EXPECT_EQ(where_of(request, 5), "stream.source");
    request.destination = test::fixed_host("2001:2::2");
    EXPECT_EQ(where_of(request), "stream.source");
    request = test::edges_request(usual_edges(), Direction::forward);
    request.destination_edges = usual_edges();
    EXPECT_EQ(where_of(request), "stream.source");
    request = test::edges_request(usual_edges(100'000), Direction::forward);
    EXPECT_EQ(where_of(request), "stream.source.edges.domains[0]");
    request = test::edges_request(usual_edges(), Direction::forward, ValueMode::increasing);
    request.source_edges->choice = frame::EdgeChoice::pseudorandom;
    EXPECT_EQ(where_of(request), "stream.source_ports");
}

}  // namespace
}  // namespace gatemark::loop
