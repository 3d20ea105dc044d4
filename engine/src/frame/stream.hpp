#pragma once

#include "base/result.hpp"
#include "enumerate/connection_choice.hpp"
#include "enumerate/connection_set.hpp"
#include "frame/edge_address.hpp"
#include "frame/extension_headers.hpp"
#include "frame/marking.hpp"
#include "frame/peer_edges.hpp"
#include "frame/signature.hpp"
#include "frame/subscriber_hosts.hpp"
#include "frame/tunnel.hpp"
#include "net/headers.hpp"
#include "net/host_macs.hpp"
#include "pace/clock.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gatemark::frame {

/// Who sends a stream. The gateway chooses the translated source of an Initiator's frames; the
/// Responder sends to the endpoint it has learned (RFC 9693 section 4.1).
enum class Role : std::uint8_t { stateless, initiator, responder };

/// On which side of its translator a gateway's NAT is. Of a NAT46 both are common, and nobody says
/// which.
enum class NatSide : std::uint8_t { outside, inside, either };

/// The connections that a stream's frames belong to.
struct ConnectionTraffic {
    Role role = Role::initiator;
    enumerate::ConnectionSet set;
    enumerate::ConnectionChoice::Mode choice = enumerate::ConnectionChoice::Mode::pseudorandom;
    NatSide nat_side = NatSide::outside;  ///< of a gateway that translates between families
};

/// What the gateway makes of DF in an IPv4 packet: it stays; it is set above 1260 octets only (RFC
/// 7915 section 5.1); it is always set (RFC 6145 section 5.1). The last two are those of a
/// translator from IPv6, and of two translators in a row from IPv4 to IPv4.
enum class DontFragmentRule : std::uint8_t { kept, rfc7915, rfc6145 };

constexpr std::size_t frame_octets_max = 9216;  ///< of IPv4; of IPv6 20 more, and in a tunnel the outer header

/// One stream as requested: what is sent, and what the gateway must make of it.
struct StreamRequest {
    std::size_t frame_octets = 64;   ///< as sent, with FCS, without VLAN tag
    std::size_t trailer_octets = 0;  ///< of these: behind the IP packet, and no part of it
    std::uint8_t hop_limit = 10;
    MarkingRequest marking{};
    std::vector<ExtensionHeader> extension_headers{};  ///< in turn, from IPv6 to IPv6
    bool dont_fragment = false;
    bool without_checksum = false;  ///< UDP checksum 0, over IPv4 only (RFC 768)
    HostSet source{}, destination{};
    std::optional<EdgesRequest> source_edges{}, destination_edges{};     ///< customer edges in the place of these hosts
    std::optional<TunnelRequest> source_tunnel{}, destination_tunnel{};  ///< through which an end is reached; one at most
    std::optional<PeersRequest> source_peers{}, destination_peers{};     ///< the hosts are such edges; one end at most
    ValueRange source_ports{}, destination_ports{};
    bool as_sent = false;  ///< loop-back: nothing changes on the way
    std::uint8_t hop_limit_decrement = 1;
    std::optional<net::AddressMapping> mapping{};  ///< present when the families differ
    DontFragmentRule dont_fragment_rule = DontFragmentRule::kept;
    bool zero_checksum_for_ones = false;             ///< the translator writes UDP checksum 0x0000 where 0xffff is due
    std::optional<ConnectionTraffic> connections{};  ///< present for the foreground of a stateful gateway

    /// The families of the packets at both ends; in a tunnel, of those inside.
    [[nodiscard]] net::Family source_family() const noexcept {
        return source_edges || source_peers ? family_of_edges(source_tunnel) : source.address.family;
    }
    [[nodiscard]] net::Family destination_family() const noexcept {
        return destination_edges || destination_peers ? family_of_edges(destination_tunnel) : destination.address.family;
    }
    [[nodiscard]] static net::Family family_of_edges(const std::optional<TunnelRequest>& tunnel) noexcept {
        return tunnel ? net::Family::ipv4 : net::Family::ipv6;
    }
    /// Whether frames must arrive in a tunnel.
    [[nodiscard]] bool arrives_in_tunnel() const noexcept { return (as_sent ? source_tunnel : destination_tunnel).has_value(); }
    [[nodiscard]] const TunnelRequest* tunnel() const noexcept {
        return source_tunnel ? &*source_tunnel : destination_tunnel ? &*destination_tunnel : nullptr;
    }
    [[nodiscard]] const EdgesRequest* edges() const noexcept {
        return source_edges ? &*source_edges : destination_edges ? &*destination_edges : nullptr;
    }
    [[nodiscard]] const PeersRequest* peers() const noexcept {
        return source_peers ? &*source_peers : destination_peers ? &*destination_peers : nullptr;
    }
};

/// A port's own address, the one that it sends to, its VLAN, and the addresses of its emulated
/// hosts.
struct LinkAddresses {
    net::MacAddress source{}, destination{};
    std::optional<std::uint16_t> vlan_id{};
    std::optional<net::HostMacs> host_macs{};  ///< if absent, every host has the port's own address
};

/// What varies from frame to frame of a stream.
struct FrameValues {
    std::uint16_t source_port, destination_port, source_host, destination_host;
    std::uint8_t network;
    std::uint64_t connection = 0;  ///< of a stateful gateway; otherwise the number of the customer edge, if the frame has one

    [[nodiscard]] constexpr Edge edge() const noexcept { return {connection}; }
};

/// How frames of customer edges are drawn. All of it in one value and without a choice, so that a
/// loop becomes one of vectors.
struct EdgeDraws {
    RandomSequence port_words, host_words;
    ValueSequence ports_outside, hosts_outside;
    unsigned edge_shift;  ///< 32 if the edge is the source, else 0

    struct Draw {
        std::uint16_t edge_port, edge_host, port_outside, host_outside;
    };
    /// Frame number j of the class is this edge's, of this domain.
    [[nodiscard]] Draw at(std::uint64_t j, Edge edge, const EdgeTraffic::OfDomain& domain) const noexcept {
        const std::uint64_t ports = port_words.at(j), hosts = host_words.at(j);
        const unsigned other_shift = 32 - edge_shift;
        return {.edge_port = domain.drawn_port(edge, static_cast<std::uint32_t>(ports >> edge_shift)),
                .edge_host = static_cast<std::uint16_t>(hosts >> edge_shift & domain.host_mask),
                .port_outside = ports_outside.drawn(static_cast<std::uint32_t>(ports >> other_shift)),
                .host_outside = hosts_outside.drawn(static_cast<std::uint32_t>(hosts >> other_shift))};
    }
};

/// What the offsets in a frame follow from.
struct LayoutRequest {
    net::Family family = net::Family::ipv4;  ///< in a tunnel, of the packet inside
    std::size_t frame_octets = 64;           ///< with FCS and outer header, without VLAN tag and trailer
    bool with_vlan = false, in_tunnel = false;
    std::size_t extension_bytes = 0;
};

/// The offsets of the headers in a frame, and where its IP packet ends. In a tunnel, another header
/// is before that packet; all but `outer` is of the packet inside.
struct Layout {
    net::Family family = net::Family::ipv4;
    std::size_t outer = 0;  ///< where the first IP header is; that of the packet if there is no tunnel
    std::size_t ip = 0, udp = 0, payload = 0, end = 0;

    [[nodiscard]] static Layout make(const LayoutRequest& request) noexcept;
    [[nodiscard]] bool in_tunnel() const noexcept { return outer != ip; }
    /// Of the first IP header.
    [[nodiscard]] net::Family outer_family() const noexcept { return in_tunnel() ? net::other_family(family) : family; }
    [[nodiscard]] std::size_t ip_bytes() const noexcept { return end - ip; }
    [[nodiscard]] std::size_t udp_bytes() const noexcept { return end - udp; }
    /// Where the IP header ends, before any extension headers.
    [[nodiscard]] std::size_t header_end() const noexcept { return ip + net::header_bytes_of(family); }
    [[nodiscard]] std::size_t extension_bytes() const noexcept { return udp - header_end(); }
    [[nodiscard]] std::size_t source_address() const noexcept { return ip + net::source_in(family); }
    [[nodiscard]] std::size_t destination_address() const noexcept { return ip + net::destination_in(family); }
    [[nodiscard]] std::size_t outer_source_address() const noexcept { return outer + net::source_in(outer_family()); }
    [[nodiscard]] std::size_t outer_destination_address() const noexcept { return outer + net::destination_in(outer_family()); }
};

/// The frames of one stream on one side of the gateway: a template of the whole frame and the
/// fields that vary.
struct FrameTemplate {
    Layout layout;
    AddressField source, destination;
    AddressField outer_source, outer_destination;  ///< of a frame in a tunnel
    std::vector<std::byte> frame;                  ///< the template: everything but what varies, checksum fields zero; without FCS
    Sum header_sum = 0;                            ///< of the template's IPv4 header
    Sum udp_sum = 0;                               ///< of the template's pseudo-header and UDP datagram

    /// Of a frame in a tunnel: where its outer header has the two bytes that are the value of a
    /// host, and of which; nothing if an outer address varies in another way.
    struct SubscriberWord {
        std::size_t at;
        bool of_source;
    };
    [[nodiscard]] std::optional<SubscriberWord> subscriber_word() const noexcept {
        if (!layout.in_tunnel()) {
            return std::nullopt;
        }
        if (const auto word = outer_source.only_word()) {
            return SubscriberWord{layout.outer_source_address() + *word, true};
        }
        const auto word = outer_destination.only_word();
        return word ? std::optional{SubscriberWord{layout.outer_destination_address() + *word, false}} : std::nullopt;
    }
    /// With FCS, without VLAN tag.
    [[nodiscard]] std::size_t frame_octets() const noexcept {
        return frame.size() - layout.outer + net::ethernet::header_bytes + net::ethernet::fcs_bytes;
    }
};

/// What a correct gateway does with the fragmentation fields.
enum class DontFragment : std::uint8_t { clear, set };

/// What a correct gateway makes of the DF bit of a frame; `expected` is what it sends.
[[nodiscard]] DontFragment expected_dont_fragment(const StreamRequest& request, const Layout& expected) noexcept;

/// One class of traffic in one direction: frame number j of the class, sent as frame number i of
/// the direction, is a pure function of (seed, stream, j, i), on the sending side and, as a correct
/// gateway forwards it, on the receiving side.
class Stream {
public:
    /// `trial_id` is that of the trial; `sent_link` and `received_link` belong to the ports, each
    /// with the port's own address as source.
    [[nodiscard]] static Result<Stream> make(const StreamRequest& request, signature::Direction direction,
                                             signature::TrafficClass traffic_class, std::uint64_t seed, std::uint32_t trial_id,
                                             const LinkAddresses& sent_link, const LinkAddresses& received_link, const std::string& where);

    /// For the Responder of a stateful gateway, the destination is that of the connection on the
    /// Initiator's side, not the one that is sent.
    [[nodiscard]] FrameValues values(std::uint64_t j) const noexcept {
        return draws_ ? drawn_values(j) : other_values(j);  // the usual case is inlined
    }
    /// Whether all values are drawn (`drawn_values`): no ports or hosts are taken in turn, there is
    /// one network, and there are neither connections nor customer edges.
    [[nodiscard]] bool draws() const noexcept { return draws_; }
    [[nodiscard]] FrameValues drawn_values(std::uint64_t j) const noexcept {
        const std::uint64_t ports = port_words_.at(j), hosts = host_words_.at(j);
        return {.source_port = source_ports_.drawn(static_cast<std::uint32_t>(ports >> 32)),
                .destination_port = destination_ports_.drawn(static_cast<std::uint32_t>(ports)),
                .source_host = source_hosts_.drawn(static_cast<std::uint32_t>(hosts >> 32)),
                .destination_host = destination_hosts_.drawn(static_cast<std::uint32_t>(hosts)),
                .network = 0};
    }
    [[nodiscard]] FrameValues other_values(std::uint64_t j) const noexcept;
    /// Whether addresses and ports belong together by a rule of the technology, which a burst at a
    /// time is faster than frame by frame.
    [[nodiscard]] bool has_rule() const noexcept { return edges_.has_value(); }
    /// Writes to `tuples` what the rule needs for the frames with these numbers in their class.
    void prepare_by_rule(std::span<const std::uint64_t> numbers, std::span<std::uint64_t> tuples) const noexcept;
    [[nodiscard]] FrameValues values_by_rule(std::uint64_t j, std::uint64_t tuple) const noexcept { return values_of_edge(j, {tuple}); }
    /// Whether the ports and hosts of edges are drawn, and all edges are of this domain; nullptr if
    /// not.
    [[nodiscard]] const EdgeTraffic::OfDomain* draws_from() const noexcept {
        return edges_ && hosts_are_drawn_ ? edges_->only_domain() : nullptr;
    }
    [[nodiscard]] EdgeDraws edge_draws() const noexcept {
        return {.port_words = port_words_,
                .host_words = host_words_,
                .ports_outside = comes_from_edges_ ? destination_ports_ : source_ports_,
                .hosts_outside = comes_from_edges_ ? destination_hosts_ : source_hosts_,
                .edge_shift = comes_from_edges_ ? 32U : 0U};
    }
    /// Writes both addresses into a buffer that holds the template of what is sent, and returns
    /// their share of the checksums.
    Sum write_addresses_by_rule(std::byte* frame, const FrameValues& values) const noexcept;
    /// Writes the subscriber of a frame that is sent in a tunnel.
    void write_subscriber_by_rule(std::byte* frame, std::uint64_t tuple) const noexcept {
        write_map_address(frame + sent_.layout.outer_source_address(), edges_->edges().address_of({tuple}));
    }

    [[nodiscard]] Role role() const noexcept { return role_; }
    /// The connection of frame number j; stateful gateways only.
    [[nodiscard]] std::uint64_t connection_of(std::uint64_t j) const noexcept { return choice_.at(j); }
    /// Replaces the numbers of frames with their connections.
    void put_connections(std::span<std::uint64_t> numbers) const noexcept { choice_.put_at(numbers); }
    [[nodiscard]] FrameValues values_of(std::uint64_t connection) const noexcept {
        return values_of(connection, set_.tuple_of(connection));
    }
    [[nodiscard]] FrameValues values_of(std::uint64_t connection, const enumerate::Tuple& tuple) const noexcept {
        return role_ == Role::initiator ? FrameValues{.source_port = tuple.source_port,
                                                      .destination_port = tuple.destination_port,
                                                      .source_host = tuple.source_host,
                                                      .destination_host = tuple.destination_host,
                                                      .network = 0,
                                                      .connection = connection}
                                        : FrameValues{.source_port = tuple.destination_port,
                                                      .destination_port = tuple.source_port,
                                                      .source_host = tuple.destination_host,
                                                      .destination_host = tuple.source_host,
                                                      .network = 0,
                                                      .connection = connection};
    }
    [[nodiscard]] const enumerate::ConnectionSet& connections() const noexcept { return set_; }
    /// The Initiator's hosts, of a stream of connections in tunnels: a value of its host counts
    /// both subscriber and host. nullptr for any other stream.
    [[nodiscard]] const SubscriberHosts* subscriber_hosts() const noexcept { return subscriber_hosts_ ? &*subscriber_hosts_ : nullptr; }
    /// nullptr if neither end is customer edges.
    [[nodiscard]] const EdgeTraffic* edges() const noexcept { return edges_ ? &*edges_ : nullptr; }
    [[nodiscard]] bool comes_from_edges() const noexcept { return comes_from_edges_; }
    /// The hosts outside of a gateway that is a customer edge, if they are others; nullptr if not.
    [[nodiscard]] const PeerEdges* peers() const noexcept { return peers_ ? &*peers_ : nullptr; }
    /// The hosts that frames are sent from and to, each in their own family.
    [[nodiscard]] const HostSet& source_hosts() const noexcept { return source_set_; }
    [[nodiscard]] const HostSet& destination_hosts() const noexcept { return destination_set_; }

    /// The values of a frame by the number that a sender's writer has prepared: its connection if
    /// it has one, else its number in the class. Out of line: the writers inline what they need
    /// themselves.
    [[nodiscard]] FrameValues values_of_prepared(std::uint64_t number) const noexcept;
    /// Whether a sent frame needs `write_special` beside what writers write for a whole burst.
    [[nodiscard]] bool is_special() const noexcept {
        return sent_without_checksum_ || source_macs_ || sent_destination_macs_ || marking_.varies() ||
               (sent_.layout.in_tunnel() && !subscriber_hosts_ && outer_header_varies() && !sent_.subscriber_word());
    }
    /// Writes over a frame that `write_frame` has written: the subscriber of its tunnel, no
    /// checksum, and the link-layer addresses of its hosts. A step of its own, so that other
    /// streams do not pay for it.
    void write_special(std::byte* frame, const FrameValues& values) const noexcept;
    /// The same for a frame as a correct gateway forwards it.
    void write_special_expected(std::byte* frame, const FrameValues& values) const noexcept;
    /// The address that a correct gateway sends the frame to: that of its host, else the port's
    /// own.
    [[nodiscard]] net::MacAddress expected_destination_mac(const FrameValues& values) const noexcept;
    /// The address that a frame is sent from, if it is that of its host.
    [[nodiscard]] std::optional<net::MacAddress> host_source_mac(const FrameValues& values) const noexcept {
        return source_macs_ ? std::optional{source_macs_->at(source_set_.number_of(source_set_.host(values.source_host, 0)))}
                            : std::nullopt;
    }
    /// Whether `expected_destination_mac` differs from frame to frame.
    [[nodiscard]] bool has_host_macs() const noexcept { return destination_macs_.has_value(); }
    [[nodiscard]] bool sent_without_checksum() const noexcept { return sent_without_checksum_; }
    /// Whether the frame must arrive without a checksum, as it was sent: from IPv4 to IPv4 nobody
    /// may add one (RFC 3022 section 4.1). A translator to IPv6 must compute it (RFC 7915 section
    /// 4.5).
    [[nodiscard]] bool expects_no_checksum() const noexcept { return expects_no_checksum_; }

    [[nodiscard]] std::uint8_t id() const noexcept { return id_; }
    [[nodiscard]] const FrameTemplate& sent() const noexcept { return sent_; }
    [[nodiscard]] const FrameTemplate& expected() const noexcept { return expected_; }
    [[nodiscard]] std::uint8_t expected_hop_limit() const noexcept { return expected_hop_limit_; }
    /// Whether frames have different marks: then both templates have none.
    [[nodiscard]] bool marks_vary() const noexcept { return marking_.varies(); }
    [[nodiscard]] Mark sent_mark(const FrameValues& values) const noexcept {
        return marking_.varies() ? marking_.of(flow_of(values)) : marking_.constant();
    }
    /// What a correct gateway makes of it: a translator keeps the class and begins or ends the flow
    /// label (RFC 7915 sections 4.1 and 5.1).
    [[nodiscard]] Mark expected_mark(const FrameValues& values) const noexcept {
        Mark mark = sent_mark(values);
        mark.flow_label = keeps_family() ? mark.flow_label : 0;
        return mark;
    }
    /// Whether a router may label the flow of a frame with this mark, which its source has not (RFC
    /// 6437 section 3).
    [[nodiscard]] bool may_be_labelled(const Mark& expected) const noexcept {
        return expected.flow_label == 0 && keeps_family() && sent_.layout.family == net::Family::ipv6 && !as_sent_;
    }
    /// Of a stream with a tunnel: whether its subscribers are at the end that frames come from.
    [[nodiscard]] bool comes_from_subscribers() const noexcept { return sent_.layout.in_tunnel(); }
    /// Whether outer headers differ but for what edges write: in their addresses, or, of IPv4, in
    /// what the checksum covers.
    [[nodiscard]] bool outer_header_varies() const noexcept {
        return peers_ || (tunnel_.subscribers && !(tunnel_.is_single() && tunnel_.gateway.family == net::Family::ipv6));
    }
    /// Whether this is the outer address of a subscriber, of the set or not; `field` holds those of
    /// the set.
    [[nodiscard]] bool is_of_any_subscriber(const std::byte* outer_address, const AddressField& field) const noexcept;
    /// The hop limit of the outer header as it must arrive; nothing if any will do.
    [[nodiscard]] std::optional<std::uint8_t> expected_tunnel_hop_limit() const noexcept { return tunnel_.expected_hop_limit; }
    [[nodiscard]] const TunnelRequest& tunnel() const noexcept { return tunnel_; }
    /// The traffic class of the outer header around a packet with this one.
    [[nodiscard]] std::uint8_t tunnel_traffic_class(std::uint8_t inside) const noexcept { return tunnel_.outer_class(inside); }
    [[nodiscard]] DontFragment expected_dont_fragment() const noexcept { return expected_dont_fragment_; }
    /// Whether the IPv4 identification must arrive as it was sent: a translator chooses its own
    /// (RFC 7915 section 5.1), and so may a NAT that shares an address among hosts (RFC 6864
    /// section 5.3).
    [[nodiscard]] bool identification_kept() const noexcept { return keeps_family() && role_ == Role::stateless; }
    [[nodiscard]] bool zero_checksum_for_ones() const noexcept { return zero_checksum_for_ones_; }
    /// Whether what follows the translator changes the packet again: its NAT, or what gives a
    /// customer edge its shared address.
    [[nodiscard]] bool changes_after_translation() const noexcept {
        if (role_ == Role::stateless) {
            return comes_from_edges_ && !keeps_family();
        }
        return nat_side_ == NatSide::either || (role_ == Role::responder) == (nat_side_ == NatSide::inside);
    }
    [[nodiscard]] bool as_sent() const noexcept { return as_sent_; }
    /// Whether a fragment header is due, of a packet that is no fragment.
    [[nodiscard]] bool has_fragment_header() const noexcept { return has_fragment_header_; }
    /// Whether the gateway chooses IPv4 identifications that must differ: those of packets which
    /// others may fragment (RFC 7915 section 5.1, RFC 6864 section 4.1).
    [[nodiscard]] bool has_new_identifications() const noexcept {
        return !keeps_family() && expected_.layout.family == net::Family::ipv4 && expected_dont_fragment_ == DontFragment::clear;
    }
    [[nodiscard]] std::optional<std::uint16_t> expected_vlan() const noexcept { return expected_vlan_; }

private:
    Stream() = default;
    [[nodiscard]] bool keeps_family() const noexcept { return sent_.layout.family == expected_.layout.family; }
    [[nodiscard]] static std::uint64_t flow_of(const FrameValues& values) noexcept {
        const std::uint64_t ends = std::uint64_t{values.source_port} << 48 | std::uint64_t{values.destination_port} << 32 |
                                   std::uint64_t{values.source_host} << 16 | values.destination_host;
        return ends ^ mix_bits(std::uint64_t{values.network} << 56 ^ values.connection);
    }
    /// Frame number j of the class is this edge's.
    [[nodiscard]] FrameValues values_of_edge(std::uint64_t j, Edge edge) const noexcept {
        if (!hosts_are_drawn_) [[unlikely]] {
            return values_of_edge_in_turn(j, edge);
        }
        const auto [edge_port, edge_host, port, host] = edge_draws().at(j, edge, edges_->of_domain(edge));
        return comes_from_edges_ ? FrameValues{.source_port = edge_port,
                                               .destination_port = port,
                                               .source_host = edge_host,
                                               .destination_host = host,
                                               .network = 0,
                                               .connection = edge.number}
                                 : FrameValues{.source_port = port,
                                               .destination_port = edge_port,
                                               .source_host = host,
                                               .destination_host = edge_host,
                                               .network = 0,
                                               .connection = edge.number};
    }
    [[nodiscard]] FrameValues values_of_edge_in_turn(std::uint64_t j, Edge edge) const noexcept;
    [[nodiscard]] FrameValues values_of_hosts(std::uint64_t j) const noexcept;
    [[nodiscard]] std::optional<Error> take_tunnel(const StreamRequest& request, const LinkAddresses& sent_link,
                                                   const LinkAddresses& received_link, const std::string& where);
    [[nodiscard]] std::optional<Error> take_subscribers(const StreamRequest& request, const std::string& name);
    [[nodiscard]] std::optional<Error> take_edges(const StreamRequest& request, std::uint64_t seed, const LinkAddresses& sent_link,
                                                  const LinkAddresses& received_link, const std::string& where);
    [[nodiscard]] std::optional<Error> take_peers(const StreamRequest& request, const LinkAddresses& sent_link,
                                                  const LinkAddresses& received_link, const std::string& where);
    /// The layout and the addresses of one of the templates.
    [[nodiscard]] std::optional<Error> lay_out(FrameTemplate& frame_template, const Layout& layout, const StreamRequest& request,
                                               const std::string& where) const;
    void build_tunnels(const Mark& sent_mark, const Mark& expected_mark);
    /// Whether there are checksums, and what the link-layer addresses of hosts follow from.
    void take_special(const StreamRequest& request, net::Family expected_family, const LinkAddresses& sent_link,
                      const LinkAddresses& received_link);

    std::uint8_t id_ = 0, expected_hop_limit_ = 0;
    Marking marking_;
    DontFragment expected_dont_fragment_ = DontFragment::clear;
    std::optional<std::uint16_t> expected_vlan_;
    bool draws_ = false;
    bool hosts_are_drawn_ = false;  ///< the same, whatever the frames belong to
    bool has_fragment_header_ = false;
    bool zero_checksum_for_ones_ = false, as_sent_ = false;
    NatSide nat_side_ = NatSide::outside;
    bool sent_without_checksum_ = false, expects_no_checksum_ = false;
    std::uint16_t networks_ = 1;
    Role role_ = Role::stateless;
    enumerate::ConnectionSet set_{{}, enumerate::Order::increasing, 1, 0};
    enumerate::ConnectionChoice choice_;
    std::optional<EdgeTraffic> edges_;
    std::optional<PeerEdges> peers_;
    bool comes_from_edges_ = false;  ///< else frames go to them
    TunnelRequest tunnel_;           ///< of frames that are sent or must arrive in one
    std::optional<SubscriberHosts> subscriber_hosts_;
    HostSet source_set_, destination_set_;
    std::optional<net::HostMacs> source_macs_, destination_macs_;  ///< of the sending side's hosts, of the receiving side's
    bool sent_destination_macs_ = false;                           ///< loop-back: the Tester sends to the host itself
    ValueSequence source_ports_, destination_ports_, source_hosts_, destination_hosts_;
    RandomSequence port_words_{0, 0}, host_words_{0, 0}, network_words_{0, 0};
    FrameTemplate sent_, expected_;
};

/// Completes a frame whose varying address bytes are written and sum to `addresses`: ports, index,
/// timestamp and both checksums.
inline void complete_frame(const FrameTemplate& frame_template, std::byte* frame, Sum addresses, std::uint16_t source_port,
                           std::uint16_t destination_port, std::uint8_t stream, std::uint64_t index, pace::Ticks now) noexcept {
    const Layout& layout = frame_template.layout;
    if (layout.family == net::Family::ipv4) {
        store_raw(frame + layout.ip + net::ipv4::checksum, header_checksum(frame_template.header_sum + addresses));
    }
    const std::uint32_t ports = swap_bytes((static_cast<std::uint32_t>(source_port) << 16) | destination_port);
    store_raw(frame + layout.udp, ports);
    const Sum mark = signature::write_stream_and_index(frame + layout.payload, stream, index) +
                     signature::write_timestamp(frame + layout.payload, now.value);
    store_raw(frame + layout.udp + net::udp::checksum, udp_checksum(frame_template.udp_sum + addresses + ports + mark));
}

/// Writes what varies in the addresses and returns its share of the checksums.
inline Sum write_addresses(const FrameTemplate& frame_template, std::byte* frame, const FrameValues& values) noexcept {
    return frame_template.source.write(frame + frame_template.layout.source_address(), values.source_host, 0, values.edge()) +
           frame_template.destination.write(frame + frame_template.layout.destination_address(), values.destination_host, values.network,
                                            values.edge());
}

/// The same for the outer header of a frame in a tunnel.
void write_tunnel(const FrameTemplate& frame_template, std::byte* frame, const FrameValues& values) noexcept;

/// Writes what varies into a buffer that holds `frame_template.frame`: addresses, ports, index,
/// timestamp and both checksums; nothing else is touched. `Stream::write_special` adds the rest.
inline void write_frame(const FrameTemplate& frame_template, std::byte* frame, const FrameValues& values, std::uint8_t stream,
                        std::uint64_t index, pace::Ticks now) noexcept {
    complete_frame(frame_template, frame, write_addresses(frame_template, frame, values), values.source_port, values.destination_port,
                   stream, index, now);
}

}  // namespace gatemark::frame
