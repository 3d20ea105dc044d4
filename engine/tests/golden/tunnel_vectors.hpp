#pragma once

#include "golden/bytes.hpp"

/// Packets in tunnels, octet by octet, from a program that knows nothing of the engine: what comes
/// and what leaves, from the first IP header on, with octets 00 to 11 (hexadecimal) as UDP data.
namespace gatemark::test {

struct TunnelVector {
    const char *subscriber, *inside;  ///< the subscriber's end of the tunnel; what is on its side
    const char* outside;              ///< what is on the other side
};

// A border relay of MAP-E (RFC 7597 section 8.1) at 2001:db8:ffff::1, both ways.
inline constexpr TunnelVector map_e_up{"2001:db8:12:3400:0:c000:212:34",
                                       "60000000002e0440 20010db8001234000000c00002120034 20010db8ffff00000000000000000001"
                                       "4500002e000000000a11eaa7c000021201020304 04d00050001aec30 000102030405060708090a0b0c0d0e0f1011",
                                       "4500002e000000000911eba7c000021201020304 04d00050001aec30 000102030405060708090a0b0c0d0e0f1011"};
inline constexpr TunnelVector map_e_down{map_e_up.subscriber,
                                         "60000000002e0440 20010db8ffff00000000000000000001 20010db8001234000000c00002120034"
                                         "4500002e000000000911eba701020304c0000212 005004d0001aec30 000102030405060708090a0b0c0d0e0f1011",
                                         "4500002e000000000a11eaa701020304c0000212 005004d0001aec30 000102030405060708090a0b0c0d0e0f1011"};

// A border relay of 6rd (RFC 5969) at 198.18.0.1, of 2001:db8::/32 with all of an IPv4 address.
inline constexpr TunnelVector sixrd_up{"198.18.0.2",
                                       "45000056000000004029ee57 c6120002c6120001"
                                       "60000000001a110a 20010db8c61200020000000000000001 20010db9004200000000000000000002 04000050001a914c"
                                       "000102030405060708090a0b0c0d0e0f1011",
                                       "60000000001a1109 20010db8c61200020000000000000001 20010db9004200000000000000000002 04000050001a914c"
                                       "000102030405060708090a0b0c0d0e0f1011"};
inline constexpr TunnelVector sixrd_down{
    sixrd_up.subscriber,
    "45000056000000004029ee57 c6120001c6120002"
    "60000000001a1109 20010db9004200000000000000000002 20010db8c61200020000000000000001 00500400001a914c"
    "000102030405060708090a0b0c0d0e0f1011",
    "60000000001a110a 20010db9004200000000000000000002 20010db8c61200020000000000000001 00500400001a914c"
    "000102030405060708090a0b0c0d0e0f1011"};

// An AFTR (RFC 6333) at 2001:db8:0:2::1 that maps to 192.0.2.1 port 5000.
inline constexpr TunnelVector aftr_up{"2001:db8:0:1::1",
                                      "60000000002e0440 20010db8000000010000000000000001 20010db8000000020000000000000001"
                                      "4500002e000000000a117c8a0a000001c6336401 27100050001a5bd3 000102030405060708090a0b0c0d0e0f1011",
                                      "4500002e000000000911c589c0000201c6336401 13880050001ab75a 000102030405060708090a0b0c0d0e0f1011"};
inline constexpr TunnelVector aftr_down{aftr_up.subscriber,
                                        "60000000002e0440 20010db8000000020000000000000001 20010db8000000010000000000000001"
                                        "4500002e0000000009117d8ac63364010a000001 00502710001a5bd3 000102030405060708090a0b0c0d0e0f1011",
                                        "4500002e000000000a11c489c6336401c0000201 00501388001ab75a 000102030405060708090a0b0c0d0e0f1011"};

// The B4 (RFC 6333 section 5) of that AFTR's subscriber.
inline constexpr TunnelVector b4_up{
    aftr_up.subscriber, "4500002e000000000b117b8a0a000001c6336401 27100050001a5bd3 000102030405060708090a0b0c0d0e0f1011", aftr_up.inside};
inline constexpr TunnelVector b4_down{
    aftr_up.subscriber, "4500002e0000000008117e8ac63364010a000001 00502710001a5bd3 000102030405060708090a0b0c0d0e0f1011", aftr_down.inside};

/// As a whole frame without FCS.
[[nodiscard]] inline Bytes frame_of_packet(const char* packet) {
    Bytes frame = from_hex(packet[0] == '4' ? "020000000002 020000000001 0800" : "020000000002 020000000001 86dd");
    append(frame, from_hex(packet));
    return frame;
}

}  // namespace gatemark::test
