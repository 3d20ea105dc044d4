#pragma once

#include "frame/field_generator.hpp"

namespace gatemark::frame {

/// What varies in the addresses of customer edges' frames, beside `BurstFields`; in the byte order
/// of memory.
struct BurstEdges {
    template <class T>
    using OfEach = BurstFields::OfEach<T>;

    alignas(64) OfEach<std::uint32_t> shared{};       ///< the IPv4 addresses that edges share
    alignas(64) OfEach<std::uint64_t> high{}, low{};  ///< the halves of their MAP addresses
    alignas(64) OfEach<std::uint32_t> hosts{};        ///< two bytes of the hosts outside
};

/// Generates what varies in the frames of customer edges on one side of the gateway, a burst at a
/// time, if they are of one domain, and drawn: with vector instructions, as `FieldGenerator` does
/// for hosts. For all others there are `Stream::values_by_rule` and its like, which are its oracle.
class EdgeGenerator {
public:
    /// `stream` and its `side`, one of its templates, outlive this.
    EdgeGenerator(const Stream& stream, const FrameTemplate& side) noexcept;

    /// Whether it can do this stream's frames; nothing else may be called if not.
    [[nodiscard]] bool applies() const noexcept { return domain_ != nullptr; }
    /// The ports and addresses of frames with these numbers, each of an edge.
    void draw(const BurstNumbers& numbers, const BurstNumbers& edges, std::size_t count, BurstFields& fields,
              BurstEdges& of_edges) const noexcept;
    /// Writes the addresses.
    void store(const BurstFrames& frames, const BurstEdges& of_edges) const noexcept;
    /// Compares them. Returns a bit for each frame that has another one; what does not vary counts
    /// as right.
    [[nodiscard]] std::uint32_t compare(const ReceivedFrames& frames, const BurstEdges& of_edges) const noexcept;

private:
    /// Calls it with whether frames have shared addresses, and whether they have MAP addresses.
    template <class Call>
    auto with_addresses(const Call& call) const noexcept;

    const Stream* stream_;
    const EdgeTraffic::OfDomain* domain_ = nullptr;
    bool is_ipv4_, in_tunnel_;
    std::size_t shared_, map_, host_ = 0;  ///< offsets in the frame: of the edge's addresses, and of two bytes of the host outside
    std::uint32_t host_mask_ = 0;          ///< of these two bytes; zero if they do not vary
    bool is_odd_ = false;                  ///< they are in two words of the checksum
};

}  // namespace gatemark::frame
