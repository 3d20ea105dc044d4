#pragma once

#include "base/divider.hpp"

#include <cstdint>

namespace gatemark::frame {

/// Clients that send `count` echo requests to each of their own destinations, `window` destinations
/// at a time.
struct EchoShape {
    std::uint64_t clients = 1, window = 1, count = 1, destinations = 1;

    [[nodiscard]] constexpr std::uint64_t slots() const noexcept { return clients * window; }
    [[nodiscard]] constexpr std::uint64_t all_destinations() const noexcept { return clients * destinations; }
    [[nodiscard]] constexpr std::uint64_t requests_of_client() const noexcept { return destinations * count; }
    [[nodiscard]] constexpr std::uint64_t requests_of_slot() const noexcept { return requests_of_client() / window; }
    [[nodiscard]] constexpr std::uint64_t requests() const noexcept { return clients * requests_of_client(); }
};

/// Whose an echo request is, and which one.
struct EchoPlace {
    std::uint64_t client, slot;  ///< slot: of the client
    std::uint64_t number;        ///< among the requests of the slot
    std::uint64_t destination;   ///< of the client
    std::uint64_t round;         ///< among the requests to the destination

    /// Of a host; those of a customer edge are the ports of its set.
    [[nodiscard]] constexpr std::uint16_t identifier() const noexcept { return static_cast<std::uint16_t>(destination); }
    [[nodiscard]] constexpr std::uint16_t sequence() const noexcept { return static_cast<std::uint16_t>(round); }
};

/// From the index of a request to its place and back. Clients take turns, then the slots of each.
class EchoNumbers {
public:
    /// `destinations` is a multiple of `window`.
    explicit constexpr EchoNumbers(const EchoShape& shape = {}) noexcept
        : shape_{shape}, requests_{shape.requests()}, clients_{shape.clients}, window_{shape.window}, count_{shape.count} {}

    [[nodiscard]] constexpr const EchoShape& shape() const noexcept { return shape_; }
    /// Indexes beyond the last request begin again with the first.
    [[nodiscard]] constexpr EchoPlace place_of(std::uint64_t index) const noexcept {
        const auto turn = clients_.divide(requests_.remainder(index));
        const auto step = window_.divide(turn.quotient);
        const auto round = count_.divide(step.quotient);
        return {.client = turn.remainder,
                .slot = step.remainder,
                .number = step.quotient,
                .destination = round.quotient * shape_.window + step.remainder,
                .round = round.remainder};
    }
    [[nodiscard]] constexpr std::uint64_t index_of(std::uint64_t client, std::uint64_t slot, std::uint64_t number) const noexcept {
        return (number * shape_.window + slot) * shape_.clients + client;
    }

private:
    EchoShape shape_;
    Divider requests_, clients_, window_, count_;
};

}  // namespace gatemark::frame
