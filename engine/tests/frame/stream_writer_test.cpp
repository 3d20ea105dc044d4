#include "frame/stream_writer.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace gatemark::frame {

namespace {

constexpr std::uint64_t first_ticks = 0x0123456789abcdef;

/// Bursts of every length, into buffers that hold frames of the burst before, are the frames that
/// `write_frame` writes one by one; `write_frame` itself is compared with slow ones elsewhere.
void expect_writes_the_same(const Stream& stream) {
    StreamWriter writer{stream};
    std::vector<test::Bytes> buffers(burst_frames_max, stream.sent().frame);
    std::uint64_t next = (std::uint64_t{1} << 32) - 300;
    for (std::size_t length = 1; length <= burst_frames_max; ++length) {
        BurstFrames burst{.count = length};
        for (std::size_t k = 0; k < length; ++k) {
            burst.numbers[k] = next + 3 * k;
            burst.indexes[k] = next + 7 * k;
            burst.frames[k] = buffers[k].data();
        }
        const BurstNumbers numbers = burst.numbers;
        writer.write(burst, {first_ticks + length});
        for (std::size_t k = 0; k < length; ++k) {
            ASSERT_EQ(test::to_hex(buffers[k]),
                      test::to_hex(test::frame_in(stream.sent(), stream, numbers[k], burst.indexes[k], first_ticks + length)))
                << "frame " << k << " of " << length;
        }
        next += 1000;
    }
}

TEST(StreamWriter, WritesBurstsAsFramesOneByOne) {
    for (const test::Gateway through : test::all_gateways) {
        for (const auto mode : {ValueMode::fixed, ValueMode::increasing, ValueMode::pseudorandom}) {
            for (const std::uint16_t networks : std::initializer_list<std::uint16_t>{1, 7}) {
                StreamRequest request = test::request_for(through, 100);
                request.source_ports = {mode, 1024, 65535};
                request.destination_ports.mode = mode;
                request.source.part.mode = mode;
                request.destination.networks = through == test::Gateway::siit46 ? std::uint16_t{1} : networks;
                expect_writes_the_same(test::make_stream(request));
                expect_writes_the_same(test::make_stream(request, {.sent = 5, .received = {}}));
            }
        }
    }
}

TEST(StreamWriter, AWordOfAnAddressMayBeginAnywhere) {
    for (const std::size_t offset : {1U, 2U}) {
        StreamRequest request = test::request_for(test::Gateway::router44);
        request.source = test::varying_host("198.18.0.0", offset, ValueMode::pseudorandom, 1, 65000);
        expect_writes_the_same(test::make_stream(request));
        request.destination = test::varying_host("10.0.0.0", 1, ValueMode::pseudorandom, 1, 65000);
        expect_writes_the_same(test::make_stream(request));
    }
}

TEST(StreamWriter, WritesNoChecksumAndTheLinkLayerAddressesOfHosts) {
    for (const bool without_checksum : {false, true}) {
        StreamRequest request = test::request_for(test::Gateway::router44);
        request.without_checksum = without_checksum;
        expect_writes_the_same(
            test::make_stream(request, {}, signature::TrafficClass::foreground, signature::Direction::forward, std::uint64_t{5}));
    }
}

TEST(StreamWriter, WritesMarksOfFlowsAndExtensionHeaders) {
    for (const test::Gateway through : test::all_gateways) {
        StreamRequest request = test::request_for(through);
        request.marking.traffic_classes = {0, 0xb8};
        expect_writes_the_same(test::make_stream(request));
    }
    StreamRequest request = test::request_for(test::Gateway::router66, 132);
    request.marking.labels_flows = true;
    request.extension_headers = {ExtensionHeader::routing, ExtensionHeader::destination_options, ExtensionHeader::fragment};
    expect_writes_the_same(test::make_stream(request));
}

TEST(StreamWriter, WritesConnectionsAndCustomerEdges) {
    for (const test::Gateway through : {test::Gateway::router44, test::Gateway::router66}) {
        for (const auto choice : {enumerate::ConnectionChoice::Mode::increasing, enumerate::ConnectionChoice::Mode::pseudorandom}) {
            StreamRequest request = test::request_for(through);
            request.connections = ConnectionTraffic{
                .set = {{.source_ports = {1024, 1000}, .destination_ports = {1, 50}, .source_hosts = {2, 9}, .destination_hosts = {3, 4}},
                        enumerate::Order::pseudorandom,
                        1'000'000,
                        3},
                .choice = choice};
            expect_writes_the_same(test::make_stream(request));
        }
    }
    const EdgesRequest edges{.domains = {test::edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6)}, .count = 60'000};
    for (const auto direction : {signature::Direction::forward, signature::Direction::reverse}) {
        expect_writes_the_same(
            test::make_stream(test::edges_request(edges, direction), {}, signature::TrafficClass::foreground, direction));
    }
}

}  // namespace

}  // namespace gatemark::frame
