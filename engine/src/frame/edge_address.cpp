#include "frame/edge_address.hpp"

#include <algorithm>

namespace gatemark::frame {

namespace {

class MapAddress final : public AddressRule {
public:
    explicit MapAddress(std::shared_ptr<const CustomerEdges> edges) : edges_{std::move(edges)} {}

    Sum write(std::byte* field, const AddressValues& values) const noexcept override {
        return write_map_address(field, edges_->address_of(values.edge));
    }
    [[nodiscard]] bool contains(const std::byte* field) const noexcept override { return edges_->contains(net::load_wide(field)); }

private:
    std::shared_ptr<const CustomerEdges> edges_;
};

class SharedAddress final : public AddressRule {
public:
    explicit SharedAddress(std::shared_ptr<const CustomerEdges> edges) : edges_{std::move(edges)} {}

    Sum write(std::byte* field, const AddressValues& values) const noexcept override {
        return write_shared_address(field, edges_->ipv4_of(values.edge, values.host));
    }
    [[nodiscard]] bool contains(const std::byte* field) const noexcept override {
        return edges_->contains_ipv4(load_big_endian<std::uint32_t>(field));
    }

private:
    std::shared_ptr<const CustomerEdges> edges_;
};

/// The same hosts under the prefix of each domain.
class OutsideAddress final : public AddressRule {
public:
    explicit OutsideAddress(std::vector<AddressField> by_domain) : by_domain_{std::move(by_domain)} {}

    Sum write(std::byte* field, const AddressValues& values) const noexcept override {
        const AddressField& address = by_domain_[values.edge.domain()];
        std::copy_n(address.base().bytes.begin(), address.bytes(), field);
        return sum_of(std::span{address.base().bytes}) + address.write(field, values.host, values.network);
    }
    [[nodiscard]] bool contains(const std::byte* field) const noexcept override {
        return std::ranges::any_of(by_domain_, [&](const AddressField& address) { return address.contains(field); });
    }

private:
    std::vector<AddressField> by_domain_;
};

}  // namespace

AddressField edge_address(const std::shared_ptr<const CustomerEdges>& edges, net::Family family) {
    return family == net::Family::ipv6 ? AddressField::of_rule(family, std::make_shared<const MapAddress>(edges))
                                       : AddressField::of_rule(family, std::make_shared<const SharedAddress>(edges));
}

Result<AddressField> outside_address(const std::shared_ptr<const CustomerEdges>& edges, const HostSet& hosts, const std::string& where) {
    std::vector<AddressField> by_domain;
    for (const CustomerEdges::Members& members : edges->domains()) {
        const auto mapping = net::AddressMapping::make(members.dmr, {});
        if (const Error* error = error_of(mapping)) {
            return *error;
        }
        auto field = AddressField::make(hosts, net::Family::ipv6, &std::get<net::AddressMapping>(mapping), where);
        if (const Error* error = error_of(field)) {
            return *error;
        }
        by_domain.push_back(std::get<AddressField>(std::move(field)));
    }
    if (std::ranges::all_of(edges->domains(), [&](const auto& members) { return members.dmr == edges->domains()[0].dmr; })) {
        return by_domain[0];
    }
    return AddressField::of_rule(net::Family::ipv6, std::make_shared<const OutsideAddress>(std::move(by_domain)));
}

}  // namespace gatemark::frame
