#pragma once

#include "golden/slow_packet.hpp"

#include <vector>

/// A MAP-T border relay that reads the figures of RFC 7597 and RFC 6052 as strings of bits.
/// Independent of the engine, like the slow packet.
namespace gatemark::test {

struct SlowRule {
    net::Prefix ipv6, ipv4;
    unsigned ea_bits = 0, psid_offset = 6;
    unsigned psid_bits = 0;  ///< given, without EA bits
    std::uint16_t psid = 0;
    net::Prefix dmr;
};

class SlowBorderRelay {
public:
    explicit SlowBorderRelay(std::vector<SlowRule> rules) : rules_{std::move(rules)} {}

    /// None if the packet is dropped: from an address that is no edge's, from a port outside the
    /// edge's set, or to nobody.
    [[nodiscard]] std::optional<SlowPacket> forwarded(const SlowPacket& packet, unsigned decrement) const;

private:
    [[nodiscard]] std::optional<SlowPacket> to_ipv4(const SlowPacket& packet, unsigned decrement) const;
    [[nodiscard]] std::optional<SlowPacket> to_ipv6(const SlowPacket& packet, unsigned decrement) const;

    std::vector<SlowRule> rules_;
};

}  // namespace gatemark::test
