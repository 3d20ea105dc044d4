#pragma once

#include "frame/customer_edges.hpp"
#include "frame/host_set.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace gatemark::frame {

/// Emulated hosts of one side for which ARP and neighbour discovery are answered: a set of
/// addresses, or customer edges that are on the link themselves.
class AnsweredHosts {
public:
    AnsweredHosts(const HostSet& hosts) : hosts_{hosts} {}  // NOLINT(google-explicit-constructor): a set of hosts is what this is
    explicit AnsweredHosts(std::shared_ptr<const CustomerEdges> edges) : edges_{std::move(edges)} {}

    [[nodiscard]] bool contains(const net::Address& address) const noexcept {
        if (edges_ == nullptr) {
            return hosts_.contains(address);
        }
        return address.family == net::Family::ipv6 && edges_->contains(net::wide_of(address));
    }
    [[nodiscard]] net::Family family() const noexcept { return edges_ == nullptr ? hosts_.address.family : net::Family::ipv6; }
    [[nodiscard]] std::uint64_t count() const noexcept {
        return edges_ == nullptr ? std::uint64_t{hosts_.part.count()} * hosts_.networks : edges_->count();
    }
    /// Host number i, below `count()`.
    [[nodiscard]] net::Address at(std::uint64_t i) const noexcept {
        if (edges_ != nullptr) {
            return net::ipv6_of(edges_->address_of(edges_->edge_of(i)));
        }
        const std::uint64_t values = hosts_.part.count();
        return hosts_.host(static_cast<std::uint16_t>(hosts_.part.minimum + i % values), static_cast<std::uint8_t>(i / values));
    }
    /// Of a host whose link-layer address follows from it; customer edges have that of the port.
    [[nodiscard]] std::uint32_t number_of(const net::Address& host) const noexcept { return hosts_.number_of(host); }

private:
    HostSet hosts_{};
    std::shared_ptr<const CustomerEdges> edges_;  ///< nullptr: `hosts_`
};

}  // namespace gatemark::frame
