#pragma once

#include "base/enum_set.hpp"
#include "refdut/nat_table.hpp"
#include "refdut/packet.hpp"
#include "refdut/translate.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gatemark::refdut {

/// The reasons that the Tester has, under the Tester's names, two damages that it finds in one of
/// these, and one that it counts as no fault.
enum class Field : std::uint8_t {
    /// The Ethernet address of another host, or broadcast, in turn.
    destination_mac,
    /// The Tester's own Ethernet address, zero or a group's, in turn.
    source_mac,
    /// In turn a service tag (802.1ad) and another IP header. Not in: frames without room.
    encapsulated,
    /// In turn another EtherType, another protocol and IP version 5.
    headers,
    /// The datagram in a packet of the other family. Not in: frames without room for the longer
    /// header.
    family,
    /// IPv4: MF set; IPv6: a fragment header. Not in: IPv6 frames without room.
    fragment,
    /// The length of the IP packet is one octet less.
    length,
    /// Another tag, or one where there is none. Not in: frames without room for one.
    vlan,
    /// The reserved flag set. Not in: IPv6.
    ipv4_header,
    /// Wrong. Not in: IPv6.
    ipv4_header_checksum,
    /// Another one. Not in: IPv6, and frames that are translated.
    identification,
    /// An unused address.
    source_address,
    /// An unused address.
    destination_address,
    /// Another one; where only port 0 is certainly unused, that. Not in: such frames with port 0.
    source_port,
    /// Another one; where only port 0 is certainly unused, that. Not in: such frames with port 0.
    destination_port,
    /// One more than correct.
    hop_limit,
    /// Another one.
    traffic_class,
    /// The other value. Not in: IPv6.
    dont_fragment,
    /// Another one. Not in: IPv4.
    flow_label,
    /// Destination options before UDP. Not in: IPv4, frames without room.
    extension_headers,
    /// One octet less. Not in: empty datagrams.
    udp_length,
    /// Wrong. Not in: datagrams without one.
    udp_checksum,
    /// One octet behind the Tester's mark. Not in: datagrams of 18 octets of data or less.
    payload,
    /// The frame's number in the mark. Not in: shorter datagrams.
    index,
    /// In turn another campaign, another trial, and zeros in all of the mark. Not in: shorter
    /// datagrams.
    mark,
    /// Leaves on the side that it came from. Not in: while no neighbour is known there.
    wrong_port,
    /// NAT: its own source address, with `family` where families differ. Not in: inward frames.
    untranslated_source,
    /// NAT: another public endpoint, for good. Not in: inward frames, and those that establish a
    /// connection.
    mapping_changed,
    /// NAT: goes to the endpoint of another connection. Not in: outward frames; where no other
    /// connection has the same remote endpoint.
    wrong_owner,
    /// NAT: goes to an endpoint of no connection, with `destination_address`. Not in: outward
    /// frames.
    unknown_connection,
    /// 0; found as `udp_checksum`. Not in: datagrams without one.
    no_udp_checksum,
    /// MAP-T: a port in the same place of another customer's set, with `source_port` or
    /// `destination_port`. Not in: where nobody shares the address.
    other_edge_port,
    /// MAP-T: the address of another customer, with `source_address` or `destination_address`. Not
    /// in: where the rule has no customer with another address of the family.
    other_edge_address,
    /// MAP-T: another one in the MAP address, with the address. Not in: IPv4.
    interface_identifier,
    /// MAP-T: in turn a bit of the suffix and of octet 8 set in the address under the DMR prefix;
    /// found as that address. Not in: IPv4, and a DMR prefix of 96 bits.
    embedding_suffix,
    /// MAP-T: in place of the customer's address an unused one, with the address. Not in: where the
    /// rule has all addresses.
    outside_rule,
    /// Customer edges: in turn a port in the same place of another customer's set and, with a PSID
    /// offset, port 1, which no customer has; with `source_port`. Not in: inward frames; where
    /// nobody shares the address.
    outside_port_set,
    /// Four octets behind the IP packet, as if the frame had kept its FCS; the Tester delivers the
    /// packet and counts it as `with_trailer`. Not in: frames without room.
    trailer,
    /// Echo: 200. Not in: all but echo messages, like the five below; the identifier, client and
    /// slot of a request.
    icmp_type,
    /// Echo: 65535; to a customer behind a border relay 0. Not in: identifier 65535; where somebody
    /// has port 0.
    identifier,
    /// Echo: another one.
    sequence,
    /// Echo: wrong.
    icmp_checksum,
    /// Echo: goes to the client whose address differs in the last bit, with `destination_address`.
    wrong_client,
    /// Echo: that of the next destination or the one before, with `identifier`.
    wrong_slot,
    /// Leaves without its tunnel. Not in: what does not leave in a tunnel, as all below but
    /// `tunnel_left`.
    tunnel_missing,
    /// Leaves in the tunnel that it came in. Not in: what did not come in a tunnel; frames without
    /// room.
    tunnel_left,
    /// The tunnel's source is an unused address.
    tunnel_source,
    /// The tunnel leads to an unused address.
    tunnel_destination,
    /// In the tunnel of another customer, with `tunnel_destination`. Not in: where the rule has one
    /// customer; AFTR: while there is one B4; `b4`, `map_e_ce`, `lwb4`.
    other_subscriber,
    /// Of the tunnel: 0; where 0 is correct, 4.
    tunnel_traffic_class,
    /// In the tunnel's header the encapsulation limit that Linux sends (RFC 2473 section 4.1.1).
    /// Not in: tunnels of IPv4, frames without room.
    tunnel_option,
    /// The length in the tunnel's header is 8 octets more.
    tunnel_header,
};
constexpr std::size_t field_count = count_of<Field>;
constexpr auto field_names = names_of<Field>;

[[nodiscard]] std::optional<Field> field_of(std::string_view name) noexcept;

using Fields = EnumSet<Field>;

/// Damages one field of a UDP frame or an echo message right after `Translator::translate` has made
/// it (`notes` are of that call), before the next frame is translated, and after VLAN tag and
/// Ethernet addresses of the outgoing side have been set. All checksums over the field are
/// corrected, unless the checksum is the field. Returns the reasons that the Tester must count: the
/// field, and those that inevitably come with it. Returns none, and changes nothing, if this frame
/// has no such field. `table` is that of the translator (NAT modes).
///
/// What each does, and which frames have no such field, is at its enumerator; how damages are in
/// tunnels, MAP and echo messages, docs/reference/refdut.md. Frames that are not a complete UDP
/// datagram or echo message, and those that a full table lets pass untranslated, have none.
///
/// - `wrong_port` changes nothing: the caller sends the frame back to the side that it came from,
///   with the VLAN tag of the correct side.
/// - `mapping_changed` is like a NAT that forgot its mapping: frames in flight to the old one are
///   dropped (no_state). The Tester could not detect it in the frame that establishes a connection.
[[nodiscard]] Fields corrupt(Field field, Packet& packet, const Notes& notes, NatTable* table) noexcept;

}  // namespace gatemark::refdut
