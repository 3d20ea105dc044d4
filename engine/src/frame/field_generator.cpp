#include "frame/field_generator.hpp"

#include "base/for_each_cpu.hpp"

#include <bit>

namespace gatemark::frame {

namespace {

/// The checksum of a sum of fewer than 65,536 words.
constexpr std::uint32_t checksum_of(std::uint32_t sum) noexcept {
    sum = sum_of_words(sum);
    return ~sum_of_words(sum) & 0xffff;
}

}  // namespace

FieldGenerator::FieldGenerator(const Stream& stream, const FrameTemplate& side) noexcept
    : stream_{&stream},
      side_{&side},
      source_word_{side.layout.source_address() + side.source.only_word().value_or(0)},
      destination_word_{side.layout.destination_address() + side.destination.only_word().value_or(0)},
      words_suffice_{(side.source.only_word() || !side.source.varies()) && (side.destination.only_word() || !side.destination.varies())},
      varying_words_{(words_suffice_ && side.source.only_word() ? 0x0000'ffffU : 0U) |
                     (words_suffice_ && side.destination.only_word() ? 0xffff'0000U : 0U)},
      header_sum_{fold(side.header_sum)},
      udp_sum_{fold(side.udp_sum)} {}

GATEMARK_FOR_EACH_CPU
void FieldGenerator::draw(const BurstNumbers& numbers, std::size_t count, BurstFields& __restrict fields) const noexcept {
    for (std::size_t k = 0; k < in_lanes(count); ++k) {
        set(k, stream_->drawn_values(numbers[k]), fields);
    }
}

GATEMARK_FOR_EACH_CPU
void FieldGenerator::set_tuples(const BurstNumbers& tuples, std::size_t count, BurstFields& __restrict fields) const noexcept {
    const enumerate::TupleSpace space = stream_->connections().space();
    const bool is_initiator = stream_->role() == Role::initiator;
    for (std::size_t k = 0; k < in_lanes(count); ++k) {
        const enumerate::Tuple tuple = space.tuple(tuples[k]);
        const std::uint32_t ports = swap_bytes(static_cast<std::uint32_t>(tuple.source_port) << 16 | tuple.destination_port);
        const std::uint32_t hosts = swap_bytes(static_cast<std::uint32_t>(tuple.source_host) << 16 | tuple.destination_host);
        fields.ports[k] = is_initiator ? ports : std::rotl(ports, 16);
        fields.words[k] = is_initiator ? hosts : std::rotl(hosts, 16);
    }
}

GATEMARK_FOR_EACH_CPU
void FieldGenerator::complete(const BurstNumbers& indexes, std::size_t count, BurstFields& __restrict fields) const noexcept {
    const std::uint64_t id = std::uint64_t{stream_->id()} << 56;
    const std::uint32_t header_sum = header_sum_, udp_sum = udp_sum_, varying_words = varying_words_;
    for (std::size_t k = 0; k < in_lanes(count); ++k) {
        fields.marks[k] = swap_bytes(id | indexes[k] << 16);
    }
    for (std::size_t k = 0; k < in_lanes(count); ++k) {
        const std::uint64_t halves = sums_of_words(fields.marks[k]) + sums_of_words(fields.times[k]);
        const auto mark = static_cast<std::uint32_t>(halves) + static_cast<std::uint32_t>(halves >> 32);
        const std::uint32_t addresses = sum_of_words(fields.words[k] & varying_words) + fields.addresses[k];
        const std::uint32_t udp = checksum_of(udp_sum + addresses + sum_of_words(fields.ports[k]) + mark);
        fields.header_checksums[k] = checksum_of(header_sum + addresses + fields.identifications[k]);
        fields.udp_checksums[k] = udp == 0 ? 0xffff : udp;  // RFC 768
    }
}

template <bool has_header, bool stores_source, bool stores_destination>
void FieldGenerator::store_fields(const BurstFrames& frames, const BurstFields& fields) const noexcept {
    const Layout& layout = side_->layout;
    const std::size_t header_checksum = layout.ip + net::ipv4::checksum, udp = layout.udp, payload = layout.payload;
    const std::size_t source_word = source_word_, destination_word = destination_word_;
    for (std::size_t k = 0; k < frames.count; ++k) {
        std::byte* const frame = frames.frames[k];
        if constexpr (has_header) {
            store_raw(frame + header_checksum, static_cast<std::uint16_t>(fields.header_checksums[k]));
        }
        if constexpr (stores_source) {
            store_raw(frame + source_word, static_cast<std::uint16_t>(fields.words[k]));
        }
        if constexpr (stores_destination) {
            store_raw(frame + destination_word, static_cast<std::uint16_t>(fields.words[k] >> 16));
        }
        store_raw(frame + udp, fields.ports[k]);
        store_raw(frame + udp + net::udp::checksum, static_cast<std::uint16_t>(fields.udp_checksums[k]));
        store_raw(frame + payload + signature::stream_offset, fields.marks[k]);  // the time stamp follows at its last two bytes
        store_raw(frame + payload + signature::timestamp_offset, fields.times[k]);
    }
}

void FieldGenerator::store(const BurstFrames& frames, const BurstFields& fields) const noexcept {
    const auto store_of = [&]<bool has_header>() {
        const bool stores_source = (varying_words_ & 0xffff) != 0, stores_destination = varying_words_ >> 16 != 0;
        if (stores_source && stores_destination) {
            store_fields<has_header, true, true>(frames, fields);
        } else if (stores_source) {
            store_fields<has_header, true, false>(frames, fields);
        } else if (stores_destination) {
            store_fields<has_header, false, true>(frames, fields);
        } else {
            store_fields<has_header, false, false>(frames, fields);
        }
    };
    if (side_->layout.family == net::Family::ipv4) {
        store_of.template operator()<true>();
    } else {
        store_of.template operator()<false>();
    }
}

}  // namespace gatemark::frame
