#pragma once

#include "frame/burst.hpp"
#include "frame/stream.hpp"

namespace gatemark::frame {

/// Writes what varies in the outer headers of a burst in tunnels, if a word of the subscriber's
/// address does so, and a checksum over it: what `write_tunnel`, its oracle, writes for one frame.
class OuterWriter {
public:
    explicit OuterWriter(const FrameTemplate& side) noexcept : word_{side.subscriber_word()} {
        const Layout& layout = side.layout;
        if (word_ && layout.outer_family() == net::Family::ipv4) {
            checksum_ = layout.outer + net::ipv4::checksum;
            sum_ = sum_of(std::span{side.frame}.subspan(layout.outer, net::ipv4::header_bytes));
        }
    }

    [[nodiscard]] bool applies() const noexcept { return word_.has_value(); }
    void store(const BurstFrames& frames, const BurstFields& fields) const noexcept {
        for (std::size_t k = 0; k < frames.count; ++k) {
            const std::uint16_t word = fields.host(k, word_->of_source);
            store_raw(frames.frames[k] + word_->at, word);
            if (checksum_ != 0) {
                store_raw(frames.frames[k] + checksum_, header_checksum(sum_ + word));
            }
        }
    }

private:
    std::optional<FrameTemplate::SubscriberWord> word_;
    std::size_t checksum_ = 0;  ///< its offset in the frame; 0 if the outer header has none
    Sum sum_ = 0;               ///< of what does not vary in that header
};

}  // namespace gatemark::frame
