#include "io/receive_clock.hpp"

#include "environment.hpp"
#include "io/dpdk_queue.hpp"

#include <gtest/gtest.h>
#include <rte_mbuf_dyn.h>

#include <array>
#include <thread>

namespace gatemark::io {
namespace {

using namespace std::chrono_literals;
using test::port_options;

/// A port's clock that runs at 156.25 MHz, 80 ppm too fast, with an arbitrary start value.
std::uint64_t port_ticks(std::uint64_t tester) {
    return 5'000'000 + static_cast<std::uint64_t>(static_cast<double>(tester) * 0.0625 * 1.00008);
}

/// When the port's clock was last read, in ticks of the Tester.
std::uint64_t last_read = 0;

ReceiveClock::Reader reader() {
    return [](std::uint64_t& ticks) {
        last_read = pace::CycleClock{}.now().value;
        ticks = port_ticks(last_read);
        return true;
    };
}

/// How far a time may be off that was told at `now`. One tick of the port is 16 of ours; the
/// readings of both clocks may be off by their width, and so the rate by a few in a million. The
/// longer the machine holds this test up after a reading, the more that is, and the more 80 ppm
/// are.
double error_max(std::uint64_t now, const ReceiveClock& clock) {
    return 200 + 2 * static_cast<double>(clock.uncertainty().value) + 10e-6 * static_cast<double>(now - last_read);
}

TEST(ReceiveClock, FollowsAClockOfAnotherRate) {
    const auto clock = ReceiveClock::start(reader());
    ASSERT_NE(clock, nullptr);
    for (int i = 0; i < 40; ++i) {
        clock->follow();
        std::this_thread::sleep_for(5ms);
        const std::uint64_t now = pace::CycleClock{}.now().value;
        const auto told = clock->to_tester(port_ticks(now));
        EXPECT_NEAR(static_cast<double>(told.value) - static_cast<double>(now), 0, error_max(now, *clock));
    }
}

TEST(ReceiveClock, TellsHowFarAConversionWasOff) {
    std::uint64_t jump = 0;
    const auto clock = ReceiveClock::start([&](std::uint64_t& ticks) {
        ticks = pace::CycleClock{}.now().value + jump;
        return true;
    });
    ASSERT_NE(clock, nullptr);
    clock->follow();
    clock->forget_error();
    clock->follow();
    EXPECT_LT(clock->error().value, 100'000'000U);
    jump = 1'000'000'000;
    clock->follow();
    EXPECT_GE(clock->error().value, 900'000'000U);
    clock->forget_error();
    EXPECT_LT(clock->error().value, 100'000'000U);
}

TEST(ReceiveClock, IsNotThereWhereTheClockCannotBeReadOrStandsStill) {
    EXPECT_EQ(ReceiveClock::start([](std::uint64_t&) { return false; }), nullptr);
    EXPECT_EQ(ReceiveClock::start([](std::uint64_t& ticks) { return ticks = 7, true; }), nullptr);
}

TEST(ReceiveClock, AQueueTakesTheStampOfTheHardware) {
    ASSERT_TRUE(test::start_environment());
    auto opened = open_ring_pair(port_options("left", "ring"), port_options("right", "ring"));
    ASSERT_EQ(error_of(opened), nullptr);
    auto& [left, right] = std::get<0>(opened);
    EXPECT_FALSE(right.facts().stamps_arrivals) << "rings have no hardware";
    const auto field = TimestampField::find();
    ASSERT_TRUE(field);
    auto clock = ReceiveClock::start(reader());
    ASSERT_NE(clock, nullptr);
    const ReceiveClock& of_port = *clock;
    right.stamp_arrivals(std::move(clock), *field);
    EXPECT_TRUE(right.facts().stamps_arrivals);

    std::vector<FramePool> pools;
    pools.push_back(std::get<FramePool>(FramePool::create(left, "stamped", 2048)));
    pools[0].set_template(std::vector<std::byte>(60));
    TransmitQueue transmit{left, 0, pools};
    const ReceiveQueue plain{left, 0};
    ReceiveQueue receive{right, 0};
    std::array<rte_mbuf*, 2> burst{};
    ASSERT_EQ(transmit.acquire(0, burst), 2U);
    const std::uint64_t arrived = pace::CycleClock{}.now().value;
    burst[0]->ol_flags |= field->flag;
    *RTE_MBUF_DYNFIELD(burst[0], field->offset, rte_mbuf_timestamp_t*) = port_ticks(arrived);
    ASSERT_EQ(transmit.send(burst), 2U);
    ASSERT_EQ(receive.receive(burst), 2U);
    EXPECT_NEAR(static_cast<double>(receive.arrival(burst[0], {1}).value), static_cast<double>(arrived), error_max(arrived, of_port));
    EXPECT_EQ(receive.arrival(burst[1], {1}), pace::Ticks{0}) << "no stamp: not to be taken for a time";
    EXPECT_EQ(plain.arrival(burst[0], {1}), pace::Ticks{1});
    burst[0]->ol_flags &= ~field->flag;
    receive.release(burst);
}

}  // namespace
}  // namespace gatemark::io
