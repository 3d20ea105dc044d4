#include "frame/streams.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace gatemark::frame {
namespace {

using test::Gateway;

std::string problem_of(const StreamRequest& request) {
    const auto result = Stream::make(request, signature::Direction::forward, signature::TrafficClass::foreground, 1, 1, {}, {}, "stream");
    return error_of(result) == nullptr ? "" : error_of(result)->where;
}

TEST(Stream, RefusesFramesThatCannotBe) {
    for (const Gateway gateway : test::all_gateways) {
        for (const std::size_t bytes : {std::size_t{0}, test::smallest_frame(gateway) - 1, std::size_t{9237}}) {
            StreamRequest request = test::request_for(gateway);
            request.frame_octets = bytes;
            EXPECT_EQ(problem_of(request), "stream.frame_octets") << bytes;
        }
        EXPECT_EQ(problem_of(test::request_for(gateway)), "");
    }
}

TEST(Stream, RefusesAHopLimitThatDoesNotSurvive) {
    StreamRequest request = test::request_for(Gateway::siit64);
    request.hop_limit = 3;
    EXPECT_EQ(problem_of(request), "stream.hop_limit");
    request.hop_limit = 4;
    EXPECT_EQ(problem_of(request), "");
}

TEST(Stream, RefusesIpv6WithoutChecksum) {
    for (const Gateway gateway : test::all_gateways) {
        StreamRequest request = test::request_for(gateway);
        request.without_checksum = true;
        const bool ipv4 = request.source.address.family == net::Family::ipv4;
        EXPECT_EQ(problem_of(request), ipv4 ? "" : "stream.udp_checksum");
    }
}

TEST(Stream, FramesWithoutChecksumAreTheOthersWithItsFieldZero) {
    for (const Gateway gateway : {Gateway::router44, Gateway::siit46}) {
        StreamRequest request = test::request_for(gateway);
        const Stream usual = test::make_stream(request);
        request.without_checksum = true;
        const Stream stream = test::make_stream(request);
        ASSERT_TRUE(stream.is_special() && !usual.is_special());
        EXPECT_EQ(stream.expects_no_checksum(), gateway == Gateway::router44) << "a translator to IPv6 must compute one";
        for (std::uint64_t j = 0; j < 100; ++j) {
            test::Bytes expected = test::sent_frame(usual, j, 2 * j);
            const test::Bytes frame = test::sent_frame(stream, j, 2 * j);
            ASSERT_NE(frame, expected);
            store_raw(expected.data() + stream.sent().layout.udp + net::udp::checksum, std::uint16_t{0});
            ASSERT_EQ(frame, expected);
        }
    }
}

/// RFC 6437 section 3: all packets of a flow have one label, which is not 0, and others rarely have
/// it.
TEST(Stream, MarksFollowFromTheFlow) {
    StreamRequest request = test::request_for(Gateway::router66);
    request.source = test::varying_host("2001:2::", 14, ValueMode::increasing, 2, 9);
    request.destination = test::fixed_host("2001:2:0:8000::2");
    request.source_ports = request.destination_ports = {ValueMode::increasing, 1024, 2023};
    request.marking = {.traffic_classes = {0, 0x28, 0xb8}, .labels_flows = true};
    const Stream stream = test::make_stream(request);
    std::map<std::uint32_t, std::size_t> labels;
    std::map<std::uint8_t, std::size_t> classes;
    for (std::uint64_t j = 0; j < 1000; ++j) {
        const Mark mark = stream.sent_mark(stream.values(j));
        EXPECT_EQ(mark, stream.sent_mark(stream.values(j + 1000))) << "8 hosts and 1000 ports in turn: the same flow";
        EXPECT_EQ(mark, mark_of(test::sent_frame(stream, j, j).data() + stream.sent().layout.ip, net::Family::ipv6));
        ++labels[mark.flow_label];
        ++classes[mark.traffic_class];
    }
    EXPECT_EQ(labels.count(0), 0U);
    EXPECT_GT(labels.size(), 990U);
    EXPECT_LE(labels.rbegin()->first, 0xf'ffffU);
    ASSERT_EQ(classes.size(), 3U);
    for (const auto& [traffic_class, flows] : classes) {
        EXPECT_NEAR(static_cast<double>(flows), 333, 80) << int{traffic_class};
    }
}

TEST(Stream, AnIpv4PacketHasNoFlowLabel) {
    StreamRequest request = test::request_for(Gateway::siit46);
    request.marking.flow_label = 1;
    EXPECT_EQ(problem_of(request), "stream.flow_label");
    request.marking = {.labels_flows = true};
    EXPECT_EQ(problem_of(request), "stream.flow_label");
}

/// RFC 5180 section 5.3: a chain of routing header, destination options and fragment header has 40
/// octets. Written by hand from RFC 8200 and RFC 8754.
TEST(Stream, WritesAChainOfExtensionHeaders) {
    using enum ExtensionHeader;
    StreamRequest request = test::request_for(Gateway::router66, 84 + 40);
    request.destination = test::fixed_host("2001:2:0:8000::2");
    request.extension_headers = {routing, destination_options, fragment};
    const Stream stream = test::make_stream(request);
    const test::Bytes frame = test::sent_frame(stream, 3, 3);
    const std::size_t ip = net::ethernet::header_bytes;
    EXPECT_EQ(load_big_endian<std::uint16_t>(frame.data() + ip + net::ipv6::payload_length), 40 + 8 + 18);
    EXPECT_EQ(frame[ip + net::ipv6::next_header], std::byte{43});
    EXPECT_EQ(test::to_hex({frame.begin() + 54, frame.begin() + 54 + 40}),
              "3c02040000000000"
              "20010002000080000000000000000002"
              "2c00010400000000"
              "1100000000000001");
    EXPECT_EQ(stream.sent().layout.udp, 54U + 40);
    request.frame_octets = 84 + 39;
    EXPECT_EQ(problem_of(request), "stream.frame_octets");
    request = test::request_for(Gateway::siit64, 200);
    request.extension_headers = {fragment};
    EXPECT_EQ(problem_of(request), "stream.extension_headers");
}

/// What is behind the packet is in the frame's size, and in no length and checksum of the packet.
TEST(Stream, PutsATrailerBehindThePacketAsSent) {
    for (const Gateway gateway : test::all_gateways) {
        for (const bool with_vlan : {false, true}) {
            for (const std::size_t trailer : {1U, 4U, 64U}) {
                for (const std::size_t larger_by : {0U, 1U, 1400U}) {
                    const auto vlan = with_vlan ? std::optional<std::uint16_t>{100} : std::nullopt;
                    StreamRequest request = test::request_for(gateway, test::smallest_frame(gateway) + larger_by);
                    const Stream bare = test::make_stream(request, {vlan, vlan});
                    request.frame_octets += trailer;
                    request.trailer_octets = trailer;
                    const Stream stream = test::make_stream(request, {vlan, vlan});
                    EXPECT_EQ(stream.sent().frame_octets(), request.frame_octets);
                    EXPECT_EQ(stream.expected().frame, bare.expected().frame) << "every receiver cuts it off";
                    test::Bytes frame = test::sent_frame(stream, 5, 50);
                    EXPECT_EQ(frame[frame.size() - trailer], std::byte{1});
                    EXPECT_EQ(frame.back(), static_cast<std::byte>(trailer));
                    frame.resize(frame.size() - trailer);
                    EXPECT_EQ(test::to_hex(frame), test::to_hex(test::sent_frame(bare, 5, 50)));
                }
            }
        }
        StreamRequest request = test::request_for(gateway, test::smallest_frame(gateway) + 3);
        request.trailer_octets = 4;
        EXPECT_EQ(problem_of(request), "stream.frame_octets") << "the packet has no room for the signature";
    }
}

/// Through its own number and through its address a host has one link-layer address, which
/// neighbours are told and frames carry; and no other host has it.
TEST(Stream, EachHostHasItsOwnLinkLayerAddress) {
    for (const Gateway gateway : test::all_gateways) {
        for (const std::uint16_t networks : {std::uint16_t{1}, std::uint16_t{256}}) {
            StreamRequest request = test::request_for(gateway);
            if (request.source.address.family == request.destination.address.family) {
                request.destination.networks = networks;
            }
            const Stream stream = test::make_stream(request, {}, signature::TrafficClass::foreground, signature::Direction::forward, 9);
            ASSERT_TRUE(stream.is_special() && stream.has_host_macs());
            std::map<net::MacAddress, net::Address> sources, destinations;
            for (std::uint64_t j = 0; j < 2000; ++j) {
                const FrameValues values = stream.values(j);
                const test::Bytes sent = test::sent_frame(stream, j, j);
                net::MacAddress source;
                std::copy_n(sent.begin() + net::ethernet::source, source.size(), source.begin());
                ASSERT_TRUE(std::equal(test::receiving_mac.begin(), test::receiving_mac.end(), sent.begin())) << "the gateway's";
                const net::Address from = request.source.host(values.source_host, 0);
                const net::Address to = request.destination.host(values.destination_host, values.network);
                ASSERT_EQ(source, test::sending_macs(9).at(request.source.number_of(from)));
                ASSERT_EQ(stream.expected_destination_mac(values), test::receiving_macs(9).at(request.destination.number_of(to)));
                ASSERT_EQ(sources.try_emplace(source, from).first->second, from);
                ASSERT_EQ(destinations.try_emplace(stream.expected_destination_mac(values), to).first->second, to);
            }
            EXPECT_GT(sources.size(), 200U);
            EXPECT_GT(destinations.size(), 200U);
        }
    }
}

TEST(Stream, RefusesHostsWithoutRepresentation) {
    StreamRequest request = test::request_for(Gateway::siit64);
    request.source = test::fixed_host("2001:2::2");
    EXPECT_EQ(problem_of(request), "stream.source");
    request = test::request_for(Gateway::siit46);
    request.mapping.reset();
    EXPECT_EQ(problem_of(request), "stream.destination");
}

TEST(Stream, ValuesAreAFunctionOfSeedStreamAndNumberAlone) {
    const Stream a = test::make_stream(test::request_for(Gateway::siit64)), b = test::make_stream(test::request_for(Gateway::siit64));
    const Stream background = test::make_stream(test::request_for(Gateway::siit64), {}, signature::TrafficClass::background);
    EXPECT_EQ(test::sent_frame(a, 123456, 200000), test::sent_frame(b, 123456, 200000));
    unsigned same = 0;
    for (std::uint64_t j = 0; j < 1000; ++j) {
        same += a.values(j).source_port == background.values(j).source_port ? 1U : 0U;
    }
    EXPECT_LT(same, 10U);
}

TEST(Stream, PortsAndHostsTakeTheirWholeRanges) {
    StreamRequest request = test::request_for(Gateway::router44);
    request.destination.networks = 256;
    const Stream stream = test::make_stream(request);
    std::set<std::uint16_t> sources, destinations, source_hosts, destination_hosts, networks;
    for (std::uint64_t j = 0; j < 1'000'000; ++j) {
        const FrameValues values = stream.values(j);
        ASSERT_TRUE(values.source_port >= 1024 && values.destination_port >= 1 && values.destination_port <= 49151);
        ASSERT_TRUE(values.source_host >= 2 && values.source_host <= 254);
        ASSERT_EQ(values.destination_host, 2 + j % 253);
        sources.insert(values.source_port);
        destinations.insert(values.destination_port);
        source_hosts.insert(values.source_host);
        networks.insert(values.network);
    }
    EXPECT_GT(sources.size(), 64512U * 99 / 100);
    EXPECT_EQ(destinations.size(), 49151U);
    EXPECT_EQ(source_hosts.size(), 253U);
    EXPECT_EQ(networks.size(), 256U);
}

TEST(Stream, DestinationNetworksAreDrawnEvenly) {
    StreamRequest request = test::request_for(Gateway::router44);
    for (const std::uint16_t networks : std::initializer_list<std::uint16_t>{2, 7, 255, 256}) {
        request.destination.networks = networks;
        const Stream stream = test::make_stream(request);
        std::vector<double> times(networks);
        constexpr std::uint64_t frames = 100'000;
        for (std::uint64_t j = 0; j < frames; ++j) {
            const FrameValues values = stream.values(j);
            ASSERT_LT(values.network, networks);
            ++times[values.network];
        }
        const double mean = static_cast<double>(frames) / networks;
        for (const double found : times) {
            EXPECT_NEAR(found, mean, 6 * std::sqrt(mean)) << networks;
        }
    }
}

TEST(Signature, DistinguishesTrialsAndStreams) {
    using namespace signature;
    EXPECT_NE(trial_id_of(42, 1), trial_id_of(42, 2));
    EXPECT_TRUE(same_campaign(trial_id_of(42, 1), trial_id_of(42, 2)));
    EXPECT_FALSE(same_campaign(trial_id_of(42, 1), trial_id_of(43, 1)));
    EXPECT_EQ(stream_id(Direction::forward, TrafficClass::foreground), 0xa0);
    EXPECT_EQ(stream_id(Direction::reverse, TrafficClass::background), 0xa3);
    const test::Bytes frame = test::sent_frame(test::make_stream(test::request_for(Gateway::router44)), 5, 0xfe'dcba'9876);
    const std::byte* const payload = frame.data() + 42;
    EXPECT_EQ(trial_id(payload), test::trial_id());
    EXPECT_EQ(stream(payload), 0xa0);
    EXPECT_EQ(index(payload), 0xfe'dcba'9876U);
    EXPECT_EQ(load_big_endian<std::uint64_t>(payload + timestamp_offset), 0x0123456789abcdefU);
}

}  // namespace
}  // namespace gatemark::frame
