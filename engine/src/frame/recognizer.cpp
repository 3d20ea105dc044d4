#include "frame/recognizer.hpp"

#include "base/for_each_cpu.hpp"
#include "frame/edge_address.hpp"
#include "frame/header_checks.hpp"

#include <algorithm>
#include <vector>

namespace gatemark::frame {

namespace {

/// Of the outer header: what its writer may choose (flow label, hop limit if none is due, of IPv4
/// also identification and DF), what follows from that, and addresses that differ from frame to
/// frame.
void vary_outer(const Stream& stream, std::vector<std::byte>& mask) {
    const FrameTemplate& due = stream.expected();
    const Layout& layout = due.layout;
    const auto vary = [&](std::size_t at, std::size_t bytes) {
        std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(at), bytes, std::byte{0});
    };
    const bool is_ipv4 = layout.outer_family() == net::Family::ipv4;
    if (is_ipv4) {
        vary(layout.outer + net::ipv4::identification, 2);
        mask[layout.outer + net::ipv4::fragment] = std::byte{0xbf};
        vary(layout.outer + net::ipv4::checksum, 2);  // compared apart
    } else {
        vary(layout.outer + 1, 3);
        mask[layout.outer + 1] = std::byte{0xf0};
    }
    if (stream.marks_vary()) {  // compared apart
        is_ipv4 ? vary(layout.outer + net::ipv4::traffic_class, 1) : vary(layout.outer + 1, 1);
        mask[layout.outer] = is_ipv4 ? std::byte{0xff} : std::byte{0xf0};
    }
    if (!stream.expected_tunnel_hop_limit()) {
        vary(layout.outer + (is_ipv4 ? net::ipv4::time_to_live : net::ipv6::hop_limit), 1);
    }
    for (const std::uint8_t byte : due.outer_source.varying_bytes()) {
        vary(layout.outer_source_address() + byte, 1);
    }
    for (const std::uint8_t byte : due.outer_destination.varying_bytes()) {
        vary(layout.outer_destination_address() + byte, 1);
    }
}

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
    if (stream.marks_vary() && layout.family == net::Family::ipv4) {  // compared apart
        vary(layout.ip + net::ipv4::traffic_class, 1);
    } else if (stream.marks_vary()) {
        vary(layout.ip, sizeof(std::uint32_t));
        mask[layout.ip] = std::byte{0xf0};  // the version
    }
    if (layout.family == net::Family::ipv4) {
        vary(layout.ip + net::ipv4::checksum, 2);
        if (!stream.identification_kept()) {
            vary(layout.ip + net::ipv4::identification, 2);
        }
    }
    if (layout.in_tunnel()) {
        vary_outer(stream, mask);
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

GATEMARK_FOR_EACH_CPU
bool MatchedFrames::follow_each_other() const noexcept {
    std::uint64_t differences = 0;
    for (std::size_t k = 0; k < count; ++k) {
        differences |= indexes[k] ^ (indexes[0] + k);
    }
    return differences == 0;
}

/// Template and mask of a head in registers, for a loop over frames.
class Recognizer::HeadComparison {
public:
    [[gnu::always_inline]] explicit HeadComparison(const Recognizer& recognizer) noexcept
        : middle_at_{recognizer.block_offsets_[1]}, last_at_{recognizer.block_offsets_[2]} {
        std::memcpy(&first_, &recognizer.template_[0], sizeof first_);
        std::memcpy(&middle_, &recognizer.template_[1], sizeof middle_);
        std::memcpy(&last_, &recognizer.template_[2], sizeof last_);
        std::memcpy(&first_mask_, &recognizer.mask_[0], sizeof first_);
        std::memcpy(&middle_mask_, &recognizer.mask_[1], sizeof middle_);
        std::memcpy(&last_mask_, &recognizer.mask_[2], sizeof last_);
    }
    /// Expects the link-layer source of this frame, too.
    [[gnu::always_inline]] void expect_source_of(const std::byte* frame) noexcept {
        constexpr Vector source = {0xffff'0000'0000'0000, 0x0000'0000'ffff'ffff, 0, 0};
        static_assert(net::ethernet::source == 6);
        Vector bytes;
        std::memcpy(&bytes, frame, sizeof bytes);
        first_ = (first_ & ~source) | (bytes & source);
        first_mask_ |= source;
    }
    [[gnu::always_inline]] void add_differences(const std::byte* frame, Vector& differences) const noexcept {
        Vector first, middle, last;
        std::memcpy(&first, frame, sizeof first);
        std::memcpy(&middle, frame + middle_at_, sizeof middle);
        std::memcpy(&last, frame + last_at_, sizeof last);
        differences |= ((first ^ first_) & first_mask_) | ((middle ^ middle_) & middle_mask_) | ((last ^ last_) & last_mask_);
    }
    [[gnu::always_inline]] static bool any(const Vector& differences) noexcept {
        return (differences[0] | differences[1] | differences[2] | differences[3]) != 0;
    }

private:
    Vector first_, middle_, last_, first_mask_, middle_mask_, last_mask_;
    std::size_t middle_at_, last_at_;
};

Recognizer::Recognizer(const Stream& stream)
    : stream_{&stream},
      arrival_{.kind = ArrivalKind::ours,
               .family = stream.expected().layout.family,
               .vlan_id = stream.expected_vlan(),
               .outer = stream.expected().layout.in_tunnel() ? stream.expected().layout.outer : 0,
               .ip = stream.expected().layout.ip,
               .udp = stream.expected().layout.udp,
               .payload = stream.expected().layout.payload},
      generator_{stream, stream.expected()},
      edge_generator_{stream, stream.expected()},
      is_ipv4_{arrival_.family == net::Family::ipv4},
      source_{stream.expected().layout.source_address()},
      destination_{stream.expected().layout.destination_address()},
      bytes_{stream.expected().frame.size()},
      head_bytes_{arrival_.payload + signature::bytes},
      rest_bytes_{bytes_ - head_bytes_},
      rest_{stream.expected().frame.data() + head_bytes_},
      block_offsets_{0, arrival_.in_tunnel() ? head_bytes_ - 2 * sizeof(Block) : std::min(sizeof(Block), head_bytes_ - sizeof(Block)),
                     head_bytes_ - sizeof(Block)},
      own_mac_{load_mac(stream.expected().frame.data() + net::ethernet::destination)},
      source_is_chosen_{stream.role() == Role::initiator},
      places_{.header = arrival_.ip + net::ipv4::identification,
              .udp = arrival_.udp,
              .source_word = generator_.source_word(),
              .destination_word = generator_.destination_word()},
      udp_checksum_mask_{stream.expects_no_checksum() ? 0U : 0xffffU},
      header_checksum_mask_{is_ipv4_ ? 0xffffU : 0U} {
    const std::vector<std::byte> mask = mask_of(stream, head_bytes_);
    std::vector<std::byte> head(stream.expected().frame.begin(),
                                stream.expected().frame.begin() + static_cast<std::ptrdiff_t>(head_bytes_));
    head[net::ethernet::source] &= ~net::group_bit;
    const Layout& layout = stream.expected().layout;
    subscriber_ = stream.comes_from_subscribers() ? layout.outer_source_address() : layout.outer_destination_address();
    for (std::size_t block = 1; block < blocks; ++block) {
        for (std::size_t at = block_offsets_[block - 1] + sizeof(Block); at < block_offsets_[block]; at += sizeof(std::uint64_t)) {
            GapWord word{
                .at = at, .expected = load_raw<std::uint64_t>(head.data() + at), .mask = load_raw<std::uint64_t>(mask.data() + at)};
            word.expected &= word.mask;
            gap_.push_back(word);
        }
    }
    for (std::size_t i = 0; i < blocks; ++i) {
        std::memcpy(&mask_[i], mask.data() + block_offsets_[i], sizeof(Block));
        std::memcpy(&template_[i], head.data() + block_offsets_[i], sizeof(Block));
    }
}

GATEMARK_FOR_EACH_CPU
std::uint32_t Recognizer::match(std::span<const std::span<const std::byte>> burst) const noexcept {
    const HeadComparison head{*this};
    std::uint32_t matches = 0;
    for (std::size_t i = 0; i < burst.size(); ++i) {
        const std::byte* const frame = burst[i].data();
        if (burst[i].size() != bytes_) [[unlikely]] {
            continue;
        }
        Vector differences{};
        head.add_differences(frame, differences);
        const std::uint64_t source_mac = load_mac(frame + net::ethernet::source);
        const bool is_same = !HeadComparison::any(differences) && source_mac != 0 && source_mac != own_mac_ &&
                             (rest_bytes_ == 0 || std::memcmp(frame + head_bytes_, rest_, rest_bytes_) == 0);
        matches |= std::uint32_t{is_same} << i;
    }
    return matches;
}

bool Recognizer::matches(std::span<const std::byte> frame) const noexcept { return match({&frame, 1}) != 0; }

GATEMARK_FOR_EACH_CPU
std::optional<std::uint64_t> Recognizer::match_all(std::span<const std::span<const std::byte>> burst,
                                                   MatchedFrames& matched) const noexcept {
    matched.count = 0;
    if (!matches(burst.front())) {
        return std::nullopt;
    }
    const Places places = places_;  // so that they stay in registers
    const std::size_t bytes = bytes_;
    HeadComparison head{*this};
    head.expect_source_of(burst.front().data());
    Vector differences{};
    for (std::size_t k = 0; k < burst.size(); ++k) {
        const std::byte* const frame = burst[k].data();
        if (burst[k].size() != bytes) [[unlikely]] {
            return std::nullopt;  // before it is read
        }
        head.add_differences(frame, differences);
        gather_fields(frame, places, k, matched);
    }
    if (HeadComparison::any(differences)) [[unlikely]] {
        return std::nullopt;
    }
    for (std::size_t k = 1; rest_bytes_ != 0 && k < burst.size(); ++k) {
        if (std::memcmp(burst[k].data() + head_bytes_, rest_, rest_bytes_) != 0) [[unlikely]] {
            return std::nullopt;
        }
    }
    std::uint64_t largest = 0;
    for (std::size_t k = 0; k < burst.size(); ++k) {
        const std::uint64_t index_of_frame = signature::index_of_raw(matched.arrived.indexes[k]);
        matched.indexes[k] = matched.numbers[k] = index_of_frame;
        largest = std::max(largest, index_of_frame);
    }
    matched.count = burst.size();
    return largest;
}

GATEMARK_FOR_EACH_CPU
pace::Ticks Recognizer::copy_sent_times(const MatchedFrames& matched, std::span<pace::Ticks, burst_frames_max> sent) noexcept {
    std::uint64_t earliest = ~std::uint64_t{0};
    for (std::size_t k = 0; k < matched.count; ++k) {
        const std::uint64_t time = swap_bytes(matched.arrived.times[k]);
        sent[k] = {time};
        earliest = std::min(earliest, time);
    }
    return {earliest};
}

GATEMARK_FOR_EACH_CPU
std::uint32_t Recognizer::compare_fields(const MatchedFrames& matched) const noexcept {
    const ArrivedFields& arrived = matched.arrived;
    const BurstFields& fields = matched.fields;
    const std::uint32_t varying_words = generator_.varying_words(), udp_mask = udp_checksum_mask_, header_mask = header_checksum_mask_;
    std::array<std::uint32_t, burst_frames_max> differences;
    std::uint32_t all = 0;
    for (std::size_t k = 0; k < matched.count; ++k) {
        differences[k] = (arrived.ports[k] ^ fields.ports[k]) | ((arrived.words[k] ^ fields.words[k]) & varying_words) |
                         ((arrived.udp_checksums[k] ^ fields.udp_checksums[k]) & udp_mask) |
                         ((static_cast<std::uint32_t>(arrived.headers[k] >> 48) ^ fields.header_checksums[k]) & header_mask);
        all |= differences[k];
    }
    std::uint32_t wrong = 0;
    for (std::size_t k = 0; all != 0 && k < matched.count; ++k) {
        wrong |= std::uint32_t{differences[k] != 0} << k;
    }
    return wrong;
}

void Recognizer::compute(MatchedFrames& matched) const noexcept {
    matched.has_wrong_address = compute_values(matched);
    copy_from_frames(matched);
    if (is_ipv4_ && stream_->marks_vary()) [[unlikely]] {
        add_traffic_classes(matched);
    }
    generator_.complete(matched.indexes, matched.count, matched.fields);
}

std::uint32_t Recognizer::compute_values(MatchedFrames& matched) const noexcept {
    if (stream_->draws() && generator_.words_suffice()) {
        generator_.draw(matched.numbers, matched.count, matched.fields);
        return 0;
    }
    if (stream_->role() != Role::stateless) {
        return compute_connections(matched);
    }
    if (stream_->has_rule()) {
        return compute_by_rule(matched);
    }
    std::uint32_t wrong = 0;
    for (std::size_t k = 0; k < matched.count; ++k) {
        wrong |= compute_one(matched, k, stream_->values(matched.numbers[k]));
    }
    return wrong;
}

std::uint32_t Recognizer::compute_connections(MatchedFrames& matched) const noexcept {
    matched.connections = matched.numbers;
    stream_->put_connections(std::span{matched.connections}.first(matched.count));
    matched.tuples = matched.connections;
    stream_->connections().put_tuples(std::span{matched.tuples}.first(matched.count));
    generator_.set_tuples(matched.tuples, matched.count, matched.fields);
    std::uint32_t wrong = 0;
    if (!generator_.words_suffice()) [[unlikely]] {
        for (std::size_t k = 0; k < matched.count; ++k) {
            wrong |= std::uint32_t{!compare_addresses(matched, k, values_of(matched, k))} << k;
        }
    }
    return wrong;
}

template <net::Family family, bool in_tunnel>
bool Recognizer::compare_addresses_by_rule(MatchedFrames& matched, std::size_t k, const FrameValues& values) const noexcept {
    const FrameTemplate& frame_template = stream_->expected();
    const bool from_edge = stream_->comes_from_edges();
    const CustomerEdges& edges = stream_->edges()->edges();
    const std::byte* const frame = matched.frames[k];
    const std::byte* const edge = frame + (from_edge ? source_ : destination_);
    bool same = true;
    Sum addresses = 0;
    if constexpr (family == net::Family::ipv4) {
        const std::uint32_t expected = swap_bytes(edges.ipv4_of(values.edge(), from_edge ? values.source_host : values.destination_host));
        same = load_raw<std::uint32_t>(edge) == expected;
        addresses = expected;
    } else {
        same = is_map_address(edge, edges.address_of(values.edge()), addresses);
    }
    if constexpr (in_tunnel) {
        Sum unused = 0;
        same &= is_map_address(frame + subscriber_, edges.address_of(values.edge()), unused);
    }
    addresses +=
        from_edge ? frame_template.destination.compare(frame + destination_, values.destination_host, values.network, values.edge(), same)
                  : frame_template.source.compare(frame + source_, values.source_host, 0, values.edge(), same);
    matched.fields.addresses[k] = fold(addresses);
    return same;
}

std::uint32_t Recognizer::compute_by_rule(MatchedFrames& matched) const noexcept {
    stream_->prepare_by_rule(std::span{matched.numbers}.first(matched.count), std::span{matched.tuples}.first(matched.count));
    if (edge_generator_.applies()) {
        edge_generator_.draw(matched.numbers, matched.tuples, matched.count, matched.fields, matched.edges);
        return edge_generator_.compare(matched, matched.edges);
    }
    return arrival_.in_tunnel() ? compute_each_by_rule<net::Family::ipv4, true>(matched)
           : is_ipv4_           ? compute_each_by_rule<net::Family::ipv4, false>(matched)
                                : compute_each_by_rule<net::Family::ipv6, false>(matched);
}

template <net::Family family, bool in_tunnel>
std::uint32_t Recognizer::compute_each_by_rule(MatchedFrames& matched) const noexcept {
    std::uint32_t wrong = 0;
    for (std::size_t k = 0; k < matched.count; ++k) {
        const FrameValues values = stream_->values_by_rule(matched.numbers[k], matched.tuples[k]);
        generator_.set(k, values, matched.fields);
        wrong |= std::uint32_t{!compare_addresses_by_rule<family, in_tunnel>(matched, k, values)} << k;
    }
    return wrong;
}

std::uint32_t Recognizer::compute_one(MatchedFrames& matched, std::size_t k, const FrameValues& values) const noexcept {
    generator_.set(k, values, matched.fields);
    return generator_.words_suffice() ? 0 : std::uint32_t{!compare_addresses(matched, k, values)} << k;
}

void Recognizer::copy_from_frames(MatchedFrames& matched) const noexcept {
    matched.fields.times = matched.arrived.times;
    if (is_ipv4_ && !stream_->identification_kept()) {
        for (std::size_t k = 0; k < matched.count; ++k) {
            matched.fields.identifications[k] = static_cast<std::uint16_t>(matched.arrived.headers[k]);
        }
    }
    if (source_is_chosen_) {
        is_ipv4_ ? copy_sources<net::Family::ipv4>(matched) : copy_sources<net::Family::ipv6>(matched);
    }
}

template <net::Family family>
void Recognizer::copy_sources(MatchedFrames& matched) const noexcept {
    BurstFields& fields = matched.fields;
    const std::size_t count = matched.count, address = source_;
    const std::uint32_t others = generator_.words_suffice() ? 0 : ~0U;
    for (std::size_t k = 0; k < count; ++k) {
        const std::byte* const frame = matched.frames[k];
        std::uint32_t sum = 0;
        if constexpr (family == net::Family::ipv4) {
            sum = sum_of_words(load_raw<std::uint32_t>(frame + address));
        } else {
            sum = fold(sum_of(std::span<const std::byte, 16>{frame + address, 16}));
        }
        fields.addresses[k] = (fields.addresses[k] & others) + sum;
        fields.ports[k] = (fields.ports[k] & 0xffff'0000) | (matched.arrived.ports[k] & 0xffff);
    }
}

std::uint32_t Recognizer::compare(const MatchedFrames& matched) const noexcept {
    std::uint32_t wrong = matched.has_wrong_address | compare_fields(matched);
    if (stream_->has_host_macs()) [[unlikely]] {
        wrong |= compare_host_macs(matched);
    }
    if (stream_->marks_vary()) [[unlikely]] {
        wrong |= compare_marks(matched);
    }
    if (arrival_.in_tunnel() && stream_->outer_header_varies()) [[unlikely]] {
        wrong |= compare_tunnels(matched);
    }
    if (!gap_.empty()) [[unlikely]] {
        wrong |= compare_gap(matched);
    }
    return wrong;
}

FrameValues Recognizer::values_of(const MatchedFrames& matched, std::size_t k) const noexcept {
    return stream_->role() == Role::stateless
               ? stream_->values_of_prepared(matched.numbers[k])
               : stream_->values_of(matched.connections[k], stream_->connections().space().tuple(matched.tuples[k]));
}

void Recognizer::add_traffic_classes(MatchedFrames& matched) const noexcept {
    const std::uint32_t identification_mask = stream_->identification_kept() ? 0 : 0xffff;
    for (std::size_t k = 0; k < matched.count; ++k) {
        const std::uint8_t traffic_class = stream_->expected_mark(values_of(matched, k)).traffic_class;
        matched.fields.identifications[k] =
            (static_cast<std::uint32_t>(matched.arrived.headers[k]) & identification_mask) + swap_bytes(std::uint16_t{traffic_class});
    }
}

std::uint32_t Recognizer::compare_marks(const MatchedFrames& matched) const noexcept {
    std::uint32_t wrong = 0;
    for (std::size_t k = 0; k < matched.count; ++k) {
        const Mark mark = stream_->expected_mark(values_of(matched, k));
        const bool is_right = mark_of(matched.frames[k] + arrival_.ip, arrival_.family) == mark &&
                              (!arrival_.in_tunnel() ||
                               mark_of(matched.frames[k] + arrival_.outer, stream_->expected().layout.outer_family()).traffic_class ==
                                   stream_->tunnel_traffic_class(mark.traffic_class));
        wrong |= std::uint32_t{!is_right} << k;
    }
    return wrong;
}

/// Of subscribers that no rule gives: their addresses, and the checksum of an outer IPv4 header.
std::uint32_t Recognizer::compare_tunnels(const MatchedFrames& matched) const noexcept {
    const FrameTemplate& expected = stream_->expected();
    const Layout& layout = expected.layout;
    const auto word = expected.subscriber_word();  // the rest of both addresses then is that of the template
    std::uint32_t wrong = 0;
    for (std::size_t k = 0; k < matched.count; ++k) {
        const std::byte* const frame = matched.frames[k];
        bool is_right = layout.outer_family() == net::Family::ipv6 || is_intact(sum_of({frame + layout.outer, net::ipv4::header_bytes}));
        if (word) {
            is_right &= load_raw<std::uint16_t>(frame + word->at) == matched.fields.host(k, word->of_source);
        } else {
            const FrameValues values = values_of(matched, k);
            is_right &= expected.outer_source.matches(frame + layout.outer_source_address(), values.source_host, 0, values.edge()) &&
                        expected.outer_destination.matches(frame + layout.outer_destination_address(), values.destination_host,
                                                           values.network, values.edge());
        }
        wrong |= std::uint32_t{!is_right} << k;
    }
    return wrong;
}

std::uint32_t Recognizer::compare_gap(const MatchedFrames& matched) const noexcept {
    std::uint32_t wrong = 0;
    for (std::size_t k = 0; k < matched.count; ++k) {
        std::uint64_t differences = 0;
        for (const GapWord& word : gap_) {
            differences |= (load_raw<std::uint64_t>(matched.frames[k] + word.at) & word.mask) ^ word.expected;
        }
        wrong |= std::uint32_t{differences != 0} << k;
    }
    return wrong;
}

std::uint32_t Recognizer::compare_host_macs(const MatchedFrames& matched) const noexcept {
    std::uint32_t wrong = 0;
    for (std::size_t k = 0; k < matched.count; ++k) {
        const net::MacAddress mac = stream_->expected_destination_mac(values_of(matched, k));
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
