#include "frame/subscriber_hosts.hpp"

#include <memory>
#include <utility>

namespace gatemark::frame {

namespace {

/// What a value says of one of the two that it counts: `minimum` + `value` / `divisor` % `count`.
class PartOfValue final : public AddressRule {
public:
    PartOfValue(AddressField field, std::uint32_t divisor, const ValueRange& part)
        : field_{std::move(field)}, divisor_{divisor}, minimum_{part.minimum}, count_{part.count()} {}

    Sum write(std::byte* field, const AddressValues& values) const noexcept override {
        std::memcpy(field, field_.base().bytes.data(), field_.bytes());
        field_.write(field, static_cast<std::uint16_t>(minimum_ + values.host / divisor_ % count_), 0);
        return sum_of(std::span<const std::byte>{field, field_.bytes()});
    }
    [[nodiscard]] bool contains(const std::byte* field) const noexcept override { return field_.contains(field); }

private:
    AddressField field_;
    std::uint32_t divisor_, minimum_, count_;
};

}  // namespace

Result<AddressField> SubscriberHosts::subscriber_field(const std::string& where) const {
    auto field = AddressField::make(subscribers_, subscribers_.address.family, nullptr, where);
    if (error_of(field) != nullptr || hosts_.part.count() == 1 || !subscribers_.varies()) {
        return field;
    }
    // Values begin at a whole multiple of the hosts, so a quotient is the subscriber's own value.
    const ValueRange part{.mode = ValueMode::pseudorandom, .minimum = 0, .maximum = subscribers_.part.maximum};
    return AddressField::of_rule(subscribers_.address.family,
                                 std::make_shared<const PartOfValue>(std::get<AddressField>(std::move(field)), hosts_.part.count(), part));
}

Result<AddressField> SubscriberHosts::host_field(const std::string& where) const {
    if (hosts_.part.count() == 1) {
        return AddressField::constant(hosts_.host(hosts_.part.minimum, 0));
    }
    auto field = AddressField::make(hosts_, hosts_.address.family, nullptr, where);
    if (error_of(field) != nullptr) {
        return field;
    }
    return AddressField::of_rule(hosts_.address.family,
                                 std::make_shared<const PartOfValue>(std::get<AddressField>(std::move(field)), 1, hosts_.part));
}

}  // namespace gatemark::frame
