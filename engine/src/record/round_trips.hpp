#pragma once

#include "base/wide.hpp"
#include "record/delay_histogram.hpp"

#include <cmath>
#include <cstdint>

namespace gatemark::record {

/// Round-trip times: their histogram and their exact sums.
class RoundTrips {
public:
    void add(pace::Ticks time) noexcept {
        histogram_.add(time);
        sum_ += time.value;
        squares_ += static_cast<Wide>(time.value) * time.value;
    }
    void add(const RoundTrips& other) noexcept {
        histogram_.add(other.histogram_);
        sum_ += other.sum_;
        squares_ += other.squares_;
    }
    [[nodiscard]] const DelayHistogram& histogram() const noexcept { return histogram_; }
    [[nodiscard]] std::uint64_t samples() const noexcept { return histogram_.samples(); }
    [[nodiscard]] Wide sum() const noexcept { return sum_; }

    /// Of at least one sample: the population standard deviation in ticks. The squares are taken
    /// about the whole part of the mean, so that nothing cancels out.
    [[nodiscard]] double deviation() const noexcept {
        const Wide count = samples(), mean = sum_ / count;
        const auto about_mean = static_cast<double>(squares_ - 2 * mean * sum_ + count * mean * mean);
        const double rest = static_cast<double>(sum_ - mean * count) / static_cast<double>(samples());
        return std::sqrt(std::max(0.0, about_mean / static_cast<double>(samples()) - rest * rest));
    }

private:
    DelayHistogram histogram_;
    Wide sum_ = 0, squares_ = 0;
};

}  // namespace gatemark::record
