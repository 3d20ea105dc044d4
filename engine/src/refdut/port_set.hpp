#pragma once

#include <cstdint>

namespace gatemark::refdut {

/// The ports of one customer of a MAP rule: port P = R * M * i + M * PSID + j with j below M (RFC
/// 7597 appendix B), R customers sharing the address. With an offset, i begins at 1: the lowest
/// ports are nobody's. A PSID of no bits restricts nothing.
class PortSet {
public:
    /// Both lengths in bits, together 16 at most; `psid` fits in its bits.
    constexpr PortSet(unsigned offset_bits, unsigned psid_bits, std::uint16_t psid) noexcept
        : sharing_{1U << psid_bits},
          contiguous_{65536U >> (offset_bits + psid_bits)},
          first_{offset_bits > 0 ? 1U : 0U},
          blocks_{1U << offset_bits},
          psid_{psid} {}

    [[nodiscard]] constexpr bool has(std::uint16_t port) const noexcept {
        return is_anybodys(port) && (sharing_ == 1 || psid_at(port) == psid_);
    }
    /// Whether anybody has this port.
    [[nodiscard]] constexpr bool is_anybodys(std::uint16_t port) const noexcept {
        return sharing_ == 1 || port / (sharing_ * contiguous_) >= first_;
    }
    /// Of the customer who has this port; nobody has those below the first.
    [[nodiscard]] constexpr std::uint16_t psid_at(std::uint16_t port) const noexcept {
        return static_cast<std::uint16_t>(port % (sharing_ * contiguous_) / contiguous_);
    }
    /// How many there are.
    [[nodiscard]] constexpr std::uint32_t size() const noexcept { return sharing_ == 1 ? 65536 : (blocks_ - first_) * contiguous_; }
    /// The next higher one of a port of the set; after the highest the lowest.
    [[nodiscard]] constexpr std::uint16_t after(std::uint16_t port) const noexcept {
        if (sharing_ == 1 || port % contiguous_ + 1 < contiguous_) {
            return static_cast<std::uint16_t>(port + 1);
        }
        const std::uint32_t block = sharing_ * contiguous_, next = port / block + 1;
        return static_cast<std::uint16_t>((next < blocks_ ? next : first_) * block + contiguous_ * psid_);
    }
    /// The port in the same place of the set of the PSID below, for PSID 0 of the PSID above. The
    /// same port if nobody shares the address.
    [[nodiscard]] constexpr std::uint16_t elsewhere(std::uint16_t port) const noexcept {
        const std::uint32_t moved = psid_ > 0 ? port - contiguous_ : port + contiguous_;
        return sharing_ == 1 ? port : static_cast<std::uint16_t>(moved);
    }

private:
    std::uint32_t sharing_, contiguous_, first_, blocks_;  ///< R, M, lowest i, values of i with those of nobody
    std::uint16_t psid_;
};

}  // namespace gatemark::refdut
