#include "record/identifications.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace gatemark::record {

void Identifications::count(ClassCounts& counts) const {
    std::vector<Frame> frames = frames_;
    const auto place = [](const Frame& frame) { return std::tuple{frame.pair, frame.index}; };
    std::ranges::sort(frames, {}, place);
    const auto is_same = [&](const Frame& one, const Frame& other) { return place(one) == place(other); };
    frames.erase(std::unique(frames.begin(), frames.end(), is_same), frames.end());  // it arrived twice, and was translated once
    for (auto first = frames.begin(); first != frames.end();) {
        const auto end = std::find_if(first, frames.end(), [&](const Frame& frame) { return frame.pair != first->pair; });
        const auto last = first + std::min<std::ptrdiff_t>(end - first, of_pair_max);
        if (last - first > 1) {
            std::set<std::uint16_t> distinct;
            std::transform(first, last, std::inserter(distinct, distinct.end()), [](const Frame& frame) { return frame.identification; });
            counts[Count::identifications] += static_cast<std::uint64_t>(last - first);
            counts[Count::distinct_identifications] += distinct.size();
        }
        first = end;
    }
}

}  // namespace gatemark::record
