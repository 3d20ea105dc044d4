#pragma once

#include "frame/burst.hpp"
#include "frame/stream.hpp"
#include "state/state_table.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace gatemark::state {

/// The connections of the frames that a Responder's sender writes next. They are found a burst
/// before they are needed, because their entries are scattered over gigabytes: so these come from
/// memory while another burst is written.
class ConnectionsAhead {
public:
    static constexpr std::size_t block = frame::burst_frames_max;

    /// The numbers of a sender's frames in their class grow by `step`; 0 if they do not grow
    /// evenly. Then each burst is found when it is needed.
    ConnectionsAhead(const frame::Stream& stream, const StateTable& table, std::uint64_t step) noexcept
        : stream_{&stream}, table_{&table}, step_{step} {}

    /// Replaces the numbers of the frames of a burst with their connections.
    void put(std::span<std::uint64_t> numbers) noexcept {
        if (step_ == 0 || numbers.back() - numbers.front() != (numbers.size() - 1) * step_) {
            stream_->put_connections(numbers);
            for (const std::uint64_t connection : numbers) {
                table_->prefetch(connection);
            }
            return;
        }
        if (numbers.front() != next_) {
            next_ = number_at_end_ = numbers.front();
            begin_ = end_ = requested_ = 0;
        }
        while (end_ - begin_ <= block) {
            find_block();
        }
        const auto first = std::span{ring_}.subspan(begin_ % ring_.size());
        const std::size_t before_end = std::min(first.size(), numbers.size());
        std::ranges::copy(first.first(before_end), numbers.begin());
        std::ranges::copy(std::span{ring_}.first(numbers.size() - before_end), numbers.subspan(before_end).begin());
        begin_ += numbers.size();
        next_ += numbers.size() * step_;
        requested_ = std::max(requested_, begin_);
    }
    /// Has some of the entries that later bursts need brought from memory. Called between pieces of
    /// work, which go on meanwhile; behind requests for all of them they waited.
    void request_some() noexcept {
        for (const std::size_t end = std::min(end_, requested_ + block / 4); requested_ < end; ++requested_) {
            table_->prefetch(ring_[requested_ % ring_.size()]);
        }
    }

private:
    void find_block() noexcept {
        const auto found = std::span{ring_}.subspan(end_ % ring_.size(), block);
        for (std::size_t k = 0; k < block; ++k) {
            found[k] = number_at_end_ + k * step_;
        }
        stream_->put_connections(found);
        number_at_end_ += block * step_;
        end_ += block;
    }

    const frame::Stream* stream_;
    const StateTable* table_;
    std::uint64_t step_;
    std::uint64_t next_ = 0, number_at_end_ = 0;  ///< of the frames at both ends of what is found
    std::size_t begin_ = 0, end_ = 0;             ///< of what is found, as places in the ring before they are reduced
    std::size_t requested_ = 0;                   ///< before it, entries are on their way
    alignas(64) std::array<std::uint64_t, 2 * block> ring_{};
};

}  // namespace gatemark::state
