#include "record/delay_recorder.hpp"

#include "base/for_each_cpu.hpp"
#include "frame/burst.hpp"

namespace gatemark::record {

GATEMARK_FOR_EACH_CPU
bool ClassDelayRecorder::note_all(std::span<const pace::Ticks> sent, std::span<const pace::Ticks> arrived) noexcept {
    std::array<std::uint64_t, frame::burst_frames_max> delays;  // in ticks; not cleared first, as an array of Ticks would be
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max(), longest = 0;
    for (std::size_t k = 0; k < sent.size(); ++k) {
        delays[k] = arrived[k].value - sent[k].value;
        const auto delay = static_cast<std::int64_t>(delays[k]);  // negative: arrived before it was sent
        shortest = std::min(shortest, delay);
        longest = std::max(longest, delay);
    }
    if (shortest < 0 || longest > longest_usual_) [[unlikely]] {
        return false;
    }
    delays_.all.add_all(std::span{delays}.first(sent.size()), {static_cast<std::uint64_t>(shortest)},
                        {static_cast<std::uint64_t>(longest)});
    return true;
}

std::size_t ClassDelayRecorder::note_each(std::uint64_t first, std::span<const std::uint64_t> numbers, std::span<const pace::Ticks> sent,
                                          std::span<const pace::Ticks> arrived) noexcept {
    std::size_t in_time = 0;
    for (std::size_t k = 0; k < sent.size(); ++k) {
        in_time += note(first + k, numbers[k], sent[k], arrived[k]) ? 1 : 0;
    }
    return in_time;
}

/// Follows `note_all`: with clang the versions of a function must be defined before use.
std::size_t ClassDelayRecorder::note_run(std::uint64_t first, std::span<const std::uint64_t> numbers, std::span<const pace::Ticks> sent,
                                         std::span<const pace::Ticks> arrived) noexcept {
    return tags_ == nullptr && window_ == nullptr && note_all(sent, arrived) ? sent.size() : note_each(first, numbers, sent, arrived);
}

}  // namespace gatemark::record
