#pragma once

#include "golden/bytes.hpp"
#include "net/address.hpp"

/// The header of a tunnel around a packet, written and taken off octet by octet. Independent of the
/// engine, like the slow packet.
namespace gatemark::test {

/// A header of one family before a packet of the other (RFC 2473 section 3, RFC 4213 section 3.5),
/// as plain values.
struct SlowTunnel {
    net::Address source, destination;
    std::uint8_t hop_limit = 64, traffic_class = 0, next_header = 0;  ///< 0: that of the packet's family
    std::uint32_t flow_label = 0;
    std::uint16_t identification = 0, flags = 0;
    int longer_by = 0;  ///< than true
    Bytes extension{};

    /// Before the packet of a frame, with or without a tag.
    [[nodiscard]] Bytes around(const Bytes& frame) const {
        const std::size_t link = frame[12] == std::byte{0x81} ? 18 : 14;
        Bytes result(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(link));
        const bool ipv4 = source.family == net::Family::ipv4;
        result[link - 2] = ipv4 ? std::byte{0x08} : std::byte{0x86};
        result[link - 1] = ipv4 ? std::byte{0x00} : std::byte{0xdd};
        const int carried = static_cast<int>(frame.size() - link + extension.size()) + longer_by;
        append(result, ipv4 ? ipv4_header(carried) : ipv6_header(carried));
        append(result, extension);
        append(result, std::span{frame}.subspan(link));
        return result;
    }

private:
    [[nodiscard]] Bytes ipv6_header(int carried) const {
        Bytes header;
        append_16(header, static_cast<std::uint16_t>(0x6000U | traffic_class << 4U | flow_label >> 16U));
        append_16(header, static_cast<std::uint16_t>(flow_label));
        append_16(header, static_cast<std::uint16_t>(carried));
        header.push_back(std::byte{next_header == 0 ? std::uint8_t{4} : next_header});
        header.push_back(std::byte{hop_limit});
        append(header, source.bytes);
        append(header, destination.bytes);
        return header;
    }
    [[nodiscard]] Bytes ipv4_header(int carried) const {
        Bytes header;
        append_16(header, static_cast<std::uint16_t>(0x4500U | traffic_class));
        append_16(header, static_cast<std::uint16_t>(20 + carried));
        append_16(header, identification);
        append_16(header, flags);
        header.push_back(std::byte{hop_limit});
        header.push_back(std::byte{next_header == 0 ? std::uint8_t{41} : next_header});
        append_16(header, 0);
        append(header, std::span{source.bytes}.first(4));
        append(header, std::span{destination.bytes}.first(4));
        const std::uint16_t checksum = slow_checksum(header);
        header[10] = static_cast<std::byte>(checksum >> 8);
        header[11] = static_cast<std::byte>(checksum);
        return header;
    }
};

/// What is in the tunnel of a frame without a tag, as a frame.
[[nodiscard]] inline Bytes taken_out(const Bytes& frame) {
    const bool is_ipv6 = (frame[14] >> 4) == std::byte{6};
    Bytes result(frame.begin(), frame.begin() + 12);
    append_16(result, is_ipv6 ? 0x0800 : 0x86dd);
    append(result, std::span{frame}.subspan(14 + (is_ipv6 ? 40 : 20)));
    return result;
}

}  // namespace gatemark::test
