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
    destination_mac,
    source_mac,
    encapsulated,
    headers,
    family,
    fragment,
    length,
    vlan,
    ipv4_header,
    ipv4_header_checksum,
    identification,
    source_address,
    destination_address,
    source_port,
    destination_port,
    hop_limit,
    traffic_class,
    dont_fragment,
    flow_label,
    extension_headers,
    udp_length,
    udp_checksum,
    payload,
    index,
    mark,
    wrong_port,
    untranslated_source,
    mapping_changed,
    wrong_owner,
    unknown_connection,
    no_udp_checksum,
    other_edge_port,
    other_edge_address,
    interface_identifier,
    embedding_suffix,
    outside_rule,
    outside_port_set,
    trailer,
    icmp_type,
    identifier,
    sequence,
    icmp_checksum,
    wrong_client,
    wrong_slot,
    tunnel_missing,
    tunnel_left,
    tunnel_source,
    tunnel_destination,
    other_subscriber,
    tunnel_traffic_class,
    tunnel_option,
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
/// - `destination_mac` is that of another host or broadcast in turn; `source_mac` is the Tester's,
///   zero or a group's in turn.
/// - `encapsulated` adds in turn a service tag, an IP header and, in IPv6, destination options.
/// - `headers` has in turn another EtherType, another protocol and IP version 5.
/// - `mark` has in turn another campaign, another trial and nothing but zeros.
/// - `wrong_port` changes nothing: the caller sends the frame back to the side that it came from,
///   with the VLAN tag of the correct side.
/// - `index`, `mark` and `wrong_port`: the Tester counts the reason, and the frame as lost, not as
///   faulty.
/// - `fragment` in IPv6 adds a fragment header that the payload length leaves out; else the Tester
///   would also count `length`.
/// - `destination_address` of an inward frame comes with `unknown_connection`, and so does
///   `destination_port`.
/// - `unknown_connection` comes with `destination_address`; `wrong_owner` with
///   `destination_address`, `destination_port` or both.
/// - `untranslated_source` comes with `family` where the NAT changes the family.
/// - `mapping_changed` gives the connection another pool port permanently, like a NAT that forgot
///   its mapping; frames in flight to the old one are dropped (no_state). It never applies to the
///   frame that establishes the connection, because the Tester could not detect it.
/// - `no_udp_checksum` (0) is found as `udp_checksum`.
/// - `trailer` adds four octets behind the packet, as if the frame had kept its FCS. The Tester
///   counts such frames apart, and as delivered.
/// - `other_edge_port`, `other_edge_address`, `interface_identifier` and `outside_rule` come with
///   the port or address of the customer edge that they change: a port of another customer of the
///   same address, the address of another customer, another interface identifier, nobody's address.
///   `embedding_suffix` is found as the address under the DMR prefix, of which it sets in turn a
///   bit of the suffix and of byte 8. They are for all frames through a border relay and, but for
///   `other_edge_port`, for outward ones of a customer edge.
/// - `outside_port_set` comes with `source_port`. It is for outward frames of a customer edge, and
///   gives them in turn a port of another customer and one of nobody, if anybody has none. So does
///   `source_port`, which is port 0 there.
/// - Through a border relay, `source_port` of a customer and `destination_port` to one is another
///   port of the same customer; `source_address` of a customer and `destination_address` to one
///   come with `outside_rule`.
/// - What leaves in a tunnel has the fields from `tunnel_missing` on, but `tunnel_left`, which what
///   left one has: it leaves with the header that it came in. `tunnel_source` and
///   `tunnel_destination` are nobody's address; `other_subscriber`, with `tunnel_destination`,
///   leads to another customer; `tunnel_traffic_class` is 0, or 4 where 0 is right; `tunnel_option`
///   is the encapsulation limit that Linux sends (RFC 2473 section 4.1.1); `tunnel_header` is eight
///   octets too many. The other fields are those of the packet in the tunnel, but `encapsulated`
///   and `headers`, which are the first header's. With `length` both headers say one octet less, so
///   it comes with `tunnel_header`.
/// - Echo messages have the fields from `trailer` on, and those of MAP but `embedding_suffix`, with
///   `identifier` in the place of a port. `identifier` is 0xffff in place of the right one,
///   behind a border relay 0, if nobody has it; `wrong_slot` that of the next or the previous
///   destination, with `identifier`; both and `wrong_client` are for replies. `wrong_client` is the
///   client whose address differs in the last bit, with `destination_address`; there is none behind
///   a border relay.
///
/// These have no such field: frames that are not a complete UDP datagram, and those that a full
/// table lets pass untranslated (all fields); `ipv4_header`, `ipv4_header_checksum`,
/// `dont_fragment` in IPv6; `flow_label`, `extension_headers` in IPv4; `identification` but in IPv4
/// frames that are routed; `udp_checksum` of a frame without; `payload` with 18 bytes of UDP data
/// or less, `index` and `mark` with less; `untranslated_source`, `mapping_changed` but in outward
/// frames; `wrong_owner`, `unknown_connection` but in inward ones, `wrong_owner` also if no other
/// connection has the same remote endpoint; `other_edge_port`, `outside_port_set` where nobody
/// shares the address,
/// `other_edge_address` where no other customer has another address of this family,
/// `interface_identifier` in IPv4, `embedding_suffix` where no address is embedded, or in the last
/// 32 bits; `family` in a tunnel; `tunnel_option` in IPv4; `other_subscriber` where no other
/// customer is; the port of a customer who has one port; and what the buffer has no room for
/// (`encapsulated`, `family`, `fragment`, `extension_headers`, `vlan`, `trailer`, `tunnel_left`,
/// `tunnel_option`).
[[nodiscard]] Fields corrupt(Field field, Packet& packet, const Notes& notes, NatTable* table) noexcept;

}  // namespace gatemark::refdut
