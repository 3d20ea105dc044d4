#include "frame/verification.hpp"

#include "frame/header_checks.hpp"
#include "frame/recognizer.hpp"
#include "frame/streams.hpp"
#include "net/headers.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace gatemark::frame {
namespace {

using test::Gateway, test::Bytes, test::SlowPacket, test::faults_of, test::names_of;

/// What is told of `frame`, which has no fault.
Remarks remarks_on(const Stream& stream, const Bytes& frame) {
    const Mark due = stream.expected_mark(stream.values(5));
    return remarks_of(frame, classify(frame, test::trial_id()), stream.expected(), due, stream.tunnel_traffic_class(due.traffic_class));
}

SlowPacket arrived(const Stream& stream, Gateway gateway, std::optional<std::uint16_t> vlan = std::nullopt) {
    return test::forwarded(test::sent_frame(stream, 5, 50), gateway, vlan);
}

TEST(Verification, WhatACorrectGatewayMakesOfAFrameHasNoFault) {
    for (const Gateway gateway : test::all_gateways) {
        for (const std::size_t bytes : {64U, 65U, 84U, 100U, 1280U, 1298U, 1299U, 1518U, 9216U}) {
            if (bytes < test::smallest_frame(gateway)) {
                continue;
            }
            for (const auto& vlan : {std::optional<std::uint16_t>{}, std::optional<std::uint16_t>{100}}) {
                for (const unsigned traffic_class : {0U, 0xb8U}) {
                    for (const bool dont_fragment : {false, true}) {
                        StreamRequest request = test::request_for(gateway, bytes);
                        request.marking.traffic_classes = {static_cast<std::uint8_t>(traffic_class)};
                        request.dont_fragment = dont_fragment;
                        const Stream stream = test::make_stream(request, {{}, vlan});
                        SlowPacket packet = arrived(stream, gateway, vlan);
                        packet.link_source = *net::parse_mac("02:00:00:00:00:09");
                        EXPECT_EQ(faults_of(stream, test::write_packet(packet)), "") << bytes;
                    }
                }
            }
        }
    }
}

struct Corruption {
    const char* name;
    std::function<void(SlowPacket&)> apply;  ///< checksums are made to fit unless they are what is damaged
    const char* faults;
};

void check(const Stream& stream, const SlowPacket& correct, const std::vector<Corruption>& corruptions) {
    ASSERT_EQ(faults_of(stream, test::write_packet(correct)), "");
    for (const Corruption& corruption : corruptions) {
        SlowPacket packet = correct;
        corruption.apply(packet);
        EXPECT_EQ(faults_of(stream, test::write_packet(packet)), corruption.faults) << corruption.name;
    }
}

std::vector<Corruption> common_corruptions() {
    return {{"to another host on the link", [](SlowPacket& p) { p.link_destination[5] ^= std::byte{1}; }, "destination_mac"},
            {"to all", [](SlowPacket& p) { p.link_destination.fill(std::byte{0xff}); }, "destination_mac"},
            {"from us", [](SlowPacket& p) { p.link_source = p.link_destination; }, "source_mac"},
            {"from nobody", [](SlowPacket& p) { p.link_source = {}; }, "source_mac"},
            {"from a group", [](SlowPacket& p) { p.link_source[0] |= std::byte{1}; }, "source_mac"},
            {"hop limit not decremented", [](SlowPacket& p) { ++p.hop_limit; }, "hop_limit"},
            {"hop limit decremented twice", [](SlowPacket& p) { --p.hop_limit; }, "hop_limit"},
            {"low bit of traffic class", [](SlowPacket& p) { p.traffic_class ^= 1; }, "traffic_class"},
            {"high bit of traffic class", [](SlowPacket& p) { p.traffic_class ^= 0x80; }, "traffic_class"},
            {"first byte of source", [](SlowPacket& p) { p.source.bytes[0] ^= std::byte{1}; }, "source_address"},
            {"last byte of source", [](SlowPacket& p) { p.source.bytes[net::address_bytes(p.source.family) - 1] ^= std::byte{1}; },
             "source_address"},
            {"first byte of destination", [](SlowPacket& p) { p.destination.bytes[0] ^= std::byte{1}; }, "destination_address"},
            {"last byte of destination",
             [](SlowPacket& p) { p.destination.bytes[net::address_bytes(p.source.family) - 1] ^= std::byte{1}; }, "destination_address"},
            {"source port", [](SlowPacket& p) { p.source_port ^= 0x100; }, "source_port"},
            {"destination port", [](SlowPacket& p) { p.destination_port ^= 1; }, "destination_port"},
            {"ports swapped", [](SlowPacket& p) { std::swap(p.source_port, p.destination_port); }, "source_port destination_port"},
            {"UDP length", [](SlowPacket& p) { p.wrong_udp_length = static_cast<std::uint16_t>(p.payload.size() + 7); }, "udp_length"},
            {"UDP checksum", [](SlowPacket& p) { p.udp_checksum_xor = 0x0100; }, "udp_checksum"},
            {"UDP checksum absent", [](SlowPacket& p) { p.udp_checksum_absent = true; }, "udp_checksum"},
            {"IP length too short",
             [](SlowPacket& p) { p.wrong_ip_length = static_cast<std::uint16_t>((p.is_ipv4() ? 20 : 0) + 8 + p.payload.size() - 1); },
             "length"},
            {"IP length too long",
             [](SlowPacket& p) { p.wrong_ip_length = static_cast<std::uint16_t>((p.is_ipv4() ? 20 : 0) + 8 + p.payload.size() + 1); },
             "length"},
            {"VLAN tag added", [](SlowPacket& p) { p.vlan = 100; }, "vlan"},
            {"first payload byte behind the signature", [](SlowPacket& p) { p.payload[18] ^= std::byte{1}; }, "payload"},
            {"last payload byte", [](SlowPacket& p) { p.payload.back() ^= std::byte{0x80}; }, "payload"},
            {"one byte less", [](SlowPacket& p) { p.payload.pop_back(); }, "length udp_length"},
            {"one byte more", [](SlowPacket& p) { p.payload.push_back(std::byte{9}); }, "length udp_length"}};
}

std::vector<Corruption> ipv4_corruptions() {
    return {{"header checksum", [](SlowPacket& p) { p.header_checksum_xor = 0x0001; }, "ipv4_header_checksum"},
            {"reserved bit", [](SlowPacket& p) { p.reserved_bit = true; }, "ipv4_header"},
            {"don't fragment", [](SlowPacket& p) { p.dont_fragment = !p.dont_fragment; }, "dont_fragment"},
            {"first fragment", [](SlowPacket& p) { p.more_fragments = true; }, "fragment"},
            {"options", [](SlowPacket& p) { p.options = test::from_hex("01010101"); }, "length ipv4_header"}};
}

std::vector<Corruption> ipv6_corruptions() {
    return {{"low bit of flow label", [](SlowPacket& p) { p.flow_label = 1; }, "flow_label"},
            {"high bit of flow label", [](SlowPacket& p) { p.flow_label = 0x80000; }, "flow_label"},
            {"atomic fragment", [](SlowPacket& p) { p.fragment_header = true; }, "fragment"}};
}

TEST(Verification, EachSingleCorruptionGivesItsOwnFault) {
    for (const Gateway gateway : test::all_gateways) {
        const Stream stream = test::make_stream(test::request_for(gateway, 300));
        const SlowPacket correct = arrived(stream, gateway);
        check(stream, correct, common_corruptions());
        check(stream, correct, correct.is_ipv4() ? ipv4_corruptions() : ipv6_corruptions());
    }
}

TEST(Verification, TheTableKnowsEveryFaultOfAFrame) {
    // Tested by themselves: here, in tunnel_test, receiver_test, loop/border_relay_path_test and
    // state/stateful_path_test.
    std::string known =
        "encapsulated headers family identification extension_headers other_edge_port other_edge_address interface_identifier outside_rule "
        "outside_port_set "
        "tunnel_missing tunnel_left tunnel_header tunnel_option tunnel_traffic_class tunnel_source tunnel_destination other_subscriber "
        "index mark "
        "wrong_port untranslated_source mapping_changed wrong_owner unknown_connection";
    for (const auto& corruptions : {common_corruptions(), ipv4_corruptions(), ipv6_corruptions()}) {
        for (const Corruption& corruption : corruptions) {
            known += std::string{" "} + corruption.faults;
        }
    }
    for (const std::string_view name : std::span{fault_names}.first<first_echo_fault>()) {  // those of echo messages: echo_test
        EXPECT_NE(known.find(name), std::string::npos) << name;
    }
}

TEST(Verification, IdentificationIsKeptByRoutersAndFreeForTranslators) {
    const Stream routed = test::make_stream(test::request_for(Gateway::router44));
    SlowPacket packet = arrived(routed, Gateway::router44);
    packet.identification = 1;
    EXPECT_EQ(faults_of(routed, test::write_packet(packet)), "identification");
    const Stream translated = test::make_stream(test::request_for(Gateway::siit64));
    for (const std::uint16_t identification : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{0xffff}}) {
        packet = arrived(translated, Gateway::siit64);
        packet.identification = identification;
        EXPECT_EQ(faults_of(translated, test::write_packet(packet)), "");
    }
}

/// RFC 3168 section 5: a gateway may mark a packet whose sender's transport understands it, and no
/// other one; it may change nothing else.
TEST(Verification, CongestionExperiencedIsAFaultOnlyWhereItMayNotBeWritten) {
    for (const Gateway gateway : test::all_gateways) {
        for (const unsigned sent : {0x00U, 0x01U, 0x02U, 0x03U, 0xb8U, 0xb9U, 0xbaU, 0xbbU}) {
            StreamRequest request = test::request_for(gateway);
            request.marking.traffic_classes = {static_cast<std::uint8_t>(sent)};
            const Stream stream = test::make_stream(request);
            for (unsigned to = 0; to < 0x100; ++to) {
                SlowPacket packet = arrived(stream, gateway);
                packet.traffic_class = static_cast<std::uint8_t>(to);
                const Bytes frame = test::write_packet(packet);
                const bool may_be_marked = (sent & 3U) == 1 || (sent & 3U) == 2, is_marked = may_be_marked && to == (sent | 3U);
                EXPECT_EQ(faults_of(stream, frame), is_marked || to == sent ? "" : "traffic_class") << sent << " to " << to;
                EXPECT_EQ(remarks_on(stream, frame).has(Remark::congestion_experienced), is_marked) << sent << " to " << to;
            }
        }
    }
}

/// RFC 6437 section 3: a router may label a flow that its source has not labelled, and may change
/// no label; a translator sets 0 (RFC 7915 section 4.1).
TEST(Verification, AFlowMayBeLabelledOnlyByARouterAndOnlyIfItHasNoLabel) {
    for (const Gateway gateway : {Gateway::router66, Gateway::siit46}) {
        for (const std::uint32_t sent : {0U, 1U, 0xf'ffffU}) {
            StreamRequest request = test::request_for(gateway);
            request.marking.flow_label = gateway == Gateway::router66 ? sent : 0;
            const Stream stream = test::make_stream(request);
            const std::uint32_t due = request.marking.flow_label;
            for (const std::uint32_t to : {0U, 1U, 2U, 0x8'0000U, 0xf'ffffU}) {
                SlowPacket packet = arrived(stream, gateway);
                packet.flow_label = to;
                const Bytes frame = test::write_packet(packet);
                const bool may_label = gateway == Gateway::router66 && due == 0;
                EXPECT_EQ(faults_of(stream, frame), to == due || may_label ? "" : "flow_label") << due << " to " << to;
                EXPECT_EQ(remarks_on(stream, frame).has(Remark::flow_label_set), to != due);
            }
        }
    }
}

/// What a gateway may do to extension headers, and must not: RFC 8200 section 4.
TEST(Verification, ExtensionHeadersArriveAsTheyWereSent) {
    using enum ExtensionHeader;
    StreamRequest request = test::request_for(Gateway::router66, 200);
    const auto with = [&](const std::vector<ExtensionHeader>& headers, std::size_t octets) {
        request.extension_headers = headers;
        request.frame_octets = octets;
        return test::make_stream(request);
    };
    const auto arrives = [](const Stream& other) { return test::frame_in(other.expected(), other, 5, 50); };
    const Stream bare = with({}, 200), options = with({destination_options}, 208), atomic = with({fragment}, 208);
    EXPECT_EQ(faults_of(options, arrives(options)), "");
    EXPECT_EQ(faults_of(atomic, arrives(atomic)), "");
    EXPECT_EQ(faults_of(options, arrives(bare)), "extension_headers") << "they were taken away";
    EXPECT_EQ(faults_of(bare, arrives(options)), "extension_headers") << "some were added";
    EXPECT_EQ(faults_of(atomic, arrives(options)), "extension_headers");
    EXPECT_EQ(faults_of(bare, arrives(atomic)), "fragment");
    Bytes fragmented = arrives(atomic);
    fragmented[54 + 3] |= std::byte{1};  // more fragments
    EXPECT_EQ(faults_of(atomic, fragmented), "extension_headers");
}

TEST(Verification, AnUntranslatedFrameIsOfTheWrongFamily) {
    for (const Gateway gateway : {Gateway::siit64, Gateway::siit46}) {
        const Stream stream = test::make_stream(test::request_for(gateway));
        EXPECT_EQ(faults_of(stream, test::sent_frame(stream, 5, 50)), "family");
    }
}

TEST(Verification, VlanTagMustBeTheExpectedOne) {
    const Stream stream = test::make_stream(test::request_for(Gateway::siit64), {{}, 100});
    SlowPacket packet = arrived(stream, Gateway::siit64, 100);
    EXPECT_EQ(faults_of(stream, test::write_packet(packet)), "");
    packet.vlan = 0x7064;  // priority and drop bits are the gateway's
    EXPECT_EQ(faults_of(stream, test::write_packet(packet)), "");
    packet.vlan = 101;
    EXPECT_EQ(faults_of(stream, test::write_packet(packet)), "vlan");
    packet.vlan.reset();
    EXPECT_EQ(faults_of(stream, test::write_packet(packet)), "vlan");
}

/// RFC 894, RFC 2464 section 3: octets behind the packet are no part of it.
TEST(Verification, OctetsBehindThePacketAreNoFaultAndAreTold) {
    for (const Gateway gateway : test::all_gateways) {
        for (const bool is_tagged : {false, true}) {
            for (const std::size_t larger_by : {0U, 1U, 36U, 1400U}) {
                const auto vlan = is_tagged ? std::optional<std::uint16_t>{100} : std::nullopt;
                const Stream stream = test::make_stream(test::request_for(gateway, test::smallest_frame(gateway) + larger_by), {{}, vlan});
                const Bytes whole = test::write_packet(arrived(stream, gateway, vlan));
                for (const std::size_t added : {0U, 1U, 4U, 5U, 64U}) {
                    Bytes frame = whole;
                    frame.resize(whole.size() + added, std::byte{0xa5});
                    EXPECT_EQ(faults_of(stream, frame), "") << whole.size() << " + " << added;
                    EXPECT_EQ(remarks_on(stream, frame).has(Remark::with_trailer), added != 0) << whole.size() << " + " << added;
                }
                Bytes cut = whole;
                cut.resize(whole.size() - 1);
                EXPECT_EQ(faults_of(stream, cut), larger_by == 0 ? "not ours" : "length");
            }
        }
    }
}

/// A router that hands on the frame keeps what is behind the packet, one that makes a new frame
/// does not; in loop-back it has to be there.
TEST(Verification, ATrailerThatWasSentMayComeBack) {
    for (const Gateway gateway : test::all_gateways) {
        StreamRequest request = test::request_for(gateway, test::smallest_frame(gateway) + 4);
        request.trailer_octets = 4;
        const Stream stream = test::make_stream(request);
        Bytes frame = test::write_packet(arrived(stream, gateway));
        EXPECT_EQ(frame.size(), stream.expected().layout.end);
        EXPECT_EQ(faults_of(stream, frame), "");
        EXPECT_FALSE(remarks_on(stream, frame).has(Remark::with_trailer));
        frame.resize(frame.size() + 4);
        EXPECT_EQ(faults_of(stream, frame), "");
        EXPECT_TRUE(remarks_on(stream, frame).has(Remark::with_trailer));
        request.as_sent = true;
        request.hop_limit_decrement = 0;
        const Stream looped = test::make_stream(request);
        frame = test::sent_frame(looped, 5, 50);
        EXPECT_EQ(faults_of(looped, frame), "");
        EXPECT_FALSE(remarks_on(looped, frame).has(Remark::with_trailer));
        EXPECT_TRUE(Recognizer{looped}.matches(frame)) << "at once";
    }
}

/// The trailer became data: one of the known mistakes of translators.
TEST(Verification, AFrameWhosePacketTookInWhatIsBehindItHasAFault) {
    for (const Gateway gateway : test::all_gateways) {
        const Stream stream = test::make_stream(test::request_for(gateway, 200));
        SlowPacket packet = arrived(stream, gateway);
        packet.payload.resize(packet.payload.size() + 4, std::byte{0xa5});
        EXPECT_EQ(faults_of(stream, test::write_packet(packet)), "length udp_length");
    }
}

TEST(Verification, EverySingleFlippedBitIsNoticed) {
    for (const Gateway gateway : test::all_gateways) {
        const Stream stream = test::make_stream(test::request_for(gateway, 150));
        const Bytes correct = test::write_packet(arrived(stream, gateway));
        for (std::size_t bit = 8 * 14; bit < 8 * correct.size(); ++bit) {
            Bytes frame = correct;
            frame[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            EXPECT_NE(faults_of(stream, frame), "") << "byte " << bit / 8 << " bit " << bit % 8;
        }
    }
}

TEST(Verification, AGatewayThatChangesPayloadWithoutTheChecksumHasBothFaults) {
    const Stream stream = test::make_stream(test::request_for(Gateway::siit46, 200));
    Bytes frame = test::write_packet(arrived(stream, Gateway::siit46));
    frame.back() ^= std::byte{1};
    EXPECT_EQ(faults_of(stream, frame), "udp_checksum payload");
}

TEST(Verification, AcceptsAZeroChecksumOnlyForOnesAndOnlyFromATranslatorKnownForIt) {
    for (const Gateway gateway : {Gateway::siit64, Gateway::siit46}) {
        StreamRequest request = test::request_for(gateway);
        const Stream strict = test::make_stream(request);
        request.zero_checksum_for_ones = true;
        const Stream lenient = test::make_stream(request);
        std::size_t ones = 0;
        for (std::uint64_t index = 0; index < 400'000 && ones < 2; ++index) {
            SlowPacket packet = test::forwarded(test::sent_frame(strict, 5, index), gateway);
            const Bytes correct = test::write_packet(packet);
            const std::size_t checksum = classify(correct, test::trial_id()).udp + net::udp::checksum;
            const bool is_ones = load_raw<std::uint16_t>(correct.data() + checksum) == 0xffff;
            if (!is_ones && index > 100) {
                continue;
            }
            ones += is_ones ? 1 : 0;
            packet.udp_checksum_absent = true;
            const Bytes zeroed = test::write_packet(packet);
            EXPECT_EQ(faults_of(strict, zeroed), "udp_checksum");
            EXPECT_EQ(faults_of(lenient, zeroed), is_ones ? "" : "udp_checksum");
            EXPECT_TRUE(has_zero_checksum(zeroed, classify(zeroed, test::trial_id())));
            EXPECT_EQ(faults_of(lenient, correct), "");
            EXPECT_FALSE(has_zero_checksum(correct, classify(correct, test::trial_id())));
        }
        EXPECT_EQ(ones, 2U) << "about one frame in 65,536";
    }
}

}  // namespace
}  // namespace gatemark::frame
