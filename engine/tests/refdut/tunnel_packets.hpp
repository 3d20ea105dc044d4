#pragma once

#include "refdut/packets.hpp"

#include <string>

namespace gatemark::refdut {

/// A header of one family before a packet of the other (RFC 2473 section 3, RFC 4213 section 3.5),
/// as plain values.
struct SlowTunnel {
    net::Address source, destination;
    std::uint8_t hop_limit = 64, traffic_class = 0, next_header = 4;  ///< IPv4: 41
    std::uint32_t flow_label = 0;
    std::uint16_t identification = 0, flags = 0;
    int longer_by = 0;  ///< than true
    test::Bytes extension{};

    /// Before the packet of a frame, with or without a tag.
    [[nodiscard]] test::Bytes around(const test::Bytes& frame) const {
        const std::size_t link = frame[12] == std::byte{0x81} ? 18 : 14;
        test::Bytes result(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(link));
        const bool ipv4 = source.family == net::Family::ipv4;
        result[link - 2] = ipv4 ? std::byte{0x08} : std::byte{0x86};
        result[link - 1] = ipv4 ? std::byte{0x00} : std::byte{0xdd};
        const int carried = static_cast<int>(frame.size() - link + extension.size()) + longer_by;
        test::append(result, ipv4 ? ipv4_header(carried) : ipv6_header(carried));
        test::append(result, extension);
        test::append(result, std::span{frame}.subspan(link));
        return result;
    }

private:
    [[nodiscard]] test::Bytes ipv6_header(int carried) const {
        test::Bytes header;
        test::append_16(header, static_cast<std::uint16_t>(0x6000U | traffic_class << 4U | flow_label >> 16U));
        test::append_16(header, static_cast<std::uint16_t>(flow_label));
        test::append_16(header, static_cast<std::uint16_t>(carried));
        header.push_back(std::byte{next_header});
        header.push_back(std::byte{hop_limit});
        test::append(header, source.bytes);
        test::append(header, destination.bytes);
        return header;
    }
    [[nodiscard]] test::Bytes ipv4_header(int carried) const {
        test::Bytes header;
        test::append_16(header, static_cast<std::uint16_t>(0x4500U | traffic_class));
        test::append_16(header, static_cast<std::uint16_t>(20 + carried));
        test::append_16(header, identification);
        test::append_16(header, flags);
        header.push_back(std::byte{hop_limit});
        header.push_back(std::byte{next_header});
        test::append_16(header, 0);
        test::append(header, std::span{source.bytes}.first(4));
        test::append(header, std::span{destination.bytes}.first(4));
        const std::uint16_t checksum = test::slow_checksum(header);
        header[10] = static_cast<std::byte>(checksum >> 8);
        header[11] = static_cast<std::byte>(checksum);
        return header;
    }
};

/// Without a VLAN tag, padded to the Ethernet minimum, as the slow writer does not.
inline test::Bytes padded(test::Bytes frame) {
    frame.resize(std::max<std::size_t>(frame.size(), 60));
    return frame;
}

}  // namespace gatemark::refdut
