#include "frame/recognizer.hpp"

#include <algorithm>
#include <vector>

namespace gatemark::frame {

namespace {

/// One bit for every bit of the head that is alike in all frames of the stream.
std::vector<std::byte> mask_of(const Stream& stream, std::size_t head_octets) {
    const Layout& layout = stream.expected().layout;
    std::vector<std::byte> mask(head_octets, std::byte{0xff});
    const auto vary = [&](std::size_t at, std::size_t octets) {
        std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(at), octets, std::byte{0});
    };
    if (stream.expected_vlan()) {
        mask[net::ethernet::header_octets] = std::byte{0x0f};  // priority and drop eligibility are no part of the VLAN's number
    }
    if (layout.family == net::Family::ipv4) {
        vary(layout.ip + net::ipv4::checksum, 2);
        if (!stream.identification_kept()) {
            vary(layout.ip + net::ipv4::identification, 2);
        }
    }
    const FrameForm& form = stream.expected();
    const auto vary_address = [&](std::size_t at, const AddressField& field) {
        for (const std::uint8_t octet : field.varying_octets()) {
            vary(at + octet, 1);
        }
    };
    if (stream.role() == Role::initiator) {
        vary(layout.source_address(), form.source.octets());
    } else {
        vary_address(layout.source_address(), form.source);
    }
    vary_address(layout.destination_address(), form.destination);
    vary(layout.udp, 4);  // both ports
    vary(layout.udp + net::udp::checksum, 2);
    vary(layout.payload + signature::index_offset, signature::octets - signature::index_offset);
    return mask;
}

}  // namespace

Recognizer::Recognizer(const Stream& stream)
    : stream_{&stream},
      layout_{stream.expected().layout},
      arrival_{.kind = ArrivalKind::ours,
               .family = layout_.family,
               .vlan_id = stream.expected_vlan(),
               .ip = layout_.ip,
               .udp = layout_.udp,
               .payload = layout_.payload},
      source_word_{stream.expected().source, layout_.source_address()},
      destination_word_{stream.expected().destination, layout_.destination_address()},
      source_{layout_.source_address()},
      destination_{layout_.destination_address()},
      octets_{layout_.end},
      head_octets_{layout_.payload + signature::octets},
      rest_octets_{octets_ - head_octets_},
      rest_{stream.expected().frame.data() + head_octets_},
      last_block_{head_octets_ - sizeof(Block)},
      block_count_{(head_octets_ - head_begin + sizeof(Block) - 1) / sizeof(Block)},
      source_is_chosen_{stream.role() == Role::initiator} {
    const std::vector<std::byte> mask = mask_of(stream, head_octets_);
    for (std::size_t i = 0; i < block_count_; ++i) {
        const std::size_t at = i == 2 ? last_block_ : head_begin + (i < 2 ? i : i - 1) * sizeof(Block);
        mask_[i] = load(mask.data() + at);
        template_[i] = load(stream.expected().frame.data() + at);
    }
    if (source_is_chosen_) {
        source_word_.fits = false;
        port_mask_ = swap_octets(std::uint32_t{0x0000'ffff});
    }
}

}  // namespace gatemark::frame
