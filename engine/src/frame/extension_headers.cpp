#include "frame/extension_headers.hpp"

#include "base/bytes.hpp"

#include <algorithm>

namespace gatemark::frame {

std::vector<std::byte> write_extension_headers(std::span<const ExtensionHeader> headers,
                                               std::span<const std::byte, net::ipv6::address_bytes> destination) {
    std::vector<std::byte> bytes(bytes_of(headers), std::byte{0});
    std::byte* at = bytes.data();
    for (std::size_t i = 0; i < headers.size(); ++i) {
        const std::size_t length = bytes_of(headers[i]);
        at[0] = std::byte{i + 1 < headers.size() ? protocol_of(headers[i + 1]) : net::protocol_udp};
        switch (headers[i]) {
            case ExtensionHeader::hop_by_hop:
            case ExtensionHeader::destination_options:
                at[2] = std::byte{1};  // PadN (RFC 8200 section 4.2) of four octets
                at[3] = std::byte{4};
                break;
            case ExtensionHeader::routing:
                at[1] = static_cast<std::byte>(length / 8 - 1);
                at[2] = std::byte{4};  // RFC 8754 section 2; no segments are left, and the last entry is number 0
                std::ranges::copy(destination, at + 8);
                break;
            case ExtensionHeader::fragment:
                store_big_endian(at + 4, std::uint32_t{1});  // identification; offset 0, and no more fragments
                break;
        }
        at += length;
    }
    return bytes;
}

}  // namespace gatemark::frame
