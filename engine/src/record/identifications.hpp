#pragma once

#include "base/bytes.hpp"
#include "net/headers.hpp"
#include "record/receive_counts.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gatemark::record {

/// Identifications of the first IPv4 packets that a translator made at one receiver. They must not
/// come again soon from one host to one other (RFC 6864 section 4.1), where DF is clear.
class Identifications {
public:
    /// Frames that are looked at, and of one pair of hosts.
    static constexpr std::size_t frames_max = 1U << 14U, of_pair_max = 256;

    /// Looks at no frame.
    Identifications() = default;
    /// Takes 384 KB.
    [[nodiscard]] static Identifications of_translator() {
        Identifications made;
        made.frames_.reserve(frames_max);
        made.wanted_ = frames_max;
        return made;
    }

    [[nodiscard]] bool wants_more() const noexcept { return frames_.size() < wanted_; }
    /// Notes a packet without a fault; only if it wants more.
    void note(const std::byte* ip, std::uint64_t index) noexcept {
        frames_.push_back(
            {load_raw<std::uint64_t>(ip + net::ipv4::source), index, load_big_endian<std::uint16_t>(ip + net::ipv4::identification)});
    }
    /// Adds to `identifications` the frames of pairs that have several, and to
    /// `distinct_identifications` how many different ones these have.
    void count(ClassCounts& counts) const;

private:
    struct Frame {
        std::uint64_t pair, index;
        std::uint16_t identification;
    };
    std::vector<Frame> frames_;
    std::size_t wanted_ = 0;
};

}  // namespace gatemark::record
