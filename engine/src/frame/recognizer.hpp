#pragma once

#include "frame/arrival.hpp"
#include "frame/stream.hpp"

#include <array>
#include <cstring>

namespace gatemark::frame {

/// Tells at a glance whether a frame of a stream is, to the octet, what a correct gateway makes of it. It knows no reasons: whatever it
/// does not recognize goes to `classify` and `verify`, which do, and which are the oracle of its tests. It may miss a right frame (padded,
/// or with a checksum that is right in another form), never take a wrong one.
///
/// Most of a frame is alike in all frames of a stream, so one comparison with a template under a mask replaces a check of each field, and
/// since the rest is then known, both checksums follow from what varies: the packet is not summed. A received IPv4 frame of 64 octets costs
/// 359 instructions so, in place of 850 (bench/instructions.py, receive_ipv4: all of the receiver's poll).
class Recognizer {
public:
    /// `stream` outlives this.
    explicit Recognizer(const Stream& stream);

    /// Whether everything but what varies is right: headers, trial, stream and the rest of the data. Length and offsets are right then.
    [[nodiscard]] bool has_right_template(std::span<const std::byte> frame) const noexcept {
        if (frame.size() != octets_) {
            return false;
        }
        const std::byte* const head = frame.data() + head_begin;
        Block differences = (load(head) ^ template_[0]) & mask_[0];
        differences |= (load(head + sizeof(Block)) ^ template_[1]) & mask_[1];
        differences |= (load(frame.data() + last_block_) ^ template_[2]) & mask_[2];
        for (std::size_t i = 3; i < block_count_; ++i) {  // IPv6, or a VLAN tag
            differences |= (load(head + (i - 1) * sizeof(Block)) ^ template_[i]) & mask_[i];
        }
        return (differences[0] | differences[1]) == 0 &&
               (rest_octets_ == 0 || std::memcmp(frame.data() + head_octets_, rest_, rest_octets_) == 0);
    }

    /// The number that a frame with the right template claims to have in its direction.
    [[nodiscard]] std::uint64_t index(const std::byte* frame) const noexcept { return signature::index(frame + layout_.payload); }
    [[nodiscard]] std::uint64_t timestamp(const std::byte* frame) const noexcept { return signature::timestamp(frame + layout_.payload); }

    /// Whether what varies is right in a frame with the right template: addresses, ports and both checksums. The source of an Initiator's
    /// frame is the gateway's choice; it only has to fit to the checksums.
    [[nodiscard]] bool has_right_values(const std::byte* frame, const FrameValues& values) const noexcept {
        const FrameForm& form = stream_->expected();
        bool right = true;
        const Sum addresses =
            source_word_.fits && destination_word_.fits
                ? source_word_.compare(frame, values.source_host, right) + destination_word_.compare(frame, values.destination_host, right)
                : compare_addresses(frame, values, right);
        const auto ports = load_raw<std::uint32_t>(frame + layout_.udp);
        const std::uint32_t expected_ports = swap_octets((static_cast<std::uint32_t>(values.source_port) << 16) | values.destination_port);
        right &= ((ports ^ expected_ports) & port_mask_) == 0;
        if (layout_.family == net::Family::ipv4) {
            // Not zero only where a translator chooses it.
            const auto identification = load_raw<std::uint16_t>(frame + layout_.ip + net::ipv4::identification);
            right &= load_raw<std::uint16_t>(frame + layout_.ip + net::ipv4::checksum) ==
                     header_checksum(form.header_sum + addresses + identification);
        }
        const Sum mark = signature::sum_of_mark(frame + layout_.payload);
        return right &
               (load_raw<std::uint16_t>(frame + layout_.udp + net::udp::checksum) == udp_checksum(form.udp_sum + addresses + ports + mark));
    }

    [[nodiscard]] const Stream& stream() const noexcept { return *stream_; }
    /// What `classify` says of a frame with the right template.
    [[nodiscard]] const Arrival& arrival() const noexcept { return arrival_; }

private:
    /// 16 octets, in one register on every processor that DPDK runs on. Registers of 32, chosen at start-up, would save one of three
    /// comparisons of the smallest frame: 4 of 359 instructions.
    using Block = std::uint64_t __attribute__((vector_size(16)));
    static constexpr std::size_t head_begin = net::ethernet::type;  ///< link-layer addresses belong to the hop
    /// Headers and signature of the longest form: Ethernet, VLAN tag, IPv6, UDP.
    static constexpr std::size_t head_octets_max = net::ethernet::header_octets + net::ethernet::vlan_tag_octets +
                                                   net::ipv6::header_octets + net::udp::header_octets + signature::octets;
    static constexpr std::size_t blocks_max = (head_octets_max - head_begin + sizeof(Block) - 1) / sizeof(Block);

    [[nodiscard]] static Block load(const std::byte* from) noexcept {
        Block block;
        std::memcpy(&block, from, sizeof block);
        return block;
    }
    /// An address that varies in one word or not at all, as most do: a quarter of the instructions of AddressField::compare.
    struct AddressWord {
        bool fits = false;
        std::uint16_t mask = 0;  ///< zero: the address does not vary
        std::size_t offset = 0;

        /// `field` stands at `at`.
        AddressWord(const AddressField& field, std::size_t at)
            : fits{field.only_word().has_value() || !field.varies()},
              mask{field.only_word() ? std::uint16_t{0xffff} : std::uint16_t{0}},
              offset{at + field.only_word().value_or(0)} {}
        Sum compare(const std::byte* frame, std::uint16_t value, bool& same) const noexcept {
            const auto expected = static_cast<std::uint16_t>(swap_octets(value) & mask);
            same &= (load_raw<std::uint16_t>(frame + offset) & mask) == expected;
            return expected;
        }
    };

    [[nodiscard]] Sum compare_addresses(const std::byte* frame, const FrameValues& values, bool& same) const noexcept {
        const FrameForm& form = stream_->expected();
        const Sum source =
            source_is_chosen_ ? sum_of_address(frame + source_) : form.source.compare(frame + source_, values.source_host, 0, same);
        return source + form.destination.compare(frame + destination_, values.destination_host, values.network, same);
    }
    [[nodiscard]] Sum sum_of_address(const std::byte* field) const noexcept {
        return layout_.family == net::Family::ipv4 ? load_raw<std::uint32_t>(field) : sum_of(std::span{field, 16});
    }

    const Stream* stream_;
    Layout layout_;
    Arrival arrival_;
    AddressWord source_word_, destination_word_;
    std::size_t source_, destination_;       ///< offsets of the addresses
    std::size_t octets_;                     ///< of the whole frame, without FCS
    std::size_t head_octets_;                ///< up to the end of the signature
    std::size_t rest_octets_;                ///< behind it
    const std::byte* rest_;                  ///< in the stream's template
    std::size_t last_block_;                 ///< offset of block 2, which ends with the head and may overlap the one before
    std::size_t block_count_;                ///< from the first octet on: blocks 0, 1, 3, 4 and so on, then block 2
    std::uint32_t port_mask_ = 0xffff'ffff;  ///< as ports lie in memory
    bool source_is_chosen_ = false;          ///< by the gateway: address and port
    std::array<Block, blocks_max> template_{}, mask_{};
};

}  // namespace gatemark::frame
