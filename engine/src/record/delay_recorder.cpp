#include "record/delay_recorder.hpp"

#include "base/for_each_cpu.hpp"

namespace gatemark::record {

GATEMARK_FOR_EACH_CPU
bool ClassDelayRecorder::note_all(std::span<const pace::Ticks> sent, std::span<const pace::Ticks> arrived) noexcept {
    std::array<pace::Ticks, 32> delays;
    std::uint64_t longest = 0;
    for (std::size_t k = 0; k < sent.size(); ++k) {
        delays[k] = {arrived[k].value - sent[k].value};  // of a frame that arrived before it was sent: above every timeout
        longest = std::max(longest, delays[k].value);
    }
    if (longest > timeout_.value) [[unlikely]] {
        return false;
    }
    delays_.all.add_all(std::span{delays}.first(sent.size()));
    return true;
}

}  // namespace gatemark::record
