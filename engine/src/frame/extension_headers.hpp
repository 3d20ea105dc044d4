#pragma once

#include "net/headers.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gatemark::frame {

/// Extension headers of IPv6 (RFC 8200 section 4) that test frames may have (RFC 5180 section 5.3).
/// A router looks at the first kind only.
enum class ExtensionHeader : std::uint8_t { hop_by_hop, destination_options, routing, fragment };

/// The number by which the header before it names it.
[[nodiscard]] constexpr std::uint8_t protocol_of(ExtensionHeader header) noexcept {
    switch (header) {
        case ExtensionHeader::hop_by_hop: return net::protocol_hop_by_hop;
        case ExtensionHeader::destination_options: return net::protocol_destination_options;
        case ExtensionHeader::routing: return net::protocol_routing;
        case ExtensionHeader::fragment: break;
    }
    return net::protocol_fragment;
}

[[nodiscard]] constexpr std::size_t bytes_of(ExtensionHeader header) noexcept {
    return header == ExtensionHeader::routing ? net::ipv6::routing_header_bytes : net::ipv6::options_header_bytes;
}
[[nodiscard]] constexpr std::size_t bytes_of(std::span<const ExtensionHeader> headers) noexcept {
    std::size_t bytes = 0;
    for (const ExtensionHeader header : headers) {
        bytes += bytes_of(header);
    }
    return bytes;
}

/// These headers in turn; the last one names UDP. Options are padding (PadN). The routing header is
/// one of segment routing (RFC 8754) that has reached its only segment, `destination`, so that the
/// pseudo-header of UDP has the packet's own destination. The fragment header is that of a packet
/// which is no fragment (RFC 6946).
[[nodiscard]] std::vector<std::byte> write_extension_headers(std::span<const ExtensionHeader> headers,
                                                             std::span<const std::byte, net::ipv6::address_bytes> destination);

}  // namespace gatemark::frame
