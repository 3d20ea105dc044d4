#pragma once

#include "base/bytes.hpp"
#include "base/enum_set.hpp"
#include "base/random.hpp"
#include "net/address.hpp"
#include "net/headers.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gatemark::frame {

/// Traffic class (RFC 2474; the type of service of IPv4) and flow label (RFC 6437; none in IPv4) of
/// a frame.
struct Mark {
    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;

    /// The first word of an IPv6 header.
    [[nodiscard]] constexpr std::uint32_t ipv6_word() const noexcept {
        return std::uint32_t{6} << 28 | std::uint32_t{traffic_class} << 20 | flow_label;
    }
    friend bool operator==(const Mark&, const Mark&) = default;
};

/// Writes the mark into an IP header, whose version is then complete.
inline void write_mark(std::byte* ip, net::Family family, const Mark& mark) noexcept {
    if (family == net::Family::ipv4) {
        ip[net::ipv4::traffic_class] = static_cast<std::byte>(mark.traffic_class);
    } else {
        store_big_endian(ip, mark.ipv6_word());
    }
}

/// The mark in an IP header.
[[nodiscard]] inline Mark mark_of(const std::byte* ip, net::Family family) noexcept {
    const auto word = load_big_endian<std::uint32_t>(ip);
    return family == net::Family::ipv4
               ? Mark{.traffic_class = static_cast<std::uint8_t>(word >> 16), .flow_label = 0}
               : Mark{.traffic_class = static_cast<std::uint8_t>(word >> 20), .flow_label = word & net::ipv6::flow_label_max};
}

/// What is noticed of a correct frame: what a gateway has written that it may write. Each has a
/// counter.
enum class Remark : std::uint8_t {
    zero_checksum,           ///< the zero checksum that its translator is known for
    congestion_experienced,  ///< marked by the gateway (RFC 3168 section 5)
    congestion_outside,      ///< marked so in its outer header
    flow_label_set,          ///< a router has given it a flow label (RFC 6437 section 3)
    with_trailer,            ///< octets behind the packet
};
using Remarks = EnumSet<Remark>;

/// The marks of a stream as requested.
struct MarkingRequest {
    std::vector<std::uint8_t> traffic_classes{0};  ///< at least one; each flow has one of them
    std::uint32_t flow_label = 0;                  ///< of 20 bits
    bool labels_flows = false;                     ///< each flow has a label of its own in its place, never 0
};

/// The mark of each frame of a stream: a function of its flow, as RFC 6437 section 3 asks of a
/// source.
class Marking {
public:
    Marking() = default;
    Marking(MarkingRequest request, std::uint64_t key) noexcept
        : request_{std::move(request)}, key_{key}, varies_{request_.labels_flows || request_.traffic_classes.size() > 1} {}

    /// Whether frames have different marks. Else each has the `constant` one.
    [[nodiscard]] bool varies() const noexcept { return varies_; }
    [[nodiscard]] Mark constant() const noexcept { return {request_.traffic_classes.front(), request_.flow_label}; }
    /// `flow` are bits that tell flows apart.
    [[nodiscard]] Mark of(std::uint64_t flow) const noexcept {
        const std::uint64_t bits = mix_bits(flow ^ key_);
        const auto classes = static_cast<std::uint32_t>(request_.traffic_classes.size());
        return {
            request_.traffic_classes[scale_to(static_cast<std::uint32_t>(bits), classes)],
            request_.labels_flows ? 1 + scale_to(static_cast<std::uint32_t>(bits >> 32), net::ipv6::flow_label_max) : request_.flow_label};
    }

private:
    MarkingRequest request_;
    std::uint64_t key_ = 0;
    bool varies_ = false;
};

}  // namespace gatemark::frame
