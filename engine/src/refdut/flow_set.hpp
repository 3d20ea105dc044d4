#pragma once

#include "refdut/packet.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gatemark::refdut {

/// The network flows of one direction: the different pairs of endpoints that its frames had; in a
/// tunnel, with the addresses of the tunnel's ends. A flow
/// is kept as 63 bits of its hash, so among a million flows two are taken for one with a
/// probability of 1 in 18 million.
class FlowSet {
public:
    static constexpr std::size_t flows_max = std::size_t{1} << 20;  ///< more are not counted

    /// The memory for all of them is allocated here.
    FlowSet() : slots_(2 * flows_max) {}

    /// Adds the flow of a frame of any bytes; one that is no whole UDP datagram has none. Returns
    /// how many there are.
    std::size_t add(const Packet& packet) noexcept;
    void clear() noexcept;

private:
    std::vector<std::uint64_t> slots_;  ///< 0: empty
    std::size_t size_ = 0;
};

}  // namespace gatemark::refdut
