#pragma once

#include "frame/stream.hpp"
#include "pace/mix.hpp"
#include "record/arrival_bitmap.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gatemark::record {

/// What frames of a class differ by. The last one is the index in the direction modulo a number.
enum class LossField : std::uint8_t {
    source_port,
    destination_port,
    source_host,
    destination_host,
    destination_network,
    traffic_class,
    customer_edge,
    connection,
    host_pair,
    flow,
    index_residue
};

struct LossCount {
    std::uint64_t lost = 0, arrived = 0;
};

/// Frames of connections that had been silent for some time or longer, and all frames whose silence
/// is known. The time is that which tells lost frames best from the others.
struct LossAges {
    std::chrono::nanoseconds silent{};
    std::uint64_t after = 0;  ///< only frames count of whose connection so many had arrived in the trial before
    LossCount older, all;
};

/// Which frames of a class were lost, by what they differ by: a frame is a function of its index,
/// so all fields of a frame that never arrived are known. Made after the trial, from at most
/// `examined_max` lost frames and as many that arrived; it takes up to 6 MB meanwhile.
struct LossTable {
    static constexpr std::uint64_t examined_max = std::uint64_t{1} << 20;
    static constexpr std::size_t heaviest_kept = 8, ranges_kept = 8, values_tracked_max = 1U << 14U;
    static constexpr std::uint64_t modulus_max = 64;

    using Count = LossCount;
    using Ages = LossAges;
    struct Value {
        std::string name;  ///< for people: a port, an address, a number, or both ends of a flow
        Count count;
    };
    /// Values next to each other of which no frame arrived; values that no frame had are passed
    /// over.
    struct Range {
        std::string first, last;
        std::uint64_t values = 0, lost = 0;
    };
    struct Field {
        LossField field = LossField::flow;
        std::uint64_t modulus = 0;       ///< of an index residue
        Count count;                     ///< of the frames that have one of the values counted
        std::uint64_t values = 0;        ///< that were offered; a sample of at most `values_tracked_max`, each with all its examined frames
        std::uint64_t losing = 0;        ///< values with a lost frame
        std::uint64_t dead = 0;          ///< values of which no frame arrived
        std::uint64_t lost_in_dead = 0;  ///< lost frames with such a value
        std::optional<std::uint64_t> firsts;  ///< lost frames that were the first with their value; present if every frame was examined
        std::vector<Value> heaviest;          ///< values with most losses, at most `heaviest_kept`
        std::vector<Range> ranges;            ///< those with most losses, ascending; of numbers of 16 bits at most
        std::vector<Count> bits;              ///< frames in whose value a bit is set, lowest first; of the same fields
    };
    Count examined;
    std::vector<Field> fields;  ///< those with more than one value
    std::optional<Ages> ages;   ///< where established connections are used
};

/// A class of a direction whose losses are looked at.
struct LossyClass {
    const frame::Stream* stream = nullptr;
    std::uint64_t lost = 0, arrived = 0;
};

/// Foreground and background; none where `classes` has no stream or no loss, or there is no memory.
[[nodiscard]] std::array<std::optional<LossTable>, 2> tabulate_losses(const ArrivalBitmap& arrivals, const pace::Mix& mix,
                                                                      std::span<const std::uint64_t> offered_end,
                                                                      const std::array<LossyClass, 2>& classes);

}  // namespace gatemark::record
