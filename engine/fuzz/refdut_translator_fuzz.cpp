#include "base/checksum.hpp"
#include "fuzz/frames.hpp"
#include "fuzz/holds.hpp"
#include "fuzz/reached.hpp"
#include "refdut/corrupt.hpp"
#include "refdut/headers.hpp"
#include "refdut/icmp_error.hpp"
#include "refdut/map_vectors.hpp"
#include "refdut/packets.hpp"
#include "refdut/tunnel_packets.hpp"

#include <algorithm>
#include <memory>

/// Frames of every kind through the reference gateway's translator, then through what tags, damages
/// and refuses them, in buffers with and without room.
namespace gatemark::fuzz {
namespace {

using namespace refdut;
using test::Bytes;

constexpr std::size_t frames_max = 8, raw_bytes_max = 200;
constexpr std::size_t fields_max = 64;  ///< room for more, so that inputs keep their meaning

constexpr std::array<std::string_view, 5> treatment_names{"routed", "stateless", "outward", "inward", "untranslated"};

struct Case {
    Mode mode;
    Side inside;
    Overflow overflow;
};
constexpr std::array<Case, 23> cases{{{Mode::router, Side::left, Overflow::refuse},
                                      {Mode::siit, Side::left, Overflow::refuse},
                                      {Mode::nat44, Side::left, Overflow::evict_oldest},
                                      {Mode::nat44, Side::right, Overflow::refuse},
                                      {Mode::nat64, Side::left, Overflow::forward_untranslated},
                                      {Mode::nat66, Side::left, Overflow::drop},
                                      {Mode::nat46, Side::left, Overflow::evict_oldest},
                                      {Mode::nat66, Side::right, Overflow::forward_untranslated},
                                      {Mode::nat64, Side::right, Overflow::refuse},
                                      {Mode::map_t_br, Side::left, Overflow::refuse},
                                      {Mode::map_t_br, Side::right, Overflow::refuse},
                                      {Mode::map_t_ce, Side::left, Overflow::evict_oldest},
                                      {Mode::map_t_ce, Side::right, Overflow::refuse},
                                      {Mode::map_e_br, Side::left, Overflow::refuse},
                                      {Mode::map_e_br, Side::right, Overflow::refuse},
                                      {Mode::lwaftr, Side::left, Overflow::refuse},
                                      {Mode::sixrd_br, Side::left, Overflow::refuse},
                                      {Mode::aftr, Side::left, Overflow::refuse},
                                      {Mode::b4, Side::left, Overflow::refuse},
                                      {Mode::b4, Side::right, Overflow::refuse},
                                      {Mode::map_e_ce, Side::left, Overflow::evict_oldest},
                                      {Mode::map_e_ce, Side::right, Overflow::forward_untranslated},
                                      {Mode::lwb4, Side::left, Overflow::refuse}}};

Reached reached_drops{"drop", drop_names, cases.size()};
Reached reached_fields{"field", field_names, cases.size()};
Reached reached_treatments{"treatment", treatment_names, cases.size()};
constexpr std::array<std::string_view, 3> tunnel_names{"none", "entered", "left"};
Reached reached_tunnels{"tunnel", tunnel_names, cases.size()};

constexpr const char *relay = "2001:2:ffff::1", *relay4 = "198.19.0.1";

using Addresses = std::array<const char*, 6>;
constexpr Addresses addresses4{"198.18.0.2", "198.19.0.2", "198.19.0.1", "10.0.0.7", "240.0.0.1", "198.18.0.1"};
constexpr Addresses addresses6{"2001:2::2", "64:ff9b::c613:2", "2001:2:0:8000::1", "64:ff9b::c612:2", "2001:2:0:8000::2", "fe80::1"};
/// Two customers share 198.19.0.2, one has 198.19.1.0 alone.
constexpr Addresses map_addresses4{"198.18.0.2", "198.19.0.2", "198.19.1.0", "198.19.1.1", "10.0.0.7", "198.18.0.1"};
constexpr Addresses sixrd_addresses{"2001:2:100:2::1", "2001:2:100:3::1", "2001:2::2", "2001:2:100:1::1", "2001:2:100:2::2", "fe80::1"};
constexpr Addresses map_addresses6{"2001:2:100:8e2:0:c613:2:e2", "64:ff9b::c612:2", "2001:2:100:8e3:0:c613:2:e3",
                                   "2001:2:200:0:0:c613:100:0",  "64:ff9b::c613:2", "64:ff9b:1:c612:0:200::"};

/// A translator with a table for few connections, and few ports.
class Gateway {
public:
    explicit Gateway(std::size_t of_number) : number{of_number} {
        const Case& of = cases[number];
        config_.mode = of.mode;
        config_.inside = of.inside;
        config_.assigned_addresses = {test::address_of("198.18.0.1"), test::address_of("2001:2::1")};
        config_.lowest_ipv6_mtu = 1280;
        const bool public_ipv6 = of.mode == Mode::nat66 || of.mode == Mode::nat46;
        if (has_pool(of.mode)) {
            config_.pool = pool_of({public_ipv6 ? "2001:2:0:8000::1/128" : "198.19.0.1/32"}, 5000, 5001);
        }
        if (has_rules(of.mode)) {  // of four ports each, and of a prefix for one customer, in another domain for the relay
            const bool edge = of.mode == Mode::map_t_ce, one_rule = is_edge(of.mode) && !edge;
            config_.domains = {rule_of("2001:2:100::/46", "198.19.0.0/24", 18, 4),
                               rule_of("2001:2:200::/56", "198.19.1.0/30", 0, 6, edge ? "64:ff9b::/96" : "64:ff9b:1::/48")};
            config_.domains[1].forwarding = edge;
            if (has_tunnels(of.mode)) {
                config_.domains[0].dmr.reset();
                config_.domains[1].dmr.reset();
                config_.tunnel.relay = test::address_of(relay);
            }
            if (has_softwires(of.mode)) {  // the addresses are those of the customers there
                config_.domains[0].ipv6 = prefix_of("2001:2:100:8e2::/64");
                config_.domains[1].ipv6 = prefix_of("2001:2:200::/64");
                config_.domains[0].in_identifier = config_.domains[1].in_identifier = true;
            } else if (of.mode == Mode::sixrd_br) {  // the prefix of 198.19.0.2 is 2001:2:100:2::/64
                config_.domains = {rule_of("2001:2:100::/48", "198.19.0.0/16", 16, 0)};
                config_.domains[0].dmr.reset();
                config_.tunnel.relay = test::address_of(relay4);
            }
            if (is_edge(of.mode)) {
                config_.end_user_prefix = prefix_of(has_softwires(of.mode) ? "2001:2:100:8e2:0:c613:2:e2/128" : "2001:2:100:8e2::/64");
            }
            if (one_rule) {
                config_.domains.resize(1);
                config_.tunnel.relay = test::address_of(relay);
            }
        }
        if (of.mode == Mode::aftr) {
            config_.tunnel.relay = test::address_of(relay);
        }
        if (of.mode == Mode::b4) {  // what comes in tunnels comes to `relay`
            config_.tunnel.relay = test::address_of(map_addresses6[0]);
            config_.tunnel.subscriber = test::address_of(relay);
        }
        if (is_stateful(of.mode)) {
            table_ = std::make_unique<NatTable>(
                public_endpoints(config_),
                NatLimits{.capacity = 3, .overflow = of.overflow, .establishment_per_second = of.inside == Side::right ? 1U : 0U});
        }
        if (uses_address_map(of.mode)) {
            config_.pref64 = prefix_of("64:ff9b::/96");
            config_.eam = {eam_of("198.18.0.0/24", "2001:2::/120")};
        }
        holds(check(config_).empty(), "the configuration is right");
        begin();
    }
    void begin() {
        if (table_) {
            table_->clear();
        }
        translator_.emplace(config_, table_.get());
    }
    const std::size_t number;
    [[nodiscard]] Translator& translator() { return *translator_; }
    [[nodiscard]] NatTable* table() const { return table_.get(); }

private:
    TranslationConfig config_;
    std::unique_ptr<NatTable> table_;
    std::optional<Translator> translator_;
};

Gateway& gateway(std::size_t number) {
    static std::array<std::unique_ptr<Gateway>, cases.size()> gateways;
    if (!gateways[number]) {
        gateways[number] = std::make_unique<Gateway>(number);
    }
    return *gateways[number];
}

/// Writes a type into a frame with an echo message, and the checksum that is then right.
void write_echo_type(Bytes& frame, const View& view, EchoMessage message) {
    std::byte* const icmp = frame.data() + view.upper;
    icmp[icmp_at::type] = std::byte{type_of(message, view.family)};
    icmp[icmp_at::type + 1] = std::byte{0};
    store_raw(icmp + icmp_at::checksum, std::uint16_t{0});
    const std::size_t bytes = view.end() - view.upper;
    Sum sum = sum_of({icmp, bytes});
    if (view.family == net::Family::ipv6) {
        sum += sum_of({frame.data() + view.source(), 2 * view.address_bytes()}) + sum_of_byte(protocol_icmpv6, 1) +
               sum_of_byte(static_cast<std::uint8_t>(bytes >> 8), 0) + sum_of_byte(static_cast<std::uint8_t>(bytes), 1);
    }
    store_raw(icmp + icmp_at::checksum, header_checksum(sum));
}

/// The frame with an echo message where it has a UDP datagram; any other stays as it is.
Bytes with_echo(Bytes frame, EchoMessage message) {
    Buffer buffer{frame, 0, 0};
    View view;
    if (read_headers(buffer.packet, view) != Drop::none || !view.udp || view.fragment) {
        return frame;
    }
    if (view.family == net::Family::ipv4) {
        frame[view.ip + ipv4_at::protocol] = std::byte{protocol_icmp};
        store_raw(frame.data() + view.ip + ipv4_at::checksum, std::uint16_t{0});
        store_raw(frame.data() + view.ip + ipv4_at::checksum, header_checksum(sum_of({frame.data() + view.ip, view.upper - view.ip})));
    } else if (view.upper == view.ip + ipv6_bytes) {
        frame[view.ip + ipv6_at::next_header] = std::byte{protocol_icmpv6};
    } else {
        return frame;
    }
    write_echo_type(frame, view, message);
    return frame;
}

/// A frame with a packet of the other family in it, most of them from a customer to the relay.
Bytes in_tunnel(Script& script, const Bytes& frame, bool ipv4) {
    const std::uint8_t kind = script.byte();
    if (!ipv4) {
        SlowTunnel tunnel{.source = test::address_of((kind & 7U) == 0 ? "198.19.0.3" : "198.19.0.2"),
                          .destination = test::address_of((kind & 0x30U) == 0x30U ? map_addresses4[1] : relay4),
                          .next_header = 41};
        tunnel.flags = (kind & 0x88U) == 0x88U ? 0x2000 : 0;
        return tunnel.around(frame);
    }
    SlowTunnel tunnel{.source = test::address_of(map_addresses6[kind % map_addresses6.size()]),
                      .destination = test::address_of((kind & 0x30U) == 0x30U ? map_addresses6[1] : relay)};
    tunnel.hop_limit = (kind & 0x40U) != 0 ? std::uint8_t{1} : std::uint8_t{64};
    if ((kind & 0x88U) == 0x88U) {
        tunnel.next_header = 60;
        tunnel.extension = test::from_hex("0400040104010100");
    }
    return tunnel.around(frame);
}

Bytes plain_frame(Script& script, Mode mode) {
    const bool map = has_rules(mode);
    if (script.one_in(8)) {
        return raw_frame(script, raw_bytes_max);
    }
    const bool ipv4 = script.byte() % 2 == 0;
    const Addresses& of_rules = ipv4 ? map_addresses4 : mode == Mode::sixrd_br ? sixrd_addresses : map_addresses6;
    const Addresses& addresses = map ? of_rules : (ipv4 ? addresses4 : addresses6);
    const auto address = [&] { return addresses[script.below(addresses.size())]; };
    const char* const source = address();
    const char* const destination = address();
    const auto port = [&] { return static_cast<std::uint16_t>(5000 + script.below(6)); };
    const std::uint16_t source_port = port();
    auto packet = udp_packet(source, destination, source_port, port(), script.one_in(16) ? 1400 : script.below(40));
    const std::uint8_t flags = script.byte();
    packet.vlan = (flags & 1U) != 0 ? std::optional<std::uint16_t>{5} : std::nullopt;
    packet.fragment_header = !ipv4 && (flags & 2U) != 0;
    packet.more_fragments = ipv4 && (flags & 2U) != 0;
    packet.udp_checksum_absent = (flags & 4U) != 0;
    packet.dont_fragment = ipv4 && (flags & 8U) != 0;
    packet.hop_limit = (flags & 0x30U) == 0x30U ? static_cast<std::uint8_t>(flags >> 6) : std::uint8_t{64};
    if ((flags & 0xb0U) == 0x90U) {
        return with_echo(test::write_packet(packet), (flags & 0x40U) != 0 ? EchoMessage::request : EchoMessage::reply);
    }
    return test::write_packet(packet);
}

Bytes some_frame(Script& script, Mode mode) {
    const Bytes frame = plain_frame(script, mode);
    if (!has_tunnels(mode) || frame.size() <= ethernet_bytes + vlan_bytes) {
        return frame;
    }
    const bool ipv4 = frame[12] == std::byte{8} || (frame[12] == std::byte{0x81} && frame[16] == std::byte{8});
    return ipv4 == (tunnel_family(mode) == net::Family::ipv6) && script.one_in(2) ? in_tunnel(script, frame, ipv4) : frame;
}

/// The answer to a frame that has left, as the host that it went to sends it: addresses and ports
/// are exchanged, so checksums stay as they were.
Bytes reply_to(const Bytes& frame) {
    Bytes reply = frame;
    Buffer buffer{frame, 0, 0};
    View view;
    if (read_headers(buffer.packet, view) != Drop::none) {
        return reply;
    }
    const auto exchange = [&](std::size_t a, std::size_t b, std::size_t bytes) {
        std::swap_ranges(reply.begin() + static_cast<std::ptrdiff_t>(a), reply.begin() + static_cast<std::ptrdiff_t>(a + bytes),
                         reply.begin() + static_cast<std::ptrdiff_t>(b));
    };
    if (const View outer = view; outer.carries_packet()) {
        if (read_carried(buffer.packet, outer, view) != Drop::none) {
            return reply;
        }
        exchange(outer.source(), outer.destination(), outer.address_bytes());
    }
    if (!view.udp && view.echo == EchoMessage::none) {
        return reply;
    }
    exchange(view.source(), view.destination(), view.address_bytes());
    if (view.udp) {
        exchange(view.upper + udp_at::source, view.upper + udp_at::destination, 2);
    } else {
        write_echo_type(reply, view, EchoMessage::reply);
    }
    return reply;
}

/// What left a tunnel or entered one: the packet as it was, but for its hop limit.
void expect_carried(const Buffer& before, View was, const Buffer& after, View is, const Notes& notes) {
    if (notes.tunnel == Tunnel::left || notes.hairpinned) {
        const View outer = was;
        holds(outer.carries_packet() && read_carried(before.packet, outer, was) == Drop::none, "what came in a tunnel was a packet");
    }
    if (notes.tunnel == Tunnel::entered) {
        const View outer = is;
        holds(outer.carries_packet() && read_carried(after.packet, outer, is) == Drop::none, "what leaves in a tunnel is a packet");
    }
    holds(is.family == was.family, "what a tunnel carries keeps its family");
    if (notes.treatment == Treatment::outward || notes.treatment == Treatment::inward) {
        return;  // by an AFTR
    }
    holds(std::ranges::equal(before.frame().subspan(was.source(), was.end() - was.source()),
                             after.frame().subspan(is.source(), is.end() - is.source())),
          "a tunnel changes neither addresses nor datagram");
}

/// What leaves: sound headers, lengths that follow from what arrived, checksums as good as they
/// were.
void expect_sound(const Buffer& buffer, const Bytes& arrived, const Notes& notes) {
    Buffer copy{arrived, 0, 0};
    View before, after;
    holds(read_headers(copy.packet, before) == Drop::none && read_headers(buffer.packet, after) == Drop::none,
          "what leaves has sound headers");
    if (notes.tunnel != Tunnel::none) {
        expect_carried(copy, before, buffer, after, notes);
        return;
    }
    const std::size_t upper_bytes = before.end() - before.upper;
    if (notes.crossed) {
        holds(after.family != before.family && after.end() - after.upper == upper_bytes, "the other family takes the datagram along");
        holds(after.upper - after.ip == (after.family == net::Family::ipv4 ? ipv4_bytes : ipv6_bytes), "it has the other header only");
        holds(buffer.packet.bytes >= after.end() && buffer.packet.bytes <= arrived.size() + ipv6_bytes - ipv4_bytes, "it has its length");
    } else if (notes.hairpinned) {
        holds(after.family == before.family && after.end() - after.upper == upper_bytes && after.upper - after.ip == ipv6_bytes,
              "what goes back has the same datagram and the header alone");
    } else {
        holds(after.family == before.family && buffer.packet.bytes == arrived.size(), "the same family keeps the frame's length");
    }
    holds(!notes.udp || !has_sound_udp_checksum(arrived) || has_sound_udp_checksum(buffer.frame()), "a sound UDP checksum stays sound");
}

void refuse(const Buffer& buffer, Drop why, Script& script) {
    ErrorFrame error;
    write_refusal(buffer.packet, why, test::address_of(script.one_in(2) ? "198.18.0.1" : "2001:2::1"), error);
    holds(error.bytes <= error.data.size(), "an error fits its frame");
    if (error.bytes != 0) {
        View view;
        Buffer written{std::span{error.data}.first(error.bytes), 0, 0};
        holds(read_headers(written.packet, view) == Drop::none, "an error has sound headers");
    }
}

void damage_on_purpose(Gateway& gateway, Buffer& buffer, Script& script, const Notes& notes) {
    if (script.one_in(3)) {  // there may be no room
        const bool tagged = set_vlan(buffer.packet, script.one_in(2) ? std::optional<std::uint16_t>{9} : std::nullopt);
        holds(!tagged || buffer.packet.bytes >= ethernet_bytes, "a tag leaves a frame");
    }
    const std::size_t number = script.below(fields_max);
    if (number >= field_count) {
        return;
    }
    const auto field = static_cast<Field>(number);
    const Bytes before{buffer.frame().begin(), buffer.frame().end()};
    const Fields reasons = corrupt(field, buffer.packet, notes, gateway.table());
    const bool is_reason = field != Field::no_udp_checksum && field != Field::embedding_suffix;  // which are found in others
    holds(reasons.none() || !is_reason || reasons.has(field), "damage has its reason");
    holds(!reasons.none() || std::ranges::equal(before, buffer.frame()), "a frame without the field is left alone");
    if (!reasons.none()) {
        reached_fields.note(field, gateway.number);
    }
}

}  // namespace

void run(Script& script) {
    static constexpr std::array<std::size_t, 4> rooms{64, 0, 4, 20};
    Gateway& gateway = fuzz::gateway(script.below(cases.size()));
    gateway.begin();
    std::uint64_t now_ns = 0;
    Bytes left;  // the latest frame that has left, and where it came from
    Side left_from = Side::left;
    for (std::size_t i = 0; i < frames_max && !script.at_end(); ++i) {
        const std::uint8_t choice = script.byte();
        const bool replies = (choice & 0x60U) == 0x60U && !left.empty();
        Bytes bytes = replies ? reply_to(left) : some_frame(script, cases[gateway.number].mode);
        damage(script, bytes);
        Buffer buffer{bytes, rooms[choice & 3U], rooms[choice >> 2 & 3U]};
        now_ns += std::uint64_t{script.byte()} << 24;
        Notes notes;
        const Side from = replies ? other(left_from) : (choice & 16U) != 0 ? Side::right : Side::left;
        const Drop drop = gateway.translator().translate(from, buffer.packet, now_ns, notes);
        holds(buffer.is_sound(), "a packet stays within its buffer");
        reached_drops.note(drop, gateway.number);
        if (drop != Drop::none) {
            refuse(buffer, drop, script);
            continue;
        }
        reached_treatments.note(notes.treatment, gateway.number);
        reached_tunnels.note(notes.tunnel, gateway.number);
        expect_sound(buffer, bytes, notes);
        left.assign(buffer.frame().begin(), buffer.frame().end());
        left_from = notes.hairpinned ? other(from) : from;
        damage_on_purpose(gateway, buffer, script, notes);
        holds(buffer.is_sound(), "a damaged packet stays within its buffer");
    }
}

}  // namespace gatemark::fuzz
