#pragma once

#include "base/checksum.hpp"
#include "base/result.hpp"
#include "frame/address_rule.hpp"
#include "frame/host_set.hpp"
#include "net/address_mapping.hpp"

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace gatemark::frame {

/// An address in a frame header as a function of (value, network) of its host set, in the family of
/// that header.
///
/// Usually translation only moves each varying byte of a host's address to another position. A
/// frame's address is then a fixed base with up to three bytes written over it, and its share of a
/// checksum is known without reading memory back. Any other address has a rule. Explicit address
/// mappings are such a case (one mapping per host, or prefixes that split a byte): the
/// representation of every host is computed once, before the trial.
class AddressField {
public:
    AddressField() = default;

    /// `mapping` may be absent when `family` is the hosts' own. `where` names the field in errors.
    [[nodiscard]] static Result<AddressField> make(const HostSet& hosts, net::Family family, const net::AddressMapping* mapping,
                                                   const std::string& where);

    /// An address that a rule writes; it is zero here.
    [[nodiscard]] static AddressField of_rule(net::Family family, std::shared_ptr<const AddressRule> rule) {
        AddressField field;
        field.base_.family = family;
        field.rule_ = std::move(rule);
        return field;
    }

    /// The same address in all frames.
    [[nodiscard]] static AddressField constant(const net::Address& address) {
        AddressField field;
        field.base_ = address;
        return field;
    }

    /// An address that does not follow from a host but is chosen by a stateful gateway: zero here,
    /// never written.
    [[nodiscard]] static Result<AddressField> chosen_by_gateway(net::Family family) {
        AddressField field;
        field.base_.family = family;
        return field;
    }

    [[nodiscard]] net::Family family() const noexcept { return base_.family; }
    [[nodiscard]] std::size_t bytes() const noexcept { return net::address_bytes(base_.family); }
    /// The address with its varying bytes set to zero, as in a template.
    [[nodiscard]] const net::Address& base() const noexcept { return base_; }
    /// Whether `write` has anything to write.
    [[nodiscard]] bool varies() const noexcept { return rule_ != nullptr || has_value_ || has_network_; }

    /// Writes the varying bytes over a template's base address and returns their share of the
    /// checksum (the field starts at an even offset).
    Sum write(std::byte* field, std::uint16_t value, std::uint8_t network, Edge edge = {}) const noexcept {
        if (rule_ != nullptr) [[unlikely]] {
            return write_by_rule(field, value, network, edge);
        }
        Sum sum = 0;
        if (has_word_) {
            const std::uint16_t word = word_of(value, network);
            store_raw(field + high_, word);
            sum = word;
        } else if (has_value_) {
            const auto low = static_cast<std::uint8_t>(value & 0xff);
            const auto high = static_cast<std::uint8_t>((value >> 8) | (network_shares_high_ ? network : 0));
            field[low_] = static_cast<std::byte>(low);
            field[high_] = static_cast<std::byte>(high);
            sum += sum_of_byte(low, low_) + sum_of_byte(high, high_);
        }
        if (has_network_ && !network_shares_high_) {
            field[network_] = static_cast<std::byte>(network);
            sum += sum_of_byte(network, network_);
        }
        return sum;
    }

    /// The same, faster if the bytes of the value are side by side in two words of the checksum, as
    /// those of a host under a prefix of 64 bits are (RFC 6052 section 2.2). A function of its own,
    /// because one more case in `write` costs every other address seven instructions.
    Sum write_outside(std::byte* field, std::uint16_t value, std::uint8_t network, Edge edge) const noexcept {
        if (!is_odd_word_) [[unlikely]] {
            return write(field, value, network, edge);
        }
        const std::uint16_t word = word_of(value, network);
        store_raw(field + high_, word);
        return swap_bytes(word);  // each byte is in the other half of a word
    }

    /// Compares the address at `field` with the one that `write` gives, clears `same` if they
    /// differ, and returns the same share of the checksum as `write`.
    [[gnu::always_inline]] Sum compare(const std::byte* field, std::uint16_t value, std::uint8_t network, Edge edge,
                                       bool& same) const noexcept {
        if (!varies()) {  // often so for connections, and much cheaper
            same &= equal(field, base_.bytes.data());
            return 0;
        }
        return compare_varying(field, value, network, edge, same);
    }
    /// The offset at which `write` writes a value of two bytes, if that is all it ever writes and
    /// the two bytes are a word of the checksum.
    [[nodiscard]] std::optional<std::size_t> only_word() const noexcept {
        const bool only = has_word_ && rule_ == nullptr && !has_network_;
        return only ? std::optional<std::size_t>{high_} : std::nullopt;
    }
    /// Where `write` writes the two bytes of a value side by side, if that is all it ever writes.
    struct Pair {
        std::size_t at;
        bool is_odd;  ///< they are in two words of the checksum
    };
    [[nodiscard]] std::optional<Pair> only_pair() const noexcept {
        return is_one_pair_ && rule_ == nullptr ? std::optional{Pair{high_, is_odd_word_}} : std::nullopt;
    }
    /// Offsets of the bytes that `write` writes.
    [[nodiscard]] std::vector<std::uint8_t> varying_bytes() const;

    [[nodiscard]] net::Address at(std::uint16_t value, std::uint8_t network, Edge edge = {}) const noexcept {
        net::Address result = base_;
        write(result.bytes.data(), value, network, edge);
        return result;
    }

    /// Whether the address at `field` is one that any host of the set and any of its networks give,
    /// or that its rule may write.
    [[nodiscard]] bool contains(const std::byte* field) const noexcept;

    /// Whether the address at `field` is exactly the one that `write` gives.
    [[nodiscard]] bool matches(const std::byte* field, std::uint16_t value, std::uint8_t network, Edge edge = {}) const noexcept {
        bool same = true;
        compare(field, value, network, edge, same);
        return same;
    }

private:
    [[nodiscard]] bool equal(const std::byte* field, const std::byte* bytes) const noexcept {
        return base_.family == net::Family::ipv4 ? load_raw<std::uint32_t>(field) == load_raw<std::uint32_t>(bytes)
                                                 : ((load_raw<std::uint64_t>(field) ^ load_raw<std::uint64_t>(bytes)) |
                                                    (load_raw<std::uint64_t>(field + 8) ^ load_raw<std::uint64_t>(bytes + 8))) == 0;
    }
    /// Both bytes in the byte order of memory.
    [[nodiscard]] std::uint16_t word_of(std::uint16_t value, std::uint8_t network) const noexcept {
        return swap_bytes(static_cast<std::uint16_t>(value | (network_shares_high_ ? network << 8 : 0)));
    }
    /// Without an address in memory to compare with: what reads two bytes that were just written,
    /// together with those around them, waits until all are in the cache.
    Sum compare_varying(const std::byte* field, std::uint16_t value, std::uint8_t network, Edge edge, bool& same) const noexcept {
        if (is_one_pair_) {
            const std::uint16_t word = word_of(value, network);
            same &= equals_base(field) && load_raw<std::uint16_t>(field + high_) == word;
            return has_word_ ? word : swap_bytes(word);
        }
        net::Address expected = base_;
        std::byte* const bytes = expected.bytes.data();
        const Sum sum = write(bytes, value, network, edge);
        same &= equal(field, bytes);
        return sum;
    }
    /// Whether the bytes that do not vary are those of the template.
    [[nodiscard]] bool equals_base(const std::byte* field) const noexcept {
        const auto* const base = base_.bytes.data();
        if (base_.family == net::Family::ipv4) {
            return (load_raw<std::uint32_t>(field) & load_raw<std::uint32_t>(kept_.data())) == load_raw<std::uint32_t>(base);
        }
        return (((load_raw<std::uint64_t>(field) & load_raw<std::uint64_t>(kept_.data())) ^ load_raw<std::uint64_t>(base)) |
                ((load_raw<std::uint64_t>(field + 8) & load_raw<std::uint64_t>(kept_.data() + 8)) ^ load_raw<std::uint64_t>(base + 8))) ==
               0;
    }
    /// Out of line, so that the usual address pays nothing for it.
    [[gnu::noinline, gnu::cold]] Sum write_by_rule(std::byte* field, std::uint16_t value, std::uint8_t network, Edge edge) const noexcept {
        return rule_->write(field, {.host = value, .network = network, .edge = edge});
    }
    [[nodiscard]] bool find_positions(const HostSet& hosts, const net::AddressMapping* mapping);
    [[nodiscard]] bool reproduces(const HostSet& hosts, const net::AddressMapping* mapping) const;

    net::Address base_;
    std::uint8_t high_ = 0, low_ = 0, network_ = 0;
    bool has_value_ = false, has_network_ = false, network_shares_high_ = false;
    bool has_word_ = false;  ///< the two bytes of the value form one word of the checksum
    std::uint16_t networks_ = 1;
    std::uint16_t minimum_ = 0, maximum_ = 0;  ///< of the values
    /// All that is written are two bytes side by side; and these are in two words of the checksum.
    bool is_one_pair_ = false, is_odd_word_ = false;
    alignas(8) std::array<std::byte, 16> kept_{};  ///< a mask: the bytes that do not vary
    std::shared_ptr<const AddressRule> rule_;
};

}  // namespace gatemark::frame
