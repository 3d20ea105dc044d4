#pragma once

#include "golden/bytes.hpp"

#include <cstdint>

/// Published frames, byte by byte: what the Tester sends and expects, and what the reference
/// gateway makes of them, is compared with the same ones. With bytes 00 to 11 (hexadecimal) as UDP
/// data.
namespace gatemark::test {

struct Golden {
    const char *source, *destination;
    std::uint16_t source_port, destination_port;
    std::uint8_t hop_limit;
    const char* headers;  ///< from the IP header on
};

inline constexpr const char* golden_data = "000102030405060708090a0b0c0d0e0f1011";

/// From the IP header on, with the UDP data.
[[nodiscard]] inline Bytes bytes_of(const Golden& golden) {
    Bytes bytes = from_hex(golden.headers);
    append(bytes, from_hex(golden_data));
    return bytes;
}

/// As a whole frame without FCS.
[[nodiscard]] inline Bytes frame_of(const Golden& golden) {
    Bytes frame = from_hex(golden.headers[0] == '4' ? "020000000002 020000000001 0800" : "020000000002 020000000001 86dd");
    append(frame, bytes_of(golden));
    return frame;
}

// RFC 2544 appendix C.2.6.4 with the length fields of 64 bytes and a UDP checksum.
inline constexpr Golden rfc2544{"198.18.1.2", "198.19.1.2", 49184, 7, 10, "4500002e000000000a112296c6120102c6130102 c0200007001a6917"};
inline constexpr Golden nat64_in{
    "2001:2::2", "64:ff9b::198.19.0.2",
    1025,        80,
    10,          "60000000001a110a 20010002000000000000000000000002 0064ff9b0000000000000000c6130002 04010050001accfd"};
inline constexpr Golden nat64_out{"198.19.0.1", "198.19.0.2", 1025, 80, 9, "4500002e0000000009112596c6130001c6130002 04010050001a26ee"};
inline constexpr Golden own_prefix_in{
    "2001:2::2", "2001:2:0:1::198.19.0.2",
    1025,        80,
    10,          "60000000001a110a 20010002000000000000000000000002 200100020000000100000000c6130002 04010050001aacf9"};
inline constexpr Golden eam_in{
    "2001:2::2", "2001:2:0:1000::2",
    1025,        80,
    10,          "60000000001a110a 20010002000000000000000000000002 20010002000010000000000000000002 04010050001a630e"};
inline constexpr Golden eam_out{"198.18.0.2", "198.19.0.2", 1025, 80, 9, "4500002e0000000009112596c6120002c6130002 04010050001a26ee"};

// A MAP-T border relay (RFC 7599) towards one port of one customer is a stateless translator with
// an explicit mapping for the customer's address and a prefix of 64 bits for the rest.
inline constexpr const char* relay_prefix = "2001:db8:ffff::/64";
inline constexpr const char *customer_ipv4 = "192.0.2.18", *customer_ipv6 = "2001:db8:12:3400:0:c000:212:34";
inline constexpr Golden relay_up_in{customer_ipv6,
                                    "2001:db8:ffff:0:a:203:400:0",
                                    1232,
                                    80,
                                    10,
                                    "60000000001a110a 20010db8001234000000c00002120034 20010db8ffff0000000a020304000000 04d00050001a5a71"};
inline constexpr Golden relay_up_out{customer_ipv4, "10.2.3.4", 1232, 80, 9, "4500002e000000000911e2a7c00002120a020304 04d00050001ae330"};
inline constexpr Golden relay_down_in{"10.2.3.4", customer_ipv4, 80, 1232, 10, "4500002e000000000a11e1a70a020304c0000212 005004d0001ae330"};
inline constexpr Golden relay_down_out{
    "2001:db8:ffff:0:a:203:400:0",
    customer_ipv6,
    80,
    1232,
    9,
    "60000000001a1109 20010db8ffff0000000a020304000000 20010db8001234000000c00002120034 005004d0001a5a71"};

// Their UDP checksums are computed as zero and sent as all ones.
inline constexpr Golden zero_ipv6{
    "2001:2::2", "2001:2:0:8000::2",
    63319,       7,
    10,          "60000000001a110a 20010002000000000000000000000002 20010002000080000000000000000002 f7570007001affff"};
inline constexpr Golden zero_ipv4{"198.18.0.2", "198.19.0.2", 11064, 7, 10, "4500002e000000000a112496c6120002c6130002 2b380007001affff"};

}  // namespace gatemark::test
