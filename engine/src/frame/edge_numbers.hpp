#pragma once

#include "base/divider.hpp"
#include "net/map_domain.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace gatemark::frame {

/// The EA values of one MAP domain that customer edges may have, numbered in ascending order
/// without gaps. What is left out are the lowest PSIDs of every address, and ranges of values.
class EdgeNumbers {
public:
    /// Inclusive.
    struct Range {
        std::uint64_t first = 0, last = 0;
    };

    EdgeNumbers() = default;
    /// PSIDs below `lowest_psid` are left out, and these ranges, which may overlap.
    EdgeNumbers(const net::MapDomain& domain, std::uint32_t lowest_psid, std::vector<Range> left_out);

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    /// Whether nothing is left out: every value is its own number.
    [[nodiscard]] bool is_identity() const noexcept { return lowest_psid_ == 0 && gaps_.empty(); }
    [[nodiscard]] std::uint64_t value_of(std::uint64_t number) const noexcept { return is_identity() ? number : value_beside_gaps(number); }
    /// None if the value is left out.
    [[nodiscard]] std::optional<std::uint64_t> number_of(std::uint64_t value) const noexcept;

private:
    /// Values that are left out, counted as if only PSIDs were: those from `begin` to `end` - 1.
    struct Gap {
        std::uint64_t begin, end;
        std::uint64_t number;  ///< the first one after it
    };
    [[nodiscard]] std::uint64_t value_beside_gaps(std::uint64_t number) const noexcept;
    /// How many values below this one have a PSID that is not left out.
    [[nodiscard]] std::uint64_t rank_of(std::uint64_t value) const noexcept;

    unsigned psid_bits_ = 0;
    std::uint32_t lowest_psid_ = 0;
    Divider psids_{1};  ///< of one address
    std::vector<Gap> gaps_;
    std::uint64_t count_ = 1;
};

}  // namespace gatemark::frame
