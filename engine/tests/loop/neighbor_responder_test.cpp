#include "loop/neighbor_responder.hpp"

#include "frame/streams.hpp"
#include "io/memory_port.hpp"
#include "loop/receiver.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gatemark::loop {
namespace {

using test::address_of, test::Bytes;

class NeighborResponderTest : public testing::Test {
protected:
    using Responder = NeighborResponder<io::MemoryTransmitQueue>;

    NeighborResponderTest() {
        queue_.set_template(0, Bytes(neighbor_frame_bytes(net::Family::ipv4, false), std::byte{0xee}));
        queue_.set_template(1, Bytes(neighbor_frame_bytes(net::Family::ipv6, false), std::byte{0xee}));
    }
    void put(const NeighborFrame& frame) { mailbox_.put(std::span{frame.data}.first(frame.bytes)); }
    void poll_all() {
        while (responder_.poll()) {}
    }
    [[nodiscard]] std::vector<std::string> sent() const {
        std::vector<std::string> frames;
        for (const auto& frame : wire_.frames) {
            frames.push_back(test::to_hex(frame));
        }
        return frames;
    }
    static std::string hex_of(const NeighborFrame& frame) { return test::to_hex(std::span{frame.data}.first(frame.bytes)); }

    const NeighborLink own_{.own_mac = *net::parse_mac("02:00:00:00:00:01"), .vlan_id = std::nullopt};
    const NeighborLink gateway_{.own_mac = *net::parse_mac("02:00:00:00:00:99"), .vlan_id = std::nullopt};
    io::MemoryWire wire_;
    io::MemoryTransmitQueue queue_{wire_};
    NeighborMailbox mailbox_;
    Responder responder_{own_,
                         {test::varying_host("198.18.0.2", 2, frame::ValueMode::pseudorandom, 2, 254),
                          test::varying_host("2001:2::2", 14, frame::ValueMode::pseudorandom, 2, 254)},
                         queue_,
                         {&mailbox_},
                         {.arp = 0, .discovery = 1}};
};

TEST_F(NeighborResponderTest, AnswersForItsHostsOnly) {
    for (const char* const target :
         {"198.18.0.2", "198.18.0.254", "198.18.0.1", "198.18.0.255", "198.18.1.2", "2001:2::2", "2001:2::fe", "2001:2::1", "2001:2::ff"}) {
        put(write_question(gateway_, address_of(target),
                           address_of(std::string{target}.find(':') == std::string::npos ? "198.18.0.1" : "2001:2::1")));
    }
    poll_all();
    std::vector<std::string> expected;
    for (const char* const target : {"198.18.0.2", "198.18.0.254"}) {
        expected.push_back(hex_of(write_answer(own_, {address_of(target), address_of("198.18.0.1"), gateway_.own_mac})));
    }
    for (const char* const target : {"2001:2::2", "2001:2::fe"}) {
        expected.push_back(hex_of(write_answer(own_, {address_of(target), address_of("2001:2::1"), gateway_.own_mac})));
    }
    EXPECT_EQ(sent(), expected);
}

/// Only as many as there are, although the rule's prefix holds more.
TEST_F(NeighborResponderTest, AnswersForCustomerEdgesOnTheLink) {
    const frame::EdgesRequest request{.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)}, .count = 1000};
    const auto edges = std::make_shared<const frame::CustomerEdges>(
        std::get<frame::CustomerEdges>(frame::CustomerEdges::make(request, test::seed, "edges")));
    const frame::AnsweredHosts hosts{edges};
    ASSERT_EQ(hosts.count(), 1000U);
    Responder responder{own_, {hosts, test::fixed_host("2001:2::2")}, queue_, {&mailbox_}, {.arp = 0, .discovery = 1}};
    const net::Address router = address_of("2001:2::1");
    std::vector<std::string> expected;
    std::uint64_t others = 0;
    for (std::uint64_t c = 0; c < 1000; c += 50) {
        const net::Address edge = hosts.at(c);
        put(write_question(gateway_, edge, router));
        expected.push_back(hex_of(write_answer(own_, {edge, router, gateway_.own_mac})));
        net::Address other = edge;
        other.bytes[15] ^= std::byte{1};  // the PSID of another edge, but not in the EA bits
        put(write_question(gateway_, other, router));
        const net::Address by_chance = net::ipv6_of(edges->domains()[0].map.address_of(c * 65));
        if (!hosts.contains(by_chance)) {
            put(write_question(gateway_, by_chance, router));
            ++others;
        }
        while (responder.poll()) {}
    }
    EXPECT_GT(others, 10U);
    EXPECT_EQ(sent(), expected);
}

/// Each host answers and asks with its own address; what belongs to no host keeps that of the port.
TEST_F(NeighborResponderTest, EachHostMayHaveItsOwnAddress) {
    NeighborLink link = own_;
    link.host_macs = net::HostMacs{3, 1};
    Responder responder{link, responder_.hosts(), queue_, {&mailbox_}, {.arp = 0, .discovery = 1}};
    std::set<net::MacAddress> macs;
    for (const char* const host : {"198.18.0.2", "198.18.0.3", "198.18.0.254", "2001:2::2", "2001:2::fe"}) {
        const net::Address address = address_of(host);
        const bool ipv4 = address.family == net::Family::ipv4;
        const net::Address router = address_of(ipv4 ? "198.18.0.1" : "2001:2::1");
        const net::MacAddress mac = link.host_macs->at(responder_.hosts()[ipv4 ? 0 : 1].number_of(address));
        macs.insert(mac);
        const NeighborLink as_host{.own_mac = mac, .vlan_id = std::nullopt};
        wire_.frames.clear();
        put(write_question(gateway_, address, router));
        while (responder.poll()) {}
        EXPECT_EQ(sent(), (std::vector{hex_of(write_answer(as_host, {address, router, gateway_.own_mac}))})) << host;
        wire_.frames.clear();
        responder.ask_for({{router, address}});
        while (responder.poll()) {}
        EXPECT_EQ(sent(), (std::vector{hex_of(write_question(as_host, router, address))})) << host;
    }
    EXPECT_EQ(macs.size(), 5U);
    wire_.frames.clear();
    responder.ask_for({{address_of("198.18.0.1"), address_of("198.18.7.7")}});
    while (responder.poll()) {}
    EXPECT_EQ(sent(), (std::vector{hex_of(write_question(own_, address_of("198.18.0.1"), address_of("198.18.7.7")))}));
}

TEST_F(NeighborResponderTest, AnswersWhateverQueueAQuestionArrivedOn) {
    std::array<NeighborMailbox, 4> mailboxes;
    Responder responder{
        own_, responder_.hosts(), queue_, {&mailboxes[0], &mailboxes[1], &mailboxes[2], &mailboxes[3]}, {.arp = 0, .discovery = 1}};
    for (unsigned i = 0; i < 100; ++i) {
        const NeighborFrame question = write_question(gateway_, address_of("198.18.0." + std::to_string(i + 2)), address_of("198.18.0.1"));
        mailboxes[i % mailboxes.size()].put(std::span{question.data}.first(question.bytes));
    }
    while (responder.poll()) {}
    EXPECT_EQ(wire_.frames.size(), 100U);
}

TEST_F(NeighborResponderTest, AsksAndRemembersTheAnswer) {
    responder_.ask_for({{address_of("198.18.0.1"), address_of("198.18.0.2")}, {address_of("2001:2::1"), address_of("2001:2::2")}});
    EXPECT_TRUE(responder_.asking());
    poll_all();
    EXPECT_FALSE(responder_.asking());
    EXPECT_EQ(wire_.frames.size(), 2U);
    EXPECT_FALSE(responder_.mac_of(address_of("198.18.0.1")));
    put(write_answer(gateway_, {address_of("198.18.0.1"), address_of("198.18.0.2"), own_.own_mac}));
    put(write_answer(gateway_, {address_of("2001:2::1"), address_of("2001:2::2"), own_.own_mac}));
    poll_all();
    EXPECT_EQ(responder_.mac_of(address_of("198.18.0.1")), gateway_.own_mac);
    EXPECT_EQ(responder_.mac_of(address_of("2001:2::1")), gateway_.own_mac);
    responder_.forget();
    EXPECT_FALSE(responder_.mac_of(address_of("198.18.0.1")));
}

TEST_F(NeighborResponderTest, TheLastAnswerCountsAndOwnHostsAreNoNews) {
    const NeighborLink other{.own_mac = *net::parse_mac("02:00:00:00:00:77"), .vlan_id = std::nullopt};
    put(write_answer(gateway_, {address_of("198.18.0.1"), address_of("198.18.0.2"), own_.own_mac}));
    put(write_answer(other, {address_of("198.18.0.1"), address_of("198.18.0.2"), own_.own_mac}));
    put(write_answer(other, {address_of("198.18.0.9"), address_of("198.18.0.2"), own_.own_mac}));
    poll_all();
    EXPECT_EQ(responder_.mac_of(address_of("198.18.0.1")), other.own_mac);
    EXPECT_FALSE(responder_.mac_of(address_of("198.18.0.9")));
}

TEST_F(NeighborResponderTest, QuestionsWaitWhileThePortHasNoRoom) {
    std::vector<Responder::Question> questions;
    for (std::uint16_t host = 2; host <= 101; ++host) {
        questions.push_back({address_of("198.18.0.1"), address_of("198.18.0." + std::to_string(host))});
    }
    responder_.ask_for(questions);
    queue_.accept_at_most(0);
    for (int i = 0; i < 5; ++i) {
        responder_.poll();
    }
    EXPECT_TRUE(wire_.frames.empty());
    EXPECT_TRUE(responder_.asking());
    queue_.accept_at_most(1);
    responder_.poll();
    EXPECT_LE(wire_.frames.size(), 32U) << "a few each poll";
    poll_all();
    EXPECT_EQ(wire_.frames.size(), 100U);
    EXPECT_FALSE(responder_.asking());
}

TEST_F(NeighborResponderTest, AnswersWaitWhileThePortHasNoRoom) {
    for (unsigned i = 0; i < 100; ++i) {
        put(write_question(gateway_, address_of("198.18.0." + std::to_string(i + 2)), address_of("198.18.0.1")));
    }
    EXPECT_EQ(responder_.drops()[NeighborDrop::neighbour_unanswered], 0U) << "they were not tried yet";
    queue_.accept_at_most(0);
    for (int i = 0; i < 5; ++i) {
        responder_.poll();
    }
    EXPECT_TRUE(wire_.frames.empty());
    EXPECT_EQ(responder_.drops()[NeighborDrop::neighbour_unanswered], 100U);
    queue_.accept_at_most(1);
    poll_all();
    EXPECT_EQ(wire_.frames.size(), 100U);
    EXPECT_EQ(responder_.drops()[NeighborDrop::neighbour_unanswered] + responder_.drops()[NeighborDrop::neighbour_overflow], 0U);
}

/// A gateway with a cold neighbour table asks for 4,096 hosts at once, while others ask 10,000
/// times a second: one request in ten polls of 10 us. Receiver and responder share a worker.
TEST_F(NeighborResponderTest, AnswersAGatewayThatAsksForThousandsOfHostsAtOnce) {
    constexpr unsigned hosts = 4096, polls = 10'000, polls_per_request = 10;
    NeighborMailbox mailbox;
    Responder responder{own_,
                        {test::varying_host("198.18.0.2", 2, frame::ValueMode::pseudorandom, 2, hosts + 1)},
                        queue_,
                        {&mailbox},
                        {.arp = 0, .discovery = 1}};
    io::MemoryWire incoming;
    io::MemoryReceiveQueue receive_queue{incoming};
    const auto receiver = std::make_unique<Receiver<io::MemoryReceiveQueue>>(
        ReceiverPlan{.trial_id = 0, .directions = {}, .kept_frames_max = 0}, receive_queue, mailbox);
    const auto arrive = [&](unsigned number) {
        const unsigned value = number % hosts + 2;
        const NeighborFrame question = write_question(
            gateway_, address_of("198.18." + std::to_string(value / 256) + "." + std::to_string(value % 256)), address_of("198.18.0.1"));
        incoming.frames.emplace_back(question.data.begin(), question.data.begin() + static_cast<std::ptrdiff_t>(question.bytes));
    };
    unsigned asked = 0;
    while (asked < hosts) {
        arrive(asked++);
    }
    for (unsigned poll = 0; poll < polls; ++poll) {
        if (poll % polls_per_request == 0) {
            arrive(asked++);
        }
        receiver->poll();
        responder.poll();
    }
    EXPECT_EQ(wire_.frames.size(), asked);
    EXPECT_EQ(responder.drops()[NeighborDrop::neighbour_overflow] + responder.drops()[NeighborDrop::neighbour_unanswered], 0U);
    for (unsigned number = 0; number < NeighborMailbox::capacity + 5; ++number) {  // and more than it can take are told
        arrive(number);
        receiver->poll();
    }
    EXPECT_EQ(responder.drops()[NeighborDrop::neighbour_overflow], 5U);
}

TEST_F(NeighborResponderTest, StrangersCannotFillItsMemory) {
    for (unsigned i = 0; i < 100; ++i) {
        put(write_answer(gateway_, {address_of("198.19.0." + std::to_string(i)), address_of("198.18.0.2"), own_.own_mac}));
        poll_all();
    }
    EXPECT_EQ(responder_.mac_of(address_of("198.19.0.0")), gateway_.own_mac);
    EXPECT_FALSE(responder_.mac_of(address_of("198.19.0.99")));
    EXPECT_TRUE(wire_.frames.empty());
}

}  // namespace
}  // namespace gatemark::loop
