#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/wide.hpp"
#include "net/address.hpp"

#include <algorithm>
#include <optional>

namespace gatemark::net {

/// A mapping rule of MAP as it is written down (RFC 7597 section 5), or softwires of an lwAFTR
/// whose bindings follow from their numbers, the EA values (RFC 7596 section 5.1).
struct MapRule {
    Prefix ipv6{}, ipv4{};
    unsigned ea_bits = 0, psid_offset = 6;
    std::optional<unsigned> psid_bits{};  ///< only where no EA bits hold the PSID (RFC 7598 section 4.5)
    std::optional<std::uint16_t> psid{};
    bool in_identifier = false;   ///< of softwires: the EA bits are in the interface identifier only
    std::optional<Prefix> dmr{};  ///< of MAP-T: it stands for all IPv4 addresses outside (RFC 7599 section 5.1)
    friend bool operator==(const MapRule&, const MapRule&) = default;
};

/// Everything about one rule that can be wrong without another one; `where` names the rule.
[[nodiscard]] Errors problems_of(const MapRule& rule, const std::string& where);

/// The addresses and ports of one MAP domain. Its customer edges are told apart by the value of
/// their EA bits: the suffix of the IPv4 address, then the PSID.
class MapDomain {
public:
    static constexpr unsigned ea_bits_max = 48;  ///< 32 of an address, 16 of a port

    /// What a rule says, as numbers.
    struct Parameters {
        Wide ipv6 = 0;
        unsigned ipv6_bits = 0;
        std::uint32_t ipv4 = 0;
        unsigned ipv4_bits = 0, ea_bits = 0, psid_offset = 6;
        unsigned psid_bits = 0;  ///< without EA bits only
        std::uint16_t psid = 0;
        bool in_identifier = false;
    };

    MapDomain() = default;
    /// `rule` has no problem.
    explicit MapDomain(const MapRule& rule);
    constexpr explicit MapDomain(const Parameters& given) noexcept
        : prefix_{given.ipv6},
          ipv4_{given.ipv4},
          prefix_bits_{given.ipv6_bits},
          ipv4_bits_{given.ipv4_bits},
          ea_bits_{given.ea_bits},
          suffix_bits_{std::min(given.ea_bits, 32 - given.ipv4_bits)},
          ea_psid_bits_{ea_bits_ - suffix_bits_},
          psid_bits_{given.ea_bits == 0 ? given.psid_bits : ea_psid_bits_},
          port_bits_{16 - given.psid_offset - psid_bits_},
          psid_offset_{given.psid_offset},
          in_identifier_{given.in_identifier},
          ea_shift_{128 - given.ipv6_bits - (in_identifier_ ? 0 : given.ea_bits)},
          ea_psid_mask_{static_cast<std::uint16_t>((std::uint64_t{1} << ea_psid_bits_) - 1)},
          suffix_shift_{32 - given.ipv4_bits - suffix_bits_},
          given_psid_{given.ea_bits == 0 ? given.psid : std::uint16_t{0}},
          identifier_mask_{ea_shift_ >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << ea_shift_) - 1},
          high_left_{ea_shift_ >= 64 ? std::min(ea_shift_ - 64, 63U) : 0},
          high_right_{in_identifier_    ? 63
                      : ea_shift_ >= 64 ? 0
                                        : std::min(64 - ea_shift_, 63U)},
          low_left_{ea_shift_ % 64},
          low_mask_{ea_shift_ >= 64 ? 0 : ~std::uint64_t{0}} {}

    [[nodiscard]] constexpr unsigned ea_bits() const noexcept { return ea_bits_; }
    [[nodiscard]] constexpr unsigned suffix_bits() const noexcept { return suffix_bits_; }
    /// Those of the EA bits that hold the PSID.
    [[nodiscard]] constexpr unsigned ea_psid_bits() const noexcept { return ea_psid_bits_; }
    [[nodiscard]] constexpr unsigned psid_bits() const noexcept { return psid_bits_; }
    [[nodiscard]] constexpr unsigned psid_offset() const noexcept { return psid_offset_; }
    /// Number of EA values; they are the numbers below it.
    [[nodiscard]] constexpr std::uint64_t ea_values() const noexcept { return std::uint64_t{1} << ea_bits_; }

    [[nodiscard]] constexpr std::uint32_t ipv4_of(std::uint64_t ea) const noexcept {
        return ipv4_ | static_cast<std::uint32_t>((ea >> ea_psid_bits_) << suffix_shift_);
    }
    /// The bits that tell the IPv4 addresses of an edge apart, if it has a prefix; zero if it has
    /// one address (RFC 7597 section 5.2).
    [[nodiscard]] constexpr std::uint32_t host_mask() const noexcept {
        return static_cast<std::uint32_t>((std::uint64_t{1} << suffix_shift_) - 1);
    }
    [[nodiscard]] constexpr std::uint16_t psid_of(std::uint64_t ea) const noexcept {
        return static_cast<std::uint16_t>((ea & ea_psid_mask_) | given_psid_);
    }
    /// The halves of the MAP address (RFC 7597 sections 5.2 and 6): an end-user prefix that is
    /// longer than 64 bits overwrites the top of the interface identifier. Of a softwire it is that
    /// of its B4. Shifts of 64 bits: one of 128 by a variable distance takes three times the
    /// instructions.
    [[nodiscard]] constexpr std::uint64_t high_of(std::uint64_t ea) const noexcept {
        return static_cast<std::uint64_t>(prefix_ >> 64) | ea << high_left_ >> high_right_;
    }
    [[nodiscard]] constexpr std::uint64_t low_of(std::uint64_t ea) const noexcept {
        const std::uint64_t identifier = (std::uint64_t{ipv4_of(ea)} << 16 | psid_of(ea)) & identifier_mask_;
        return static_cast<std::uint64_t>(prefix_) | (ea << low_left_ & low_mask_) | identifier;
    }
    [[nodiscard]] constexpr Wide address_of(std::uint64_t ea) const noexcept { return static_cast<Wide>(high_of(ea)) << 64 | low_of(ea); }

    [[nodiscard]] constexpr bool contains_ipv4(std::uint32_t address) const noexcept {
        return ipv4_bits_ == 0 || (address ^ ipv4_) >> (32 - ipv4_bits_) == 0;
    }
    [[nodiscard]] constexpr bool contains_ipv6(Wide address) const noexcept {
        return prefix_bits_ == 0 || (address ^ prefix_) >> (128 - prefix_bits_) == 0;
    }
    /// Whether an address inside the rule's IPv4 prefix has the suffix of this EA value: it is the
    /// edge's address, or one of its prefix.
    [[nodiscard]] constexpr bool has_suffix(std::uint32_t address, std::uint64_t ea) const noexcept {
        return static_cast<std::uint64_t>(address ^ ipv4_of(ea)) >> suffix_shift_ == 0;
    }
    /// The EA value of the edge with an address inside the rule's IPv4 prefix and a PSID in its EA
    /// bits.
    [[nodiscard]] constexpr std::uint64_t ea_of_ipv4(std::uint32_t address, std::uint16_t psid) const noexcept {
        return (std::uint64_t{address ^ ipv4_} >> suffix_shift_) << ea_psid_bits_ | (psid & ea_psid_mask_);
    }
    /// The EA bits of an address inside the rule's IPv6 prefix, whatever the rest of it is.
    [[nodiscard]] constexpr std::uint64_t ea_of(Wide address) const noexcept {
        if (in_identifier_) {
            const std::uint64_t suffix = std::uint64_t{static_cast<std::uint32_t>(address >> 16)} >> suffix_shift_;
            return (suffix << ea_psid_bits_ & (ea_values() - 1)) | (static_cast<std::uint64_t>(address) & ea_psid_mask_);
        }
        return ea_bits_ == 0 ? 0 : static_cast<std::uint64_t>(address >> ea_shift_) & (ea_values() - 1);
    }
    /// The EA value of which this is the MAP address; none if there is none.
    [[nodiscard]] constexpr std::optional<std::uint64_t> owner_of(Wide address) const noexcept {
        const std::uint64_t ea = ea_of(address);
        return address_of(ea) == address ? std::optional{ea} : std::nullopt;
    }

    /// Whether an edge may use the ports of its set only (RFC 7597 section 5.1).
    [[nodiscard]] constexpr bool restricts_ports() const noexcept { return psid_bits_ != 0; }
    /// The number of ports in a set. With a PSID offset the lowest ports belong to nobody.
    [[nodiscard]] constexpr std::uint32_t ports() const noexcept {
        return (psid_offset_ == 0 ? 1U : (1U << psid_offset_) - 1) << port_bits_;
    }
    /// The i-th port of a set, in ascending order; i is below `ports()`.
    [[nodiscard]] constexpr std::uint16_t port(std::uint16_t psid, std::uint32_t i) const noexcept {
        const std::uint32_t range = (i >> port_bits_) + (psid_offset_ == 0 ? 0 : 1);
        return static_cast<std::uint16_t>(range << (16 - psid_offset_) | std::uint32_t{psid} << port_bits_ |
                                          (i & ((1U << port_bits_) - 1)));
    }
    /// The PSID in whose set a port is; none for a port of nobody.
    [[nodiscard]] constexpr std::optional<std::uint16_t> psid_of_port(std::uint16_t port) const noexcept {
        if (psid_offset_ != 0 && port >> (16 - psid_offset_) == 0) {
            return std::nullopt;
        }
        return static_cast<std::uint16_t>((std::uint32_t{port} >> port_bits_) & ((1U << psid_bits_) - 1));
    }
    /// The number of bits that tell the ports of one range of a set apart.
    [[nodiscard]] constexpr unsigned port_bits() const noexcept { return port_bits_; }

    friend bool operator==(const MapDomain&, const MapDomain&) = default;

private:
    Wide prefix_ = 0;
    std::uint32_t ipv4_ = 0;
    unsigned prefix_bits_ = 0, ipv4_bits_ = 0, ea_bits_ = 0, suffix_bits_ = 0, ea_psid_bits_ = 0, psid_bits_ = 0;
    unsigned port_bits_ = 10, psid_offset_ = 6;
    bool in_identifier_ = false;
    unsigned ea_shift_ = 128;
    std::uint16_t ea_psid_mask_ = 0;
    unsigned suffix_shift_ = 32;
    std::uint16_t given_psid_ = 0;
    std::uint64_t identifier_mask_ = ~std::uint64_t{0};  ///< the bits of it that the end-user prefix leaves
    // Where the EA bits are in the upper and in the lower half of an address. They are 48 at most,
    // so a distance of 64 may be 63, and one of 63 to the right leaves none of them.
    unsigned high_left_ = 63, high_right_ = 0, low_left_ = 0;
    std::uint64_t low_mask_ = 0;
};

/// The IPv6 address at `from` as a number.
[[nodiscard]] inline Wide load_wide(const std::byte* from) noexcept {
    return static_cast<Wide>(load_big_endian<std::uint64_t>(from)) << 64 | load_big_endian<std::uint64_t>(from + 8);
}
/// An address as a number, and back.
[[nodiscard]] Wide wide_of(const Address& ipv6) noexcept;
[[nodiscard]] std::uint32_t word_of(const Address& ipv4) noexcept;
[[nodiscard]] Address ipv6_of(Wide number) noexcept;
[[nodiscard]] Address ipv4_of(std::uint32_t number) noexcept;

// The example of RFC 7597 appendix A, example 1: 192.0.2.18 and PSID 0x34.
constexpr MapDomain example_domain{{.ipv6 = static_cast<Wide>(0x2001'0db8'0000'0000) << 64,
                                    .ipv6_bits = 40,
                                    .ipv4 = 0xc000'0200,
                                    .ipv4_bits = 24,
                                    .ea_bits = 16,
                                    .psid_offset = 6}};
static_assert(static_cast<std::uint64_t>(example_domain.address_of(0x1234) >> 64) == 0x2001'0db8'0012'3400);
static_assert(static_cast<std::uint64_t>(example_domain.address_of(0x1234)) == 0x0000'c000'0212'0034);
static_assert(example_domain.owner_of(example_domain.address_of(0x1234)) == 0x1234U);
static_assert(example_domain.ea_of_ipv4(0xc000'0212, 0x34) == 0x1234);
static_assert(example_domain.ports() == 252 && example_domain.port(0x34, 0) == 1232 && example_domain.port(0x34, 251) == 64723);
static_assert(example_domain.psid_of_port(1235) == std::uint16_t{0x34} && !example_domain.psid_of_port(1023));
// Softwire 0x52 has 192.0.2.1 and PSID 0x12, the ports 18432 to 19455.
constexpr MapDomain example_softwires{{.ipv6 = static_cast<Wide>(0x2001'0db8'0001'0002) << 64,
                                       .ipv6_bits = 64,
                                       .ipv4 = 0xc000'0200,
                                       .ipv4_bits = 24,
                                       .ea_bits = 14,
                                       .psid_offset = 0,
                                       .in_identifier = true}};
static_assert(example_softwires.address_of(0x52) == (static_cast<Wide>(0x2001'0db8'0001'0002) << 64 | 0x0000'c000'0201'0012));
static_assert(example_softwires.owner_of(example_softwires.address_of(0x52)) == 0x52U);
static_assert(example_softwires.port(0x12, 0) == 18432 && example_softwires.port(0x12, 1023) == 19455);
// A prefix longer than 64 bits, and one with all of an address and a port in its EA bits.
static_assert(MapDomain{{.ipv6 = static_cast<Wide>(0x2001'0db8'00ce'0000) << 64,
                         .ipv6_bits = 51,
                         .ipv4 = 0xc000'0200,
                         .ipv4_bits = 24,
                         .ea_bits = 20,
                         .psid_offset = 0}}
                  .address_of(0xc800a) == (static_cast<Wide>(0x2001'0db8'00ce'1900) << 64 | 0x1400'c000'02c8'000a));
static_assert(MapDomain{{.ipv6 = static_cast<Wide>(0x2001'0db8'0001'0000) << 64,
                         .ipv6_bits = 48,
                         .ipv4 = 0,
                         .ipv4_bits = 0,
                         .ea_bits = 48,
                         .psid_offset = 0}}
                  .address_of(0xc633'6407'beef) == (static_cast<Wide>(0x2001'0db8'0001'c633) << 64 | 0x6407'beef'6407'beef));

}  // namespace gatemark::net
