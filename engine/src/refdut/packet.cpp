#include "refdut/packet.hpp"

#include "base/bytes.hpp"
#include "refdut/headers.hpp"

#include <cstring>

namespace gatemark::refdut {

namespace {

constexpr std::uint16_t id_bits = 0x0fff;

bool has_vlan_tag(const Packet& packet) noexcept {
    return packet.bytes >= ethernet_bytes + vlan_bytes && load_big_endian<std::uint16_t>(packet.at(ethernet_type_at)) == type_vlan;
}

}  // namespace

std::optional<std::uint16_t> vlan_of(const Packet& packet) noexcept {
    if (!has_vlan_tag(packet)) {
        return std::nullopt;
    }
    return static_cast<std::uint16_t>(load_big_endian<std::uint16_t>(packet.at(ethernet_type_at + 2)) & id_bits);
}

bool set_vlan(Packet& packet, std::optional<std::uint16_t> vlan_id) noexcept {
    if (packet.bytes < ethernet_bytes) {
        return false;
    }
    const bool had_tag = has_vlan_tag(packet);
    if (had_tag && !vlan_id) {
        close_gap(packet, ethernet_type_at, vlan_bytes);
        return true;
    }
    if (!vlan_id) {
        return true;
    }
    std::uint16_t priority = 0;
    if (had_tag) {
        priority = static_cast<std::uint16_t>(load_big_endian<std::uint16_t>(packet.at(ethernet_type_at + 2)) & ~id_bits);
    } else {
        if (!open_gap(packet, ethernet_type_at, vlan_bytes)) {
            return false;
        }
        store_big_endian(packet.at(ethernet_type_at), type_vlan);
    }
    store_big_endian(packet.at(ethernet_type_at + 2), static_cast<std::uint16_t>(priority | (*vlan_id & id_bits)));
    return true;
}

bool open_gap(Packet& packet, std::size_t keep, std::size_t bytes) noexcept {
    if (packet.headroom >= bytes) {
        packet.begin -= bytes;
        packet.headroom -= bytes;
        std::memmove(packet.begin, packet.begin + bytes, keep);
    } else if (packet.tailroom >= bytes) {
        std::memmove(packet.begin + keep + bytes, packet.begin + keep, packet.bytes - keep);
        packet.tailroom -= bytes;
    } else {
        return false;
    }
    packet.bytes += bytes;
    return true;
}

void close_gap(Packet& packet, std::size_t keep, std::size_t bytes) noexcept {
    std::memmove(packet.begin + bytes, packet.begin, keep);
    packet.begin += bytes;
    packet.headroom += bytes;
    packet.bytes -= bytes;
}

}  // namespace gatemark::refdut
