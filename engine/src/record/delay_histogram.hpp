#pragma once

#include "pace/clock.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace gatemark::record {

/// Delays of any number of frames in constant memory: 288 kB. Each octave of ticks has 1024
/// buckets, so the middle of a bucket differs from each delay in it by at most 0.049 %; minimum and
/// maximum are exact. Below 2048 ticks every value has a bucket of its own.
class DelayHistogram {
public:
    static constexpr unsigned bits = 10, delay_bits = 44;
    static constexpr std::size_t bucket_count = std::size_t{delay_bits - bits + 1} << bits;
    static constexpr std::uint64_t delay_limit = std::uint64_t{1} << delay_bits;

    DelayHistogram() : counts_(bucket_count) {}

    void add(pace::Ticks delay) noexcept {
        std::size_t bucket = bucket_of(delay.value);
        if (bucket >= bucket_count) [[unlikely]] {
            bucket = bucket_count - 1;
        }
        ++counts_[bucket];
        // Branches that are hardly ever taken instead of a conditional move and a store for every
        // sample.
        if (delay < minimum_) [[unlikely]] {
            minimum_ = delay;
        }
        if (delay > maximum_) [[unlikely]] {
            maximum_ = delay;
        }
        ++samples_;
    }
    /// Delays in ticks, all of them below `delay_limit`, and the shortest and longest of them.
    void add_all(std::span<const std::uint64_t> delays, pace::Ticks shortest, pace::Ticks longest) noexcept {
        for (const std::uint64_t delay : delays) {
            ++counts_[bucket_of(delay)];
        }
        minimum_ = std::min(minimum_, shortest);
        maximum_ = std::max(maximum_, longest);
        samples_ += delays.size();
    }
    void add(const DelayHistogram& other) noexcept {
        for (std::size_t i = 0; i < bucket_count; ++i) {
            counts_[i] += other.counts_[i];
        }
        minimum_.value = std::min(minimum_.value, other.minimum_.value);
        maximum_.value = std::max(maximum_.value, other.maximum_.value);
        samples_ += other.samples_;
    }

    [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
    /// Of at least one sample.
    [[nodiscard]] pace::Ticks minimum() const noexcept { return minimum_; }
    [[nodiscard]] pace::Ticks maximum() const noexcept { return maximum_; }

    /// The sample of this rank, 1 <= rank <= samples(): the smallest value that at least `rank`
    /// samples do not exceed (RFC 2330 section 11.3).
    [[nodiscard]] pace::Ticks of_rank(std::uint64_t rank) const noexcept {
        for (std::size_t i = 0; i < bucket_count; ++i) {
            if (rank <= counts_[i]) {
                return within(middle_of(i));
            }
            rank -= counts_[i];
        }
        return maximum_;
    }

    /// Calls visit(delay, count) for each bucket with samples, lowest first. The delay is the
    /// middle of the bucket, limited to the range of the samples.
    template <class Visit>
    void visit(Visit&& visit) const {
        for (std::size_t i = 0; i < bucket_count; ++i) {
            if (counts_[i] != 0) {
                visit(within(middle_of(i)), counts_[i]);
            }
        }
    }

    [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t delay) noexcept {
        // As if a shorter delay had bits + 1 digits: all of them are in octave 0.
        const auto highest_bit = 63U ^ static_cast<unsigned>(std::countl_zero(delay | ((std::uint64_t{2} << bits) - 1)));
        const unsigned octave = highest_bit - bits;
        return (std::size_t{octave} << bits) + static_cast<std::size_t>(delay >> octave);
    }
    [[nodiscard]] static constexpr std::uint64_t lowest_of(std::size_t bucket) noexcept {
        if (bucket < std::size_t{2} << bits) {
            return bucket;
        }
        const std::size_t octave = (bucket >> bits) - 1;
        return (bucket - (octave << bits)) << octave;
    }
    [[nodiscard]] static constexpr std::uint64_t middle_of(std::size_t bucket) noexcept {
        return (lowest_of(bucket) + lowest_of(bucket + 1) - 1) / 2;
    }

private:
    [[nodiscard]] pace::Ticks within(std::uint64_t delay) const noexcept { return {std::clamp(delay, minimum_.value, maximum_.value)}; }

    std::vector<std::uint64_t> counts_;
    std::uint64_t samples_ = 0;
    pace::Ticks minimum_{std::numeric_limits<std::uint64_t>::max()}, maximum_{};
};

consteval bool buckets_join_and_are_narrow() {
    for (std::size_t bucket = 0; bucket + 1 < DelayHistogram::bucket_count; bucket += bucket < 5000 ? 1 : 509) {
        const std::uint64_t lowest = DelayHistogram::lowest_of(bucket), next = DelayHistogram::lowest_of(bucket + 1);
        if (DelayHistogram::bucket_of(lowest) != bucket || DelayHistogram::bucket_of(next - 1) != bucket ||
            (next - lowest - 1) * 1024 > lowest) {
            return false;
        }
    }
    return DelayHistogram::bucket_of(DelayHistogram::delay_limit - 1) == DelayHistogram::bucket_count - 1;
}
static_assert(buckets_join_and_are_narrow());

}  // namespace gatemark::record
