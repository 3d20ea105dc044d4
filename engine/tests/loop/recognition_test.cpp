#include "loop/recognition.hpp"

#include "frame/streams.hpp"
#include "loop/recording.hpp"

#include <gtest/gtest.h>

namespace gatemark::loop {
namespace {

using frame::signature::TrafficClass;
using test::Gateway, test::Bytes;

/// Three of four frames are foreground, through a SIIT; the rest is native IPv6.
class RecognitionTest : public testing::Test {
protected:
    static constexpr std::uint64_t frame_count = 100;

    [[nodiscard]] Bytes arrived(std::uint64_t index) const {
        const auto place = direction_.mix.place_of(index);
        const frame::Stream& stream = place.foreground ? foreground_ : background_;
        return test::write_packet(test::forwarded(test::sent_frame(stream, place.number_in_class, index),
                                                  place.foreground ? Gateway::siit64 : Gateway::router66));
    }
    /// The first index of the class at or after `index`.
    [[nodiscard]] std::uint64_t next_of(TrafficClass traffic_class, std::uint64_t index = 0) const {
        while (direction_.mix.place_of(index).foreground != (traffic_class == TrafficClass::foreground)) {
            ++index;
        }
        return index;
    }
    /// Returns the frames that no stream matches, a bit for each.
    std::uint32_t recognize(const std::vector<Bytes>& frames) {
        const std::vector<std::span<const std::byte>> burst{frames.begin(), frames.end()};
        std::uint32_t left = ArrivingStream::all_of(burst.size());
        for (ArrivingStream& stream : streams_) {
            left = stream.match(burst, left);
            stream.compute();
            stream.compare();
        }
        return left;
    }

    frame::Stream foreground_ = test::make_stream(test::request_for(Gateway::siit64));
    frame::Stream background_ = test::make_stream(test::request_for(Gateway::router66), {}, TrafficClass::background);
    ExpectedDirection direction_{
        .active = true, .arrives_here = true, .frame_count = frame_count, .mix = {3, 4}, .streams = {&foreground_, &background_}};
    ClassRecording recording_{direction_, nullptr};
    std::array<ArrivingStream, 2> streams_{ArrivingStream{direction_, 0, recording_}, ArrivingStream{direction_, 1, recording_}};
};

TEST_F(RecognitionTest, EachFrameOfABurstBelongsToOneStreamAtItsPlace) {
    std::vector<Bytes> frames;
    for (std::uint64_t index = 40; index < 40 + frame::burst_frames_max; ++index) {
        frames.push_back(arrived(index));
    }
    EXPECT_EQ(recognize(frames), 0U);
    std::vector<std::uint64_t> indexes(frames.size());
    for (const ArrivingStream& stream : streams_) {
        EXPECT_EQ(stream.wrong(), 0U);
        for (std::size_t k = 0; k < stream.matched().count; ++k) {
            indexes[stream.place(k)] = stream.matched().indexes[k];
            EXPECT_EQ(stream.matched().numbers[k], direction_.mix.place_of(stream.matched().indexes[k]).number_in_class);
        }
    }
    EXPECT_EQ(streams_[0].matched().count, 24U);
    EXPECT_EQ(streams_[1].matched().count, 8U);
    for (std::size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(indexes[i], 40 + i);
    }
}

TEST_F(RecognitionTest, WhatMatchesNoTemplateIsLeftAndWhatDiffersElsewhereIsWrong) {
    const std::uint64_t first = next_of(TrafficClass::foreground), second = next_of(TrafficClass::foreground, first + 1);
    std::vector<Bytes> frames{arrived(first), arrived(second), arrived(next_of(TrafficClass::background))};
    frames[0][net::ethernet::header_bytes + net::ipv4::protocol] ^= std::byte{1};  // the same in all frames
    frames[1][net::ethernet::header_bytes + net::ipv4::header_bytes + net::udp::checksum] ^= std::byte{1};
    EXPECT_EQ(recognize(frames), 1U);
    EXPECT_EQ(streams_[0].matched().count, 1U);
    EXPECT_EQ(streams_[0].wrong(), 1U);
    EXPECT_EQ(streams_[1].matched().count, 1U);
    EXPECT_EQ(streams_[1].wrong(), 0U);
}

TEST_F(RecognitionTest, AFrameWithoutAnIndexOfItsStreamIsNotGathered) {
    const auto with_index = [&](std::uint64_t index) {
        return test::write_packet(test::forwarded(test::sent_frame(foreground_, 5, index), Gateway::siit64));
    };
    EXPECT_EQ(recognize({with_index(frame_count), with_index(next_of(TrafficClass::background))}), 0U) << "both match the template";
    EXPECT_EQ(streams_[0].matched().count, 0U);
}

}  // namespace
}  // namespace gatemark::loop
