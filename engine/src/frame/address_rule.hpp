#pragma once

#include "base/checksum.hpp"
#include "frame/customer_edges.hpp"

namespace gatemark::frame {

/// What an address of a frame follows from.
struct AddressValues {
    std::uint16_t host = 0;
    std::uint8_t network = 0;
    Edge edge{};
};

/// An address that is more than a constant with a few bytes written over it. Each kind of gateway
/// that has such addresses brings a rule, and nothing above AddressField learns of it.
class AddressRule {
public:
    AddressRule() = default;
    AddressRule(const AddressRule&) = delete;
    AddressRule& operator=(const AddressRule&) = delete;
    virtual ~AddressRule() = default;

    /// Writes all bytes of the address, and returns their share of a checksum.
    virtual Sum write(std::byte* field, const AddressValues& values) const noexcept = 0;
    /// Whether any values give the address at `field`.
    [[nodiscard]] virtual bool contains(const std::byte* field) const noexcept = 0;
};

}  // namespace gatemark::frame
