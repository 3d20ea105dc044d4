#include "fuzz/frames.hpp"

#include "base/bytes.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace gatemark::fuzz {

namespace {

using test::Bytes;

constexpr std::size_t link_bytes = 14, tag_bytes = 4, type_at = 12, ipv4_bytes = 20, ipv6_bytes = 40, udp_bytes = 8;
constexpr std::uint8_t udp = 17, icmpv6 = 58;

std::uint16_t word_at(std::span<const std::byte> bytes, std::size_t at) { return load_big_endian<std::uint16_t>(bytes.data() + at); }
std::uint8_t byte_at(std::span<const std::byte> bytes, std::size_t at) { return std::to_integer<std::uint8_t>(bytes[at]); }
std::ptrdiff_t signed_of(std::size_t at) { return static_cast<std::ptrdiff_t>(at); }

/// Where the IP header of a frame is, and what follows it; all of it lies within the frame.
struct Place {
    bool ipv4 = false;
    std::size_t ip = 0, upper = 0;
    std::uint8_t protocol = 0;
};

std::optional<Place> place_of(std::span<const std::byte> frame) {
    Place place{.ipv4 = false, .ip = link_bytes};
    if (frame.size() < link_bytes + tag_bytes) {
        return std::nullopt;
    }
    std::uint16_t type = word_at(frame, type_at);
    if (type == 0x8100) {
        type = word_at(frame, link_bytes + 2);
        place.ip += tag_bytes;
    }
    place.ipv4 = type == 0x0800;
    if ((!place.ipv4 && type != 0x86dd) || frame.size() < place.ip + (place.ipv4 ? ipv4_bytes : ipv6_bytes)) {
        return std::nullopt;
    }
    const std::size_t header = place.ipv4 ? std::size_t{4} * (byte_at(frame, place.ip) & 0x0fU) : ipv6_bytes;
    place.upper = place.ip + header;
    place.protocol = byte_at(frame, place.ip + (place.ipv4 ? 9 : 6));
    return header >= ipv4_bytes && place.upper <= frame.size() ? std::optional{place} : std::nullopt;
}

/// Upper-layer length and where its checksum is; none if the packet does not hold that much.
struct Upper {
    std::size_t bytes = 0, checksum_at = 0;
};

std::optional<Upper> upper_of(std::span<const std::byte> frame, const Place& place) {
    Upper upper;
    if (place.protocol == udp && place.upper + udp_bytes <= frame.size()) {
        upper = {.bytes = word_at(frame, place.upper + 4), .checksum_at = place.upper + 6};
    } else if (place.protocol == icmpv6 && !place.ipv4) {
        upper = {.bytes = word_at(frame, place.ip + 4), .checksum_at = place.upper + 2};
    }
    const bool fits = upper.bytes >= udp_bytes && place.upper + upper.bytes <= frame.size();
    return fits ? std::optional{upper} : std::nullopt;
}

/// The sum of pseudo-header and datagram (RFC 768, RFC 8200 section 8.1).
std::uint16_t sum_of_upper(std::span<const std::byte> frame, const Place& place, std::size_t bytes) {
    Bytes summed;
    test::append(summed, frame.subspan(place.ip + (place.ipv4 ? 12 : 8), place.ipv4 ? 8 : 32));
    test::append_16(summed, static_cast<std::uint16_t>(bytes));
    test::append_16(summed, place.protocol);
    test::append(summed, frame.subspan(place.upper, bytes));
    return test::slow_sum(summed);
}

void insert(Bytes& frame, std::size_t at, std::span<const std::byte> bytes) {
    frame.insert(frame.begin() + signed_of(std::min(at, frame.size())), bytes.begin(), bytes.end());
}

void add_to_word(Bytes& frame, std::size_t at, std::size_t more) {
    store_big_endian(frame.data() + at, static_cast<std::uint16_t>(word_at(frame, at) + more));
}

/// A tag before whatever the frame has: of a customer, of a provider (IEEE 802.1ad), or unknown.
void put_tag(Script& script, Bytes& frame) {
    static constexpr std::array<std::uint16_t, 4> types{0x8100, 0x88a8, 0x9100, 0x8100};
    Bytes tag;
    test::append_16(tag, types[script.below(types.size())]);
    test::append_16(tag, script.word());
    insert(frame, type_at, tag);
}

/// The packet in another one of the same family, as a tunnel makes it (RFC 2003, RFC 2473).
void put_outer_header(Bytes& frame) {
    const auto place = place_of(frame);
    if (!place) {
        return;
    }
    const std::size_t header = place->ipv4 ? ipv4_bytes : ipv6_bytes;
    const Bytes outer(frame.begin() + signed_of(place->ip), frame.begin() + signed_of(place->ip + header));
    insert(frame, place->ip, outer);
    frame[place->ip + (place->ipv4 ? 9 : 6)] = place->ipv4 ? std::byte{4} : std::byte{41};
    add_to_word(frame, place->ip + (place->ipv4 ? 2 : 4), header);
    if (place->ipv4) {
        frame[place->ip] = std::byte{0x45};
        correct_header_checksum(frame);
    }
}

/// Options of IPv4, or an extension header of IPv6.
void put_options(Script& script, Bytes& frame) {
    const auto place = place_of(frame);
    if (!place) {
        return;
    }
    if (place->ipv4) {
        const std::size_t words = 1 + script.below(10);
        if ((byte_at(frame, place->ip) & 0x0fU) + words > 15) {
            return;
        }
        Bytes options(4 * words, std::byte{1});
        std::ranges::copy(script.take(2), options.begin());
        insert(frame, place->ip + ipv4_bytes, options);
        frame[place->ip] = static_cast<std::byte>(byte_at(frame, place->ip) + words);
        add_to_word(frame, place->ip + 2, options.size());
        correct_header_checksum(frame);
        return;
    }
    static constexpr std::array<std::uint8_t, 6> kinds{0, 43, 44, 50, 60, 135};
    Bytes extension(8 * (1 + script.below(3)));
    extension[0] = frame[place->ip + 6];
    frame[place->ip + 6] = static_cast<std::byte>(kinds[script.below(kinds.size())]);
    extension[1] = static_cast<std::byte>(extension.size() / 8 - 1);
    std::ranges::copy(script.take(2), extension.begin() + 2);
    insert(frame, place->upper, extension);
    add_to_word(frame, place->ip + 4, extension.size());
}

/// Changes a field of the headers or the beginning of the data; any byte of a longer frame.
std::size_t some_place(Script& script, const Bytes& frame) {
    const std::size_t at = script.byte();
    return at < frame.size() ? at : script.below(frame.size());
}

void damage_once(Script& script, Bytes& frame) {
    const std::uint8_t kind = script.byte() % 16;
    if (frame.empty() && kind != 5) {
        return;
    }
    switch (kind) {
        case 0: frame[some_place(script, frame)] ^= static_cast<std::byte>(script.byte()); break;
        case 1: frame[some_place(script, frame)] = static_cast<std::byte>(script.byte()); break;
        case 2: {
            const std::size_t at = some_place(script, frame);
            frame[at] = static_cast<std::byte>(byte_at(frame, at) + 1);
            break;
        }
        case 3: {
            const std::size_t at = some_place(script, frame);
            const auto bytes = script.take(6);
            std::copy_n(bytes.begin(), std::min(bytes.size(), frame.size() - at), frame.begin() + signed_of(at));
            break;
        }
        case 4: frame.resize(script.below(frame.size() + 1)); break;
        case 5: frame.resize(frame.size() + 1 + script.below(32), static_cast<std::byte>(script.byte())); break;
        case 6: {
            const std::size_t at = some_place(script, frame);
            insert(frame, at, script.take(1 + script.below(16)));
            break;
        }
        case 7: {
            const std::size_t at = some_place(script, frame);
            const std::size_t count = std::min(1 + script.below(24), frame.size() - at);
            frame.erase(frame.begin() + signed_of(at), frame.begin() + signed_of(at + count));
            break;
        }
        case 8: put_tag(script, frame); break;
        case 9: put_outer_header(frame); break;
        case 10: put_options(script, frame); break;
        case 11: {
            const auto place = place_of(frame);
            if (place && place->protocol == udp && place->upper + udp_bytes <= frame.size()) {
                store_big_endian(frame.data() + place->upper + 6, std::uint16_t{0});
            }
            break;
        }
        case 12: correct_header_checksum(frame); break;
        case 13: correct_upper_checksum(frame); break;
        case 14: take_out_of_tunnel(frame); break;
        default:
            correct_header_checksum(frame);
            correct_upper_checksum(frame);
            break;
    }
}

}  // namespace

void damage(Script& script, test::Bytes& frame) {
    for (std::uint8_t count = script.byte() % 8; count > 0; --count) {
        damage_once(script, frame);
    }
}

void take_out_of_tunnel(test::Bytes& frame) {
    const auto place = place_of(frame);
    if (!place || place->protocol != (place->ipv4 ? 41 : 4)) {
        return;
    }
    frame.erase(frame.begin() + signed_of(place->ip), frame.begin() + signed_of(place->upper));
    store_big_endian(frame.data() + place->ip - 2, static_cast<std::uint16_t>(place->ipv4 ? 0x86dd : 0x0800));
}

void correct_header_checksum(test::Bytes& frame) {
    const auto place = place_of(frame);
    if (!place || !place->ipv4) {
        return;
    }
    std::byte* const checksum = frame.data() + place->ip + 10;
    store_big_endian(checksum, std::uint16_t{0});
    store_big_endian(checksum, test::slow_checksum(std::span{frame}.subspan(place->ip, place->upper - place->ip)));
}

void correct_upper_checksum(test::Bytes& frame) {
    const auto place = place_of(frame);
    const auto upper = place ? upper_of(frame, *place) : std::nullopt;
    if (!upper) {
        return;
    }
    std::byte* const at = frame.data() + upper->checksum_at;
    store_big_endian(at, std::uint16_t{0});
    const auto checksum = static_cast<std::uint16_t>(~sum_of_upper(frame, *place, upper->bytes));
    store_big_endian(at, place->protocol == udp && checksum == 0 ? std::uint16_t{0xffff} : checksum);
}

bool has_sound_udp_checksum(std::span<const std::byte> frame) {
    const auto place = place_of(frame);
    const auto upper = place && place->protocol == udp ? upper_of(frame, *place) : std::nullopt;
    return upper && word_at(frame, upper->checksum_at) != 0 && sum_of_upper(frame, *place, upper->bytes) == 0xffff;
}

test::Bytes raw_frame(Script& script, std::size_t bytes_max) {
    const auto bytes = script.take(script.below(bytes_max + 1));
    return {bytes.begin(), bytes.end()};
}

}  // namespace gatemark::fuzz
