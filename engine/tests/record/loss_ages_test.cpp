#include "record/loss_ages.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <vector>

namespace gatemark::record {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::uint64_t used_connections = 2000, used_frames = 8000, used_rate = 1000;
constexpr pace::Mix used_mix{1, 1};
constexpr std::array<std::uint64_t, 1> used_end{used_frames};

frame::Stream stream_of(frame::Role role) {
    frame::StreamRequest request = test::request_for(test::Gateway::router44);
    request.connections = frame::ConnectionTraffic{
        .role = role,
        .set = {{.source_ports = {1024, 1000}, .destination_ports = {7, 1}, .source_hosts = {2, 2}, .destination_hosts = {2, 1}},
                enumerate::Order::increasing,
                used_connections,
                1}};
    return test::make_stream(request);
}

/// Connection c was established 2 s before the trial, all of them at once.
nanoseconds established(std::uint64_t) { return -2s; }

/// A gateway that forgets connections: a frame of the measured direction is lost if `forgets` says
/// so of its connection, of the time for which that had been silent, and of the time at which it is
/// sent.
class Gateway {
public:
    using Forgets = std::function<bool(std::uint64_t connection, nanoseconds silent, nanoseconds now)>;

    explicit Gateway(Forgets forgets) : forgets_{std::move(forgets)} {}

    std::optional<LossTable::Ages> ages(bool with_other_direction) {
        const frame::Stream measured = stream_of(frame::Role::responder), other = stream_of(frame::Role::initiator);
        ArrivalBitmap measured_bitmap, other_bitmap;
        measured_bitmap.reset(used_frames, Receivers::one);
        other_bitmap.reset(used_frames, Receivers::one);
        std::map<std::uint64_t, nanoseconds> heard;
        std::set<std::uint64_t> gone;
        for (std::uint64_t i = 0; i < used_frames; ++i) {
            const nanoseconds now{static_cast<std::int64_t>(i * (1'000'000'000 / used_rate))};
            const std::uint64_t connection = measured.connection_of(i);
            const auto place = heard.try_emplace(connection, established(connection)).first;
            const bool is_lost = forgets_(connection, now - place->second, now);
            if (!gone.contains(connection)) {
                ++(is_lost ? counted_.lost : counted_.arrived);
            }
            if (is_lost) {
                gone.insert(connection);
            } else {
                gone.erase(connection);
                measured_bitmap.mark(i);
                place->second = now;
            }
            if (with_other_direction) {
                heard[other.connection_of(i)] = now;
                other_bitmap.mark(i);
            }
        }
        const UsedDirection first{&measured_bitmap, &used_mix, &measured, used_end, used_rate};
        const UsedDirection second{&other_bitmap, &used_mix, &other, used_end, used_rate};
        return find_loss_ages({first, with_other_direction ? second : UsedDirection{}}, used_connections, established);
    }
    /// Frames before which the last one of their connection arrived.
    [[nodiscard]] LossTable::Count counted() const { return counted_; }

private:
    Forgets forgets_;
    LossTable::Count counted_;
};

TEST(LossAges, TellTheTimeAfterWhichConnectionsAreForgotten) {
    for (const bool with_other_direction : {false, true}) {
        Gateway gateway{[](std::uint64_t, nanoseconds silent, nanoseconds) { return silent > 3s; }};
        const auto ages = gateway.ages(with_other_direction);
        ASSERT_TRUE(ages);
        ASSERT_GT(gateway.counted().lost, 100U);
        EXPECT_GT(ages->silent, 3s);
        EXPECT_LT(ages->silent, 3100ms);
        EXPECT_EQ(ages->older.lost, gateway.counted().lost);
        EXPECT_EQ(ages->older.arrived, 0U);
        EXPECT_EQ(ages->all.lost, gateway.counted().lost);
        EXPECT_EQ(ages->all.arrived, gateway.counted().arrived);
        EXPECT_EQ(ages->after, 0U);
    }
}

/// Linux gives a UDP connection its shorter timeout with its second reply.
TEST(LossAges, AreThoseOfConnectionsInUseWhereOnlyTheseAreForgotten) {
    std::map<std::uint64_t, int> used;
    Gateway gateway{[&](std::uint64_t connection, nanoseconds silent, nanoseconds) { return ++used[connection] > 2 && silent > 3s; }};
    const auto ages = gateway.ages(false);
    ASSERT_TRUE(ages);
    EXPECT_EQ(ages->after, 2U);
    EXPECT_GT(ages->silent, 3s);
    EXPECT_LT(ages->silent, 3100ms);
    EXPECT_EQ(ages->older.lost, gateway.counted().lost);
    EXPECT_EQ(ages->older.arrived, 0U);
    EXPECT_LT(ages->all.arrived, gateway.counted().arrived) << "without the first frames of each connection";
}

/// What is left out must not be lost for another reason.
TEST(LossAges, AreOfAllFramesWhereOthersAreLostTooThanThoseInUse) {
    std::map<std::uint64_t, int> used;
    Gateway gateway{[&](std::uint64_t connection, nanoseconds silent, nanoseconds) {
        const int number = ++used[connection];
        return number > 2 ? silent > 3s : number == 1 && connection % 10 == 0;
    }};
    const auto ages = gateway.ages(false);
    ASSERT_TRUE(ages);
    EXPECT_EQ(ages->after, 0U);
    EXPECT_EQ(ages->all.lost, gateway.counted().lost);
}

TEST(LossAges, CountFramesThatArrivedAfterAsLongASilence) {
    bool lenient = false;
    Gateway gateway{[&](std::uint64_t, nanoseconds silent, nanoseconds) { return silent > 3s && (lenient = !lenient); }};
    const auto ages = gateway.ages(false);
    ASSERT_TRUE(ages);
    EXPECT_EQ(ages->older.lost, gateway.counted().lost);
    EXPECT_GT(ages->older.arrived, gateway.counted().lost / 3);
}

/// Connections that are deleted grow silent because their frames are lost, not the other way round.
TEST(LossAges, OfConnectionsThatWereDeletedAreThoseOfTheOthers) {
    Gateway gateway{[](std::uint64_t connection, nanoseconds, nanoseconds now) { return connection % 10 == 0 && now > 2s; }};
    const auto ages = gateway.ages(false);
    ASSERT_TRUE(ages);
    EXPECT_EQ(ages->all.lost, gateway.counted().lost);
    EXPECT_LE(ages->all.lost, used_connections / 10);
    const std::uint64_t lost = ages->older.lost, arrived = ages->older.arrived;
    EXPECT_TRUE(lost * 20 < ages->all.lost * 19 || arrived * 10 > ages->all.arrived) << lost << " lost, " << arrived << " arrived";
}

TEST(LossAges, AreNoneWithoutLossesAndWithoutArrivals) {
    EXPECT_FALSE(Gateway{[](std::uint64_t, nanoseconds, nanoseconds) { return false; }}.ages(false));
    EXPECT_FALSE(Gateway{[](std::uint64_t, nanoseconds, nanoseconds) { return true; }}.ages(false));
}

}  // namespace
}  // namespace gatemark::record
