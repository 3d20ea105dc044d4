#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

namespace gatemark::io {

enum class PortKind { pci, af_xdp, af_packet, tap, memif, ring, null, pcap, vdev };

/// The parsed name of a port: `text` is the whole name, `argument` what follows the colon (empty
/// for ring and null).
struct PortName {
    PortKind kind;
    std::string text;
    std::string argument;
    friend bool operator==(const PortName&, const PortName&) = default;
};

/// Whether the port is an interface of the kernel, which may then drop frames as well
/// (io/kernel_drops.hpp).
[[nodiscard]] constexpr bool is_kernel_interface(PortKind kind) {
    return kind == PortKind::af_xdp || kind == PortKind::af_packet || kind == PortKind::tap;
}

/// Reads `pci:0000:01:00.0`, `af_xdp:IF`, `af_packet:IF`, `tap:NAME`, `memif:PATH[,role=server]`,
/// `ring`, `null`, `pcap:OUT[,rx=IN]` or `vdev:net_xxx[,args]`. Only the syntax is checked, not
/// whether the port exists.
[[nodiscard]] Result<PortName> parse_port_name(std::string_view text);

}  // namespace gatemark::io
