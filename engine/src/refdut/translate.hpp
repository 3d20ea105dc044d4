#pragma once

#include "base/result.hpp"
#include "net/address.hpp"
#include "refdut/address.hpp"
#include "refdut/map_domains.hpp"
#include "refdut/nat_table.hpp"
#include "refdut/packet.hpp"
#include "refdut/rewrite.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace gatemark::refdut {

/// What the gateway is. The inside of a border relay and of an AFTR is where its domain or its B4s
/// are, that of a customer edge and of a B4 where the customer is.
enum class Mode : std::uint8_t {
    router,    ///< forwards both families
    siit,      ///< stateless translation, both ways, by the family of the arriving frame
    nat44,     ///< NAT of IPv4
    nat64,     ///< NAT with IPv6 inside and IPv4 outside
    nat66,     ///< NAT of IPv6
    nat46,     ///< NAT with IPv4 inside and IPv6 outside
    map_t_br,  ///< MAP-T: border relay
    map_t_ce,  ///< MAP-T: customer edge, a NAT44 with a port set and a translator
    map_e_br,  ///< MAP-E: border relay
    lwaftr,    ///< lightweight 4over6: border relay of softwires
    sixrd_br,  ///< 6rd: border relay
    aftr,      ///< DS-Lite: NAT44 whose inside endpoints are those of one B4 each, and in its tunnel
    b4,        ///< DS-Lite: the customer's end of a tunnel
    map_e_ce,  ///< MAP-E: customer edge, a NAT44 with a port set and a tunnel
    lwb4,      ///< lightweight 4over6: the same for a softwire
};

[[nodiscard]] constexpr bool is_map_t(Mode mode) noexcept { return mode == Mode::map_t_br || mode == Mode::map_t_ce; }
/// Whether it is a subscriber, whose tunnel leads out to the relay.
[[nodiscard]] constexpr bool is_subscriber(Mode mode) noexcept { return mode == Mode::b4 || mode == Mode::map_e_ce || mode == Mode::lwb4; }
/// Whether it is a customer edge: a NAT44 whose address and ports follow from a rule.
[[nodiscard]] constexpr bool is_edge(Mode mode) noexcept { return mode == Mode::map_t_ce || mode == Mode::map_e_ce || mode == Mode::lwb4; }
/// Whether rules are softwires, whose numbers are in the interface identifier (RFC 7596
/// section 5.1).
[[nodiscard]] constexpr bool has_softwires(Mode mode) noexcept { return mode == Mode::lwaftr || mode == Mode::lwb4; }
/// Whether what one side sends and gets is in tunnels: the inside, or of a subscriber the outside.
[[nodiscard]] constexpr bool has_tunnels(Mode mode) noexcept {
    return mode == Mode::map_e_br || mode == Mode::lwaftr || mode == Mode::sixrd_br || mode == Mode::aftr || is_subscriber(mode);
}
/// Of the headers that are before the packets in tunnels.
[[nodiscard]] constexpr net::Family tunnel_family(Mode mode) noexcept {
    return mode == Mode::sixrd_br ? net::Family::ipv4 : net::Family::ipv6;
}
[[nodiscard]] constexpr bool has_rules(Mode mode) noexcept {
    return is_map_t(mode) || is_edge(mode) || mode == Mode::map_e_br || mode == Mode::lwaftr || mode == Mode::sixrd_br;
}
[[nodiscard]] constexpr bool has_pool(Mode mode) noexcept {
    return mode == Mode::nat44 || mode == Mode::nat64 || mode == Mode::nat66 || mode == Mode::nat46 || mode == Mode::aftr;
}
[[nodiscard]] constexpr bool is_stateful(Mode mode) noexcept { return has_pool(mode) || is_edge(mode); }
[[nodiscard]] constexpr bool has_inside(Mode mode) noexcept { return mode != Mode::router && mode != Mode::siit; }
[[nodiscard]] constexpr bool uses_address_map(Mode mode) noexcept {
    return mode == Mode::siit || mode == Mode::nat64 || mode == Mode::nat46;
}
[[nodiscard]] constexpr bool changes_family(Mode mode) noexcept { return uses_address_map(mode) || is_map_t(mode); }

/// How the last two bits of an outer header's traffic class follow from those of the packet: the
/// normal and the compatibility mode of RFC 6040 section 4.1, and the full-functionality option of
/// RFC 3168 section 9.1.1.
enum class EcnMode : std::uint8_t { normal, compatibility, full_functionality };

/// Where tunnels end, and what the gateway writes before a packet that enters one.
struct TunnelConfig {
    std::optional<net::Address> relay{};       ///< of the border relay or AFTR, which the gateway is or leads to
    std::optional<net::Address> subscriber{};  ///< the gateway's own end; b4, of others it follows from the rule
    std::uint8_t hop_limit = 64;
    std::optional<std::uint8_t> traffic_class{};  ///< none: that of the packet (RFC 2473 section 6.4)
    std::optional<EcnMode> ecn{};                 ///< none: the last two bits of that
    bool dont_fragment = false;                   ///< sixrd_br: without it each header has the next identification
};

struct TranslationConfig {
    Mode mode = Mode::router;
    Side inside = Side::left;  ///< all modes but router and siit
    std::uint8_t hop_limit_decrement = 1;
    std::optional<net::Prefix> pref64;           ///< RFC 6052: 32, 40, 48, 56, 64 or 96 bits; siit, nat64, nat46
    std::vector<EamEntry> eam;                   ///< RFC 7757; siit, nat64, nat46
    NatPool pool;                                ///< of the outside's family; NAT modes but customer edges
    std::vector<MapRuleSpec> domains;            ///< MAP modes
    std::optional<net::Prefix> end_user_prefix;  ///< of the customer; customer edges
    TunnelConfig tunnel;                         ///< modes that have tunnels
    bool dont_fragment_always = false;           ///< RFC 6145 section 5.1, instead of RFC 7915 section 5.1
    /// An IPv4 packet without DF that is longer than this as IPv6 would have to be fragmented (RFC
    /// 7915 section 4). This gateway does not fragment: such a packet is dropped as unsupported, a
    /// shorter one is translated unfragmented.
    std::uint32_t lowest_ipv6_mtu = 65535;
    std::vector<net::Address>
        assigned_addresses;  ///< the gateway's own addresses: what is sent to them is not forwarded (but the pool comes first)
};

/// All problems of a configuration; `where` is the key in the tables [translation] and [table] of
/// the gateway's file.
[[nodiscard]] Errors check(const TranslationConfig& config);
[[nodiscard]] Errors check(const NatLimits& limits);

/// The public endpoints of the NAT: the pool, or what the end-user prefix gives to a customer edge.
[[nodiscard]] NatPool public_endpoints(const TranslationConfig& config);
/// The addresses to which frames are sent that are not forwarded.
[[nodiscard]] std::vector<net::Address> own_addresses(const TranslationConfig& config);

/// What was done to a frame.
enum class Treatment : std::uint8_t {
    routed,        ///< same family, both addresses kept
    stateless,     ///< other family, both addresses by the map or by MAP rules; hairpinned, both twice
    outward,       ///< by a NAT, from inside: an Initiator's frame
    inward,        ///< by a NAT, from outside: a Responder's frame
    untranslated,  ///< by a NAT whose table is full: routed with its own source
};

/// Whose MAP address or shared IPv4 address is in a frame that leaves.
struct MapNotes {
    const MapRule* rule = nullptr;  ///< nullptr: nobody's
    MapCustomer customer;
    bool is_source = false;  ///< else it is the destination
    bool embedded = false;   ///< the other address is under the rule's DMR prefix
};

/// What was done to a frame beside its treatment.
enum class Tunnel : std::uint8_t {
    none,
    entered,  ///< it leaves in a tunnel
    left,     ///< it came in a tunnel
};

struct Notes {
    Treatment treatment = Treatment::routed;
    EchoMessage echo = EchoMessage::none;
    bool udp =
        false;  ///< a complete UDP datagram (no fragment), also in a tunnel; also set for frames that are dropped after that is known
    bool new_connection = false;  ///< this frame established it
    bool error_wanted = false;    ///< dropped unchanged, and its sender must be told (icmp_error.hpp)
    bool crossed = false;         ///< the family was changed
    bool hairpinned = false;      ///< it leaves on the side that it came from
    Tunnel tunnel = Tunnel::none;
    OuterHeader outer{};  ///< of a frame that entered or left a tunnel: the header that it got or had
    MapNotes map{};
    NatTable::Connection connection = NatTable::none;  ///< outward and inward; valid until the next frame
};

/// Forwards frames as a router, a stateless translator (RFC 7915, 6052, 7757), a NAT (RFC 3022,
/// 6146, 4787), MAP-T border relay or customer edge (RFC 7599), border relay of MAP-E (RFC 7597) or
/// 6rd (RFC 5969), lwAFTR (RFC 7596) or AFTR (RFC 6333). Only UDP and echo messages, except for the
/// router, 6rd and native IPv6 through a translator, where any protocol passes. No byte outside the
/// packet is read or written, whatever its length fields say.
class Translator {
public:
    /// `config` has passed `check`; `table` is not nullptr in NAT modes, and outlives the
    /// translator.
    Translator(TranslationConfig config, NatTable* table);

    /// Changes the frame in place into what leaves on the other side, except Ethernet addresses and
    /// VLAN tag; a frame that is dropped may be partly changed. Checksums are updated incrementally
    /// (RFC 1624), so an invalid UDP checksum stays invalid. `now_ns` never decreases.
    [[nodiscard]] Drop translate(Side from, Packet& packet, std::uint64_t now_ns, Notes& notes) noexcept;

    /// Prefetches the table's records for a burst of frames, `packet_at(i)` for i below `count` (at
    /// most burst_max), before they are translated.
    template <class PacketAt>
    void look_ahead(Side from, std::size_t count, PacketAt&& packet_at) const noexcept {
        if (table_ == nullptr || count < 2) {
            return;
        }
        std::array<NatTable::Clue, burst_max> clues;
        for (std::size_t i = 0; i < count; ++i) {
            clues[i] = clue_of(from, packet_at(i));
        }
        for (std::size_t i = 0; i < count; ++i) {
            table_->fetch(clues[i]);
        }
    }
    static constexpr std::size_t burst_max = 64;

    [[nodiscard]] const TranslationConfig& config() const noexcept { return config_; }
    [[nodiscard]] NatTable* table() const noexcept { return table_; }

private:
    [[nodiscard]] NatTable::Clue clue_of(Side from, const Packet& packet) const noexcept;
    [[nodiscard]] Drop route(Packet& packet, const View& view) const noexcept;
    [[nodiscard]] Drop translate_stateless(Packet& packet, const View& view, Notes& notes) noexcept;
    [[nodiscard]] Drop translate_outward(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept;
    [[nodiscard]] Drop translate_inward(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept;
    [[nodiscard]] Drop relay(Side from, Packet& packet, const View& view, Notes& notes) noexcept;
    [[nodiscard]] Drop relay_to_ipv4(Packet& packet, const View& view, Notes& notes) noexcept;
    [[nodiscard]] Drop relay_to_ipv6(Packet& packet, const View& view, Notes& notes) noexcept;
    /// From a customer to another: `to` has the IPv4 addresses of both.
    [[nodiscard]] Drop hairpin(Packet& packet, const View& view, Endpoints to, Notes& notes) noexcept;
    [[nodiscard]] Drop pass_edge(Side from, Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept;
    [[nodiscard]] Drop leave_edge(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept;
    [[nodiscard]] Drop enter_edge(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept;
    /// The IPv4 address that the source of a packet to the customer stands for.
    [[nodiscard]] Drop source_at_edge(const View& view, const Endpoints& from, AddressBytes& ipv4, Notes& notes) const noexcept;
    /// What comes in a tunnel to the gateway's end of it.
    [[nodiscard]] Drop end_tunnel(Packet& packet, const View& outer, std::uint64_t now_ns, Notes& notes) noexcept;
    /// All else through a gateway that has tunnels.
    [[nodiscard]] Drop pass_tunnels(Side from, Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept;
    /// Of an AFTR: what has come from a B4, and what is for one.
    [[nodiscard]] Drop leave_b4(Packet& packet, const View& outer, const View& inner, std::uint64_t now_ns, Notes& notes) noexcept;
    [[nodiscard]] Drop enter_b4(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept;
    /// Finds or establishes the connection of a packet from inside, and writes its public end.
    [[nodiscard]] Drop ask(Packet& packet, const View& view, const NatEndpoint& inside, std::uint64_t now_ns, Notes& notes) noexcept;
    /// Finds the connection of a packet from outside, for the notes, and writes its inside end.
    [[nodiscard]] Drop answer(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) const noexcept;
    /// Of a customer edge: what goes to its relay, and what has come from there.
    [[nodiscard]] Drop enter_by_nat(Packet& packet, const View& view, std::uint64_t now_ns, Notes& notes) noexcept;
    [[nodiscard]] Drop leave_by_nat(Packet& packet, const View& outer, const View& inner, std::uint64_t now_ns, Notes& notes) noexcept;
    [[nodiscard]] Drop enter_tunnel(Packet& packet, const View& view, Notes& notes) noexcept;
    [[nodiscard]] OuterHeader outer_header(const Packet& packet, const View& inner, const AddressBytes& destination) noexcept;
    /// Whether this gateway can carry the packet in a tunnel.
    [[nodiscard]] bool can_carry(const View& inner) const noexcept;
    /// Whether an address in the packets that tunnels carry is a customer's.
    [[nodiscard]] bool is_customers(const AddressBytes& address) const noexcept;
    /// Whether a packet may come out of the tunnel from `end`.
    [[nodiscard]] Drop check_end(const AddressBytes& end, const View& inner, const Endpoints& ends, Notes& notes) const noexcept;
    /// The other end of the tunnel that leads to a packet's destination, which is a customer's.
    [[nodiscard]] Drop find_end(const View& inner, const Endpoints& ends, AddressBytes& end, Notes& notes) const noexcept;
    /// The same of MAP-E and an lwAFTR, with the customer in the notes.
    [[nodiscard]] Drop check_softwire(const AddressBytes& outer_source, const View& inner, const Endpoints& ends,
                                      Notes& notes) const noexcept;
    [[nodiscard]] Drop find_softwire(const View& inner, const Endpoints& ends, AddressBytes& end, Notes& notes) const noexcept;
    [[nodiscard]] bool is_to_own_end(const Packet& packet, const View& view) const noexcept;
    /// Finds or establishes the connection of a frame from inside, for the notes; or the frame is
    /// dropped, or stays untranslated.
    [[nodiscard]] Drop connect(const NatEndpoint& inside, const NatEndpoint& remote, std::uint64_t now_ns, Notes& notes) noexcept;
    /// Turns the packet into one of the other family.
    void cross(Packet& packet, const View& view, const Endpoints& to) noexcept;
    void finish_nat(Packet& packet, const View& view, const Endpoints& to) noexcept;
    [[nodiscard]] bool is_own(const Packet& packet, const View& view) const noexcept;
    /// Whether this gateway can translate the packet into the other family.
    [[nodiscard]] bool can_cross(const Packet& packet, const View& view) const noexcept;

    TranslationConfig config_;
    AddressMap map_;
    MapDomains rules_;  ///< of a border relay; of a customer edge those by which it forwards
    std::optional<MapEdge> edge_;
    std::optional<net::Address> own_end_;  ///< of its tunnels
    NatTable* table_;
    net::Family inside_family_, outside_family_;
    std::uint16_t identification_ = 0;  ///< of the next IPv4 header that is made
};

}  // namespace gatemark::refdut
