#pragma once

#include "pace/clock.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace gatemark::record {

/// The latest catch-ups of a sender: what became due while it was kept from sending left at once,
/// and a queue that holds the load may not hold that.
class LateBursts {
public:
    static constexpr std::size_t kept = 32;
    struct CatchUp {
        std::uint64_t index = 0, end = 0;  ///< first frame, and the one after the last; frames of other senders are in between
        pace::Ticks lateness{};            ///< of its first frame
    };

    /// Takes a burst; one that begins where the last one ended is the rest of the same catch-up. An
    /// earlier one gives way to it if there is no room and it was less late.
    void add(const CatchUp& burst) noexcept {
        if (count_ != 0 && burst.index == end_) {
            end_ = burst.end;
            if (last_ != kept) {
                catch_ups_[last_].end = burst.end;
                catch_ups_[last_].lateness = std::max(catch_ups_[last_].lateness, burst.lateness);
            }
            return;
        }
        end_ = burst.end;
        last_ = count_;
        if (count_ == kept) {
            const auto* const least = std::ranges::min_element(catch_ups_, {}, &CatchUp::lateness);
            last_ = least->lateness < burst.lateness ? static_cast<std::size_t>(least - catch_ups_.begin()) : kept;
        } else {
            ++count_;
        }
        if (last_ != kept) {
            catch_ups_[last_] = burst;
        }
    }
    [[nodiscard]] std::span<const CatchUp> catch_ups() const noexcept { return std::span{catch_ups_}.first(count_); }

private:
    std::array<CatchUp, kept> catch_ups_{};
    std::size_t count_ = 0;
    std::size_t last_ = kept;  ///< place of the last one; `kept` if there was no room for it
    std::uint64_t end_ = 0;    ///< of the last one
};

}  // namespace gatemark::record
