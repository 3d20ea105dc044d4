#include "frame/arrival.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace gatemark::frame {
namespace {

using test::Gateway, test::Bytes;

ArrivalKind kind_of(const Bytes& frame) { return classify(frame, test::trial_id()).kind; }

Bytes ethernet(const char* type, const std::string& rest, std::size_t zeros = 0) {
    Bytes frame = test::from_hex(
        "0200000000010200000000"
        "02" +
        std::string{type} + rest);
    frame.resize(frame.size() + zeros);
    return frame;
}

TEST(Arrival, OursIsFoundInEveryForm) {
    for (const Gateway gateway : test::all_gateways) {
        for (const auto& vlan : {std::optional<std::uint16_t>{}, std::optional<std::uint16_t>{100}}) {
            const Stream stream = test::make_stream(test::request_for(gateway), {vlan, {}});
            const Arrival arrival = classify(test::sent_frame(stream, 1, 2), test::trial_id());
            EXPECT_EQ(arrival.kind, ArrivalKind::ours);
            EXPECT_EQ(arrival.vlan_id, vlan);
            EXPECT_EQ(arrival.family, stream.sent().layout.family);
            EXPECT_EQ(arrival.payload, stream.sent().layout.payload);
            EXPECT_FALSE(arrival.fragmented);
        }
    }
}

TEST(Arrival, AStragglerOfAnotherTrialIsNoFrameOfThisOne) {
    const Bytes frame = test::sent_frame(test::make_stream(test::request_for(Gateway::router66)), 1, 2);
    EXPECT_EQ(classify(frame, signature::trial_id_of(test::seed, test::trial_number + 1)).kind, ArrivalKind::other_trial);
    EXPECT_EQ(classify(frame, signature::trial_id_of(test::seed + 1, test::trial_number)).kind, ArrivalKind::foreign);
}

/// QinQ, MPLS, IP in IP, a tunnel in UDP; and EtherType, IP version, protocol
/// and length that are not ours.
TEST(Arrival, AMarkThatNoHeadersLeadToIsOursAllTheSame) {
    const Stream stream4 = test::make_stream(test::request_for(Gateway::router44)),
                 stream6 = test::make_stream(test::request_for(Gateway::router66));
    const Bytes frame4 = test::sent_frame(stream4, 1, 2), frame6 = test::sent_frame(stream6, 1, 2);
    const auto put = [](Bytes frame, std::size_t at, const std::string& hex, std::size_t instead_of = 0) {
        const Bytes inserted = test::from_hex(hex);
        const auto from = frame.begin() + static_cast<std::ptrdiff_t>(at);
        frame.insert(frame.erase(from, from + static_cast<std::ptrdiff_t>(instead_of)), inserted.begin(), inserted.end());
        return frame;
    };
    const std::string outer4 = "4500004a00000000400400000a0000010a000002", udp = "0a0b12b500260000";
    const std::vector<std::tuple<const char*, Bytes, std::size_t>> cases{
        {"two tags", put(put(frame4, 12, "81000064"), 12, "81000064"), 50},
        {"a service tag", put(frame4, 12, "88a80064"), 46},
        {"MPLS", put(frame4, 12, "8847 00064140", 2), 46},
        {"IPv4 in IPv4", put(frame4, 14, outer4), 62},
        {"IPv6 in IPv4", put(put(frame6, 14, outer4), 12, "0800", 2), 82},
        {"IPv4 in UDP", put(put(put(frame4, 14, udp), 14, outer4), 23, "11", 1), 70},
        {"an EtherType", put(frame4, 12, "88b5", 2), 42},
        {"IP version 7", put(frame6, 14, "70", 1), 62},
        {"a protocol", put(frame4, 23, "88", 1), 42},
        {"a header of 4 words", put(frame4, 14, "44", 1), 42},
    };
    for (const auto& [name, frame, at] : cases) {
        const Arrival arrival = classify(frame, test::trial_id());
        EXPECT_EQ(arrival.kind, ArrivalKind::ours) << name;
        EXPECT_TRUE(arrival.misplaced) << name;
        EXPECT_EQ(arrival.payload, at) << name;
        EXPECT_EQ(classify(frame, test::trial_id() ^ 0x1000).kind, ArrivalKind::foreign) << name << " of another campaign";
        Bytes cut = frame;
        cut.resize(at + signature::bytes - 1);
        EXPECT_NE(classify(cut, test::trial_id()).kind, ArrivalKind::ours) << name;
    }
    EXPECT_FALSE(classify(frame4, test::trial_id()).misplaced);
}

/// RFC 8200 section 4: each header names the next one and, but for the fragment header, has its
/// length.
TEST(Arrival, ExtensionHeadersLeadToTheDatagram) {
    using enum ExtensionHeader;
    StreamRequest request = test::request_for(Gateway::router66, 200);
    request.extension_headers = {hop_by_hop, routing, destination_options, fragment};
    const Bytes frame = test::sent_frame(test::make_stream(request), 1, 2);
    const Arrival arrival = classify(frame, test::trial_id());
    EXPECT_EQ(arrival.kind, ArrivalKind::ours);
    EXPECT_FALSE(arrival.misplaced);
    EXPECT_TRUE(arrival.fragmented);
    EXPECT_EQ(arrival.udp, 54U + 8 + 24 + 8 + 8);
    for (std::size_t bytes = 0; bytes <= frame.size(); ++bytes) {  // none is read beyond its end
        const Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(bytes));
        EXPECT_EQ(classify(cut, test::trial_id()).kind == ArrivalKind::ours, bytes >= arrival.payload + signature::bytes) << bytes;
    }
    Bytes too_long = frame;
    too_long[54 + 1] = std::byte{0xff};  // 2048 octets of options
    EXPECT_TRUE(classify(too_long, test::trial_id()).misplaced);
}

/// What a gateway says by itself stays what it is; most of it is multicast, but not its queries.
TEST(Arrival, WhatAGatewaySaysByItselfIsNotOurs) {
    const Bytes query = ethernet("0800",
                                 "45000038000040004011 0000 c6130001 c6130002 c000 0035 0024 0000 1234 0100 0001 0000 0000 0000 "
                                 "076578616d706c6503636f6d0000010001");
    EXPECT_EQ(kind_of(query), ArrivalKind::foreign);
    EXPECT_EQ(kind_of(ethernet("88cc", "0207040200000000010402", 40)), ArrivalKind::foreign);  // LLDP
    EXPECT_EQ(kind_of(ethernet("0800", "4500003c000040004006 0000 c6130001 c6130002 d000 0016", 40)), ArrivalKind::foreign);
}

TEST(Arrival, NeighboursAreRecognised) {
    EXPECT_EQ(kind_of(ethernet("0806", "0001080006040001", 38)), ArrivalKind::neighbour);
    for (const auto& [type, kind] :
         {std::pair{"85", ArrivalKind::neighbour}, std::pair{"86", ArrivalKind::neighbour}, std::pair{"87", ArrivalKind::neighbour},
          std::pair{"88", ArrivalKind::neighbour}, std::pair{"89", ArrivalKind::neighbour}, std::pair{"80", ArrivalKind::foreign},
          std::pair{"01", ArrivalKind::icmp_error}, std::pair{"03", ArrivalKind::icmp_error}}) {
        Bytes frame = ethernet("86dd", "6000000000203aff", 32);
        test::append(frame, test::from_hex(std::string{type} + "01"));
        frame.resize(frame.size() + 30);
        const Arrival arrival = classify(frame, test::trial_id());
        EXPECT_EQ(arrival.kind, kind) << type;
        EXPECT_EQ(arrival.icmp_code, 1);
    }
    EXPECT_EQ(kind_of(ethernet("86dd", "60000000002000ff" + std::string(64, '0') + "3a00", 30)),
              ArrivalKind::neighbour);  // hop-by-hop options: a listener report
}

TEST(Arrival, ErrorMessagesOfIcmpAreCountedByTypeAndCode) {
    for (const auto& [type, kind] :
         {std::pair{"03", ArrivalKind::icmp_error}, std::pair{"0b", ArrivalKind::icmp_error}, std::pair{"05", ArrivalKind::icmp_error},
          std::pair{"08", ArrivalKind::foreign}, std::pair{"00", ArrivalKind::foreign}}) {
        Bytes frame = ethernet("0800", "4500002e000000000a010000c6120102c6130102" + std::string{type} + "0d", 30);
        const Arrival arrival = classify(frame, test::trial_id());
        EXPECT_EQ(arrival.kind, kind) << type;
        EXPECT_EQ(arrival.icmp_code, 13);
    }
}

TEST(Arrival, LaterFragmentsCarryNoSignature) {
    EXPECT_EQ(kind_of(ethernet("0800", "4500002e000000010a110000c6120102c6130102", 30)), ArrivalKind::fragment);
    EXPECT_EQ(kind_of(ethernet("86dd", "6000000000222c0a" + std::string(64, '0') + "1100000800000001", 30)), ArrivalKind::fragment);
    test::SlowPacket packet =
        test::forwarded(test::sent_frame(test::make_stream(test::request_for(Gateway::siit46)), 0, 0), Gateway::siit46);
    packet.fragment_header = true;
    const Arrival atomic = classify(test::write_packet(packet), test::trial_id());
    EXPECT_EQ(atomic.kind, ArrivalKind::ours);
    EXPECT_TRUE(atomic.fragmented);
}

TEST(Arrival, AllElseIsForeign) {
    EXPECT_EQ(kind_of({}), ArrivalKind::foreign);
    EXPECT_EQ(kind_of(ethernet("0800", "", 4)), ArrivalKind::foreign);
    EXPECT_EQ(kind_of(ethernet("88cc", "", 46)), ArrivalKind::foreign);
    EXPECT_EQ(kind_of(ethernet("0800", "6500002e000000000a11", 60)), ArrivalKind::foreign);
    EXPECT_EQ(kind_of(ethernet("0800", "4400002e000000000a11", 60)), ArrivalKind::foreign);
    EXPECT_EQ(kind_of(ethernet("0800", "4f00002e000000000a11", 60)), ArrivalKind::foreign);
    EXPECT_EQ(kind_of(ethernet("0800", "4500002e000000000a06", 60)), ArrivalKind::foreign);
    EXPECT_EQ(kind_of(ethernet("86dd", "60000000002006ff", 80)), ArrivalKind::foreign);
    EXPECT_EQ(kind_of(ethernet("8100", "00648100000108004500", 80)), ArrivalKind::foreign);
}

}  // namespace
}  // namespace gatemark::frame
