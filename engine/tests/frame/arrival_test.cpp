#include "frame/arrival.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

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
