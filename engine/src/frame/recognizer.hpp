#pragma once

#include "frame/arrival.hpp"
#include "frame/edge_generator.hpp"

#include <array>
#include <cstring>
#include <optional>

namespace gatemark::frame {

/// What varies in frames as they arrived, but whole addresses; in the byte order of memory.
struct ArrivedFields {
    template <class T>
    using OfEach = BurstFields::OfEach<T>;

    alignas(64) OfEach<std::uint64_t> indexes{};  ///< as `signature::raw_index` gives them
    alignas(64) OfEach<std::uint64_t> times{};    ///< time stamps
    alignas(64) OfEach<std::uint64_t> headers{};  ///< of IPv4, from the identification to the checksum
    alignas(64) OfEach<std::uint32_t> ports{}, words{}, udp_checksums{};
};

/// Frames of one burst that match the template of one stream, in the order of their arrival, and
/// what varies in them.
struct MatchedFrames : ReceivedFrames {
    alignas(64) BurstNumbers connections{}, tuples{};  ///< of a stream of connections; of customer edges, what their rule needs
    ArrivedFields arrived;
    BurstFields fields;                   ///< as a correct gateway forwards them
    BurstEdges edges;                     ///< the same of customer edges
    std::uint32_t has_wrong_address = 0;  ///< a bit for each frame, of those addresses that are not among the fields

    /// Whether each index is the one after that before it; of at least one frame.
    [[nodiscard]] bool follow_each_other() const noexcept;
};

/// Decides quickly whether frames of a stream are, byte for byte, what a correct gateway makes of
/// them. It gives no reasons: a frame that it does not recognise goes to `classify` and `verify`,
/// which do, and which are the oracle of its tests. It may miss a correct frame (a padded one, one
/// with the other representation of a zero checksum), but never accepts an incorrect one.
///
/// Most bytes are the same in all frames of a stream, so one comparison with a template under a
/// mask replaces a check of each field. What varies is gathered from the frames once, computed as a
/// sender does, for a whole burst, checksums included, and compared (bench/instructions.py,
/// receive_ipv4).
class Recognizer {
public:
    /// `stream` outlives this.
    explicit Recognizer(const Stream& stream);

    /// Whether everything that does not vary is correct: link-layer addresses, headers, trial,
    /// stream and the rest of the data. Length and offsets are then correct as well. Returns a bit
    /// for each frame of the burst.
    [[nodiscard]] std::uint32_t match(std::span<const std::span<const std::byte>> burst) const noexcept;
    [[nodiscard]] bool matches(std::span<const std::byte> frame) const noexcept;

    /// The index that a frame claims to have in its direction; of one that matches.
    [[nodiscard]] std::uint64_t index(const std::byte* frame) const noexcept { return signature::index(frame + arrival_.payload); }
    /// Gathers what varies in a frame that matches, behind the frames gathered before it.
    void gather(const std::byte* frame, std::uint64_t index, std::uint64_t number, MatchedFrames& matched) const noexcept {
        const std::size_t place = matched.count++;
        matched.numbers[place] = number;
        matched.indexes[place] = index;
        gather_fields(frame, places_, place, matched);
    }
    /// Both for a whole burst whose indexes are its numbers, if all of its frames match and come
    /// from one host. Returns the largest index, or nothing and has gathered none.
    [[nodiscard]] std::optional<std::uint64_t> match_all(std::span<const std::span<const std::byte>> burst,
                                                         MatchedFrames& matched) const noexcept;

    /// Computes what varies in these frames as a correct gateway forwards them: addresses, ports
    /// and checksums. The gateway chooses the source of an Initiator's frame, which only has to
    /// agree with the checksums.
    void compute(MatchedFrames& matched) const noexcept;
    /// Compares what arrived with what was computed, and link-layer addresses where each host has
    /// its own. Returns a bit for each frame that is not correct.
    [[nodiscard]] std::uint32_t compare(const MatchedFrames& matched) const noexcept;

    /// When these frames were sent. Returns the earliest time.
    static pace::Ticks copy_sent_times(const MatchedFrames& matched, std::span<pace::Ticks, burst_frames_max> sent) noexcept;

    [[nodiscard]] const Stream& stream() const noexcept { return *stream_; }
    /// What `classify` says of a frame that matches the template.
    [[nodiscard]] const Arrival& arrival() const noexcept { return arrival_; }

private:
    /// The head of a frame is its headers and the signature: three blocks, of which the last ends
    /// with it and may overlap others. A block fills a register of the CPUs that have AVX2. In a
    /// tunnel the middle block ends where the last one begins.
    using Block = std::array<std::uint64_t, 4>;
    static constexpr std::size_t blocks = 3;
    /// The longest headers without a gap, and the signature: Ethernet, VLAN tag, IPv6, UDP.
    static constexpr std::size_t head_bytes_max =
        net::ethernet::header_bytes + net::ethernet::vlan_tag_bytes + net::ipv6::header_bytes + net::udp::header_bytes + signature::bytes;
    static_assert(head_bytes_max <= blocks * sizeof(Block));
    class HeadComparison;
    /// What no block covers: extension headers, and of a tunnel's outer header a few bytes.
    /// Template and mask of eight bytes at a time.
    struct GapWord {
        std::size_t at;
        std::uint64_t expected, mask;
    };

    /// A link-layer address and nothing of the two bytes behind it; only for comparisons.
    [[nodiscard]] static std::uint64_t load_mac(const std::byte* from) noexcept { return load_raw<std::uint64_t>(from) << 16; }
    /// Each frame's ports and addresses. Returns a bit for each whose addresses are wrong: those
    /// that vary in more than one word are compared as they are computed.
    [[nodiscard]] std::uint32_t compute_values(MatchedFrames& matched) const noexcept;
    [[nodiscard]] std::uint32_t compute_connections(MatchedFrames& matched) const noexcept;
    [[nodiscard]] std::uint32_t compute_by_rule(MatchedFrames& matched) const noexcept;
    template <net::Family family, bool in_tunnel>
    [[nodiscard]] std::uint32_t compute_each_by_rule(MatchedFrames& matched) const noexcept;
    [[nodiscard]] std::uint32_t compute_one(MatchedFrames& matched, std::size_t k, const FrameValues& values) const noexcept;
    /// Offsets in the frame of what varies; an IPv4 header has no options.
    struct Places {
        std::size_t header, udp, source_word, destination_word;
    };
    /// Everything that varies in frame `k` of those that match, so that the rest of the work is on
    /// arrays.
    static void gather_fields(const std::byte* frame, const Places& places, std::size_t k, MatchedFrames& matched) noexcept {
        ArrivedFields& arrived = matched.arrived;
        const std::byte* const udp = frame + places.udp;
        const std::byte* const payload = udp + net::udp::header_bytes;
        matched.frames[k] = frame;
        arrived.indexes[k] = signature::raw_index(payload);
        arrived.times[k] = load_raw<std::uint64_t>(payload + signature::timestamp_offset);
        arrived.ports[k] = load_raw<std::uint32_t>(udp);
        arrived.words[k] = load_raw<std::uint16_t>(frame + places.source_word) |
                           static_cast<std::uint32_t>(load_raw<std::uint16_t>(frame + places.destination_word)) << 16;
        arrived.udp_checksums[k] = load_raw<std::uint16_t>(udp + net::udp::checksum);
        arrived.headers[k] = load_raw<std::uint64_t>(frame + places.header);
    }
    /// What the Tester does not choose, or can only learn from the frame.
    void copy_from_frames(MatchedFrames& matched) const noexcept;
    template <net::Family family>
    void copy_sources(MatchedFrames& matched) const noexcept;
    [[nodiscard]] std::uint32_t compare_fields(const MatchedFrames& matched) const noexcept;
    [[nodiscard]] FrameValues values_of(const MatchedFrames& matched, std::size_t k) const noexcept;
    /// Of IPv4, where frames have different ones: their share of the header checksums.
    void add_traffic_classes(MatchedFrames& matched) const noexcept;
    [[nodiscard]] std::uint32_t compare_marks(const MatchedFrames& matched) const noexcept;
    [[nodiscard]] std::uint32_t compare_tunnels(const MatchedFrames& matched) const noexcept;
    [[nodiscard]] std::uint32_t compare_gap(const MatchedFrames& matched) const noexcept;
    [[nodiscard]] std::uint32_t compare_host_macs(const MatchedFrames& matched) const noexcept;
    /// Adds the sum of both addresses to the burst's; returns whether they are those of the values.
    [[nodiscard]] bool compare_addresses(MatchedFrames& matched, std::size_t k, const FrameValues& values) const noexcept;
    template <net::Family family, bool in_tunnel>
    [[nodiscard]] bool compare_addresses_by_rule(MatchedFrames& matched, std::size_t k, const FrameValues& values) const noexcept;

    const Stream* stream_;
    Arrival arrival_;
    FieldGenerator generator_;
    EdgeGenerator edge_generator_;
    bool is_ipv4_;
    std::size_t source_, destination_;  ///< offsets of the addresses
    std::size_t bytes_;                 ///< of the whole frame, without FCS
    std::size_t head_bytes_;            ///< up to the end of the signature
    std::size_t rest_bytes_;            ///< after it
    const std::byte* rest_;             ///< in the stream's template
    std::array<std::size_t, blocks> block_offsets_;
    std::vector<GapWord> gap_;
    std::size_t subscriber_ = 0;  ///< in a tunnel, the offset of the subscriber's outer address
    std::uint64_t own_mac_;       ///< as `load_mac` gives it
    bool source_is_chosen_;       ///< the gateway chooses address and port
    Places places_;
    std::uint32_t udp_checksum_mask_, header_checksum_mask_;  ///< zero if there is none
    std::array<Block, blocks> template_{}, mask_{};
};

}  // namespace gatemark::frame
