#include "frame/recognizer.hpp"

#include "frame/streams.hpp"
#include "frame/verification.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gatemark::frame {
namespace {

using test::Gateway, test::Bytes, test::SlowPacket;

constexpr std::uint64_t frame_number = 5, sent_as = 50;

bool recognized(const Stream& stream, const Bytes& frame) { return test::recognizes(Recognizer{stream}, frame, frame_number); }

/// The oracle: field by field.
bool passes_verification(const Stream& stream, const Bytes& frame) {
    const Arrival arrival = classify(frame, test::trial_id());
    return arrival.kind == ArrivalKind::ours && signature::stream(frame.data() + arrival.payload) == stream.id() &&
           verify(frame, arrival, stream, stream.values(frame_number)).none();
}

SlowPacket arrived_frame(const Stream& stream, Gateway gateway, std::optional<std::uint16_t> vlan = std::nullopt) {
    return test::forwarded(test::sent_frame(stream, frame_number, sent_as), gateway, vlan);
}

/// Hosts at any position in an address: aligned with the words of the checksum or across them, with
/// networks, or listed one by one.
std::vector<StreamRequest> requests_of_all_kinds() {
    std::vector<StreamRequest> requests;
    for (const Gateway gateway : test::all_gateways) {
        requests.push_back(test::request_for(gateway));
    }
    StreamRequest across = test::request_for(Gateway::router44);
    across.source = test::varying_host("198.18.0.0", 1, ValueMode::pseudorandom, 2, 65534);
    across.destination = test::varying_host("198.19.0.0", 2, ValueMode::decreasing, 2, 254, 256);
    requests.push_back(across);
    StreamRequest fixed = test::request_for(Gateway::router66);
    fixed.source = test::fixed_host("2001:2::2");
    fixed.destination = test::fixed_host("2001:2:0:8000::2");
    fixed.source_ports = fixed.destination_ports = {ValueMode::fixed, 4096, 4096};
    requests.push_back(fixed);
    return requests;
}

Gateway gateway_of(const StreamRequest& request) {
    const bool to_ipv4 = request.destination.address.family == net::Family::ipv4;
    const bool from_ipv4 = request.source.address.family == net::Family::ipv4;
    return from_ipv4 ? (to_ipv4 ? Gateway::router44 : Gateway::siit46) : (to_ipv4 ? Gateway::siit64 : Gateway::router66);
}

TEST(Recognizer, KnowsWhatACorrectGatewayMakesOfAFrame) {
    for (StreamRequest request : requests_of_all_kinds()) {
        const Gateway gateway = gateway_of(request);
        for (const std::size_t bytes : {0U, 1U, 2U, 15U, 16U, 17U, 500U, 1434U, 9132U}) {
            for (const auto& vlan : {std::optional<std::uint16_t>{}, std::optional<std::uint16_t>{100}}) {
                for (const bool dont_fragment : {false, true}) {
                    request.frame_octets = test::smallest_frame(gateway) + bytes;
                    request.dont_fragment = dont_fragment;
                    request.marking.traffic_classes = {static_cast<std::uint8_t>(bytes)};
                    const Stream stream = test::make_stream(request, {{}, vlan});
                    SlowPacket packet = arrived_frame(stream, gateway, vlan);
                    packet.link_source = *net::parse_mac("02:00:00:00:00:09");
                    EXPECT_TRUE(recognized(stream, test::write_packet(packet))) << request.frame_octets;
                }
            }
        }
    }
}

TEST(Recognizer, KnowsExplicitlyMappedHosts) {
    StreamRequest request = test::request_for(Gateway::siit46);
    request.source = test::fixed_host("198.18.0.2");
    request.destination = test::varying_host("198.19.0.0", 2, ValueMode::pseudorandom, 2, 3);
    request.mapping = test::mapping_of(std::string{test::prefix_96} + "/96",
                                       {{"198.19.0.2/32", "2001:db8:1::77/128"}, {"198.19.0.3/32", "2001:db8:2::99/128"}});
    const Stream stream = test::make_stream(request);
    ASSERT_TRUE(stream.expected().destination.varies());
    Bytes frame = test::frame_in(stream.expected(), stream, frame_number, sent_as);
    ASSERT_TRUE(passes_verification(stream, frame));
    EXPECT_TRUE(recognized(stream, frame));
    frame[stream.expected().layout.destination_address() + 15] ^= std::byte{1};
    EXPECT_FALSE(recognized(stream, frame));
}

TEST(Recognizer, TakesNoFrameThatVerificationRefuses) {
    std::size_t both = 0, correct_only = 0;
    for (StreamRequest request : requests_of_all_kinds()) {
        request.frame_octets = 100;
        const Stream stream = test::make_stream(request);
        const Bytes correct = test::write_packet(arrived_frame(stream, gateway_of(request)));
        for (std::size_t bit = 0; bit < 8 * correct.size(); ++bit) {
            Bytes frame = correct;
            frame[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            const bool is_correct = passes_verification(stream, frame), is_recognized = recognized(stream, frame);
            EXPECT_FALSE(is_recognized && !is_correct) << "byte " << bit / 8 << " bit " << bit % 8;
            both += is_recognized ? 1 : 0;
            correct_only += is_correct && !is_recognized ? 1 : 0;
        }
    }
    // The group bit is one of the source's 48, and no single bit makes it ours: the gateway's
    // address differs from it in two.
    EXPECT_EQ(both, requests_of_all_kinds().size() * 47) << "the source's link-layer address may be that of any host but ours";
    EXPECT_EQ(correct_only, 0U);
}

/// Frames whose traffic class and flow label depend on their flow, and frames with extension
/// headers.
std::vector<Stream> streams_of_routers() {
    std::vector<Stream> streams;
    for (StreamRequest request : requests_of_all_kinds()) {
        request.marking.traffic_classes = {0, 0x28, 0xb8, 0xc0};
        streams.push_back(test::make_stream(request));
        if (request.source.address.family == net::Family::ipv6) {
            request.marking.labels_flows = true;
            streams.push_back(test::make_stream(request));
        }
    }
    using enum ExtensionHeader;
    for (const auto& headers : {std::vector{hop_by_hop}, std::vector{routing}, std::vector{fragment}, std::vector{destination_options},
                                std::vector{hop_by_hop, routing, destination_options, fragment}}) {
        StreamRequest request = test::request_for(Gateway::router66, 84 + bytes_of(headers));
        request.extension_headers = headers;
        streams.push_back(test::make_stream(request));
        streams.push_back(test::make_stream(request, {100, 200}));
    }
    return streams;
}

/// Frames that are sent without checksum, hosts with link-layer addresses of their own, and both.
std::vector<Stream> special_streams() {
    std::vector<Stream> streams = streams_of_routers();
    for (StreamRequest request : requests_of_all_kinds()) {
        for (const bool without_checksum : {false, true}) {
            for (const auto& seed : {std::optional<std::uint64_t>{}, std::optional<std::uint64_t>{3}}) {
                request.without_checksum = without_checksum;
                if ((without_checksum || seed) && !(without_checksum && request.source.address.family == net::Family::ipv6)) {
                    streams.push_back(
                        test::make_stream(request, {}, signature::TrafficClass::foreground, signature::Direction::forward, seed));
                }
            }
        }
    }
    return streams;
}

Bytes arrived_special(const Stream& stream) {
    Bytes frame = test::frame_in(stream.expected(), stream, frame_number, sent_as);
    const auto gateway_mac = *net::parse_mac("02:00:00:00:00:09");
    std::copy(gateway_mac.begin(), gateway_mac.end(), frame.begin() + net::ethernet::source);
    return frame;
}

TEST(Recognizer, KnowsSpecialFrames) {
    for (const Stream& stream : special_streams()) {
        const Bytes frame = arrived_special(stream);
        EXPECT_TRUE(passes_verification(stream, frame));
        EXPECT_TRUE(recognized(stream, frame));
    }
}

/// Without a checksum the time stamp alone is protected by nothing, which verification lets pass
/// too.
TEST(Recognizer, TakesNoSpecialFrameThatVerificationRefuses) {
    for (const Stream& stream : special_streams()) {
        const Bytes correct = arrived_special(stream);
        for (std::size_t bit = 0; bit < 8 * correct.size(); ++bit) {
            Bytes frame = correct;
            frame[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            EXPECT_EQ(recognized(stream, frame), passes_verification(stream, frame)) << "byte " << bit / 8 << " bit " << bit % 8;
        }
    }
}

TEST(Recognizer, TakesNoChecksumThatWasAddedNorOneThatIsMissing) {
    for (const Stream& stream : special_streams()) {
        if (!stream.sent_without_checksum()) {
            continue;
        }
        Bytes frame = arrived_special(stream);
        const std::size_t at = stream.expected().layout.udp + net::udp::checksum;
        std::uint16_t checksum = 0;
        if (stream.expects_no_checksum()) {
            Bytes with_checksum = stream.expected().frame;
            write_frame(stream.expected(), with_checksum.data(), stream.values(frame_number), stream.id(), sent_as, {0x0123456789abcdef});
            checksum = load_raw<std::uint16_t>(with_checksum.data() + at);
            ASSERT_NE(checksum, 0);
        }
        store_raw(frame.data() + at, checksum);
        EXPECT_FALSE(recognized(stream, frame));
        const Arrival arrival = classify(frame, test::trial_id());
        const Faults faults = verify(frame, arrival, stream, stream.values(frame_number));
        EXPECT_EQ(faults, Faults{Fault::udp_checksum});
    }
}

TEST(Recognizer, TakesNoFrameToTheLinkLayerAddressOfAnotherHostOrOfThePort) {
    for (const Stream& stream : special_streams()) {
        if (!stream.has_host_macs()) {
            continue;
        }
        FrameValues other = stream.values(frame_number);
        ++other.destination_host;
        for (const net::MacAddress& mac : {stream.expected_destination_mac(other), test::receiving_mac}) {
            Bytes frame = arrived_special(stream);
            const bool one_host = !stream.destination_hosts().varies() && mac != test::receiving_mac;
            std::copy(mac.begin(), mac.end(), frame.begin());
            EXPECT_EQ(recognized(stream, frame), one_host);
            const Arrival arrival = classify(frame, test::trial_id());
            const Faults faults = verify(frame, arrival, stream, stream.values(frame_number));
            EXPECT_EQ(faults, one_host ? Faults{} : Faults{Fault::destination_mac});
        }
    }
}

TEST(Recognizer, TakesNoFrameFromItsOwnHost) {
    for (const Stream& stream : special_streams()) {
        Bytes frame = arrived_special(stream);
        const net::MacAddress mac = stream.expected_destination_mac(stream.values(frame_number));
        std::copy(mac.begin(), mac.end(), frame.begin() + net::ethernet::source);
        EXPECT_FALSE(recognized(stream, frame));
        const Faults faults = verify(frame, classify(frame, test::trial_id()), stream, stream.values(frame_number));
        EXPECT_EQ(faults, Faults{Fault::source_mac});
    }
}

/// Checksums are corrected, so only the other comparisons can detect the change.
TEST(Recognizer, AgreesWithVerificationOnWholePacketsChangedAtRandom) {
    std::mt19937_64 random{1};
    const auto any = [&](std::uint64_t below) { return random() % below; };
    std::vector<std::pair<Stream, Gateway>> streams;
    for (StreamRequest request : requests_of_all_kinds()) {
        for (const std::size_t bytes : {84U, 101U, 144U}) {
            request.frame_octets = bytes;
            streams.emplace_back(test::make_stream(request), gateway_of(request));
        }
    }
    std::size_t correct_count = 0;
    for (int round = 0; round < 20'000; ++round) {
        const auto& [stream, gateway] = streams[any(streams.size())];
        SlowPacket packet = arrived_frame(stream, gateway);
        for (std::uint64_t change = any(3); change > 0; --change) {
            switch (any(10)) {
                case 0: packet.source.bytes[any(net::address_bytes(packet.source.family))] ^= static_cast<std::byte>(any(256)); break;
                case 1:
                    packet.destination.bytes[any(net::address_bytes(packet.destination.family))] ^= static_cast<std::byte>(any(256));
                    break;
                case 2: packet.source_port ^= static_cast<std::uint16_t>(any(4)); break;
                case 3: packet.destination_port ^= static_cast<std::uint16_t>(any(4)); break;
                case 4: packet.identification = static_cast<std::uint16_t>(any(3)); break;
                case 5: packet.hop_limit = static_cast<std::uint8_t>(packet.hop_limit + any(2)); break;
                case 6: packet.dont_fragment ^= any(2) == 1; break;
                case 7: packet.payload[any(packet.payload.size())] ^= static_cast<std::byte>(any(2)); break;
                case 8: packet.flow_label = static_cast<std::uint32_t>(any(2)); break;
                default: packet.traffic_class ^= static_cast<std::uint8_t>(any(2)); break;
            }
        }
        const Bytes frame = test::write_packet(packet);
        const bool is_correct = passes_verification(stream, frame);
        EXPECT_EQ(recognized(stream, frame), is_correct) << round;
        correct_count += is_correct ? 1 : 0;
    }
    EXPECT_GT(correct_count, 5'000U);
    EXPECT_LT(correct_count, 15'000U);
}

TEST(Recognizer, TakesAnySourceOfAnInitiatorsFrameThatFitsTheChecksums) {
    StreamRequest request = test::request_for(Gateway::router44, 100);
    const enumerate::TupleRanges ranges{
        .source_ports = {1024, 100}, .destination_ports = {1, 10}, .source_hosts = {2, 5}, .destination_hosts = {2, 5}};
    request.connections = ConnectionTraffic{.role = Role::initiator, .set = {ranges, enumerate::Order::pseudorandom, 1000, 1}};
    const Stream stream = test::make_stream(request);
    SlowPacket packet = test::read_packet(test::frame_in(stream.expected(), stream, frame_number, sent_as));
    packet.link_source = *net::parse_mac("02:00:00:00:00:09");
    for (const char* const source : {"203.0.113.9", "0.0.0.0", "255.255.255.255"}) {
        for (const std::uint16_t port : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{65535}}) {
            packet.source = test::address_of(source);
            packet.source_port = port;
            packet.identification = port;  // a NAT that shares an address chooses this as well
            Bytes frame = test::write_packet(packet);
            EXPECT_TRUE(passes_verification(stream, frame) && recognized(stream, frame)) << source << " " << port;
            frame[stream.expected().layout.source_address()] ^= std::byte{1};
            EXPECT_FALSE(passes_verification(stream, frame) || recognized(stream, frame)) << source << " " << port;
        }
    }
    packet.destination_port ^= 1;
    EXPECT_FALSE(recognized(stream, test::write_packet(packet)));
}

TEST(Recognizer, LeavesPaddedFramesAndOtherFormsOfAChecksumToVerification) {
    const Stream stream = test::make_stream(test::request_for(Gateway::router44));
    Bytes frame = test::write_packet(arrived_frame(stream, Gateway::router44));
    frame.resize(64);
    EXPECT_TRUE(passes_verification(stream, frame));
    EXPECT_FALSE(recognized(stream, frame));
}

/// Every bit of a frame changed, in the first frame, one between and the last; and another length.
TEST(Recognizer, MatchesABurstAsFrameByFrameOrNotAtAll) {
    constexpr std::size_t burst_frames = 17;
    std::size_t matched_count = 0, refused_count = 0;
    for (StreamRequest request : requests_of_all_kinds()) {
        const Gateway gateway = gateway_of(request);
        for (const std::size_t bytes : {0U, 37U}) {
            request.frame_octets = test::smallest_frame(gateway) + bytes;
            const Stream stream = test::make_stream(request);
            const Recognizer recognizer{stream};
            std::vector<Bytes> frames;
            for (std::uint64_t k = 0; k < burst_frames; ++k) {
                frames.push_back(test::frame_in(stream.expected(), stream, frame_number + k, frame_number + k));
            }
            const auto expect_the_same = [&](bool one_source) {
                const std::vector<std::span<const std::byte>> burst{frames.begin(), frames.end()};
                const std::uint32_t matches = recognizer.match(burst);
                MatchedFrames in_turn, whole;
                const auto largest = recognizer.match_all(burst, whole);
                ASSERT_EQ(largest.has_value(), one_source && matches == (1U << burst_frames) - 1);
                ++(largest ? matched_count : refused_count);
                ASSERT_EQ(whole.count, largest ? burst_frames : 0);
                if (!largest) {
                    return;
                }
                for (const Bytes& frame : frames) {
                    const std::uint64_t index = recognizer.index(frame.data());
                    recognizer.gather(frame.data(), index, index, in_turn);
                }
                EXPECT_EQ(*largest, *std::max_element(in_turn.indexes.begin(), in_turn.indexes.begin() + burst_frames));
                EXPECT_EQ(whole.indexes, in_turn.indexes);
                EXPECT_EQ(whole.numbers, in_turn.numbers);
                EXPECT_EQ(whole.frames, in_turn.frames);
                recognizer.compute(whole);
                recognizer.compute(in_turn);
                EXPECT_EQ(recognizer.compare(whole), recognizer.compare(in_turn));
            };
            expect_the_same(true);
            for (const std::size_t place : {std::size_t{0}, burst_frames / 2, burst_frames - 1}) {
                const Bytes correct = frames[place];
                for (std::size_t bit = 0; bit < 8 * correct.size(); ++bit) {
                    frames[place][bit / 8] ^= std::byte{1} << bit % 8;
                    expect_the_same(bit / 8 < net::ethernet::source || bit / 8 >= net::ethernet::source + net::mac_bytes);
                    frames[place] = correct;
                }
                frames[place].pop_back();
                frames[place].shrink_to_fit();
                expect_the_same(true);
                frames[place] = correct;
            }
        }
    }
    EXPECT_GT(matched_count, 1'000U);
    EXPECT_GT(refused_count, 10'000U);
}

TEST(Recognizer, LooksAtNoByteBeyondTheFrame) {
    std::mt19937_64 random{2};
    const Stream stream = test::make_stream(test::request_for(Gateway::siit46, 100));
    const Bytes correct = test::write_packet(arrived_frame(stream, Gateway::siit46));
    for (std::size_t bytes = 0; bytes <= correct.size() + 1; ++bytes) {
        Bytes frame = correct;
        frame.resize(bytes);
        frame.shrink_to_fit();
        EXPECT_EQ(recognized(stream, frame), bytes == correct.size());
    }
    for (int round = 0; round < 10'000; ++round) {
        Bytes frame(random() % 200);
        for (std::byte& byte : frame) {
            byte = static_cast<std::byte>(random());
        }
        EXPECT_FALSE(recognized(stream, frame));
    }
}

}  // namespace
}  // namespace gatemark::frame
