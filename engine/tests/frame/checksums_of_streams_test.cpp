#include "frame/streams.hpp"

#include <gtest/gtest.h>

namespace gatemark::frame {
namespace {

using test::Gateway, test::Bytes;

/// Sizes with odd ones, and those of RFC 2544 section 9.1 and RFC 5180 section 5.1.
constexpr std::array<std::size_t, 18> sizes{64, 65, 66, 67, 84, 85, 128, 129, 256, 512, 768, 1024, 1280, 1281, 1518, 2048, 8192, 9216};

/// The frame as sent, and as the slow gateway forwards it, must be what the engine writes in `sent`
/// and in `expected`.
void expect_equals_slow_frames(const Stream& stream, Gateway gateway, const test::Vlans& vlans, const StreamRequest& request) {
    for (const std::uint64_t j : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{77}, std::uint64_t{123'456'789'012}}) {
        const std::uint64_t index = 2 * j + 1;
        const Bytes sent = test::sent_frame(stream, j, index);
        test::SlowPacket packet = test::read_packet(sent);
        ASSERT_EQ(test::to_hex(sent), test::to_hex(test::write_packet(packet)));
        ASSERT_EQ(packet.vlan, vlans.sent);
        ASSERT_EQ(packet.traffic_class, request.marking.traffic_classes.front());
        ASSERT_EQ(packet.hop_limit, request.hop_limit);
        ASSERT_EQ(packet.flow_label, request.marking.flow_label);
        ASSERT_EQ(packet.is_ipv4() && packet.dont_fragment, packet.is_ipv4() && request.dont_fragment);
        ASSERT_EQ(sent.size() + 4, request.frame_octets + (vlans.sent ? 4 : 0));
        for (std::size_t i = 18; i < packet.payload.size(); ++i) {
            ASSERT_EQ(packet.payload[i], static_cast<std::byte>(i % 256));
        }

        test::SlowPacket arrived = test::forwarded(sent, gateway, vlans.received);
        arrived.identification = 0;
        ASSERT_EQ(test::to_hex(test::frame_in(stream.expected(), stream, j, index)), test::to_hex(test::write_packet(arrived)));
    }
}

TEST(StreamFrames, EqualThoseOfTheSlowWriterInEveryCombination) {
    for (const Gateway gateway : test::all_gateways) {
        for (const std::size_t size : sizes) {
            if (size < test::smallest_frame(gateway)) {
                continue;
            }
            for (const test::Vlans& vlans :
                 {test::Vlans{}, test::Vlans{100, 200}, test::Vlans{std::nullopt, 4094}, test::Vlans{1, std::nullopt}}) {
                for (const unsigned traffic_class : {0x00U, 0xb8U, 0xffU}) {
                    for (const bool dont_fragment : {false, true}) {
                        StreamRequest request = test::request_for(gateway, size);
                        request.marking.traffic_classes = {static_cast<std::uint8_t>(traffic_class)};
                        request.dont_fragment = dont_fragment;
                        ASSERT_NO_FATAL_FAILURE(expect_equals_slow_frames(test::make_stream(request, vlans), gateway, vlans, request))
                            << size << " " << traffic_class << " " << dont_fragment;
                    }
                }
            }
        }
    }
}

TEST(StreamFrames, EveryModeOfPortsAndHosts) {
    using enum ValueMode;
    for (const Gateway gateway : test::all_gateways) {
        for (const ValueMode ports : {fixed, increasing, decreasing, pseudorandom}) {
            for (const ValueMode hosts : {fixed, increasing, decreasing, pseudorandom}) {
                for (const std::uint16_t networks : std::initializer_list<std::uint16_t>{1, 7, 256}) {
                    StreamRequest request = test::request_for(gateway, 100);
                    request.source_ports = {ports, 0, 65535};
                    request.destination_ports = {ports, 7, 7};
                    for (HostSet* const set : {&request.source, &request.destination}) {
                        set->part.mode = hosts;
                        set->part.maximum = std::min<std::uint16_t>(set->part.maximum, 254);
                        if (hosts == fixed) {
                            set->part.minimum = set->part.maximum = 0;
                        }
                    }
                    // An IPv6 host's network bits are those of the translation prefix: only IPv4
                    // destinations and routers have many networks.
                    request.destination.networks = gateway != Gateway::siit46 ? networks : std::uint16_t{1};
                    ASSERT_NO_FATAL_FAILURE(expect_equals_slow_frames(test::make_stream(request), gateway, {}, request));
                }
            }
        }
    }
}

TEST(StreamFrames, ChecksumsHoldForManyFramesInARow) {
    for (const Gateway gateway : test::all_gateways) {
        const Stream stream = test::make_stream(test::request_for(gateway));
        Bytes buffer = stream.sent().frame;
        for (std::uint64_t i = 0; i < 20'000; ++i) {  // one buffer, as a pool's: what varies must be overwritten whole
            write_frame(stream.sent(), buffer.data(), stream.values(i), stream.id(), i, {i * 0x9e3779b97f4a7c15});
            ASSERT_EQ(buffer, test::write_packet(test::read_packet(buffer))) << i;
        }
    }
}

TEST(StreamFrames, DontFragmentFromIpv4ToIpv4StaysUnlessTwoTranslatorsMakeIt) {
    for (const bool sent : {false, true}) {
        for (const std::size_t bytes : {64U, 1298U, 1299U, 1518U}) {
            StreamRequest request = test::request_for(Gateway::router44, bytes);
            request.dont_fragment = sent;
            const auto expected_with = [&](DontFragmentRule rule) {
                request.dont_fragment_rule = rule;
                return test::make_stream(request).expected_dont_fragment() == DontFragment::set;
            };
            const bool is_long = bytes - net::ethernet::header_bytes - net::ethernet::fcs_bytes > 1260;
            EXPECT_EQ(expected_with(DontFragmentRule::kept), sent) << bytes;
            EXPECT_EQ(expected_with(DontFragmentRule::rfc7915), is_long) << bytes;
            EXPECT_TRUE(expected_with(DontFragmentRule::rfc6145)) << bytes;
        }
    }
}

TEST(StreamFrames, DontFragmentOfATranslatedPacketFollowsItsLength) {
    for (const std::size_t bytes :
         {1296U, 1297U, 1298U, 1299U, 1300U, 1518U}) {  // 1260 bytes of IPv4 are a frame of 1278, and of 1298 as IPv6
        const Stream stream = test::make_stream(test::request_for(Gateway::siit64, bytes));
        EXPECT_EQ(stream.expected_dont_fragment(), bytes > 1298 ? DontFragment::set : DontFragment::clear) << bytes;
    }
}

TEST(StreamFrames, AsSentChangesNothing) {
    StreamRequest request = test::request_for(Gateway::siit64);
    request.as_sent = true;
    request.hop_limit_decrement = 0;
    const Stream stream = test::make_stream(request);
    Bytes sent = test::sent_frame(stream, 9, 9), expected = test::frame_in(stream.expected(), stream, 9, 9);
    EXPECT_EQ(test::to_hex(sent), test::to_hex(expected));
}

}  // namespace
}  // namespace gatemark::frame
