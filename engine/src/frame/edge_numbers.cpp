#include "frame/edge_numbers.hpp"

namespace gatemark::frame {

EdgeNumbers::EdgeNumbers(const net::MapDomain& domain, std::uint32_t lowest_psid, std::vector<Range> left_out)
    : psid_bits_{domain.ea_psid_bits()},
      lowest_psid_{lowest_psid},
      psids_{std::max(std::uint64_t{1}, (std::uint64_t{1} << domain.ea_psid_bits()) - lowest_psid)} {
    std::ranges::sort(left_out, {}, &Range::first);
    std::uint64_t gone = 0;
    for (const Range& range : left_out) {
        const std::uint64_t begin = rank_of(range.first), end = rank_of(range.last + 1);
        if (begin == end) {
            continue;
        }
        if (!gaps_.empty() && begin <= gaps_.back().end) {
            const std::uint64_t more = end > gaps_.back().end ? end - gaps_.back().end : 0;
            gaps_.back().end += more;
            gone += more;
            continue;
        }
        gaps_.push_back({.begin = begin, .end = end, .number = begin - gone});
        gone += end - begin;
    }
    count_ = rank_of(domain.ea_values()) - gone;
}

std::uint64_t EdgeNumbers::rank_of(std::uint64_t value) const noexcept {
    const std::uint64_t psids = std::uint64_t{1} << psid_bits_, psid = value & (psids - 1);
    return (value >> psid_bits_) * (psids - lowest_psid_) + (psid > lowest_psid_ ? psid - lowest_psid_ : 0);
}

std::uint64_t EdgeNumbers::value_beside_gaps(std::uint64_t number) const noexcept {
    const auto after = std::ranges::upper_bound(gaps_, number, {}, &Gap::number);
    const std::uint64_t rank = after == gaps_.begin() ? number : std::prev(after)->end + (number - std::prev(after)->number);
    const auto [suffix, psid] = psids_.divide(rank);
    return (suffix << psid_bits_) + psid + lowest_psid_;
}

std::optional<std::uint64_t> EdgeNumbers::number_of(std::uint64_t value) const noexcept {
    if ((value & ((std::uint64_t{1} << psid_bits_) - 1)) < lowest_psid_) {
        return std::nullopt;
    }
    const std::uint64_t rank = rank_of(value);
    const auto after = std::ranges::upper_bound(gaps_, rank, {}, &Gap::begin);
    if (after == gaps_.begin()) {
        return rank;
    }
    const Gap& gap = *std::prev(after);
    return rank < gap.end ? std::nullopt : std::optional{gap.number + (rank - gap.end)};
}

}  // namespace gatemark::frame
