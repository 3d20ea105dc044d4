#pragma once

#include "base/random.hpp"
#include "base/wide.hpp"

#include <cstdint>
#include <vector>

namespace gatemark::refdut {

struct DelaySpec {
    enum class Kind : std::uint8_t { none, fixed, uniform, periodic };
    Kind kind = Kind::none;
    std::vector<std::uint64_t> values_ns;  ///< fixed: one; uniform: minimum, maximum (both may be drawn); periodic: any number
    friend bool operator==(const DelaySpec&, const DelaySpec&) = default;
};

/// The delay of one frame after another; the same seed gives the same delays.
class DelaySource {
public:
    DelaySource() = default;
    DelaySource(const DelaySpec& spec, std::uint64_t seed, std::uint64_t purpose, std::uint64_t ticks_per_second)
        : kind_{spec.kind}, random_{seed, purpose} {
        for (const std::uint64_t value : spec.values_ns) {
            values_.push_back(static_cast<std::uint64_t>(static_cast<Wide>(value) * ticks_per_second / 1'000'000'000));
        }
    }

    /// Ticks.
    [[nodiscard]] std::uint64_t next() noexcept {
        switch (kind_) {
            case DelaySpec::Kind::none: return 0;
            case DelaySpec::Kind::fixed: return values_[0];
            case DelaySpec::Kind::uniform: return values_[0] + scale_wide_to(random_.at(drawn_++), values_[1] - values_[0] + 1);
            case DelaySpec::Kind::periodic: {
                const std::uint64_t value = values_[drawn_];
                drawn_ = drawn_ + 1 == values_.size() ? 0 : drawn_ + 1;
                return value;
            }
        }
        return 0;
    }
    void restart() noexcept { drawn_ = 0; }

private:
    DelaySpec::Kind kind_ = DelaySpec::Kind::none;
    std::vector<std::uint64_t> values_;
    RandomSequence random_{0, 0};
    std::uint64_t drawn_ = 0;
};

}  // namespace gatemark::refdut
