#include "refdut/corrupt.hpp"

#include "refdut/checksum.hpp"
#include "refdut/rewrite.hpp"

#include <algorithm>
#include <cstring>

namespace gatemark::refdut {

namespace {

/// The Tester's signature is the first 18 bytes of the UDP data: 20 bits of the campaign and 12 of
/// the trial, from byte 5 to byte 9 the index of the frame.
constexpr std::size_t mark_bytes = 18, campaign_at = 0, trial_at = 3, index_at = 5, index_bytes = 5;

/// Changes fields of one packet and corrects the checksums.
class Editor {
public:
    Editor(Packet& packet, const View& view) noexcept : packet_{packet}, view_{view} {}

    [[nodiscard]] bool ipv4() const noexcept { return view_.family == net::Family::ipv4; }
    [[nodiscard]] std::byte* ip(std::size_t at) const noexcept { return packet_.at(view_.ip + at); }
    [[nodiscard]] std::byte* udp(std::size_t at) const noexcept { return packet_.at(view_.upper + at); }
    [[nodiscard]] std::uint16_t ip_word(std::size_t at) const noexcept { return load_big_endian<std::uint16_t>(ip(at)); }
    [[nodiscard]] std::uint16_t udp_word(std::size_t at) const noexcept { return load_big_endian<std::uint16_t>(udp(at)); }

    /// Of the IPv4 header, addresses excepted.
    void set_ipv4_word(std::size_t at, std::uint16_t value) noexcept {
        OnesSum change;
        change.take_away(ip_word(at));
        change.add(value);
        store_big_endian(ip(ipv4_at::checksum), updated(ip_word(ipv4_at::checksum), change));
        store_big_endian(ip(at), value);
    }
    void set_ipv4_protocol(std::uint8_t protocol) noexcept {
        set_ipv4_word(ipv4_at::time_to_live, static_cast<std::uint16_t>((ip_word(ipv4_at::time_to_live) & 0xff00U) | protocol));
    }
    /// Of the UDP datagram.
    void set_udp_word(std::size_t at, std::uint16_t value) noexcept {
        OnesSum change;
        change.take_away(udp_word(at));
        change.add(value);
        change_udp_checksum(change);
        store_big_endian(udp(at), value);
    }
    void change_udp_checksum(const OnesSum& change) noexcept {
        if (const std::uint16_t checksum = udp_word(udp_at::checksum); checksum != 0) {
            store_big_endian(udp(udp_at::checksum), as_udp(updated(checksum, change)));
        }
    }
    void set_endpoints(const Endpoints& to) noexcept { write_endpoints(packet_, view_, to); }
    [[nodiscard]] Endpoints endpoints() const noexcept { return endpoints_of(packet_, view_); }

    /// An address that belongs to no host and no pool: of 240.0.0.0/8 (reserved, RFC 1112 section
    /// 4) or 100::/16 (RFC 6666).
    [[nodiscard]] AddressBytes nobody(AddressBytes address) const noexcept {
        const auto first = static_cast<std::byte>(ipv4() ? 240 : 1);
        address[0] = address[0] == first ? first | std::byte{2} : first;
        if (!ipv4()) {
            address[1] = std::byte{0};
        }
        return address;
    }

private:
    Packet& packet_;
    const View& view_;
};

/// Puts the UDP datagram into a packet of the other family, from `source` to nobody.
bool change_family(Packet& packet, const View& view, const AddressBytes& source) noexcept {
    Endpoints to = endpoints_of(packet, view);
    to.source = source;
    const std::uint8_t hop_limit = hop_limit_of(packet, view);
    if (view.family == net::Family::ipv6) {
        to.destination = {std::byte{240}, std::byte{0}, std::byte{0}, std::byte{2}};
        make_ipv4(packet, view, to, {.hop_limit = hop_limit});
        return true;
    }
    if (!has_room_for_ipv6(packet, view)) {
        return false;
    }
    to.destination = {std::byte{1}};
    to.destination[15] = std::byte{2};
    make_ipv6(packet, view, to, hop_limit);
    return true;
}

/// Differs from frame to frame: chooses among the kinds of one damage. It is the lowest byte of the
/// index.
unsigned choice_of(const Packet& packet, const View& view, const Editor& editor) noexcept {
    constexpr std::size_t at = udp_bytes + index_at + index_bytes - 1;
    return editor.udp_word(udp_at::length) > at ? std::to_integer<unsigned>(*packet.at(view.upper + at)) : 0;
}

Fields corrupt_link(Field field, Packet& packet, unsigned choice) noexcept {
    constexpr std::byte group{1};
    std::byte* const destination = packet.at(0);
    std::byte* const source = packet.at(mac_bytes);
    if (field == Field::destination_mac) {
        if (choice % 2 == 0) {
            destination[mac_bytes - 1] ^= std::byte{1};  // another host
        } else {
            std::fill_n(destination, mac_bytes, std::byte{0xff});
        }
    } else if (choice % 3 == 0) {
        std::copy_n(destination, mac_bytes, source);
    } else if (choice % 3 == 1) {
        std::fill_n(source, mac_bytes, std::byte{0});
    } else {
        source[0] |= group;
    }
    return {field};
}

/// A service tag over whatever the frame has (IEEE 802.1ad).
bool wrap_in_service_tag(Packet& packet) noexcept {
    constexpr std::uint16_t type_service_tag = 0x88a8, any_id = 2;
    if (!open_gap(packet, ethernet_type_at, vlan_bytes)) {
        return false;
    }
    store_big_endian(packet.at(ethernet_type_at), type_service_tag);
    store_big_endian(packet.at(ethernet_type_at + 2), any_id);
    return true;
}

/// The packet as the data of another one of the same family and with the same addresses (RFC 2003,
/// RFC 2473).
bool wrap_in_ip(Packet& packet, const View& view, Editor& editor) noexcept {
    const bool ipv4 = editor.ipv4();
    const std::size_t header = ipv4 ? ipv4_bytes : ipv6_bytes;
    if (view.upper != view.ip + header || !open_gap(packet, view.ip, header)) {
        return false;
    }
    std::memcpy(packet.at(view.ip), packet.at(view.ip + header), header);
    if (ipv4) {
        constexpr std::uint8_t ipv4_in_ip = 4;
        editor.set_ipv4_word(ipv4_at::total_length, static_cast<std::uint16_t>(header + view.ip_bytes));
        editor.set_ipv4_protocol(ipv4_in_ip);
    } else {
        constexpr std::uint8_t ipv6_in_ip = 41;
        store_big_endian(packet.at(view.ip + ipv6_at::payload_length), static_cast<std::uint16_t>(view.ip_bytes));
        *packet.at(view.ip + ipv6_at::next_header) = std::byte{ipv6_in_ip};
    }
    return true;
}

/// Adds to the length that the header says.
void lengthen(Packet& packet, const View& view, std::uint16_t bytes) noexcept {
    Editor editor{packet, view};
    const std::size_t at = editor.ipv4() ? ipv4_at::total_length : ipv6_at::payload_length;
    const auto longer = static_cast<std::uint16_t>(editor.ip_word(at) + bytes);
    editor.ipv4() ? editor.set_ipv4_word(at, longer) : store_big_endian(editor.ip(at), longer);
}

/// Inserts an extension header of eight octets between the header of IPv6 and what follows. `rest`
/// is what is in it behind the number of that.
bool insert_header(Packet& packet, const View& view, std::uint8_t protocol, std::uint64_t rest) noexcept {
    constexpr std::uint16_t header_bytes = 8;
    if (view.family != net::Family::ipv6 || view.upper != view.ip + ipv6_bytes || !open_gap(packet, view.upper, header_bytes)) {
        return false;
    }
    lengthen(packet, view, header_bytes);
    *packet.at(view.ip + ipv6_at::next_header) = std::byte{protocol};
    store_big_endian(packet.at(view.upper), std::uint64_t{view.protocol} << 56 | rest);
    return true;
}

Fields corrupt_encapsulation(Packet& packet, const View& view, Editor& editor, unsigned choice) noexcept {
    const bool done = choice % 2 == 0 ? wrap_in_service_tag(packet) : wrap_in_ip(packet, view, editor);
    return done ? Fields{Field::encapsulated} : Fields{};
}

/// Makes the headers those of something else than UDP in IP.
Fields corrupt_headers(Packet& packet, const View& view, Editor& editor, unsigned choice) noexcept {
    constexpr std::uint16_t type_for_experiments = 0x88b5;  // IEEE 802
    constexpr std::uint8_t protocol_for_experiments = 253;  // RFC 3692
    constexpr std::uint16_t version_bits = 0xf000, version_5 = 0x5000;
    if (choice % 3 == 0) {
        store_big_endian(packet.at(view.ip - 2), type_for_experiments);
    } else if (choice % 3 == 1 && editor.ipv4()) {
        editor.set_ipv4_protocol(protocol_for_experiments);
    } else if (choice % 3 == 1) {
        *editor.ip(ipv6_at::next_header) = std::byte{protocol_for_experiments};
    } else if (editor.ipv4()) {
        editor.set_ipv4_word(0, static_cast<std::uint16_t>((editor.ip_word(0) & ~version_bits) | version_5));
    } else {
        store_big_endian(editor.ip(0), static_cast<std::uint16_t>((editor.ip_word(0) & ~version_bits) | version_5));
    }
    return {Field::headers};
}

Fields corrupt_family(Packet& packet, const View& view) noexcept {
    AddressBytes nobody{};
    nobody[0] = static_cast<std::byte>(view.family == net::Family::ipv6 ? 240 : 1);
    nobody[view.family == net::Family::ipv6 ? 3 : 15] = std::byte{1};
    return change_family(packet, view, nobody) ? Fields{Field::family} : Fields{};
}

Fields corrupt_fragment(Packet& packet, const View& view, Editor& editor) noexcept {
    if (editor.ipv4()) {
        editor.set_ipv4_word(ipv4_at::flags, editor.ip_word(ipv4_at::flags) | flag_more_fragments);
        return {Field::fragment};
    }
    constexpr std::uint64_t first_one = std::uint64_t{1} << 32 | 1;  // offset 0, more fragments, identification 1
    return insert_header(packet, view, protocol_fragment, first_one) ? Fields{Field::fragment} : Fields{};
}

Fields corrupt_extension_headers(Packet& packet, const View& view, const Editor& editor) noexcept {
    constexpr std::uint64_t padding = std::uint64_t{0x0104} << 32;  // PadN of four octets
    const bool done = !editor.ipv4() && insert_header(packet, view, protocol_destination_options, padding);
    return done ? Fields{Field::extension_headers} : Fields{};
}

Fields corrupt_vlan(Packet& packet) noexcept {
    constexpr std::uint16_t reserved = 4095;
    std::uint16_t vlan_id = 1;
    if (const auto present = vlan_of(packet)) {
        vlan_id = static_cast<std::uint16_t>(*present ^ 1U);
        vlan_id = vlan_id == 0 || vlan_id == reserved ? static_cast<std::uint16_t>(*present ^ 2U) : vlan_id;
    }
    return set_vlan(packet, vlan_id) ? Fields{Field::vlan} : Fields{};
}

Fields add_trailer(Packet& packet) noexcept {
    constexpr std::size_t trailer_bytes = 4;
    if (packet.tailroom < trailer_bytes) {
        return {};
    }
    std::memset(packet.at(packet.bytes), 0xa5, trailer_bytes);
    packet.bytes += trailer_bytes;
    packet.tailroom -= trailer_bytes;
    return {Field::trailer};
}

Fields corrupt_ipv4(Field field, const Notes& notes, Editor& editor) noexcept {
    if (!editor.ipv4()) {
        return {};
    }
    const std::uint16_t flags = editor.ip_word(ipv4_at::flags), identification = editor.ip_word(ipv4_at::identification);
    switch (field) {
        case Field::ipv4_header:
            if ((flags & flag_reserved) != 0) {
                return {};
            }
            editor.set_ipv4_word(ipv4_at::flags, flags | flag_reserved);
            break;
        case Field::ipv4_header_checksum:
            store_big_endian(editor.ip(ipv4_at::checksum), static_cast<std::uint16_t>(editor.ip_word(ipv4_at::checksum) ^ 1U));
            break;
        case Field::dont_fragment: editor.set_ipv4_word(ipv4_at::flags, flags ^ flag_dont_fragment); break;
        default:  // identification
            if (notes.treatment != Treatment::routed) {
                return {};
            }
            editor.set_ipv4_word(ipv4_at::identification, identification == 1 ? std::uint16_t{2} : std::uint16_t{1});
            break;
    }
    return {field};
}

Fields corrupt_ip(Field field, Editor& editor) noexcept {
    const bool ipv4 = editor.ipv4();
    const std::size_t length_at = ipv4 ? ipv4_at::total_length : ipv6_at::payload_length;
    const auto shorter = static_cast<std::uint16_t>(editor.ip_word(length_at) - 1);
    switch (field) {
        case Field::length: ipv4 ? editor.set_ipv4_word(length_at, shorter) : store_big_endian(editor.ip(length_at), shorter); break;
        case Field::hop_limit: {
            const std::size_t at = ipv4 ? ipv4_at::time_to_live : ipv6_at::hop_limit;
            const auto old = std::to_integer<unsigned>(*editor.ip(at));
            const unsigned value = old == 255 ? 254 : old + 1;
            if (ipv4) {
                editor.set_ipv4_word(at, static_cast<std::uint16_t>(value << 8 | (editor.ip_word(at) & 0xffU)));
            } else {
                *editor.ip(at) = static_cast<std::byte>(value);
            }
            break;
        }
        case Field::traffic_class:
            if (ipv4) {
                editor.set_ipv4_word(0, static_cast<std::uint16_t>(editor.ip_word(0) ^ 0x0004U));
            } else {
                store_big_endian(editor.ip(0), static_cast<std::uint16_t>(editor.ip_word(0) ^ 0x0040U));
            }
            break;
        default: {  // flow_label
            if (ipv4) {
                return {};
            }
            const std::uint16_t low = editor.ip_word(2);
            store_big_endian(editor.ip(2), low == 1 ? std::uint16_t{2} : std::uint16_t{1});
            break;
        }
    }
    return {field};
}

/// Another port of the same customer of a border relay.
Fields corrupt_own_port(Field field, const MapNotes& map, Editor& editor) noexcept {
    Endpoints to = editor.endpoints();
    std::uint16_t& port = map.is_source ? to.source_port : to.destination_port;
    const std::uint16_t another = map.rule->ports_of(map.customer).after(port);
    if (another == port) {
        return {};
    }
    port = another;
    editor.set_endpoints(to);
    return {field};
}

bool is_outside(const MapRule& rule, const AddressBytes& address, const Editor& editor) noexcept {
    return !(editor.ipv4() ? rule.has_ipv4(address) : rule.has_ipv6(address));
}

Fields corrupt_endpoint(Field field, const Notes& notes, Editor& editor) noexcept {
    if (notes.treatment != Treatment::outward && notes.map.rule != nullptr &&
        field == (notes.map.is_source ? Field::source_port : Field::destination_port)) {
        return corrupt_own_port(field, notes.map, editor);
    }
    Endpoints to = editor.endpoints();
    const bool inward = notes.treatment == Treatment::inward;
    // If another port might belong to another connection, only port 0 certainly belongs to none.
    const auto wrong_port = [](std::uint16_t port, bool nobodys) { return nobodys ? std::uint16_t{0} : std::uint16_t(port ^ 0x8000U); };
    Fields fields{field};
    switch (field) {
        case Field::source_address: to.source = editor.nobody(to.source); break;
        case Field::source_port:
            if (notes.treatment == Treatment::outward && to.source_port == 0) {
                return {};
            }
            to.source_port = wrong_port(to.source_port, notes.treatment == Treatment::outward);
            break;
        case Field::destination_port:
            if (inward && to.destination_port == 0) {
                return {};
            }
            to.destination_port = wrong_port(to.destination_port, inward);
            break;
        default:  // destination_address, unknown_connection
            if (field == Field::unknown_connection && !inward) {
                return {};
            }
            to.destination = editor.nobody(to.destination);
            fields.add(Field::destination_address);
            break;
    }
    if (notes.map.rule != nullptr && field == (notes.map.is_source ? Field::source_address : Field::destination_address) &&
        is_outside(*notes.map.rule, notes.map.is_source ? to.source : to.destination, editor)) {
        fields.add(Field::outside_rule);
    }
    if (notes.map.rule != nullptr && field == Field::source_port && notes.treatment == Treatment::outward) {
        fields.add(Field::outside_port_set);
    }
    if (inward && field != Field::source_address && field != Field::source_port) {
        fields.add(Field::unknown_connection);
    }
    editor.set_endpoints(to);
    return fields;
}

Fields corrupt_udp_length(Editor& editor) noexcept {
    const std::uint16_t length = editor.udp_word(udp_at::length);
    if (length <= udp_bytes) {
        return {};
    }
    // The datagram without its last byte is consistent.
    const auto shorter = static_cast<std::uint16_t>(length - 1);
    const auto last = std::to_integer<std::uint32_t>(*editor.udp(shorter));
    OnesSum change;
    for (int i = 0; i < 2; ++i) {  // the length counts in the header and in the pseudo-header
        change.take_away(length);
        change.add(shorter);
    }
    change.take_away(shorter % 2 == 0 ? last << 8 : last);
    editor.change_udp_checksum(change);
    store_big_endian(editor.udp(udp_at::length), shorter);
    return {Field::udp_length};
}

/// The address of a customer behind a border relay, or that of a customer edge. False if there is
/// no such other one.
bool change_customer(Field field, const MapNotes& map, const Editor& editor, AddressBytes& address) noexcept {
    constexpr unsigned address_bits = 128;
    if (field == Field::other_edge_address) {
        const auto neighbour = map.rule->neighbour_of(map.customer, editor.ipv4());
        if (neighbour) {
            address = editor.ipv4() ? neighbour->ipv4 : map.rule->address_of(*neighbour);
        }
        return neighbour.has_value();
    }
    if (field == Field::outside_rule) {
        address = editor.nobody(address);
        return is_outside(*map.rule, address, editor);
    }
    address.back() ^= std::byte{1};
    return !editor.ipv4() && map.rule->spec().end_user_bits() < address_bits;
}

/// A port that is not one of the customer edge's set: in turn that of another customer and
/// nobody's.
Fields corrupt_port_set(const MapNotes& map, Editor& editor, unsigned choice) noexcept {
    constexpr std::uint16_t lowest = 1;  // belongs to nobody if anything does
    Endpoints to = editor.endpoints();
    const PortSet ports = map.rule->ports_of(map.customer);
    const std::uint16_t another = ports.elsewhere(to.source_port);
    if (another == to.source_port) {
        return {};
    }
    to.source_port = choice % 2 == 0 || ports.is_anybodys(lowest) ? another : lowest;
    editor.set_endpoints(to);
    return {Field::outside_port_set, Field::source_port};
}

Fields corrupt_edge(Field field, const Notes& notes, Editor& editor, unsigned choice) noexcept {
    const MapNotes& map = notes.map;
    const bool by_edge = notes.treatment == Treatment::outward;
    if (map.rule == nullptr || field == (by_edge ? Field::other_edge_port : Field::outside_port_set)) {
        return {};
    }
    if (field == Field::outside_port_set) {
        return corrupt_port_set(map, editor, choice);
    }
    Endpoints to = editor.endpoints();
    if (field != Field::other_edge_port) {
        if (!change_customer(field, map, editor, map.is_source ? to.source : to.destination)) {
            return {};
        }
        editor.set_endpoints(to);
        return {field, map.is_source ? Field::source_address : Field::destination_address};
    }
    std::uint16_t& port = map.is_source ? to.source_port : to.destination_port;
    const std::uint16_t another = map.rule->ports_of(map.customer).elsewhere(port);
    if (another == port) {
        return {};
    }
    port = another;
    editor.set_endpoints(to);
    return {field, map.is_source ? Field::source_port : Field::destination_port};
}

/// What the address under the DMR prefix has beside prefix and IPv4 address (RFC 6052 section 2.2).
Fields corrupt_suffix(const MapNotes& map, Editor& editor, unsigned choice) noexcept {
    constexpr unsigned without_suffix = 96;
    constexpr std::size_t reserved_byte = 8;
    if (map.rule == nullptr || !map.embedded || map.rule->spec().dmr->length == without_suffix) {
        return {};
    }
    Endpoints to = editor.endpoints();
    AddressBytes& address = map.is_source ? to.destination : to.source;
    (choice % 2 == 0 ? address.back() : address[reserved_byte]) ^= std::byte{1};
    editor.set_endpoints(to);
    return {map.is_source ? Field::destination_address : Field::source_address};
}

Fields corrupt_udp(Field field, Editor& editor) noexcept {
    const std::size_t length = editor.udp_word(udp_at::length);
    switch (field) {
        case Field::udp_length: return corrupt_udp_length(editor);
        case Field::no_udp_checksum:
            if (editor.udp_word(udp_at::checksum) == 0) {
                return {};
            }
            store_big_endian(editor.udp(udp_at::checksum), std::uint16_t{0});
            return {Field::udp_checksum};
        case Field::udp_checksum: {
            const std::uint16_t checksum = editor.udp_word(udp_at::checksum);
            if (checksum == 0) {
                return {};
            }
            store_big_endian(editor.udp(udp_at::checksum), static_cast<std::uint16_t>(checksum == 1 ? 3 : checksum ^ 1U));
            break;
        }
        default: {  // payload
            constexpr std::size_t at = udp_bytes + mark_bytes;
            if (length <= at) {
                return {};
            }
            // An even offset, so the byte is the upper half of its word; the lower half may be
            // beyond the end.
            OnesSum change;
            change.take_away(std::to_integer<std::uint32_t>(*editor.udp(at)) << 8);
            *editor.udp(at) ^= std::byte{1};
            change.add(std::to_integer<std::uint32_t>(*editor.udp(at)) << 8);
            editor.change_udp_checksum(change);
            break;
        }
    }
    return {field};
}

/// The frame's number, or in turn whose frame it is, in which trial, and all of the mark.
Fields corrupt_mark(Field field, Editor& editor, unsigned choice) noexcept {
    if (editor.udp_word(udp_at::length) < udp_bytes + mark_bytes) {
        return {};
    }
    std::byte* const mark = editor.udp(udp_bytes);
    OnesSum before, change;
    before.add(mark, mark_bytes);
    if (field == Field::index) {
        std::memset(mark + index_at, 0xff, index_bytes);
    } else if (choice % 3 == 0) {
        mark[campaign_at] ^= std::byte{0x80};
    } else if (choice % 3 == 1) {
        mark[trial_at] ^= std::byte{1};
    } else {
        std::memset(mark, 0, mark_bytes);
    }
    change.add(mark, mark_bytes);
    change.add(static_cast<std::uint16_t>(~before.folded()));
    editor.change_udp_checksum(change);
    return {field};
}

Fields corrupt_outward(Field field, Packet& packet, const View& view, const Notes& notes, NatTable& table) noexcept {
    if (notes.treatment != Treatment::outward) {
        return {};
    }
    Endpoints to = endpoints_of(packet, view);
    if (field == Field::untranslated_source) {
        const AddressBytes inside_address = table.inside_of(notes.connection).address;
        if (notes.crossed) {
            return change_family(packet, view, inside_address) ? Fields{Field::family, field} : Fields{};
        }
        to.source = inside_address;
    } else {
        if (notes.new_connection || !table.change_mapping(notes.connection)) {
            return {};
        }
        const NatEndpoint pool = table.pool_of(notes.connection);
        to.source = notes.map.rule == nullptr ? pool.address : to.source;  // a customer edge keeps its MAP address
        to.source_port = pool.port;
    }
    write_endpoints(packet, view, to);
    return {field};
}

Fields corrupt_owner(Packet& packet, const View& view, const Notes& notes, const NatTable& table) noexcept {
    const NatTable::Connection other = notes.treatment == Treatment::inward ? table.another_owner(notes.connection) : NatTable::none;
    if (other == NatTable::none) {
        return {};
    }
    Endpoints to = endpoints_of(packet, view);
    NatEndpoint owner = table.inside_of(other);
    std::fill(owner.address.begin() + static_cast<std::ptrdiff_t>(view.address_bytes()), owner.address.end(), std::byte{0});  // its B4
    if (to.destination == owner.address && to.destination_port == owner.port) {
        return {};  // behind another B4
    }
    Fields fields{Field::wrong_owner};
    if (to.destination != owner.address) {
        fields.add(Field::destination_address);
    }
    if (to.destination_port != owner.port) {
        fields.add(Field::destination_port);
    }
    to.destination = owner.address;
    to.destination_port = owner.port;
    write_endpoints(packet, view, to);
    return fields;
}

/// Changes a word of an echo message. The checksum is corrected.
void write_word(Packet& packet, const View& view, std::size_t at, std::uint16_t word) noexcept {
    std::byte* const field = packet.at(view.upper + at);
    std::byte* const checksum = packet.at(view.upper + icmp_at::checksum);
    OnesSum change;
    change.take_away(load_big_endian<std::uint16_t>(field));
    change.add(word);
    store_big_endian(field, word);
    store_big_endian(checksum, updated(load_big_endian<std::uint16_t>(checksum), change));
}

/// Damages the address or the identifier of a customer, which is what a port is to a datagram.
Fields corrupt_edge_of_echo(Field field, const Notes& notes, Packet& packet, const View& view) noexcept {
    Editor editor{packet, view};
    const Fields fields = corrupt_edge(field, notes, editor, 0);
    return fields.has(Field::source_port) || fields.has(Field::destination_port) ? Fields{field, Field::identifier} : fields;
}

/// What a wrong identifier becomes, so that it is surely no client's: behind a border relay one of
/// nobody's port, if there is one.
std::optional<std::uint16_t> identifier_of_nobody(const MapNotes& map) noexcept {
    if (map.rule == nullptr) {
        return 0xffff;
    }
    return map.rule->ports_of(map.customer).is_anybodys(0) ? std::nullopt : std::optional<std::uint16_t>{0};
}

Fields corrupt_echo(Field field, Packet& packet, const View& view, const Notes& notes) noexcept {
    const MapNotes& map = notes.map;
    const auto word_at = [&](std::size_t at) { return load_big_endian<std::uint16_t>(packet.at(view.upper + at)); };
    const bool is_reply = view.echo == EchoMessage::reply;
    const std::uint16_t identifier = word_at(icmp_at::identifier);
    switch (field) {
        case Field::icmp_type: write_word(packet, view, icmp_at::type, 0xc800); return {field};
        case Field::sequence: write_word(packet, view, icmp_at::sequence, word_at(icmp_at::sequence) ^ 1); return {field};
        case Field::icmp_checksum:
            store_big_endian(packet.at(view.upper + icmp_at::checksum), static_cast<std::uint16_t>(word_at(icmp_at::checksum) ^ 0x0100));
            return {field};
        case Field::identifier:
            if (const auto another = identifier_of_nobody(map); is_reply && another && *another != identifier) {
                write_word(packet, view, icmp_at::identifier, *another);
                return {field};
            }
            return {};
        case Field::wrong_slot:
            if (!is_reply || (map.rule != nullptr && !map.rule->has_port(map.customer, identifier ^ 1))) {
                return {};
            }
            write_word(packet, view, icmp_at::identifier, identifier ^ 1);
            return {field, Field::identifier};
        case Field::wrong_client: {
            if (!is_reply || map.rule != nullptr) {
                return {};  // customers behind a border relay: `other_edge_address`
            }
            Endpoints to = endpoints_of(packet, view);
            to.destination[view.address_bytes() - 1] ^= std::byte{1};
            write_endpoints(packet, view, to);
            return {field, Field::destination_address};
        }
        case Field::other_edge_port:
        case Field::other_edge_address:
        case Field::interface_identifier:
        case Field::outside_rule:
        case Field::outside_port_set: return corrupt_edge_of_echo(field, notes, packet, view);
        case Field::trailer: return add_trailer(packet);
        default: return {};
    }
}

/// Both headers of what leaves in a tunnel agree.
Fields corrupt_both_lengths(Editor& outer, Editor& inner) noexcept {
    Fields fields = corrupt_ip(Field::length, inner);
    if (!fields.none() && !corrupt_ip(Field::length, outer).none()) {
        fields.add(Field::tunnel_header);
    }
    return fields;
}

/// An extension header in a packet in a tunnel is in the tunnel's length, too.
Fields with_length_of_tunnel(Packet& packet, const View& outer, const Notes& notes, const Fields& inserted) noexcept {
    if (notes.tunnel == Tunnel::entered && outer.family == net::Family::ipv4 && !inserted.none()) {
        lengthen(packet, outer, 8);
    }
    return inserted;
}

/// Where the tunnel of another customer ends, if there is any.
std::optional<AddressBytes> end_of_another(net::Family outer, const Notes& notes, const NatTable* table) noexcept {
    if (notes.treatment == Treatment::inward) {
        return table->another_b4(notes.connection);
    }
    if (notes.map.rule != nullptr && !notes.map.is_source) {
        const auto neighbour = notes.map.rule->neighbour_of(notes.map.customer, false);
        return neighbour ? std::optional{notes.map.rule->address_of(*neighbour)} : std::nullopt;
    }
    if (outer == net::Family::ipv6) {  // to the relay
        return std::nullopt;
    }
    AddressBytes end = notes.outer.destination;  // 6rd: an address that differs in the last bits
    end[3] ^= std::byte{1};
    if (end == notes.outer.source) {
        end[3] ^= std::byte{3};
    }
    return end;
}

/// What is before the packet in a tunnel, or whether anything is.
Fields corrupt_tunnel(Field field, Packet& packet, const View& outer, const View& inner, const Notes& notes,
                      const NatTable* table) noexcept {
    if (field == Field::tunnel_left) {
        return notes.tunnel == Tunnel::left && encapsulate(packet, inner, notes.outer) ? Fields{field} : Fields{};
    }
    if (notes.tunnel != Tunnel::entered) {
        return {};
    }
    OuterHeader header = notes.outer;
    switch (field) {
        case Field::tunnel_missing: decapsulate(packet, outer, inner); return {field};
        case Field::tunnel_option: {
            constexpr std::uint64_t limit_of_4 = 0x0004'0104'0101'00;  // and padding of three octets
            return insert_header(packet, outer, protocol_destination_options, limit_of_4) ? Fields{field} : Fields{};
        }
        case Field::tunnel_header: {
            lengthen(packet, outer, 8);
            return {field};
        }
        case Field::tunnel_source: header.source = Editor{packet, outer}.nobody(header.source); break;
        case Field::tunnel_destination: header.destination = Editor{packet, outer}.nobody(header.destination); break;
        case Field::tunnel_traffic_class: header.traffic_class = header.traffic_class == 0 ? std::uint8_t{4} : std::uint8_t{0}; break;
        default: {  // other_subscriber
            const auto end = end_of_another(outer.family, notes, table);
            if (!end) {
                return {};
            }
            header.destination = *end;
            write_outer_header(packet, outer, header);
            return {field, Field::tunnel_destination};
        }
    }
    write_outer_header(packet, outer, header);
    return {field};
}

/// `outer` and `view` differ in a tunnel.
Fields corrupt_datagram(Field field, Packet& packet, const View& outer, const View& view, const Notes& notes, NatTable* table) noexcept {
    Editor editor{packet, view}, first{packet, outer};
    switch (field) {
        case Field::destination_mac:
        case Field::source_mac: return corrupt_link(field, packet, choice_of(packet, view, editor));
        case Field::encapsulated: return corrupt_encapsulation(packet, outer, first, choice_of(packet, view, editor));
        case Field::headers: return corrupt_headers(packet, outer, first, choice_of(packet, view, editor));
        case Field::family: return notes.tunnel == Tunnel::entered ? Fields{} : corrupt_family(packet, view);
        case Field::fragment: return with_length_of_tunnel(packet, outer, notes, corrupt_fragment(packet, view, editor));
        case Field::extension_headers: return with_length_of_tunnel(packet, outer, notes, corrupt_extension_headers(packet, view, editor));
        case Field::vlan: return corrupt_vlan(packet);
        case Field::ipv4_header:
        case Field::ipv4_header_checksum:
        case Field::dont_fragment:
        case Field::identification: return corrupt_ipv4(field, notes, editor);
        case Field::length: return notes.tunnel == Tunnel::entered ? corrupt_both_lengths(first, editor) : corrupt_ip(field, editor);
        case Field::hop_limit:
        case Field::traffic_class:
        case Field::flow_label: return corrupt_ip(field, editor);
        case Field::source_address:
        case Field::destination_address:
        case Field::source_port:
        case Field::destination_port:
        case Field::unknown_connection: return corrupt_endpoint(field, notes, editor);
        case Field::udp_length:
        case Field::udp_checksum:
        case Field::no_udp_checksum:
        case Field::payload: return corrupt_udp(field, editor);
        case Field::other_edge_port:
        case Field::other_edge_address:
        case Field::interface_identifier:
        case Field::outside_rule:
        case Field::outside_port_set: return corrupt_edge(field, notes, editor, choice_of(packet, view, editor));
        case Field::embedding_suffix: return corrupt_suffix(notes.map, editor, choice_of(packet, view, editor));
        case Field::index:
        case Field::mark: return corrupt_mark(field, editor, choice_of(packet, view, editor));
        case Field::wrong_port: return {Field::wrong_port};
        case Field::trailer: return add_trailer(packet);
        case Field::untranslated_source:
        case Field::mapping_changed: return table == nullptr ? Fields{} : corrupt_outward(field, packet, view, notes, *table);
        case Field::wrong_owner: return table == nullptr ? Fields{} : corrupt_owner(packet, view, notes, *table);
        case Field::icmp_type:
        case Field::identifier:
        case Field::sequence:
        case Field::icmp_checksum:
        case Field::wrong_client:
        case Field::wrong_slot:
        case Field::tunnel_missing:
        case Field::tunnel_left:
        case Field::tunnel_source:
        case Field::tunnel_destination:
        case Field::other_subscriber:
        case Field::tunnel_traffic_class:
        case Field::tunnel_option:
        case Field::tunnel_header: return {};
    }
    return {};
}

}  // namespace

std::optional<Field> field_of(std::string_view name) noexcept {
    const auto match = std::find(field_names.begin(), field_names.end(), name);
    return match == field_names.end() ? std::nullopt : std::optional{static_cast<Field>(match - field_names.begin())};
}

Fields corrupt(Field field, Packet& packet, const Notes& notes, NatTable* table) noexcept {
    View outer;
    if (notes.treatment == Treatment::untranslated || read_headers(packet, outer) != Drop::none) {
        return {};
    }
    View view = outer;
    if (notes.tunnel == Tunnel::entered && read_carried(packet, outer, view) != Drop::none) {
        return {};
    }
    if (field >= Field::tunnel_missing) {
        return corrupt_tunnel(field, packet, outer, view, notes, table);
    }
    if (view.echo != EchoMessage::none) {
        return corrupt_echo(field, packet, view, notes);
    }
    if (!view.udp) {
        return {};
    }
    return corrupt_datagram(field, packet, outer, view, notes, table);
}

}  // namespace gatemark::refdut
