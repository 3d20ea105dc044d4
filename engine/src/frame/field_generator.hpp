#pragma once

#include "frame/burst.hpp"
#include "frame/stream.hpp"

namespace gatemark::frame {

/// Generates what varies in the frames of one stream on one side of the gateway, a burst at a time:
/// what `write_frame`, its oracle, computes for one frame.
class FieldGenerator {
public:
    /// `stream` and its `side`, one of its templates, outlive this.
    FieldGenerator(const Stream& stream, const FrameTemplate& side) noexcept;

    // Addresses and ports come first, in one of three ways.
    /// Of frames of a stream that `draws`.
    void draw(const BurstNumbers& numbers, std::size_t count, BurstFields& fields) const noexcept;
    /// Of the four-tuples with these numbers, of a stream of connections.
    void set_tuples(const BurstNumbers& tuples, std::size_t count, BurstFields& fields) const noexcept;
    /// Of frame `k` of the burst.
    void set(std::size_t k, const FrameValues& values, BurstFields& fields) const noexcept {
        fields.ports[k] = swap_bytes(static_cast<std::uint32_t>(values.source_port) << 16 | values.destination_port);
        fields.words[k] = swap_bytes(static_cast<std::uint32_t>(values.source_host) << 16 | values.destination_host);
    }
    /// Marks and checksums follow from everything else.
    void complete(const BurstNumbers& indexes, std::size_t count, BurstFields& fields) const noexcept;
    /// Writes everything but addresses that do not vary in one word.
    void store(const BurstFrames& frames, const BurstFields& fields) const noexcept;

    [[nodiscard]] const FrameTemplate& side() const noexcept { return *side_; }
    /// Offsets in the frame of the words of both addresses, and which of their bits vary.
    [[nodiscard]] std::size_t source_word() const noexcept { return source_word_; }
    [[nodiscard]] std::size_t destination_word() const noexcept { return destination_word_; }
    [[nodiscard]] std::uint32_t varying_words() const noexcept { return varying_words_; }
    /// Whether each address that varies does so in one word. Else `store` writes neither.
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
