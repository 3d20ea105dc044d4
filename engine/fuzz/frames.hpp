#pragma once

#include "fuzz/script.hpp"
#include "golden/bytes.hpp"

#include <cstdint>

/// Frames damaged as a script says, and the checksums that make a damaged frame plausible again.
/// Written apart from the engine, with the slow checksum of the tests.
namespace gatemark::fuzz {

/// Damages a frame in up to seven ways: bytes changed, inserted, removed, cut or added; headers put
/// around or into the packet; checksums corrected. Any frame may come in, of any length.
void damage(Script& script, test::Bytes& frame);

/// Removes the outer header of IPv4 in IPv6, or of IPv6 in IPv4.
void take_out_of_tunnel(test::Bytes& frame);
/// Corrects the IPv4 header's checksum, if there is such a header.
void correct_header_checksum(test::Bytes& frame);
/// Corrects the checksum of UDP or ICMPv6 behind an IPv4 or IPv6 header, if it is all there. The
/// length is that of the UDP header or of the IPv6 payload.
void correct_upper_checksum(test::Bytes& frame);

/// A UDP datagram whose length fields are sound: does its checksum hold? Zero does not.
[[nodiscard]] bool has_sound_udp_checksum(std::span<const std::byte> frame);

/// The bytes of any input as a frame of at most `bytes_max`.
[[nodiscard]] test::Bytes raw_frame(Script& script, std::size_t bytes_max);

}  // namespace gatemark::fuzz
