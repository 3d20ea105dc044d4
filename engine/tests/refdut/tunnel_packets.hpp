#pragma once

#include "refdut/packets.hpp"

#include <string>

namespace gatemark::refdut {

/// A header of IPv6 before an IPv4 packet (RFC 2473 section 3), as plain values.
struct SlowTunnel {
    net::Address source, destination;
    std::uint8_t hop_limit = 64, traffic_class = 0, next_header = 4;
    std::uint32_t flow_label = 0;
    int longer_by = 0;  ///< than true
    test::Bytes extension{};

    /// Before the packet of a frame, with or without a tag.
    [[nodiscard]] test::Bytes around(const test::Bytes& frame) const {
        const auto link = static_cast<std::ptrdiff_t>(frame[12] == std::byte{0x81} ? 18 : 14);
        test::Bytes result(frame.begin(), frame.begin() + link);
        result[static_cast<std::size_t>(link) - 2] = std::byte{0x86};
        result[static_cast<std::size_t>(link) - 1] = std::byte{0xdd};
        const std::size_t length = frame.size() - static_cast<std::size_t>(link) + extension.size();
        test::append_16(result, static_cast<std::uint16_t>(0x6000U | traffic_class << 4U | flow_label >> 16U));
        test::append_16(result, static_cast<std::uint16_t>(flow_label));
        test::append_16(result, static_cast<std::uint16_t>(static_cast<int>(length) + longer_by));
        result.push_back(std::byte{next_header});
        result.push_back(std::byte{hop_limit});
        test::append(result, source.bytes);
        test::append(result, destination.bytes);
        test::append(result, extension);
        result.insert(result.end(), frame.begin() + link, frame.end());
        return result;
    }
};

/// Without a VLAN tag, padded to the Ethernet minimum, as the slow writer does not.
inline test::Bytes padded(test::Bytes frame) {
    frame.resize(std::max<std::size_t>(frame.size(), 60));
    return frame;
}

}  // namespace gatemark::refdut
