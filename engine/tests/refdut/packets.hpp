#pragma once

#include "golden/slow_packet.hpp"
#include "refdut/packet.hpp"
#include "refdut/translate.hpp"

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace gatemark::refdut {

/// A frame in a heap buffer of exactly its size with the headroom and tailroom given, so that the
/// address sanitizer sees each byte beyond.
class Buffer {
public:
    explicit Buffer(std::span<const std::byte> frame, std::size_t headroom = 64, std::size_t tailroom = 64)
        : memory_(headroom + frame.size() + tailroom, std::byte{0xcc}) {
        std::ranges::copy(frame, memory_.begin() + static_cast<std::ptrdiff_t>(headroom));
        packet = {.begin = memory_.data() + headroom, .bytes = frame.size(), .headroom = headroom, .tailroom = tailroom};
    }

    Buffer(Buffer&&) = default;
    Buffer& operator=(Buffer&&) = default;

    [[nodiscard]] std::span<const std::byte> frame() const { return {packet.begin, packet.bytes}; }
    /// Whether the packet is still within its buffer, with correct headroom and tailroom.
    [[nodiscard]] bool is_sound() const {
        return packet.begin == memory_.data() + packet.headroom && packet.headroom + packet.bytes + packet.tailroom == memory_.size();
    }

    Packet packet;

private:
    std::vector<std::byte> memory_;
};

inline net::Prefix prefix_of(const std::string& text) { return net::parse_prefix(text).value(); }

inline EamEntry eam_of(const std::string& ipv4, const std::string& ipv6) { return {.ipv4 = prefix_of(ipv4), .ipv6 = prefix_of(ipv6)}; }

inline NatPool pool_of(std::initializer_list<std::string> prefixes, std::uint16_t port_min = 1024, std::uint16_t port_max = 65535) {
    NatPool pool{.prefixes = {}, .port_min = port_min, .port_max = port_max};
    for (const std::string& prefix : prefixes) {
        pool.prefixes.push_back(prefix_of(prefix));
    }
    return pool;
}

inline test::SlowPacket udp_packet(const std::string& source, const std::string& destination, std::uint16_t source_port,
                                   std::uint16_t destination_port, std::size_t data_bytes = 18) {
    test::SlowPacket packet;
    packet.source = test::address_of(source);
    packet.destination = test::address_of(destination);
    packet.source_port = source_port;
    packet.destination_port = destination_port;
    packet.payload = test::counting(data_bytes);
    return packet;
}

}  // namespace gatemark::refdut
