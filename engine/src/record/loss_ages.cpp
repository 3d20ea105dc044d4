#include "record/loss_ages.hpp"

#include "base/random.hpp"
#include "base/wide.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <unordered_map>
#include <vector>

namespace gatemark::record {

namespace {

using std::chrono::nanoseconds;

/// A connection that had been used so often is one in use, whatever the gateway calls it.
constexpr std::uint64_t used_before_max = 3;

/// One frame of a connection that is followed.
struct Used {
    nanoseconds silent;
    bool lost;
    std::uint64_t after;  ///< frames of its connection that had arrived in the trial before
};

/// What is known of a connection that is followed.
struct Followed {
    nanoseconds heard;   ///< when a frame of it had last arrived, in any direction
    bool is_gone;        ///< whether the last frame of it in the measured direction was lost
    std::uint64_t used;  ///< frames of it that have arrived in the trial, in any direction
};

/// The frames of a direction, in order.
class Frames {
public:
    explicit Frames(const UsedDirection& of) : of_{of} {
        if (of.stream != nullptr && !of.offered_end.empty()) {
            end_ = std::min({of.arrivals->frame_count(), *std::ranges::max_element(of.offered_end), aged_frames_max});
        }
    }
    [[nodiscard]] bool at_end() const { return index_ >= end_; }
    [[nodiscard]] std::uint64_t count() const { return end_; }
    /// Whether the next frame is due no later than that of the other direction.
    [[nodiscard]] bool is_before(const Frames& other) const {
        return static_cast<Wide>(index_) * other.of_.frames_per_second <= static_cast<Wide>(other.index_) * of_.frames_per_second;
    }
    [[nodiscard]] nanoseconds due() const {
        constexpr std::uint64_t second = 1'000'000'000;
        return nanoseconds{static_cast<std::int64_t>(static_cast<Wide>(index_) * second / of_.frames_per_second)};
    }
    void advance() { ++index_; }
    /// The connection of the frame, if it is one of the foreground that was offered.
    [[nodiscard]] std::optional<std::uint64_t> connection() const {
        const auto place = of_.mix->place_of(index_);
        if (!place.foreground || index_ >= of_.offered_end[static_cast<std::size_t>(index_ % of_.offered_end.size())]) {
            return std::nullopt;
        }
        return of_.stream->connection_of(place.number_in_class);
    }
    [[nodiscard]] bool arrived() const { return of_.arrivals->arrived(index_); }

private:
    const UsedDirection& of_;
    std::uint64_t index_ = 0, end_ = 0;
};

/// The largest hash that is followed, so that about `wanted` of `all` are.
std::uint64_t hash_limit(std::uint64_t wanted, std::uint64_t all) {
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    return all <= wanted ? largest : largest / all * wanted;
}

/// The time of silence that tells lost frames best from those that arrived.
std::optional<LossTable::Ages> separated(std::vector<Used>& used) {
    std::ranges::sort(used, std::ranges::greater{}, &Used::silent);
    LossTable::Ages ages;
    for (const Used& frame : used) {
        ++(frame.lost ? ages.all.lost : ages.all.arrived);
    }
    if (ages.all.lost == 0 || ages.all.arrived == 0) {
        return std::nullopt;
    }
    LossTable::Count older;
    double best = 0;
    for (std::size_t i = 0; i < used.size(); ++i) {
        ++(used[i].lost ? older.lost : older.arrived);
        if (i + 1 < used.size() && used[i + 1].silent == used[i].silent) {
            continue;
        }
        const double apart = static_cast<double>(older.lost) / static_cast<double>(ages.all.lost) -
                             static_cast<double>(older.arrived) / static_cast<double>(ages.all.arrived);
        if (apart > best) {
            best = apart;
            ages.older = older;
            ages.silent = used[i].silent;
        }
    }
    return ages;
}

/// The share of the older frames that arrived all the same.
double misfit(const LossTable::Ages& ages) {
    return static_cast<double>(ages.older.arrived) / static_cast<double>(std::max<std::uint64_t>(1, ages.older.lost + ages.older.arrived));
}

/// Of all frames, or of those of connections that had been used in the trial: see find_loss_ages.
std::optional<LossTable::Ages> best_separated(std::vector<Used>& used) {
    const auto of_all = separated(used);
    auto best = of_all;
    for (std::uint64_t after = 1; best && after <= used_before_max; ++after) {
        std::erase_if(used, [&](const Used& frame) { return frame.after < after; });
        auto later = separated(used);
        if (later && 20 * later->all.lost >= 19 * of_all->all.lost && 2 * misfit(*later) < misfit(*best)) {
            best = later;
            best->after = after;
        }
    }
    return best;
}

}  // namespace

std::optional<LossTable::Ages> find_loss_ages(const std::array<UsedDirection, 2>& directions, std::uint64_t connections,
                                              const std::function<nanoseconds(std::uint64_t)>& established) {
    std::array<Frames, 2> frames{Frames{directions[0]}, Frames{directions[1]}};
    const std::uint64_t hash_max =
        std::min(hash_limit(followed_connections_max, connections), hash_limit(followed_frames_max, frames[0].count() + frames[1].count()));
    try {
        std::unordered_map<std::uint64_t, Followed> followed;
        std::vector<Used> used;
        while (!frames[0].at_end() || !frames[1].at_end()) {
            const bool is_first = frames[1].at_end() || (!frames[0].at_end() && frames[0].is_before(frames[1]));
            Frames& next = frames[is_first ? 0 : 1];
            if (const auto connection = next.connection(); connection && mix_bits(*connection + 1) <= hash_max) {
                const nanoseconds now = next.due();
                const bool arrived = next.arrived();
                const Followed unheard{.heard = established(*connection), .is_gone = false, .used = 0};
                Followed& known = followed.try_emplace(*connection, unheard).first->second;
                if (is_first) {
                    if (!known.is_gone) {
                        used.push_back({now - known.heard, !arrived, known.used});
                    }
                    known.is_gone = !arrived;
                }
                if (arrived) {
                    known.heard = now;
                    ++known.used;
                }
            }
            next.advance();
        }
        return best_separated(used);
    } catch (const std::bad_alloc&) {
        return std::nullopt;  // the counts stand without an explanation
    }
}

}  // namespace gatemark::record
