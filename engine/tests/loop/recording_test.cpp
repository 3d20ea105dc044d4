#include "loop/recording.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gatemark::loop {
namespace {

constexpr std::uint64_t recorded_frames = 20'000, timeout = 500;

/// What one receiver records of a single class.
struct RecordingOfClass {
    RecordingOfClass() { arrivals.reset(recorded_frames, record::Receivers::one); }

    record::ArrivalBitmap arrivals;
    ExpectedDirection direction{
        .active = true, .arrives_here = true, .frame_count = recorded_frames, .arrivals = &arrivals, .delays = {.timeout = {timeout}}};
    record::DelayRecorder delays{direction.delays};
    ClassRecording recording{direction, &delays.of_class(0)};
};

TEST(ClassRecording, RecordsARunAsItsFramesInTurn) {
    std::mt19937_64 random{3};
    RecordingOfClass together, apart;
    std::uint64_t next = 0;
    std::size_t run_count = 0;
    while (next + frame::burst_frames_max < recorded_frames) {
        FrameRun run{.first = next - std::min<std::uint64_t>(next, random() % 8), .count = 1 + random() % frame::burst_frames_max};
        frame::BurstNumbers numbers{};
        for (std::size_t k = 0; k < run.count; ++k) {
            numbers[k] = run.first + k;
            run.is_faulty |= std::uint32_t{random() % 200 == 0} << k;
            run.sent[k] = {1000 + random() % 10};
            run.arrived[k] = {run.sent[k].value + random() % (timeout + 5)};
        }
        if (together.recording.may_record_run(run.first)) {
            ++run_count;
            together.recording.mark_run(run);
            together.recording.record_run(run, numbers);
            for (std::size_t k = 0; k < run.count; ++k) {
                frame::Faults faults;
                faults.add_if((run.is_faulty >> k & 1U) != 0, frame::Fault::payload);
                (void)apart.recording.record(run.first + k, numbers[k], faults, run.sent[k], run.arrived[k]);
            }
        }
        next = run.first + run.count + random() % 3;
    }
    EXPECT_GT(run_count, 200U);
    EXPECT_EQ(together.recording.counts().counts, apart.recording.counts().counts);
    EXPECT_EQ(together.recording.counts().highest_index, apart.recording.counts().highest_index);
    EXPECT_EQ(together.delays.delays(0).all.samples(), apart.delays.delays(0).all.samples());
    EXPECT_GT(together.recording.counts()[record::Count::late], 0U);
    EXPECT_GT(together.recording.counts()[record::Count::faulty], 0U);
    for (std::uint64_t index = 0; index < recorded_frames; ++index) {
        ASSERT_EQ(together.arrivals.arrived(index), apart.arrivals.arrived(index)) << index;
    }
}

TEST(ClassRecording, RecordsNoRunBehindAHigherIndexOrOfSeveralSenders) {
    RecordingOfClass one;
    EXPECT_TRUE(one.recording.may_record_run(0));
    EXPECT_TRUE(one.recording.record(7, 7, {}, {1000}, {1001}));
    EXPECT_FALSE(one.recording.may_record_run(6));
    EXPECT_TRUE(one.recording.may_record_run(8));
    one.direction.senders = Divider{2};
    EXPECT_FALSE(one.recording.may_record_run(8));
}

}  // namespace
}  // namespace gatemark::loop
