#include "pace/calibrate.hpp"

#include "pace/false_clock.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace gatemark::pace {
namespace {

using namespace std::chrono_literals;

TEST(Calibration, FindsAPlausibleRate) {
    const std::uint64_t rate = ticks_per_second();
    EXPECT_GT(rate, 10'000'000U);
    EXPECT_LT(rate, 10'000'000'000U);
}

/// A time service may be correcting the clock while the engine starts; the counter of the processor
/// does not follow that, so the load would be wrong by as much for a whole campaign. Here the clock
/// is slewed by far more than Linux does, so that nothing that a busy machine does to the readings
/// of both clocks can be taken for it.
TEST(Calibration, IsNotMisledByAClockThatIsSlewed) {
    const auto steady = static_cast<double>(ticks_per_second());
    test::slew_monotonic_clock(500'000);
    const auto slewed = static_cast<double>(ticks_per_second());
    test::slew_monotonic_clock(0);
    EXPECT_LT(std::abs(slewed / steady - 1), 0.1);
}

}  // namespace
}  // namespace gatemark::pace
