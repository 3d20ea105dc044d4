#include "refdut/packet.hpp"

#include "base/bytes.hpp"
#include "refdut/headers.hpp"

#include <cstring>

namespace gatemark::refdut {

namespace {

constexpr std::uint16_t id_bits = 0x0fff;

bool is_tagged(const Packet& packet) noexcept {
    return packet.octets >= ethernet_octets + vlan_octets && load_big_endian<std::uint16_t>(packet.at(ethernet_type_at)) == type_vlan;
}

}  // namespace

std::optional<std::uint16_t> vlan_of(const Packet& packet) noexcept {
    if (!is_tagged(packet)) {
        return std::nullopt;
    }
    return static_cast<std::uint16_t>(load_big_endian<std::uint16_t>(packet.at(ethernet_type_at + 2)) & id_bits);
}

bool set_vlan(Packet& packet, std::optional<std::uint16_t> vlan_id) noexcept {
    if (packet.octets < ethernet_octets) {
        return false;
    }
    const bool tagged = is_tagged(packet);
    if (tagged && !vlan_id) {
        close_gap(packet, ethernet_type_at, vlan_octets);
        return true;
    }
    if (!vlan_id) {
        return true;
    }
    std::uint16_t priority = 0;
    if (tagged) {
        priority = static_cast<std::uint16_t>(load_big_endian<std::uint16_t>(packet.at(ethernet_type_at + 2)) & ~id_bits);
    } else {
        if (!open_gap(packet, ethernet_type_at, vlan_octets)) {
            return false;
        }
        store_big_endian(packet.at(ethernet_type_at), type_vlan);
    }
    store_big_endian(packet.at(ethernet_type_at + 2), static_cast<std::uint16_t>(priority | (*vlan_id & id_bits)));
    return true;
}

bool open_gap(Packet& packet, std::size_t keep, std::size_t octets) noexcept {
    if (packet.headroom >= octets) {
        packet.begin -= octets;
        packet.headroom -= octets;
        std::memmove(packet.begin, packet.begin + octets, keep);
    } else if (packet.tailroom >= octets) {
        std::memmove(packet.begin + keep + octets, packet.begin + keep, packet.octets - keep);
        packet.tailroom -= octets;
    } else {
        return false;
    }
    packet.octets += octets;
    return true;
}

void close_gap(Packet& packet, std::size_t keep, std::size_t octets) noexcept {
    std::memmove(packet.begin + octets, packet.begin, keep);
    packet.begin += octets;
    packet.headroom += octets;
    packet.octets -= octets;
}

}  // namespace gatemark::refdut
