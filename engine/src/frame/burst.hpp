#pragma once

#include "frame/stream.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace gatemark::frame {

/// The frames of one class in a burst, in buffers of `Byte`: to be written, or received.
template <class Byte>
struct BurstOf {
    static constexpr std::size_t frames_max = 32;

    std::size_t count = 0;
    alignas(64) std::array<std::uint64_t, frames_max> numbers{};  ///< in the class
    alignas(64) std::array<std::uint64_t, frames_max> indexes{};  ///< in the direction
    std::array<Byte*, frames_max> frames{};                       ///< if to be written, they hold the template
};
using BurstFrames = BurstOf<std::byte>;
using ReceivedFrames = BurstOf<const std::byte>;
using BurstNumbers = std::array<std::uint64_t, BurstFrames::frames_max>;

/// What varies in these frames on one side of the gateway: an array for each field, so that vector
/// instructions work on several frames at once. Everything is in the byte order of memory.
struct BurstFields {
    template <class T>
    using OfEach = std::array<T, BurstFrames::frames_max>;

    alignas(64) OfEach<std::uint32_t> ports{};            ///< source, destination
    alignas(64) OfEach<std::uint32_t> words{};            ///< of addresses that vary in one word: source, destination
    alignas(64) OfEach<std::uint32_t> addresses{};        ///< what the other addresses add to the checksums
    alignas(64) OfEach<std::uint32_t> identifications{};  ///< of IPv4 headers, if someone else chose them
    alignas(64) OfEach<std::uint64_t> marks{};            ///< stream and index, and two bytes of zero
    alignas(64) OfEach<std::uint64_t> times{};            ///< time stamps
    alignas(64) OfEach<std::uint32_t> header_checksums{}, udp_checksums{};
};

/// Computes what varies in the frames of one stream on one side, a burst at a time: what
/// `write_frame` computes for one frame, and its oracle. Work on a few frames more than a burst has
/// is harmless and saves the vectors a tail.
class Burst {
public:
    /// `stream` and its `side`, one of its templates, outlive this.
    Burst(const Stream& stream, const FrameTemplate& side) noexcept;

    /// Takes the values of frames of a stream that `draws`.
    void draw(const BurstNumbers& numbers, std::size_t count, BurstFields& fields) const noexcept;
    /// Takes the four-tuples with these numbers, of a stream of connections.
    void take_tuples(const BurstNumbers& tuples, std::size_t count, BurstFields& fields) const noexcept;
    /// Takes the values of frame `k` of the burst.
    void take(std::size_t k, const FrameValues& values, BurstFields& fields) const noexcept {
        fields.ports[k] = swap_bytes(static_cast<std::uint32_t>(values.source_port) << 16 | values.destination_port);
        fields.words[k] = swap_bytes(static_cast<std::uint32_t>(values.source_host) << 16 | values.destination_host) & varying_words_;
    }
    /// Marks and checksums from everything else.
    void complete(const BurstNumbers& indexes, std::size_t count, BurstFields& fields) const noexcept;
    /// Writes everything but addresses that do not vary in one word.
    void store(const BurstFrames& frames, const BurstFields& fields) const noexcept;

    [[nodiscard]] const FrameTemplate& side() const noexcept { return *side_; }
    /// Offsets in the frame of the words of both addresses, and which of their bits vary.
    [[nodiscard]] std::size_t source_word() const noexcept { return source_word_; }
    [[nodiscard]] std::size_t destination_word() const noexcept { return destination_word_; }
    [[nodiscard]] std::uint32_t varying_words() const noexcept { return varying_words_; }
    /// Whether no address varies but in one word. Else `store` writes neither.
    [[nodiscard]] bool words_suffice() const noexcept { return words_suffice_; }

private:
    template <bool has_header, bool stores_source, bool stores_destination>
    void store_fields(const BurstFrames& frames, const BurstFields& fields) const noexcept;

    const Stream* stream_;
    const FrameTemplate* side_;
    std::size_t source_word_, destination_word_;
    bool words_suffice_;
    std::uint32_t varying_words_;         ///< a mask of both, zero for an address that does not vary
    std::uint32_t header_sum_, udp_sum_;  ///< of what does not vary
};

}  // namespace gatemark::frame
