#include "frame/streams.hpp"
#include "golden/vectors.hpp"

#include <gtest/gtest.h>

namespace gatemark::frame {
namespace {

using namespace test;

TEST(GoldenFrames, TheSlowWriterGivesThemByteByByte) {
    for (const Golden& golden : {rfc2544, nat64_in, nat64_out, own_prefix_in, eam_in, eam_out, relay_up_in, relay_up_out, relay_down_in,
                                 relay_down_out, zero_ipv6, zero_ipv4}) {
        SlowPacket packet;
        packet.source = test::address_of(golden.source);
        packet.destination = test::address_of(golden.destination);
        packet.source_port = golden.source_port;
        packet.destination_port = golden.destination_port;
        packet.hop_limit = golden.hop_limit;
        packet.payload = from_hex(golden_data);
        const Bytes frame = test::write_packet(packet);
        EXPECT_EQ(test::to_hex(std::span{frame}.subspan(14)), test::to_hex(bytes_of(golden))) << golden.source;
    }
}

TEST(GoldenFrames, HeaderChecksumAfterOneHop) {
    SlowPacket packet;
    packet.source = test::address_of(rfc2544.source);
    packet.destination = test::address_of(rfc2544.destination);
    packet.payload = test::counting(18);
    const Bytes frame = test::write_packet(test::routed(packet, 1));
    EXPECT_EQ(test::to_hex(std::span{frame}.subspan(14 + 10, 2)), "2396");
}

StreamRequest request_of(const Golden& golden, const char* right_host, std::optional<net::AddressMapping> mapping) {
    StreamRequest request;
    request.source = test::fixed_host(golden.source);
    request.destination = test::fixed_host(right_host);
    request.source_ports = {ValueMode::fixed, golden.source_port, golden.source_port};
    request.destination_ports = {ValueMode::fixed, golden.destination_port, golden.destination_port};
    request.frame_octets = request.source.address.family == net::Family::ipv4 ? 64 : 84;
    request.hop_limit = 10;
    request.mapping = std::move(mapping);
    request.dont_fragment_rule = DontFragmentRule::rfc7915;
    return request;
}

/// All headers but the UDP checksum, which covers our signature.
void expect_headers(const FrameTemplate& frame_template, const Stream& stream, const Golden& golden) {
    const Bytes frame = test::frame_in(frame_template, stream, 0, 0), expected = bytes_of(golden);
    ASSERT_EQ(frame.size(), 14 + expected.size());
    const std::size_t headers = expected.size() - 18 - 2;
    EXPECT_EQ(test::to_hex(std::span{frame}.subspan(14, headers)), test::to_hex(std::span{expected}.first(headers)));
    // With the golden payload in place of ours and the sum corrected by the difference, the UDP
    // checksum is the golden one.
    Sum sum = static_cast<std::uint16_t>(~load_raw<std::uint16_t>(frame.data() + 14 + headers));
    for (std::size_t i = 0; i < 18; i += 2) {
        sum += static_cast<std::uint16_t>(~load_raw<std::uint16_t>(frame.data() + frame_template.layout.payload + i));
        sum += load_raw<std::uint16_t>(expected.data() + headers + 2 + i);
    }
    EXPECT_EQ(udp_checksum(sum), load_raw<std::uint16_t>(expected.data() + headers));
}

TEST(GoldenFrames, TheEngineSendsThem) {
    const Stream ipv4 = test::make_stream(request_of(rfc2544, rfc2544.destination, {}));
    expect_headers(ipv4.sent(), ipv4, rfc2544);
    const Stream zero4 = test::make_stream(request_of(zero_ipv4, zero_ipv4.destination, {}));
    expect_headers(zero4.sent(), zero4, zero_ipv4);
    const Stream zero6 = test::make_stream(request_of(zero_ipv6, zero_ipv6.destination, {}));
    expect_headers(zero6.sent(), zero6, zero_ipv6);
}

TEST(GoldenFrames, TheEngineExpectsWhatTheTranslatorSends) {
    const Stream well_known =
        test::make_stream(request_of(nat64_in, "198.19.0.2", test::mapping_of("64:ff9b::/96", {{"198.19.0.1/32", "2001:2::2/128"}})));
    expect_headers(well_known.sent(), well_known, nat64_in);
    expect_headers(well_known.expected(), well_known, nat64_out);
    const Stream own_prefix = test::make_stream(
        request_of(own_prefix_in, "198.19.0.2", test::mapping_of("2001:2:0:1::/96", {{"198.19.0.1/32", "2001:2::2/128"}})));
    expect_headers(own_prefix.sent(), own_prefix, own_prefix_in);
    expect_headers(own_prefix.expected(), own_prefix, nat64_out);
    const Stream explicit_mappings = test::make_stream(request_of(
        eam_in, "198.19.0.2", test::mapping_of("", {{"198.18.0.0/24", "2001:2::/120"}, {"198.19.0.0/24", "2001:2:0:1000::/120"}})));
    expect_headers(explicit_mappings.sent(), explicit_mappings, eam_in);
    expect_headers(explicit_mappings.expected(), explicit_mappings, eam_out);
}

TEST(GoldenFrames, TheEngineSendsAndExpectsThoseOfABorderRelay) {
    const net::AddressMapping mapping =
        test::mapping_of(relay_prefix, {{std::string{customer_ipv4} + "/32", std::string{customer_ipv6} + "/128"}});
    const Stream up = test::make_stream(request_of(relay_up_in, "10.2.3.4", mapping));
    expect_headers(up.sent(), up, relay_up_in);
    expect_headers(up.expected(), up, relay_up_out);
    const Stream down = test::make_stream(request_of(relay_down_in, customer_ipv6, mapping));
    expect_headers(down.sent(), down, relay_down_in);
    expect_headers(down.expected(), down, relay_down_out);
}

}  // namespace
}  // namespace gatemark::frame
