#pragma once

#include "base/paged_memory.hpp"
#include "net/address.hpp"
#include "refdut/port_set.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace gatemark::refdut {

/// Which connections share a public endpoint (RFC 4787 section 4.1): all of an inside endpoint, or
/// none that have the same remote endpoint.
enum class MappingKind : std::uint8_t { endpoint_independent, endpoint_dependent };

/// The public addresses and ports of a NAT.
struct NatPool {
    std::vector<net::Prefix> prefixes;  ///< of one family; all addresses of a prefix are used, PortPool::addresses_max in all
    std::uint16_t port_min = 1024, port_max = 65535;
    std::optional<PortSet> port_set{};  ///< only these of them (MAP)
    MappingKind mapping = MappingKind::endpoint_independent;
    bool behind_b4s = false;  ///< an inside endpoint is that of one B4 (AFTR)
};

/// Which ports of which pool address are taken. Addresses are numbered.
class PortPool {
public:
    static constexpr std::size_t addresses_max = 65536;
    using Bytes = std::array<std::byte, 16>;

    explicit PortPool(const NatPool& pool);

    [[nodiscard]] std::uint32_t addresses() const noexcept { return count_; }
    [[nodiscard]] std::optional<std::uint16_t> number_of(const Bytes& address) const noexcept;
    [[nodiscard]] Bytes address_of(std::uint16_t number) const noexcept;

    struct Place {
        std::uint16_t address, port;  ///< address by number
    };
    /// Takes the first free port of `first.address`, from `first.port` on and then from the lowest;
    /// else one of the next addresses.
    [[nodiscard]] std::optional<Place> take(Place first) noexcept;
    void release(Place place) noexcept;
    void release_all() noexcept;

    /// Whether the port is one of each address, taken or not.
    [[nodiscard]] bool has_port(std::uint16_t port) const noexcept { return (usable_[port / 64] >> port % 64 & 1U) != 0; }
    /// The next port, usable or not; after the highest the lowest.
    [[nodiscard]] std::uint16_t port_after(std::uint16_t port) const noexcept {
        return port >= port_max_ || port < port_min_ ? port_min_ : static_cast<std::uint16_t>(port + 1);
    }
    [[nodiscard]] std::uint32_t ports() const noexcept { return std::uint32_t{port_max_} - port_min_ + 1; }
    [[nodiscard]] std::size_t bytes() const noexcept { return taken_.bytes(); }

private:
    struct Part {
        net::Prefix prefix;
        std::uint32_t first, count;  ///< numbers of its addresses
    };
    [[nodiscard]] std::optional<std::uint16_t> take_port(Place first) noexcept;

    std::vector<Part> parts_;
    std::uint32_t count_ = 0;
    std::uint16_t port_min_, port_max_;
    std::vector<std::uint64_t> usable_;  ///< 65,536 bits: the ports of each address
    std::uint32_t usable_count_ = 0;
    PagedMemory<std::uint64_t> taken_;     ///< 65,536 bits for each address
    std::vector<std::uint32_t> taken_of_;  ///< how many, for each address
};

}  // namespace gatemark::refdut
