#pragma once

#include "frame/address_field.hpp"
#include "frame/host_set.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace gatemark::frame {

/// An end of connections in tunnels: every subscriber has the same hosts, so subscribers share
/// their addresses (RFC 6333 section 6.6). One value counts both: all hosts of the first
/// subscriber, then those of the next one. With one host each it is the subscriber's own value.
class SubscriberHosts {
public:
    SubscriberHosts(const HostSet& hosts, const HostSet& subscribers) noexcept : hosts_{hosts}, subscribers_{subscribers} {}

    /// Nothing if the values of all have room in 16 bits; else where the request has too many.
    [[nodiscard]] std::optional<Error> problem(const std::string& where) const {
        if ((subscribers_.part.maximum + std::uint64_t{1}) * hosts_.part.count() <= 65'536) {
            return std::nullopt;
        }
        return Error{"there are more hosts of subscribers than 16 bits count", where,
                     "give fewer subscribers, subscribers with lower values, or fewer hosts each"};
    }
    /// The values, if there is no problem.
    [[nodiscard]] ValueRange values() const noexcept {
        const std::uint32_t first = subscribers_.part.minimum * hosts_.part.count(),
                            count = subscribers_.part.count() * hosts_.part.count();
        return {.mode = ValueMode::pseudorandom,
                .minimum = static_cast<std::uint16_t>(first),
                .maximum = static_cast<std::uint16_t>(first + count - 1)};
    }
    [[nodiscard]] net::Address subscriber(std::uint16_t value) const noexcept {
        return subscribers_.host(static_cast<std::uint16_t>(value / hosts_.part.count()), 0);
    }
    [[nodiscard]] net::Address host(std::uint16_t value) const noexcept {
        return hosts_.host(static_cast<std::uint16_t>(hosts_.part.minimum + value % hosts_.part.count()), 0);
    }
    /// The value of a subscriber's host; none if there is no such subscriber or host.
    [[nodiscard]] std::optional<std::uint16_t> value_of(const net::Address& subscriber, const net::Address& host) const noexcept {
        const auto outer = subscribers_.value_of(subscriber), inner = hosts_.value_of(host);
        return outer && inner ? std::optional{static_cast<std::uint16_t>(*outer * hosts_.part.count() + (*inner - hosts_.part.minimum))}
                              : std::nullopt;
    }
    /// The addresses by that value, each of its own family.
    [[nodiscard]] Result<AddressField> subscriber_field(const std::string& where) const;
    [[nodiscard]] Result<AddressField> host_field(const std::string& where) const;
    /// For people.
    [[nodiscard]] std::string name_of(std::uint16_t value) const { return to_text(host(value)) + " of " + to_text(subscriber(value)); }

private:
    HostSet hosts_, subscribers_;
};

}  // namespace gatemark::frame
