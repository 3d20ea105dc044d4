#include "frame/address_field.hpp"

#include <algorithm>

namespace gatemark::frame {

namespace {

std::optional<net::Address> represent(const net::Address& host, net::Family family, const net::AddressMapping* mapping) {
    if (host.family == family) {
        return host;
    }
    return mapping == nullptr ? std::nullopt : mapping->to(family, host);
}

/// The only byte in which two addresses differ; none if they differ in no byte or in several.
std::optional<std::uint8_t> only_difference(const net::Address& a, const net::Address& b) {
    std::optional<std::uint8_t> difference;
    for (std::size_t i = 0; i < a.bytes.size(); ++i) {
        if (a.bytes[i] != b.bytes[i]) {
            if (difference) {
                return std::nullopt;
            }
            difference = static_cast<std::uint8_t>(i);
        }
    }
    return difference;
}

/// The representations of all hosts of one network.
class HostTable final : public AddressRule {
public:
    HostTable(std::uint16_t minimum, std::vector<net::Address> addresses) : minimum_{minimum}, addresses_{std::move(addresses)} {}

    Sum write(std::byte* field, const AddressValues& values) const noexcept override {
        const net::Address& address = addresses_[static_cast<std::size_t>(values.host - minimum_)];
        const std::size_t bytes = net::address_bytes(address.family);
        std::memcpy(field, address.bytes.data(), bytes);
        return sum_of(std::span{address.bytes}.first(bytes));
    }
    [[nodiscard]] bool contains(const std::byte* field) const noexcept override {
        return std::ranges::any_of(addresses_, [&](const net::Address& address) {
            return std::memcmp(address.bytes.data(), field, net::address_bytes(address.family)) == 0;
        });
    }

private:
    std::uint16_t minimum_;
    std::vector<net::Address> addresses_;
};

Error no_representation(const net::Address& host, net::Family family, const std::string& where) {
    const char* const name = family == net::Family::ipv4 ? "IPv4" : "IPv6";
    return {"host " + net::to_text(host) + " has no " + name + " representation", where,
            "choose hosts inside the translation prefix or an explicit address mapping, or add one (RFC 6052, RFC 7757)"};
}

}  // namespace

Result<AddressField> AddressField::make(const HostSet& hosts, net::Family family, const net::AddressMapping* mapping,
                                        const std::string& where) {
    for (const std::uint16_t value : {hosts.part.minimum, hosts.part.maximum}) {
        for (const std::uint8_t network : {std::uint8_t{0}, static_cast<std::uint8_t>(hosts.networks - 1)}) {
            const net::Address host = hosts.host(value, network);
            if (!represent(host, family, mapping)) {
                return no_representation(host, family, where);
            }
        }
    }
    AddressField field;
    field.networks_ = hosts.networks;
    field.base_ = *represent(hosts.host(hosts.part.minimum, 0), family, mapping);
    field.minimum_ = hosts.part.minimum;
    field.maximum_ = hosts.part.maximum;
    if (field.find_positions(hosts, mapping) && field.reproduces(hosts, mapping)) {
        return field;
    }
    if (hosts.many_networks()) {
        return Error{"the explicit address mappings treat the destination networks differently", where,
                     "map all networks with one prefix, or set destination_networks = 1"};
    }
    std::vector<net::Address> addresses;
    addresses.reserve(hosts.part.count());
    for (std::uint32_t i = 0; i < hosts.part.count(); ++i) {
        const net::Address host = hosts.host(static_cast<std::uint16_t>(hosts.part.minimum + i), 0);
        const auto address = represent(host, family, mapping);
        if (!address) {
            return no_representation(host, family, where);
        }
        addresses.push_back(*address);
    }
    return of_rule(family, std::make_shared<const HostTable>(hosts.part.minimum, std::move(addresses)));
}

bool AddressField::contains(const std::byte* field) const noexcept {
    if (rule_ != nullptr) {
        return rule_->contains(field);
    }
    const auto byte = [&](std::uint8_t at) { return std::to_integer<unsigned>(field[at]); };
    const unsigned network = has_network_ ? byte(network_) : 0;
    unsigned value = minimum_;
    if (has_value_) {  // the upper byte of the value is zero where it shares its place with the network
        value = (network_shares_high_ ? 0U : byte(high_) << 8) | byte(low_);
    }
    return network < networks_ && value >= minimum_ && value <= maximum_ &&
           matches(field, static_cast<std::uint16_t>(value), static_cast<std::uint8_t>(network));
}

std::vector<std::uint8_t> AddressField::varying_bytes() const {
    std::vector<std::uint8_t> places;
    if (rule_ != nullptr) {
        for (std::size_t i = 0; i < bytes(); ++i) {
            places.push_back(static_cast<std::uint8_t>(i));
        }
        return places;
    }
    if (has_value_) {
        places = {high_, low_};
    }
    if (has_network_) {
        places.push_back(network_);
    }
    return places;
}

/// Finds the position of each varying byte of the hosts in the represented address, by changing one
/// byte at a time.
bool AddressField::find_positions(const HostSet& hosts, const net::AddressMapping* mapping) {
    const net::Family family = base_.family;
    const auto position_of = [&](std::uint16_t value_a, std::uint16_t value_b, std::uint8_t network_b) -> std::optional<std::uint8_t> {
        const auto a = represent(hosts.host(value_a, 0), family, mapping);
        const auto b = represent(hosts.host(value_b, network_b), family, mapping);
        return a && b ? only_difference(*a, *b) : std::nullopt;
    };
    if (hosts.varies()) {
        const auto low = position_of(hosts.part.minimum, hosts.part.minimum ^ 0x0001, 0);
        const auto high = position_of(hosts.part.minimum, hosts.part.minimum ^ 0x0100, 0);
        if (!low || !high) {
            return false;
        }
        low_ = *low;
        high_ = *high;
        has_value_ = true;
        has_word_ = high_ % 2 == 0 && low_ == high_ + 1;
    }
    if (hosts.many_networks()) {
        const auto network = position_of(hosts.part.minimum, hosts.part.minimum, 1);
        if (!network) {
            return false;
        }
        network_ = *network;
        has_network_ = true;
        network_shares_high_ = has_value_ && network_ == high_;
    }
    is_one_pair_ = has_value_ && low_ == high_ + 1 && (!has_network_ || network_shares_high_);
    is_odd_word_ = is_one_pair_ && high_ % 2 != 0;
    kept_.fill(std::byte{0xff});
    for (const std::uint8_t byte : varying_bytes()) {
        kept_[byte] = std::byte{0};
    }
    if (has_value_) {
        base_.bytes[low_] = base_.bytes[high_] = std::byte{0};
    }
    if (has_network_) {
        base_.bytes[network_] = std::byte{0};
    }
    return true;
}

/// Compares the fast computation with the slow, obvious one, for every host. RFC 6052 and routers
/// treat all networks alike, so a few networks represent all of them; explicit address mappings may
/// single out any network.
bool AddressField::reproduces(const HostSet& hosts, const net::AddressMapping* mapping) const {
    const bool any_may_differ = mapping != nullptr && mapping->has_explicit_mappings() && hosts.address.family != base_.family;
    const unsigned networks = hosts.networks, step = any_may_differ ? 1 : 85;  // 0, 85, 170, 255
    for (std::uint32_t i = 0; i < hosts.part.count(); ++i) {
        const auto value = static_cast<std::uint16_t>(hosts.part.minimum + i);
        for (unsigned network = 0; network < networks; network += step) {
            const auto used = static_cast<std::uint8_t>(network);
            if (represent(hosts.host(value, used), base_.family, mapping) != at(value, used)) {
                return false;
            }
        }
    }
    return true;
}

}  // namespace gatemark::frame
