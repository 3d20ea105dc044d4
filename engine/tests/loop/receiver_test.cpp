#include "loop/receiver.hpp"

#include "frame/streams.hpp"
#include "io/memory_port.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace gatemark::loop {
namespace {

using frame::Fault;
using frame::signature::Direction, frame::signature::TrafficClass;
using record::Count, record::ForeignFrame;
using test::Gateway, test::Bytes, test::SlowPacket;

struct SharedClock {
    const std::uint64_t* ticks;
    [[nodiscard]] pace::Ticks now() const noexcept { return {*ticks}; }
};

/// A receiver on the right: forward frames arrive here, reverse frames were sent here. Three of
/// four frames are foreground, through a SIIT; the rest is native IPv6.
class ReceiverTest : public testing::Test {
protected:
    static constexpr std::uint64_t frame_count = 100, begun = 1000;
    static constexpr const char *gateway_mac = "02:00:00:00:00:77", *other_port_mac = "02:00:00:00:00:78";

    ReceiverTest() {
        for (const Direction direction : {Direction::forward, Direction::reverse}) {
            const auto number = static_cast<std::size_t>(direction);
            foreground_.push_back(test::make_stream(test::request_for(Gateway::siit64), {}, TrafficClass::foreground, direction));
            background_.push_back(test::make_stream(test::request_for(Gateway::router66), {}, TrafficClass::background, direction));
            arrivals_[number].reset(frame_count, record::Receivers::one);
        }
        ReceiverPlan plan{.trial_id = test::trial_id(),
                          .earliest = {begun},
                          .directions = {},
                          .kept_frames_max = 2,
                          .sources = {.gateway = net::parse_mac(gateway_mac), .other_port = net::parse_mac(other_port_mac)}};
        for (std::size_t number = 0; number < 2; ++number) {
            plan.directions[number] = {.active = true,
                                       .arrives_here = number == 0,
                                       .frame_count = frame_count,
                                       .mix = mix_,
                                       .streams = {&foreground_[number], &background_[number]},
                                       .arrivals = &arrivals_[number],
                                       .delays = delay_plan()};
        }
        receiver_ = std::make_unique<MemoryReceiver>(plan, queue_, mailbox_, SharedClock{&now_});
    }

    /// Frames that take more than 500 are late, every frame from 20 on carries a tag.
    record::DelayPlan delay_plan() {
        tags_.reset({.first = 20, .frames = frame_count, .count = frame_count - 20});
        for (record::DelayWindow& window : windows_) {
            window.reset(record::Receivers::one);
        }
        return {.timeout = {500}, .windows = {&windows_[0], &windows_[1]}, .tags = &tags_};
    }
    /// A frame that was sent at `sent` arrives at `now`.
    void receive_at(std::uint64_t index, std::uint64_t sent, std::uint64_t now) {
        now_ = now;
        const auto place = mix_.place_of(index);
        const frame::Stream& stream = (place.foreground ? foreground_ : background_)[0];
        receive(test::forwarded(test::frame_in(stream.sent(), stream, place.number_in_class, index, sent),
                                place.foreground ? Gateway::siit64 : Gateway::router66));
    }
    [[nodiscard]] const record::ClassDelays& delays(TrafficClass traffic_class = TrafficClass::foreground) const {
        return receiver_->delays(Direction::forward)->delays(static_cast<std::size_t>(traffic_class));
    }

    [[nodiscard]] Bytes sent(std::uint64_t index, Direction direction = Direction::forward) const {
        const auto place = mix_.place_of(index);
        return test::sent_frame((place.foreground ? foreground_ : background_)[static_cast<std::size_t>(direction)], place.number_in_class,
                                index);
    }
    [[nodiscard]] SlowPacket arrived(std::uint64_t index) const {
        return test::forwarded(sent(index), mix_.place_of(index).foreground ? Gateway::siit64 : Gateway::router66);
    }
    void receive(const Bytes& bytes) {
        wire_.frames.push_back(bytes);
        while (receiver_->poll()) {}
    }
    void receive(const SlowPacket& packet) { receive(test::write_packet(packet)); }
    [[nodiscard]] const record::ClassCounts& counts(TrafficClass traffic_class, Direction direction = Direction::forward) const {
        return receiver_->counts(direction, traffic_class);
    }
    [[nodiscard]] std::uint64_t faults(Fault fault, TrafficClass traffic_class = TrafficClass::foreground,
                                       Direction direction = Direction::forward) const {
        return counts(traffic_class, direction).faults[fault];
    }
    [[nodiscard]] std::vector<std::string> kept_reasons() const {
        std::vector<std::string> reasons;
        receiver_->kept().visit([&](const record::KeptFrames::Kept& kept) { reasons.emplace_back(kept_reason_name(kept.reason)); });
        return reasons;
    }

    pace::Mix mix_{3, 4};
    std::vector<frame::Stream> foreground_, background_;
    std::array<record::ArrivalBitmap, 2> arrivals_;
    io::MemoryWire wire_;
    io::MemoryReceiveQueue queue_{wire_};
    NeighborMailbox mailbox_;
    std::uint64_t now_ = 0;
    std::array<record::DelayWindow, 2> windows_;
    record::TaggedDelays tags_;
    using MemoryReceiver = Receiver<io::MemoryReceiveQueue, SharedClock>;
    std::unique_ptr<MemoryReceiver> receiver_;
};

TEST_F(ReceiverTest, TakesTheDelayOfEveryCorrectFrame) {
    receive_at(0, 1000, 1100);
    receive_at(1, 1010, 1100);
    receive_at(1, 1010, 1300);  // a duplicate
    receive_at(3, 1030, 1180);  // background
    SlowPacket faulty = arrived(2);
    ++faulty.hop_limit;
    receive(faulty);
    EXPECT_EQ(delays().all.samples(), 2U);
    EXPECT_EQ(delays().all.minimum().value, 90U);
    EXPECT_EQ(delays().all.maximum().value, 100U);
    EXPECT_EQ(delays().variation->pairs(), 1U);
    EXPECT_EQ(delays().variation->minimum(), -10);
    EXPECT_EQ(delays(TrafficClass::background).all.samples(), 1U);
    EXPECT_EQ(delays(TrafficClass::background).all.minimum().value, 150U);
    EXPECT_EQ(receiver_->delays(Direction::reverse), nullptr);
}

TEST_F(ReceiverTest, ALateFrameHasArrivedButIsNotReceived) {
    receive_at(20, 1000, 1500);
    receive_at(21, 1000, 1501);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::received], 1U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::late], 1U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::faulty], 0U);
    EXPECT_EQ(delays().all.samples(), 1U);
    EXPECT_TRUE(arrivals_[0].arrived(21));
    EXPECT_EQ(tags_.delay(0), std::optional{pace::Ticks{500}});
    EXPECT_EQ(tags_.delay(1), std::nullopt);
}

TEST_F(ReceiverTest, DelaysBelowZeroAreCountedAndNeverZero) {
    receive_at(20, 1200, 1199);
    receive_at(22, 1100, 1100);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::received], 2U);
    EXPECT_EQ(delays().negative, 1U);
    EXPECT_EQ(delays().negative_tags, 1U);
    EXPECT_EQ(delays().negative_maximum.value, 1U);
    EXPECT_EQ(delays().all.samples(), 1U);
    EXPECT_EQ(tags_.delay(0), std::nullopt);
    EXPECT_EQ(tags_.delay(2), std::optional{pace::Ticks{0}});
    EXPECT_EQ(delays().variation->pairs(), 0U);
}

/// After a resume a trial is made again under the same number, and frames of the first time may
/// still be under way.
TEST_F(ReceiverTest, AFrameStampedBeforeTheTrialBeganIsAStraggler) {
    receive_at(20, begun - 1, 1100);
    EXPECT_EQ(receiver_->foreign()[ForeignFrame::other_trial], 1U);
    EXPECT_EQ(receiver_->received_so_far(), 0U);
    EXPECT_FALSE(arrivals_[0].arrived(20));
    receive_at(20, begun, 1100);
    EXPECT_EQ(receiver_->received_so_far(), 1U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::duplicate], 0U);

    const auto early = [&](std::uint64_t index) {  // on the slow path
        SlowPacket packet = test::forwarded(
            test::frame_in(foreground_[0].sent(), foreground_[0], mix_.place_of(index).number_in_class, index, 7), Gateway::siit64);
        ++packet.hop_limit;
        return packet;
    };
    receive(early(21));
    receive(early(24));
    receive(test::write_packet(test::forwarded(test::frame_in(foreground_[1].sent(), foreground_[1], 0, 0, 7), Gateway::siit64)));
    EXPECT_EQ(receiver_->foreign()[ForeignFrame::other_trial], 4U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::faulty], 0U);
    EXPECT_EQ(faults(Fault::hop_limit) + faults(Fault::wrong_port, TrafficClass::foreground, Direction::reverse), 0U);
    SlowPacket damaged = early(24);  // if the checksum is wrong, so may be the time stamp: no straggler
    damaged.udp_checksum_xor = 1;
    receive(damaged);
    EXPECT_EQ(receiver_->foreign()[ForeignFrame::other_trial], 4U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::faulty], 1U);
}

TEST_F(ReceiverTest, CountsEachCorrectFrameOnce) {
    EXPECT_FALSE(receiver_->poll());
    for (std::uint64_t index = 0; index < frame_count; ++index) {
        receive(arrived(index));
    }
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::received], 75U);
    EXPECT_EQ(counts(TrafficClass::background)[Count::received], 25U);
    EXPECT_EQ(receiver_->received_so_far(), frame_count);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::reordered], 0U);
    for (const auto traffic_class : {TrafficClass::foreground, TrafficClass::background}) {
        EXPECT_EQ(counts(traffic_class)[Count::faulty] + counts(traffic_class)[Count::duplicate], 0U);
        EXPECT_EQ(counts(traffic_class).faults.sum(), 0U);
    }
    for (std::uint64_t index = 0; index < frame_count; ++index) {
        EXPECT_TRUE(arrivals_[0].arrived(index));
    }
    EXPECT_TRUE(kept_reasons().empty());
}

TEST_F(ReceiverTest, ADuplicateNeverStandsInForALostFrame) {
    for (int i = 0; i < 5; ++i) {
        receive(arrived(8));
    }
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::received], 1U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::duplicate], 4U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::reordered], 0U);
}

TEST_F(ReceiverTest, ReorderedAreFramesBehindAHigherIndexThatCameEarlier) {
    for (const std::uint64_t index : {0U, 4U, 1U, 2U, 8U, 5U, 9U}) {
        receive(arrived(index));
    }
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::received], 7U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::reordered], 3U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::reordering_extent_max], 3U);
    receive(arrived(3));  // the other class has its own order
    EXPECT_EQ(counts(TrafficClass::background)[Count::reordered], 0U);
}

TEST_F(ReceiverTest, AFaultyFrameHasArrivedButIsNotReceived) {
    SlowPacket packet = arrived(4);
    ++packet.hop_limit;
    packet.source_port ^= 1;
    receive(packet);
    receive(packet);
    receive(arrived(4));
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::received], 0U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::faulty], 1U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::duplicate], 2U);
    EXPECT_EQ(faults(Fault::hop_limit), 2U);
    EXPECT_EQ(faults(Fault::source_port), 2U);
    EXPECT_EQ(kept_reasons(), (std::vector<std::string>{"source_port", "source_port", "hop_limit", "hop_limit"}));
}

TEST_F(ReceiverTest, AFrameToAnotherLinkLayerAddressIsFaulty) {
    std::uint64_t index = 0;
    for (const char* const other : {"02:00:00:00:00:03", "02:00:00:00:80:02", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01"}) {
        SlowPacket packet = arrived(index++);
        packet.link_destination = *net::parse_mac(other);
        receive(packet);
    }
    EXPECT_EQ(faults(Fault::destination_mac), 3U);
    EXPECT_EQ(faults(Fault::destination_mac, TrafficClass::background), 1U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::faulty] + counts(TrafficClass::background)[Count::faulty], 4U);
    EXPECT_EQ(receiver_->received_so_far(), 0U);
    EXPECT_EQ(kept_reasons(), (std::vector<std::string>{"destination_mac", "destination_mac"})) << "only the first two are kept";
}

TEST_F(ReceiverTest, AFrameMayComeFromAnyHostOnTheLinkButNotFromUs) {
    std::uint64_t index = 0;
    for (const char* const host : {"02:00:00:00:00:03", "00:00:5e:00:01:01", "fe:ff:ff:ff:ff:ff"}) {
        SlowPacket packet = arrived(index++);
        packet.link_source = *net::parse_mac(host);
        receive(packet);
    }
    EXPECT_EQ(receiver_->received_so_far(), 3U);
    for (const net::MacAddress& nobody : {test::receiving_mac, net::MacAddress{}, *net::parse_mac("03:00:00:00:00:01")}) {
        SlowPacket packet = arrived(++index);
        packet.link_source = nobody;
        receive(packet);
    }
    EXPECT_EQ(receiver_->received_so_far(), 3U);
    EXPECT_EQ(faults(Fault::source_mac) + faults(Fault::source_mac, TrafficClass::background), 3U);
}

TEST_F(ReceiverTest, AMisplacedFrameHasArrivedWithThatFault) {
    const auto tagged = [&](std::uint64_t index, bool with_tag) {
        Bytes frame = test::write_packet(arrived(index));
        const Bytes tag = test::from_hex(with_tag ? "88a80002" : "88b5");
        frame.insert(with_tag ? frame.begin() + 12 : frame.erase(frame.begin() + 12, frame.begin() + 14), tag.begin(), tag.end());
        return frame;
    };
    receive(tagged(4, true));
    receive(tagged(4, true));
    receive(tagged(5, false));
    EXPECT_EQ(faults(Fault::encapsulated), 2U);
    EXPECT_EQ(faults(Fault::headers), 1U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::faulty], 2U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::duplicate], 1U);
    EXPECT_TRUE(arrivals_[0].arrived(4) && arrivals_[0].arrived(5));
    EXPECT_EQ(receiver_->foreign()[ForeignFrame::foreign], 0U);
    EXPECT_EQ(kept_reasons(), (std::vector<std::string>{"encapsulated", "encapsulated", "headers"}));
}

/// LLDP of the gateway is its own; an ARP request of the Tester's other port says that both ports
/// are in one broadcast domain.
TEST_F(ReceiverTest, FramesOfTheGatewayAndOfTheOtherPortAreToldApart) {
    const auto frame_of = [](const char* source, const char* type) {
        Bytes frame = test::from_hex("ffffffffffff");
        const net::MacAddress mac = *net::parse_mac(source);
        const Bytes rest = test::from_hex(type);
        frame.insert(frame.end(), mac.begin(), mac.end());
        frame.insert(frame.end(), rest.begin(), rest.end());
        frame.resize(60);
        return frame;
    };
    const char *const lldp = "88cc", *const arp = "0806000108000604000102000000007800000000";
    for (const char* const source : {gateway_mac, other_port_mac, "02:00:00:00:00:79"}) {
        receive(frame_of(source, lldp));
        receive(frame_of(source, arp));
    }
    const record::ForeignCounts& foreign = receiver_->foreign();
    EXPECT_EQ(foreign[ForeignFrame::of_gateway], 1U);
    EXPECT_EQ(foreign[ForeignFrame::of_other_port], 2U);
    EXPECT_EQ(foreign[ForeignFrame::foreign], 1U);
    EXPECT_EQ(foreign[ForeignFrame::neighbour], 2U);
}

/// The mark is beyond recognition, but only the Tester sends from these hosts to these hosts.
TEST_F(ReceiverTest, ADamagedMarkBetweenOurHostsIsAFaultAndNoForeignFrame) {
    now_ = 2000;
    for (const std::size_t at : {std::size_t{0}, std::size_t{3}}) {  // the campaign, the trial
        SlowPacket packet = test::forwarded(test::frame_in(foreground_[0].sent(), foreground_[0], 4, 5, 1500), Gateway::siit64);
        packet.payload[at] ^= std::byte{1};
        receive(packet);
    }
    SlowPacket packet = arrived(4);
    std::fill(packet.payload.begin(), packet.payload.end(), std::byte{0});
    receive(packet);
    packet.payload.resize(9);  // too short for a mark
    receive(packet);
    EXPECT_EQ(faults(Fault::mark), 4U);
    EXPECT_EQ(receiver_->foreign()[ForeignFrame::foreign] + receiver_->foreign()[ForeignFrame::other_trial], 0U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::faulty], 0U) << "it is not known which frames these are, so they are lost";
    SlowPacket background = arrived(3);
    background.payload[0] ^= std::byte{1};
    receive(background);
    EXPECT_EQ(faults(Fault::mark, TrafficClass::background), 1U);
    packet.source.bytes[3] = std::byte{1};  // the gateway's own address beside our hosts
    receive(packet);
    EXPECT_EQ(receiver_->foreign()[ForeignFrame::foreign], 1U);
}

TEST_F(ReceiverTest, AFrameAtThePortItWasSentFromHasNotArrived) {
    SlowPacket packet = test::forwarded(sent(0, Direction::reverse), Gateway::siit64);
    packet.link_destination = test::sending_mac;  // what it should have become is not known here, and not compared
    receive(packet);
    EXPECT_EQ(faults(Fault::wrong_port, TrafficClass::foreground, Direction::reverse), 1U);
    EXPECT_EQ(faults(Fault::destination_mac, TrafficClass::foreground, Direction::reverse), 0U);
    EXPECT_EQ(counts(TrafficClass::foreground, Direction::reverse)[Count::faulty] +
                  counts(TrafficClass::foreground, Direction::reverse)[Count::received],
              0U);
    EXPECT_FALSE(arrivals_[1].arrived(0));
}

TEST_F(ReceiverTest, IndexesThatCannotBeAreFaults) {
    receive(test::write_packet(test::forwarded(test::sent_frame(foreground_[0], 75, frame_count), Gateway::siit64)));
    receive(test::write_packet(test::forwarded(test::sent_frame(foreground_[0], 75, frame::signature::index_limit - 1), Gateway::siit64)));
    receive(test::write_packet(test::forwarded(test::sent_frame(foreground_[0], 3, 3), Gateway::siit64)));  // frame 3 is background
    EXPECT_EQ(faults(Fault::index), 3U);
    receive(test::write_packet(test::forwarded(test::sent_frame(background_[0], 0, 0), Gateway::router66)));
    EXPECT_EQ(faults(Fault::index, TrafficClass::background), 1U);
    EXPECT_EQ(counts(TrafficClass::foreground)[Count::faulty] + counts(TrafficClass::foreground)[Count::received], 0U);
}

TEST_F(ReceiverTest, StreamsThatAreNotPartOfTheTrialAreFaults) {
    SlowPacket packet = arrived(0);
    packet.payload[frame::signature::stream_offset] = std::byte{0x50};
    receive(packet);
    EXPECT_EQ(faults(Fault::index), 1U);
    EXPECT_EQ(arrivals_[0].arrived(0), false);
}

TEST_F(ReceiverTest, WhatIsNotOursIsCountedByKind) {
    SlowPacket packet = arrived(0);
    packet.payload[3] ^= std::byte{1};  // the trial number
    receive(packet);
    packet.payload[0] ^= std::byte{1};  // the campaign
    packet.source.bytes[0] ^= std::byte{1};
    receive(packet);
    Bytes arp = test::from_hex("ffffffffffff0200000000020806 0001080006040001 020000000002 c6120001 000000000000 c6120002");
    arp.resize(60);
    receive(arp);
    Bytes unreachable = test::from_hex("0200000000010200000000020800 45000038000000004001 0000 c6130001 c6130002 030d0000");
    unreachable.resize(70);
    receive(unreachable);
    Bytes later_fragment = test::from_hex("0200000000010200000000020800 45000038000000014011 0000 c6130001 c6130002 00000000");
    later_fragment.resize(70);
    receive(later_fragment);
    EXPECT_EQ(receiver_->foreign()[ForeignFrame::other_trial], 1U);
    EXPECT_EQ(receiver_->foreign()[ForeignFrame::foreign], 1U);
    EXPECT_EQ(receiver_->foreign()[ForeignFrame::neighbour], 1U);
    EXPECT_EQ(receiver_->foreign()[ForeignFrame::fragment], 1U);
    EXPECT_EQ(receiver_->foreign().icmp[record::ForeignCounts::icmp_slot(false, 3, 13)], 1U);
    EXPECT_EQ(kept_reasons(), (std::vector<std::string>{"icmp_error", "later_fragment", "foreign"}));
    unsigned letters = 0;
    while (mailbox_.take([&](const NeighborMailbox::Letter& letter) { return test::to_hex(letter.frame()) == test::to_hex(arp); })) {
        ++letters;
    }
    EXPECT_EQ(letters, 1U);
    EXPECT_EQ(mailbox_.size(), 0U);
}

/// Nobody waits for an answer to them, so a long one must not look like a question that was lost.
TEST_F(ReceiverTest, RouterAdvertisementsAndListenerReportsAreNoLetters) {
    Bytes advertisement = test::from_hex(std::string{"333300000001 020000000002 86dd 6000000000b83aff"}.append(64, '0').append("8600"));
    advertisement.resize(14 + 40 + 184);
    receive(advertisement);
    Bytes report = test::from_hex(std::string{"333300000016 020000000002 86dd 6000000000240001"}.append(64, '0').append("3a000502"));
    report.resize(200);
    receive(report);
    EXPECT_EQ(receiver_->foreign()[ForeignFrame::neighbour], 2U);
    EXPECT_EQ(mailbox_.size() + mailbox_.overflow(), 0U);
}

/// One class, one sender: bursts of frames in a row are recorded together.
class RunsTest : public testing::Test {
protected:
    static constexpr std::uint64_t frame_count = 6000;
    using MemoryReceiver = Receiver<io::MemoryReceiveQueue, SharedClock>;

    struct End {
        explicit End(const frame::Stream& stream, const std::uint64_t& now) {
            arrivals.reset(frame_count, record::Receivers::one);
            ReceiverPlan plan{.trial_id = test::trial_id(), .earliest = {1000}, .directions = {}};
            plan.directions[0] = {.active = true,
                                  .arrives_here = true,
                                  .frame_count = frame_count,
                                  .streams = {&stream, nullptr},
                                  .arrivals = &arrivals,
                                  .delays = {.timeout = {500}}};
            receiver = std::make_unique<MemoryReceiver>(plan, queue, mailbox, SharedClock{&now});
        }
        record::ArrivalBitmap arrivals;
        io::MemoryWire wire;
        io::MemoryReceiveQueue queue{wire};
        NeighborMailbox mailbox;
        std::unique_ptr<MemoryReceiver> receiver;
    };

    Bytes frame(std::uint64_t index, std::uint64_t sent) const {
        return test::write_packet(test::forwarded(test::frame_in(stream_.sent(), stream_, index, index, sent), Gateway::router44));
    }

    frame::Stream stream_ = test::make_stream(test::request_for(Gateway::router44));
    std::uint64_t now_ = 10'000;
};

TEST_F(RunsTest, AFullBurstIsWorkedOnLaterAndHasArrivedWhenItWasPolled) {
    End end{stream_, now_};
    const auto arrive = [&](std::uint64_t first, std::uint64_t count) {
        for (std::uint64_t index = first; index < first + count; ++index) {
            end.wire.frames.push_back(frame(index, now_ - 400));
        }
    };
    arrive(0, 2 * frame::burst_frames_max);
    EXPECT_TRUE(end.receiver->poll());
    now_ += 50;
    EXPECT_TRUE(end.receiver->poll());
    EXPECT_EQ(end.receiver->received_so_far(), frame::burst_frames_max);
    now_ += 1000;
    arrive(2 * frame::burst_frames_max, 1);
    EXPECT_TRUE(end.receiver->poll());
    EXPECT_FALSE(end.receiver->poll());
    arrive(2 * frame::burst_frames_max + 1, frame::burst_frames_max);
    EXPECT_TRUE(end.receiver->poll());
    now_ += 1000;
    end.receiver->finish();
    end.receiver->finish();
    const record::ClassCounts& counts = end.receiver->counts(Direction::forward, TrafficClass::foreground);
    EXPECT_EQ(counts[Count::received], 3 * frame::burst_frames_max + 1);
    EXPECT_EQ(end.receiver->received_so_far(), counts[Count::received]) << "the report has it for each queue";
    EXPECT_EQ(counts[Count::late] + counts[Count::faulty] + counts[Count::duplicate], 0U);
    const record::DelayHistogram& delays = end.receiver->delays(Direction::forward)->delays(0).all;
    EXPECT_EQ(delays.minimum().value, 400U);
    EXPECT_EQ(delays.maximum().value, 450U);
}

TEST_F(RunsTest, ABurstIsRecordedAsItsFramesOneByOne) {
    End together{stream_, now_}, apart{stream_, now_};
    std::mt19937 random{7};
    std::uint64_t next = 0;
    while (next + 100 < frame_count) {
        std::vector<Bytes> burst;
        const std::size_t length = 1 + random() % 32;
        for (std::size_t k = 0; k < length; ++k) {
            burst.push_back(frame(next++, now_ - random() % 400));
        }
        switch (random() % 8) {                                                            // most bursts are in order
            case 0: burst[random() % length] = frame(random() % next, now_ - 100); break;  // another one, mostly a duplicate
            case 1: std::swap(burst.front(), burst.back()); break;                         // reordered
            case 2: burst[random() % length] = frame(next - 1, now_ - 501); break;         // late
            case 3: burst[random() % length][40] ^= std::byte{1}; break;                   // its checksum is wrong
            case 4: burst[random() % length] = frame(next - 1, 999); break;                // of before the trial
            case 5: burst[random() % length] = frame(next - 1, now_ + 5); break;           // two clocks disagree
            case 6: next -= random() % 5; break;                                           // duplicates in the next burst
            default: break;
        }
        for (const Bytes& bytes : burst) {
            apart.wire.frames.push_back(bytes);
            while (apart.receiver->poll()) {}
            together.wire.frames.push_back(bytes);
        }
        while (together.receiver->poll()) {}
        now_ += 1000;
    }
    const auto& runs = together.receiver->counts(Direction::forward, TrafficClass::foreground);
    const auto& single = apart.receiver->counts(Direction::forward, TrafficClass::foreground);
    EXPECT_GT(runs[Count::received], frame_count / 2);
    for (const auto counter :
         {Count::received, Count::late, Count::faulty, Count::duplicate, Count::reordered, Count::reordering_extent_max}) {
        EXPECT_EQ(runs[counter], single[counter]);
        EXPECT_GT(runs[counter], 0U);
    }
    EXPECT_EQ(runs.faults, single.faults);
    EXPECT_EQ(together.receiver->foreign()[ForeignFrame::other_trial], apart.receiver->foreign()[ForeignFrame::other_trial]);
    const auto& delays = together.receiver->delays(Direction::forward)->delays(0);
    const auto& single_delays = apart.receiver->delays(Direction::forward)->delays(0);
    EXPECT_EQ(delays.negative, single_delays.negative);
    EXPECT_EQ(delays.all.samples(), single_delays.all.samples());
    EXPECT_EQ(delays.all.of_rank(delays.all.samples() / 3), single_delays.all.of_rank(delays.all.samples() / 3));
    for (std::uint64_t i = 0; i < frame_count; ++i) {
        ASSERT_EQ(together.arrivals.arrived(i), apart.arrivals.arrived(i)) << i;
    }
}

TEST(NeighborMailbox, IsBoundedAndCountsWhatItDrops) {
    NeighborMailbox mailbox;
    const Bytes small(60), large(NeighborMailbox::bytes_max + 1);
    for (std::size_t i = 0; i < NeighborMailbox::capacity + 3; ++i) {
        mailbox.put(small);
    }
    mailbox.put(large);
    EXPECT_EQ(mailbox.overflow(), 4U);
    EXPECT_EQ(mailbox.size(), NeighborMailbox::capacity);
    std::size_t taken = 0;
    while (mailbox.take([](const auto&) { return true; })) {
        ++taken;
    }
    EXPECT_EQ(taken, NeighborMailbox::capacity);
    mailbox.put(large);
    mailbox.put(small);
    EXPECT_EQ(mailbox.overflow(), 5U);
    EXPECT_FALSE(mailbox.take([](const auto&) { return false; })) << "it stays";
    EXPECT_TRUE(mailbox.take([](const NeighborMailbox::Letter& letter) { return letter.bytes == 60; }));
    EXPECT_EQ(mailbox.size(), 0U);
}

}  // namespace
}  // namespace gatemark::loop
