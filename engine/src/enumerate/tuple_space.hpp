#pragma once

#include "base/divider.hpp"
#include "base/wide.hpp"

#include <cstdint>

namespace gatemark::enumerate {

/// `count` consecutive values, starting at `minimum`; count is 1 to 65,536.
struct TupleRange {
    std::uint16_t minimum = 0;
    std::uint32_t count = 1;

    [[nodiscard]] constexpr bool contains(std::uint16_t value) const noexcept {
        return value >= minimum && value - minimum < static_cast<int>(count);
    }
    friend bool operator==(const TupleRange&, const TupleRange&) = default;
};

struct TupleRanges {
    TupleRange source_ports{}, destination_ports{}, source_hosts{}, destination_hosts{};

    /// Up to 2^64, so 64 bits do not suffice.
    [[nodiscard]] constexpr Wide count() const noexcept {
        return static_cast<Wide>(source_ports.count) * destination_ports.count * source_hosts.count * destination_hosts.count;
    }
    friend bool operator==(const TupleRanges&, const TupleRanges&) = default;
};

/// A four-tuple as the Initiator sends it; hosts are values of their host sets.
struct Tuple {
    std::uint16_t source_port = 0, destination_port = 0, source_host = 0, destination_host = 0;
    friend bool operator==(const Tuple&, const Tuple&) = default;
};

/// Numbers all four-tuples of four ranges in mixed radix; the source port is the least significant
/// digit.
class TupleSpace {
public:
    /// `ranges.count()` is at most `ShortDivider::value_limit`.
    constexpr explicit TupleSpace(const TupleRanges& ranges) noexcept
        : ranges_{ranges},
          source_ports_{ranges.source_ports.count},
          destination_ports_{ranges.destination_ports.count},
          source_hosts_{ranges.source_hosts.count} {}

    [[nodiscard]] constexpr const TupleRanges& ranges() const noexcept { return ranges_; }
    [[nodiscard]] constexpr std::uint64_t count() const noexcept { return static_cast<std::uint64_t>(ranges_.count()); }

    [[nodiscard]] constexpr Tuple tuple(std::uint64_t number) const noexcept {
        const auto source_port = source_ports_.divide(number);
        const auto destination_port = destination_ports_.divide(source_port.quotient);
        const auto source_host = source_hosts_.divide(destination_port.quotient);
        return {.source_port = value(ranges_.source_ports, source_port.remainder),
                .destination_port = value(ranges_.destination_ports, destination_port.remainder),
                .source_host = value(ranges_.source_hosts, source_host.remainder),
                .destination_host = value(ranges_.destination_hosts, source_host.quotient)};
    }
    /// The number of a tuple whose values all lie within the ranges.
    [[nodiscard]] constexpr std::uint64_t number(const Tuple& tuple) const noexcept {
        std::uint64_t number = digit(ranges_.destination_hosts, tuple.destination_host);
        number = number * ranges_.source_hosts.count + digit(ranges_.source_hosts, tuple.source_host);
        number = number * ranges_.destination_ports.count + digit(ranges_.destination_ports, tuple.destination_port);
        return number * ranges_.source_ports.count + digit(ranges_.source_ports, tuple.source_port);
    }
    [[nodiscard]] constexpr bool contains(const Tuple& tuple) const noexcept {
        return ranges_.source_ports.contains(tuple.source_port) && ranges_.destination_ports.contains(tuple.destination_port) &&
               ranges_.source_hosts.contains(tuple.source_host) && ranges_.destination_hosts.contains(tuple.destination_host);
    }

private:
    static constexpr std::uint16_t value(const TupleRange& range, std::uint64_t digit) noexcept {
        return static_cast<std::uint16_t>(range.minimum + digit);
    }
    static constexpr std::uint64_t digit(const TupleRange& range, std::uint16_t value) noexcept {
        return static_cast<std::uint64_t>(value - range.minimum);
    }

    TupleRanges ranges_;
    ShortDivider source_ports_, destination_ports_, source_hosts_;
};

}  // namespace gatemark::enumerate
