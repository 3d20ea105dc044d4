#include "fuzz/frames.hpp"
#include "fuzz/holds.hpp"
#include "fuzz/reached.hpp"
#include "io/memory_port.hpp"
#include "loop/neighbor_responder.hpp"

#include "frame/streams.hpp"
#include "refdut/neighbours.hpp"

#include <algorithm>

/// Messages of ARP and neighbour discovery, in any state of repair, through the responder of a port
/// and through the neighbours of the reference gateway, which are written apart.
namespace gatemark::fuzz {
namespace {

using test::Bytes;

constexpr std::size_t raw_bytes_max = 140, messages_max = 4;
const net::MacAddress own_mac = *net::parse_mac("02:00:00:00:00:01"), asker_mac = *net::parse_mac("02:00:00:00:00:02");

constexpr std::array<std::string_view, 4> answer_names{"arp_reply", "advertisement", "advertisement_to_all", "fact_learned"};
Reached reached_answers{"message", answer_names};
constexpr std::array<std::string_view, 3> refdut_names{"consumed", "answered", "learned"};
Reached reached_refdut{"refdut", refdut_names};

struct Name {
    const char* target4;
    const char* target6;
};
/// Hosts that are emulated, the responder's own addresses, others, and a customer edge.
constexpr std::array<Name, 4> names{{{"198.18.0.2", "2001:2::2"},
                                     {"198.18.0.0", "2001:2::"},
                                     {"198.18.1.1", "2001:2::1:1"},
                                     {"10.0.0.1", "2001:db8:12:3400:0:c000:212:34"}}};

/// All edges of a domain are on the link.
frame::AnsweredHosts edges_on_link() {
    const frame::EdgesRequest request{.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)}, .count = 65'536};
    return frame::AnsweredHosts{std::make_shared<const frame::CustomerEdges>(
        std::get<frame::CustomerEdges>(frame::CustomerEdges::make(request, test::seed, "edges")))};
}

Bytes bytes_of(const loop::NeighborFrame& frame) {
    return {frame.data.begin(), frame.data.begin() + static_cast<std::ptrdiff_t>(frame.bytes)};
}

Bytes message(Script& script) {
    const std::uint8_t kind = script.byte() % 8;
    if (kind == 7) {
        return raw_frame(script, raw_bytes_max);
    }
    const bool ipv4 = kind % 2 == 0;
    const auto address = [&] {
        const Name& name = names[script.below(names.size())];
        return test::address_of(ipv4 ? name.target4 : name.target6);
    };
    const net::Address target = address();
    const bool probe = script.one_in(4);
    const net::Address asker = probe ? net::Address{.family = target.family, .bytes = {}} : address();
    const loop::NeighborLink link{.own_mac = asker_mac, .vlan_id = script.one_in(3) ? std::optional<std::uint16_t>{100} : std::nullopt};
    Bytes bytes = bytes_of(kind < 4 ? loop::write_question(link, target, asker) : loop::write_answer(link, {target, asker, own_mac}));
    if (script.one_in(4)) {  // one or two options more, of any length
        test::append(bytes, script.take(16));
    }
    return bytes;
}

/// The responder of one port, with its mailbox and what it sends.
class Responder {
public:
    explicit Responder(const std::optional<net::HostMacs>& host_macs) : host_macs_{host_macs} {
        queue_.set_template(0, Bytes(loop::neighbor_frame_bytes(net::Family::ipv4, false)));
        queue_.set_template(1, Bytes(loop::neighbor_frame_bytes(net::Family::ipv6, false)));
    }
    void begin() { responder_.forget(); }

    void take(const Bytes& frame) {
        const loop::NeighborMessage read = loop::read_neighbor_message(frame);
        mailbox_.put(frame);
        while (responder_.poll()) {}
        if (frame.size() > loop::NeighborMailbox::bytes_max) {
            holds(wire_.frames.empty(), "a message that is too long is not read");
            return;
        }
        const bool ours = read.question && emulates(read.question->target);
        holds(wire_.frames.size() == (ours ? 1U : 0U), "each question for a host of the port is answered once, and no other");
        if (ours) {
            expect_answer(*read.question, wire_.frames.front());
            wire_.frames.clear();
        }
        if (read.fact && !emulates(read.fact->owner)) {
            holds(responder_.mac_of(read.fact->owner) == read.fact->mac, "the latest announcement of an address is known");
            reached_answers.note(3);
        }
    }

private:
    [[nodiscard]] bool emulates(const net::Address& address) const {
        return std::ranges::any_of(responder_.hosts(), [&](const frame::AnsweredHosts& hosts) { return hosts.contains(address); });
    }
    /// The address of the host that was asked for.
    [[nodiscard]] net::MacAddress mac_of(const net::Address& host) const {
        const auto set = std::ranges::find_if(responder_.hosts(), [&](const frame::AnsweredHosts& hosts) { return hosts.contains(host); });
        return host_macs_ ? host_macs_->at(set->number_of(host)) : own_mac;
    }
    /// What the asker learns, according to our own reader and to the gateway's.
    void expect_answer(const loop::NeighborQuestion& question, const Bytes& answer) const {
        holds(answer.size() == loop::neighbor_frame_bytes(question.target.family, false), "an answer has its length");
        const loop::NeighborMessage read = loop::read_neighbor_message(answer);
        holds(read.fact && read.fact->owner == question.target && read.fact->mac == mac_of(question.target) && !read.question,
              "an answer answers the question");
        refdut::Neighbours asker{{.own_mac = asker_mac, .vlan_id = {}, .ipv4 = {}, .ipv6 = {}, .peer_mac = {}}};
        refdut::Neighbours::Taken taken;
        asker.take(answer, taken);
        holds(taken.consumed && !taken.answer && asker.peer() == mac_of(question.target), "the gateway understands the answer");
        const bool to_all = question.asker.bytes == net::Address{}.bytes;
        reached_answers.note(question.target.family == net::Family::ipv4 ? std::size_t{0} : to_all ? 2 : 1);
    }

    std::optional<net::HostMacs> host_macs_;
    io::MemoryWire wire_;
    io::MemoryTransmitQueue queue_{wire_};
    loop::NeighborMailbox mailbox_;
    loop::NeighborResponder<io::MemoryTransmitQueue> responder_{
        {.own_mac = own_mac, .vlan_id = std::nullopt, .host_macs = host_macs_},
        {test::varying_host("198.18.0.0", 2, frame::ValueMode::pseudorandom, 2, 254),
         test::varying_host("2001:2::", 14, frame::ValueMode::pseudorandom, 2, 254), edges_on_link()},
        queue_,
        {&mailbox_},
        {.arp = 0, .discovery = 1}};
};

/// One side of the reference gateway, asked by the Tester.
void ask_gateway(const Bytes& frame) {
    refdut::Neighbours side{{.own_mac = own_mac,
                             .vlan_id = std::nullopt,
                             .ipv4 = test::address_of("198.18.0.2"),
                             .ipv6 = test::address_of("2001:2::2"),
                             .peer_mac = std::nullopt}};
    refdut::Neighbours::Taken taken;
    side.take(frame, taken);
    holds(!taken.answer || taken.consumed, "what is answered is not forwarded");
    if (taken.consumed) {
        reached_refdut.note(0);
    }
    if (side.peer()) {
        reached_refdut.note(2);
        holds(taken.consumed && (side.peer()->front() & std::byte{1}) == std::byte{0}, "a neighbour is a host");
    }
    if (taken.answer) {
        const auto fact = loop::read_neighbor_message(taken.answer_frame.span()).fact;
        holds(fact && fact->mac == own_mac, "the Tester understands the gateway's answer");
        reached_refdut.note(1);
    }
}

}  // namespace

void run(Script& script) {
    static Responder fixed{std::nullopt}, random{net::HostMacs{test::seed, 1}};
    fixed.begin();
    random.begin();
    for (std::size_t i = 0; i < messages_max && !script.at_end(); ++i) {
        Bytes frame = message(script);
        damage(script, frame);
        frame.shrink_to_fit();
        fixed.take(frame);
        random.take(frame);
        ask_gateway(frame);
    }
}

}  // namespace gatemark::fuzz
