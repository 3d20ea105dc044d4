#include "frame/recognizer.hpp"

#include "frame/edge_address.hpp"

#include <algorithm>
#include <vector>

namespace gatemark::frame {

namespace {

/// One bit for every bit of the head that is the same in all frames of the stream.
std::vector<std::byte> mask_of(const Stream& stream, std::size_t head_bytes) {
    const Layout& layout = stream.expected().layout;
    std::vector<std::byte> mask(head_bytes, std::byte{0xff});
    const auto vary = [&](std::size_t at, std::size_t bytes) {
        std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(at), bytes, std::byte{0});
    };
    if (stream.has_host_macs()) {
        vary(net::ethernet::destination, net::mac_bytes);  // that of each frame's host, which is compared apart
    }
    vary(net::ethernet::source, net::mac_bytes);  // any host's but ours, which is compared apart
    mask[net::ethernet::source] = net::group_bit;
    if (stream.expected_vlan()) {
        mask[net::ethernet::header_bytes] = std::byte{0x0f};  // priority and drop eligibility are no part of the VLAN's number
    }
    if (layout.family == net::Family::ipv4) {
        vary(layout.ip + net::ipv4::checksum, 2);
        if (!stream.identification_kept()) {
            vary(layout.ip + net::ipv4::identification, 2);
        }
    }
    const FrameTemplate& frame_template = stream.expected();
    const auto vary_address = [&](std::size_t at, const AddressField& field) {
        for (const std::uint8_t byte : field.varying_bytes()) {
            vary(at + byte, 1);
        }
    };
    if (stream.role() == Role::initiator) {
        vary(layout.source_address(), frame_template.source.bytes());
    } else {
        vary_address(layout.source_address(), frame_template.source);
    }
    vary_address(layout.destination_address(), frame_template.destination);
    vary(layout.udp, 4);                  // both ports
    if (!stream.expects_no_checksum()) {  // else it is zero in all frames, as in the template
        vary(layout.udp + net::udp::checksum, 2);
    }
    vary(layout.payload + signature::index_offset, signature::bytes - signature::index_offset);
    return mask;
}

bool varies_in_one_word(const AddressField& field) { return field.only_word().has_value() || !field.varies(); }

}  // namespace

Recognizer::Recognizer(const Stream& stream)
    : stream_{&stream},
      arrival_{.kind = ArrivalKind::ours,
               .family = stream.expected().layout.family,
               .vlan_id = stream.expected_vlan(),
               .ip = stream.expected().layout.ip,
               .udp = stream.expected().layout.udp,
               .payload = stream.expected().layout.payload},
      is_ipv4_{arrival_.family == net::Family::ipv4},
      hosts_are_words_{stream.role() != Role::initiator && varies_in_one_word(stream.expected().source) &&
                       varies_in_one_word(stream.expected().destination)},
      udp_{arrival_.udp},
      header_sum_{stream.expected().header_sum},
      udp_sum_{stream.expected().udp_sum},
      source_{stream.expected().layout.source_address()},
      destination_{stream.expected().layout.destination_address()},
      source_word_{source_ + stream.expected().source.only_word().value_or(0)},
      destination_word_{destination_ + stream.expected().destination.only_word().value_or(0)},
      host_mask_{(stream.expected().source.only_word() ? 0x0000'ffffU : 0U) |
                 (stream.expected().destination.only_word() ? 0xffff'0000U : 0U)},
      bytes_{stream.expected().layout.end},
      head_bytes_{arrival_.payload + signature::bytes},
      rest_bytes_{bytes_ - head_bytes_},
      rest_{stream.expected().frame.data() + head_bytes_},
      last_block_{head_bytes_ - sizeof(Block)},
      block_count_{(head_bytes_ + sizeof(Block) - 1) / sizeof(Block)},
      own_mac_{load_mac(stream.expected().frame.data() + net::ethernet::destination)},
      source_is_chosen_{stream.role() == Role::initiator} {
    const std::vector<std::byte> mask = mask_of(stream, head_bytes_);
    std::vector<std::byte> head(stream.expected().frame.begin(),
                                stream.expected().frame.begin() + static_cast<std::ptrdiff_t>(head_bytes_));
    head[net::ethernet::source] &= ~net::group_bit;
    for (std::size_t i = 0; i < block_count_; ++i) {
        const std::size_t at = i == 3 ? last_block_ : (i < 3 ? i : i - 1) * sizeof(Block);
        mask_[i] = load(mask.data() + at);
        template_[i] = load(head.data() + at);
    }
    if (source_is_chosen_) {
        port_mask_ = swap_bytes(std::uint32_t{0x0000'ffff});
    }
}

bool Recognizer::matches_by_rule(const std::byte* frame, std::uint64_t j, std::uint64_t tuple) const noexcept {
    const FrameValues values = stream_->values_by_rule(j, tuple);
    const FrameTemplate& frame_template = stream_->expected();
    const bool from_edge = stream_->comes_from_edges();
    const CustomerEdges& edges = stream_->edges()->edges();
    alignas(16) std::array<std::byte, 16> expected;
    const std::byte* const edge = frame + (from_edge ? source_ : destination_);
    bool same = true;
    Sum addresses = 0;
    if (is_ipv4_) {
        addresses = write_shared_address(expected.data(), edges.ipv4_of(values.edge()));
        same = load_raw<std::uint32_t>(edge) == load_raw<std::uint32_t>(expected.data());
    } else {
        addresses = write_map_address(expected.data(), edges.address_of(values.edge()));
        same = load_raw<std::uint64_t>(edge) == load_raw<std::uint64_t>(expected.data()) &&
               load_raw<std::uint64_t>(edge + 8) == load_raw<std::uint64_t>(expected.data() + 8);
    }
    addresses +=
        from_edge ? frame_template.destination.compare(frame + destination_, values.destination_host, values.network, values.edge(), same)
                  : frame_template.source.compare(frame + source_, values.source_host, 0, values.edge(), same);
    return matches_ports_and_checksums(frame, values, addresses, same ? 0 : 1);
}

}  // namespace gatemark::frame
