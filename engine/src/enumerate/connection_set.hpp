#pragma once

#include "enumerate/sequence.hpp"
#include "enumerate/tuple_space.hpp"

#include <optional>

namespace gatemark::enumerate {

/// The connections of a stateful test, numbered from 0 in the order in which they are established:
/// connection k has the k-th four-tuple of an enumeration of all tuples. If there are fewer
/// connections than tuples, they have the first ones of that enumeration.
class ConnectionSet {
public:
    /// `count` is 1 to the number of tuples, which is at most Permutation::count_limit.
    constexpr ConnectionSet(const TupleRanges& ranges, Order order, std::uint64_t count, std::uint64_t key) noexcept
        : space_{ranges}, sequence_{order, space_.count(), key}, count_{count} {}

    [[nodiscard]] constexpr std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] constexpr const TupleSpace& space() const noexcept { return space_; }
    [[nodiscard]] constexpr Tuple tuple_of(std::uint64_t connection) const noexcept { return space_.tuple(sequence_.at(connection)); }
    /// Replaces each connection with the number of its four-tuple: for a whole burst at once, which
    /// is faster.
    void put_tuples(std::span<std::uint64_t> connections) const noexcept { sequence_.put_at(connections); }
    /// The connection with this four-tuple; none if no connection has it.
    [[nodiscard]] constexpr std::optional<std::uint64_t> connection_of(const Tuple& tuple) const noexcept {
        if (!space_.contains(tuple)) {
            return std::nullopt;
        }
        const std::uint64_t connection = sequence_.place_of(space_.number(tuple));
        return connection < count_ ? std::optional{connection} : std::nullopt;
    }

private:
    TupleSpace space_;
    Sequence sequence_;
    std::uint64_t count_;
};

}  // namespace gatemark::enumerate
