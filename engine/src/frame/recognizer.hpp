#pragma once

#include "frame/arrival.hpp"
#include "frame/stream.hpp"

#include <array>
#include <cstring>

namespace gatemark::frame {

/// Decides quickly whether a frame of a stream is, byte for byte, what a correct gateway makes of
/// it. It gives no reasons: a frame that it does not recognise goes to `classify` and `verify`,
/// which do, and which are the oracle of its tests. It may miss a correct frame (a padded one), but
/// never accepts an incorrect one.
///
/// Most bytes are the same in all frames of a stream, so one comparison with a template under a
/// mask replaces a check of each field. Since these bytes are then known, both checksums follow
/// from what varies, and the packet is not summed (bench/instructions.py, receive_ipv4).
class Recognizer {
public:
    /// `stream` outlives this.
    explicit Recognizer(const Stream& stream);

    /// Whether everything that does not vary is correct: link-layer addresses, headers, trial,
    /// stream and the rest of the data. Length and offsets are then correct as well.
    [[nodiscard]] bool matches_template(std::span<const std::byte> frame) const noexcept {
        if (frame.size() != bytes_) {
            return false;
        }
        Block differences = (load(frame.data()) ^ template_[0]) & mask_[0];
        differences |= (load(frame.data() + sizeof(Block)) ^ template_[1]) & mask_[1];
        differences |= (load(frame.data() + 2 * sizeof(Block)) ^ template_[2]) & mask_[2];
        differences |= (load(frame.data() + last_block_) ^ template_[3]) & mask_[3];
        for (std::size_t i = 4; i < block_count_; ++i) {  // IPv6, or a VLAN tag
            differences |= (load(frame.data() + (i - 1) * sizeof(Block)) ^ template_[i]) & mask_[i];
        }
        const std::uint64_t source_mac = load_mac(frame.data() + net::ethernet::source);
        return (differences[0] | differences[1]) == 0 && source_mac != 0 && source_mac != own_mac_ &&
               (rest_bytes_ == 0 || std::memcmp(frame.data() + head_bytes_, rest_, rest_bytes_) == 0);
    }

    /// The index that a frame which matches the template claims to have in its direction.
    [[nodiscard]] std::uint64_t index(const std::byte* frame) const noexcept { return signature::index(payload_of(frame)); }
    [[nodiscard]] std::uint64_t timestamp(const std::byte* frame) const noexcept { return signature::timestamp(payload_of(frame)); }

    /// Whether what varies is correct in a frame that matches the template: addresses, ports and
    /// both checksums. The gateway chooses the source of an Initiator's frame; it only has to agree
    /// with the checksums.
    [[nodiscard, gnu::always_inline]] bool matches_values(const std::byte* frame, const FrameValues& values) const noexcept {
        std::uint32_t differences = 0;
        const Sum addresses = hosts_are_words_ ? compare_hosts(frame, values, differences) : compare_addresses(frame, values, differences);
        return matches_ports_and_checksums(frame, values, addresses, differences);
    }
    /// The same for a stream with a rule: number j in its class, and what the rule has prepared.
    [[nodiscard]] bool matches_by_rule(const std::byte* frame, std::uint64_t j, std::uint64_t tuple) const noexcept;
    /// Whether a frame that matches the template has the link-layer addresses of a frame with these
    /// values; for a stream with `has_host_macs`, where the template says nothing of them.
    [[nodiscard]] bool matches_host_mac(const std::byte* frame, const FrameValues& values) const noexcept {
        const net::MacAddress mac = stream_->expected_destination_mac(values);
        return std::memcmp(frame + net::ethernet::destination, mac.data(), mac.size()) == 0 &&
               std::memcmp(frame + net::ethernet::source, mac.data(), mac.size()) != 0;
    }

    [[nodiscard]] const Stream& stream() const noexcept { return *stream_; }
    /// What `classify` says of a frame that matches the template.
    [[nodiscard]] const Arrival& arrival() const noexcept { return arrival_; }

private:
    /// 16 bytes fit into one register on every CPU that DPDK supports. Registers of 32 bytes,
    /// selected at start-up, would save only one of three comparisons of the smallest frame.
    using Block = std::uint64_t __attribute__((vector_size(16)));
    /// The longest headers and the signature: Ethernet, VLAN tag, IPv6, UDP.
    static constexpr std::size_t head_bytes_max =
        net::ethernet::header_bytes + net::ethernet::vlan_tag_bytes + net::ipv6::header_bytes + net::udp::header_bytes + signature::bytes;
    static constexpr std::size_t blocks_max = (head_bytes_max + sizeof(Block) - 1) / sizeof(Block);

    [[nodiscard]] static Block load(const std::byte* from) noexcept {
        Block block;
        std::memcpy(&block, from, sizeof block);
        return block;
    }
    /// The rest of `matches_values`, once the addresses are compared; `addresses` is their share of
    /// the checksums.
    [[nodiscard, gnu::always_inline]] bool matches_ports_and_checksums(const std::byte* frame, const FrameValues& values, Sum addresses,
                                                                       std::uint32_t differences) const noexcept {
        const std::byte* const udp = frame + udp_;
        const auto ports = load_raw<std::uint32_t>(udp);
        const std::uint32_t expected_ports = swap_bytes((static_cast<std::uint32_t>(values.source_port) << 16) | values.destination_port);
        differences |= (ports ^ expected_ports) & port_mask_;
        const auto udp_checksum = load_raw<std::uint16_t>(udp + net::udp::checksum);
        if (differences != 0 || udp_checksum == 0) [[unlikely]] {
            return differences == 0 && stream_->expects_no_checksum() && header_is_intact(udp, addresses);
        }
        const Sum datagram = udp_sum_ + addresses + ports + udp_checksum + signature::sum_of_mark(udp + net::udp::header_bytes);
        if (!is_ipv4_) {
            return is_intact(datagram);
        }
        return header_is_intact(udp, addresses) && is_intact(datagram);
    }
    /// Whether the checksum of an IPv4 header is correct; `addresses` are their share of it.
    [[nodiscard, gnu::always_inline]] bool header_is_intact(const std::byte* udp, Sum addresses) const noexcept {
        const std::byte* const ip = udp - net::ipv4::header_bytes;
        // Zero unless a translator chooses it.
        const auto identification = load_raw<std::uint16_t>(ip + net::ipv4::identification);
        return is_intact(header_sum_ + addresses + identification + load_raw<std::uint16_t>(ip + net::ipv4::checksum));
    }
    /// A link-layer address and nothing of the two bytes behind it; only for comparisons.
    [[nodiscard]] static std::uint64_t load_mac(const std::byte* from) noexcept { return load_raw<std::uint64_t>(from) << 16; }
    /// Compares addresses that vary in one word each or not at all, as most do: both words at once,
    /// which is much cheaper than AddressField::compare. Returns their share of a checksum, and
    /// sets bits of `differences` where the frame has other values.
    [[nodiscard]] Sum compare_hosts(const std::byte* frame, const FrameValues& values, std::uint32_t& differences) const noexcept {
        const std::uint32_t expected =
            swap_bytes((static_cast<std::uint32_t>(values.source_host) << 16) | values.destination_host) & host_mask_;
        const std::uint32_t hosts = load_raw<std::uint16_t>(frame + source_word_) |
                                    static_cast<std::uint32_t>(load_raw<std::uint16_t>(frame + destination_word_)) << 16;
        differences |= (hosts & host_mask_) ^ expected;
        return expected;
    }
    [[nodiscard, gnu::always_inline]] Sum compare_addresses(const std::byte* frame, const FrameValues& values,
                                                            std::uint32_t& differences) const noexcept {
        const FrameTemplate& frame_template = stream_->expected();
        bool same = true;
        const Sum source = source_is_chosen_ ? sum_of_address(frame + source_)
                                             : frame_template.source.compare(frame + source_, values.source_host, 0, values.edge(), same);
        const Sum destination =
            frame_template.destination.compare(frame + destination_, values.destination_host, values.network, values.edge(), same);
        differences |= same ? 0 : 1;
        return source + destination;
    }
    [[nodiscard]] Sum sum_of_address(const std::byte* field) const noexcept {
        return is_ipv4_ ? load_raw<std::uint32_t>(field) : sum_of(std::span{field, 16});
    }
    [[nodiscard]] const std::byte* payload_of(const std::byte* frame) const noexcept { return frame + udp_ + net::udp::header_bytes; }

    const Stream* stream_;
    Arrival arrival_;
    bool is_ipv4_, hosts_are_words_;
    std::size_t udp_;                             ///< offset of the UDP header; an IPv4 header has no options
    Sum header_sum_, udp_sum_;                    ///< of what does not vary
    std::size_t source_, destination_;            ///< offsets of the addresses
    std::size_t source_word_, destination_word_;  ///< offsets of their only words that vary
    std::uint32_t host_mask_;                     ///< of both words in the byte order of memory, zero where an address does not vary
    std::size_t bytes_;                           ///< of the whole frame, without FCS
    std::size_t head_bytes_;                      ///< up to the end of the signature
    std::size_t rest_bytes_;                      ///< after it
    const std::byte* rest_;                       ///< in the stream's template
    std::size_t last_block_;                      ///< offset of block 3, which ends with the head and may overlap the block before it
    std::size_t block_count_;                     ///< in the order of their offsets: blocks 0, 1, 2, 4, 5 and so on, then block 3
    std::uint64_t own_mac_;                       ///< as `load_mac` gives it
    std::uint32_t port_mask_ = 0xffff'ffff;       ///< of both ports in the byte order of memory
    bool source_is_chosen_ = false;               ///< the gateway chooses address and port
    std::array<Block, blocks_max> template_{}, mask_{};
};

}  // namespace gatemark::frame
