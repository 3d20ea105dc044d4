#include "frame/recognizer.hpp"

#include "base/for_each_cpu.hpp"
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

/// A register of the CPUs that have AVX2; others take two. No function passes one: with and without
/// AVX2 it would do so in different registers.
using Vector = std::uint64_t __attribute__((vector_size(32)));

}  // namespace

Recognizer::Recognizer(const Stream& stream)
    : stream_{&stream},
      arrival_{.kind = ArrivalKind::ours,
               .family = stream.expected().layout.family,
               .vlan_id = stream.expected_vlan(),
               .ip = stream.expected().layout.ip,
               .udp = stream.expected().layout.udp,
               .payload = stream.expected().layout.payload},
      burst_{stream, stream.expected()},
      is_ipv4_{arrival_.family == net::Family::ipv4},
      udp_{arrival_.udp},
      source_{stream.expected().layout.source_address()},
      destination_{stream.expected().layout.destination_address()},
      bytes_{stream.expected().layout.end},
      head_bytes_{arrival_.payload + signature::bytes},
      rest_bytes_{bytes_ - head_bytes_},
      rest_{stream.expected().frame.data() + head_bytes_},
      block_count_{(head_bytes_ + sizeof(Block) - 1) / sizeof(Block)},
      last_block_{head_bytes_ - sizeof(Block)},
      own_mac_{load_mac(stream.expected().frame.data() + net::ethernet::destination)},
      source_is_chosen_{stream.role() == Role::initiator},
      header_checksum_{arrival_.ip + net::ipv4::checksum},
      udp_checksum_mask_{stream.expects_no_checksum() ? 0U : 0xffffU} {
    const std::vector<std::byte> mask = mask_of(stream, head_bytes_);
    std::vector<std::byte> head(stream.expected().frame.begin(),
                                stream.expected().frame.begin() + static_cast<std::ptrdiff_t>(head_bytes_));
    head[net::ethernet::source] &= ~net::group_bit;
    for (std::size_t i = 0; i < block_count_; ++i) {
        const std::size_t at = i + 1 < block_count_ ? i * sizeof(Block) : last_block_;
        mask_[i] = load(mask.data() + at);
        template_[i] = load(head.data() + at);
    }
}

GATEMARK_FOR_EACH_CPU
std::uint32_t Recognizer::match_templates(std::span<const std::span<const std::byte>> frames) const noexcept {
    Vector first, first_mask, last, last_mask;
    std::memcpy(&first, &template_.front(), sizeof first);
    std::memcpy(&first_mask, &mask_.front(), sizeof first);
    std::memcpy(&last, &template_[block_count_ - 1], sizeof first);
    std::memcpy(&last_mask, &mask_[block_count_ - 1], sizeof first);
    std::uint32_t matches = 0;
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const std::byte* const frame = frames[i].data();
        if (frames[i].size() != bytes_) [[unlikely]] {
            continue;
        }
        Vector bytes, last_bytes;
        std::memcpy(&bytes, frame, sizeof bytes);
        std::memcpy(&last_bytes, frame + last_block_, sizeof bytes);
        Vector differences = ((bytes ^ first) & first_mask) | ((last_bytes ^ last) & last_mask);
        for (std::size_t block = 1; block + 1 < block_count_; ++block) {  // IPv6, or a VLAN tag
            Vector expected, mask;
            std::memcpy(&bytes, frame + block * sizeof bytes, sizeof bytes);
            std::memcpy(&expected, &template_[block], sizeof expected);
            std::memcpy(&mask, &mask_[block], sizeof mask);
            differences |= (bytes ^ expected) & mask;
        }
        const std::uint64_t source_mac = load_mac(frame + net::ethernet::source);
        const bool is_same = (differences[0] | differences[1] | differences[2] | differences[3]) == 0 && source_mac != 0 &&
                             source_mac != own_mac_ && (rest_bytes_ == 0 || std::memcmp(frame + head_bytes_, rest_, rest_bytes_) == 0);
        matches |= std::uint32_t{is_same} << i;
    }
    return matches;
}

bool Recognizer::matches_template(std::span<const std::byte> frame) const noexcept { return match_templates({&frame, 1}) != 0; }

GATEMARK_FOR_EACH_CPU
std::uint64_t Recognizer::take_all(std::span<const std::span<const std::byte>> frames, MatchedFrames& matched) const noexcept {
    std::uint64_t largest = 0;
    for (std::size_t k = 0; k < frames.size(); ++k) {
        const std::byte* const frame = frames[k].data();
        const std::uint64_t index_of_frame = index(frame);
        matched.frames[k] = frame;
        matched.indexes[k] = matched.numbers[k] = index_of_frame;
        largest = std::max(largest, index_of_frame);
    }
    matched.count = frames.size();
    return largest;
}

GATEMARK_FOR_EACH_CPU
pace::Ticks Recognizer::put_sent(const MatchedFrames& matched, std::span<pace::Ticks, MatchedFrames::frames_max> sent) noexcept {
    std::uint64_t earliest = ~std::uint64_t{0};
    for (std::size_t k = 0; k < matched.count; ++k) {
        const std::uint64_t time = swap_bytes(matched.fields.times[k]);
        sent[k] = {time};
        earliest = std::min(earliest, time);
    }
    return {earliest};
}

std::uint32_t Recognizer::find_wrong(MatchedFrames& matched) const noexcept {
    std::uint32_t wrong = take_values(matched);
    take_from_frames(matched);
    burst_.complete(matched.indexes, matched.count, matched.fields);
    wrong |= is_ipv4_ ? compare<net::Family::ipv4>(matched) : compare<net::Family::ipv6>(matched);
    if (stream_->has_host_macs()) [[unlikely]] {
        wrong |= compare_host_macs(matched);
    }
    return wrong;
}

std::uint32_t Recognizer::take_values(MatchedFrames& matched) const noexcept {
    if (stream_->draws() && burst_.words_suffice()) {
        burst_.draw(matched.numbers, matched.count, matched.fields);
        return 0;
    }
    if (stream_->role() != Role::stateless) {
        return take_connections(matched);
    }
    if (stream_->has_rule()) {
        return is_ipv4_ ? take_by_rule<net::Family::ipv4>(matched) : take_by_rule<net::Family::ipv6>(matched);
    }
    std::uint32_t wrong = 0;
    for (std::size_t k = 0; k < matched.count; ++k) {
        wrong |= take(matched, k, stream_->values(matched.numbers[k]));
    }
    return wrong;
}

std::uint32_t Recognizer::take_connections(MatchedFrames& matched) const noexcept {
    matched.connections = matched.numbers;
    stream_->put_connections(std::span{matched.connections}.first(matched.count));
    matched.tuples = matched.connections;
    stream_->connections().put_tuples(std::span{matched.tuples}.first(matched.count));
    burst_.take_tuples(matched.tuples, matched.count, matched.fields);
    std::uint32_t wrong = 0;
    if (!burst_.words_suffice()) [[unlikely]] {
        for (std::size_t k = 0; k < matched.count; ++k) {
            const enumerate::Tuple tuple = stream_->connections().space().tuple(matched.tuples[k]);
            wrong |= std::uint32_t{!compare_addresses(matched, k, stream_->values_of(matched.connections[k], tuple))} << k;
        }
    }
    return wrong;
}

template <net::Family family>
bool Recognizer::compare_addresses_by_rule(MatchedFrames& matched, std::size_t k, const FrameValues& values) const noexcept {
    const FrameTemplate& frame_template = stream_->expected();
    const bool from_edge = stream_->comes_from_edges();
    const CustomerEdges& edges = stream_->edges()->edges();
    const std::byte* const frame = matched.frames[k];
    const std::byte* const edge = frame + (from_edge ? source_ : destination_);
    bool same = true;
    Sum addresses = 0;
    if constexpr (family == net::Family::ipv4) {
        const std::uint32_t expected = swap_bytes(edges.ipv4_of(values.edge()));
        same = load_raw<std::uint32_t>(edge) == expected;
        addresses = expected;
    } else {
        alignas(16) std::array<std::byte, 16> expected;
        addresses = write_map_address(expected.data(), edges.address_of(values.edge()));
        same = ((load_raw<std::uint64_t>(edge) ^ load_raw<std::uint64_t>(expected.data())) |
                (load_raw<std::uint64_t>(edge + 8) ^ load_raw<std::uint64_t>(expected.data() + 8))) == 0;
    }
    addresses +=
        from_edge ? frame_template.destination.compare(frame + destination_, values.destination_host, values.network, values.edge(), same)
                  : frame_template.source.compare(frame + source_, values.source_host, 0, values.edge(), same);
    matched.fields.addresses[k] = fold(addresses);
    return same;
}

template <net::Family family>
std::uint32_t Recognizer::take_by_rule(MatchedFrames& matched) const noexcept {
    std::uint32_t wrong = 0;
    stream_->prepare_by_rule(std::span{matched.numbers}.first(matched.count), std::span{matched.tuples}.first(matched.count));
    for (std::size_t k = 0; k < matched.count; ++k) {
        const FrameValues values = stream_->values_by_rule(matched.numbers[k], matched.tuples[k]);
        burst_.take(k, values, matched.fields);
        wrong |= std::uint32_t{!compare_addresses_by_rule<family>(matched, k, values)} << k;
    }
    return wrong;
}

std::uint32_t Recognizer::take(MatchedFrames& matched, std::size_t k, const FrameValues& values) const noexcept {
    burst_.take(k, values, matched.fields);
    return burst_.words_suffice() ? 0 : std::uint32_t{!compare_addresses(matched, k, values)} << k;
}

void Recognizer::take_from_frames(MatchedFrames& matched) const noexcept {
    BurstFields& fields = matched.fields;
    const std::size_t count = matched.count, time = udp_ + net::udp::header_bytes + signature::timestamp_offset;
    for (std::size_t k = 0; k < count; ++k) {
        fields.times[k] = load_raw<std::uint64_t>(matched.frames[k] + time);
    }
    if (is_ipv4_ && !stream_->identification_kept()) {
        const std::size_t identification = arrival_.ip + net::ipv4::identification;
        for (std::size_t k = 0; k < count; ++k) {
            fields.identifications[k] = load_raw<std::uint16_t>(matched.frames[k] + identification);
        }
    }
    if (source_is_chosen_) {
        is_ipv4_ ? take_sources<net::Family::ipv4>(matched) : take_sources<net::Family::ipv6>(matched);
    }
}

template <net::Family family>
void Recognizer::take_sources(MatchedFrames& matched) const noexcept {
    BurstFields& fields = matched.fields;
    const std::size_t count = matched.count, address = source_, port = udp_ + net::udp::source_port;
    const std::uint32_t others = burst_.words_suffice() ? 0 : ~0U;
    for (std::size_t k = 0; k < count; ++k) {
        const std::byte* const frame = matched.frames[k];
        std::uint32_t sum = 0;
        if constexpr (family == net::Family::ipv4) {
            sum = sum_of_words(load_raw<std::uint32_t>(frame + address));
        } else {
            sum = fold(sum_of(std::span<const std::byte, 16>{frame + address, 16}));
        }
        fields.addresses[k] = (fields.addresses[k] & others) + sum;
        fields.ports[k] = (fields.ports[k] & 0xffff'0000) | load_raw<std::uint16_t>(frame + port);
    }
}

template <net::Family family>
std::uint32_t Recognizer::compare(const MatchedFrames& matched) const noexcept {
    const BurstFields& fields = matched.fields;
    const std::size_t source_word = burst_.source_word(), destination_word = burst_.destination_word();
    const std::uint32_t varying_words = burst_.varying_words();
    std::uint32_t wrong = 0;
    for (std::size_t k = 0; k < matched.count; ++k) {
        const std::byte* const frame = matched.frames[k];
        const std::uint32_t words = load_raw<std::uint16_t>(frame + source_word) |
                                    static_cast<std::uint32_t>(load_raw<std::uint16_t>(frame + destination_word)) << 16;
        std::uint32_t differences =
            (load_raw<std::uint32_t>(frame + udp_) ^ fields.ports[k]) | ((words & varying_words) ^ fields.words[k]) |
            ((load_raw<std::uint16_t>(frame + udp_ + net::udp::checksum) ^ fields.udp_checksums[k]) & udp_checksum_mask_);
        if constexpr (family == net::Family::ipv4) {
            differences |= load_raw<std::uint16_t>(frame + header_checksum_) ^ fields.header_checksums[k];
        }
        wrong |= std::uint32_t{differences != 0} << k;
    }
    return wrong;
}

std::uint32_t Recognizer::compare_host_macs(const MatchedFrames& matched) const noexcept {
    std::uint32_t wrong = 0;
    for (std::size_t k = 0; k < matched.count; ++k) {
        const std::uint64_t prepared = stream_->role() == Role::stateless ? matched.numbers[k] : matched.connections[k];
        const net::MacAddress mac = stream_->expected_destination_mac(stream_->values_of_prepared(prepared));
        const std::byte* const frame = matched.frames[k];
        const bool is_right = std::memcmp(frame + net::ethernet::destination, mac.data(), mac.size()) == 0 &&
                              std::memcmp(frame + net::ethernet::source, mac.data(), mac.size()) != 0;
        wrong |= std::uint32_t{!is_right} << k;
    }
    return wrong;
}

bool Recognizer::compare_addresses(MatchedFrames& matched, std::size_t k, const FrameValues& values) const noexcept {
    const FrameTemplate& expected = stream_->expected();
    const std::byte* const frame = matched.frames[k];
    bool same = true;
    const Sum source = source_is_chosen_ ? 0 : expected.source.compare(frame + source_, values.source_host, 0, values.edge(), same);
    const Sum destination =
        expected.destination.compare(frame + destination_, values.destination_host, values.network, values.edge(), same);
    matched.fields.addresses[k] = fold(source + destination);
    return same;
}

}  // namespace gatemark::frame
