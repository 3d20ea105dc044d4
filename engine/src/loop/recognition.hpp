#pragma once

#include "frame/recognizer.hpp"
#include "frame/verification.hpp"
#include "loop/receiver_plan.hpp"
#include "record/identifications.hpp"

#include <array>
#include <bit>
#include <span>

namespace gatemark::loop {

class ClassRecording;

/// Recognizes the correct frames of one class of one direction, a burst at a time, in the stages
/// match, compute, compare and, for a stateful gateway's Initiator, learn.
class ArrivingStream {
public:
    /// `direction`, which has a stream of this class, and `recording` outlive this.
    ArrivingStream(const ExpectedDirection& direction, std::size_t class_number, ClassRecording& recording)
        : recognizer_{*direction.streams[class_number]},
          direction_{&direction},
          recording_{&recording},
          class_number_{class_number},
          numbers_differ_{class_number != 0 || !direction_->mix.numbers_are_indexes()},
          learns_{recognizer_.stream().role() == frame::Role::initiator},
          learns_quickly_{learns_ && direction_->keeper->knows_by_pool(recognizer_.stream())} {
        if (recognizer_.stream().has_new_identifications()) {
            identifications_ = record::Identifications::of_translator();
        }
    }

    /// A bit for each of `count` frames.
    [[nodiscard]] static constexpr std::uint32_t all_of(std::size_t count) noexcept {
        return static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1);
    }

    /// Gathers those frames of a burst that match the template and have an index of this stream.
    /// `left` has a bit for each frame that matches no other template; returns what is left of it.
    [[nodiscard]] std::uint32_t match(std::span<const std::span<const std::byte>> burst, std::uint32_t left) noexcept {
        matched_.count = 0;
        if (left == all_of(burst.size()) && match_all(burst)) {
            return 0;
        }
        const std::uint32_t matches = recognizer_.match(burst) & left;
        gather(burst, matches);
        return left & ~matches;
    }
    /// For a burst of which no frame is left.
    void match_none() noexcept { matched_.count = 0; }
    /// Computes what a correct gateway makes of the frames that match.
    void compute() noexcept {
        if (matched_.count != 0) {
            recognizer_.compute(matched_);
        }
    }
    /// Compares what arrived with what was computed.
    void compare() noexcept {
        if (matched_.count != 0) {
            wrong_ = recognizer_.compare(matched_);
            if (identifications_.wants_more()) [[unlikely]] {
                note_identifications();
            }
        }
    }
    /// Prefetches the entries of the state table that `learn` needs soon.
    void prefetch_connections() const noexcept {
        for (std::size_t k = 0; learns_ && k < matched_.count; ++k) {
            direction_->keeper->prefetch(matched_.connections[k]);
        }
    }
    /// Learns from the frames in turn, up to the first that may have a fault. Returns the number of
    /// frames that it has learned from.
    [[nodiscard]] std::size_t learn_correct() const noexcept {
        return learns_quickly_ ? direction_->keeper->learn_correct(matched_, recognizer_.arrival()) : 0;
    }
    /// Learns from frame `k` of those that match; returns what is wrong with its source.
    [[nodiscard]] frame::Faults learn(std::size_t k) const noexcept {
        const state::ConnectionKeeper& keeper = *direction_->keeper;
        const frame::Arrival& arrival = recognizer_.arrival();
        const std::uint64_t connection = matched_.connections[k];
        if (learns_quickly_ && keeper.learn_correct(matched_.frames[k], arrival, connection)) [[likely]] {
            return {};
        }
        return keeper.learn(matched_.frames[k], arrival, stream(), stream().values_of(connection), {});
    }

    /// The frames of the burst that match.
    [[nodiscard]] const frame::MatchedFrames& matched() const noexcept { return matched_; }
    /// Where frame `k` of those is in the burst.
    [[nodiscard]] std::size_t place(std::size_t k) const noexcept { return places_[k]; }
    /// A bit for each of those that is not correct.
    [[nodiscard]] std::uint32_t wrong() const noexcept { return wrong_; }

    [[nodiscard]] const frame::Stream& stream() const noexcept { return recognizer_.stream(); }
    /// Where its frames are recorded.
    [[nodiscard]] ClassRecording& recording() const noexcept { return *recording_; }
    [[nodiscard]] const record::Identifications& identifications() const noexcept { return identifications_; }
    /// Whether it is an Initiator's, so that the state table learns from its frames.
    [[nodiscard]] bool learns() const noexcept { return learns_; }

private:
    static constexpr auto places_in_order = [] {
        std::array<std::uint8_t, frame::burst_frames_max> places{};
        for (std::size_t i = 0; i < places.size(); ++i) {
            places[i] = static_cast<std::uint8_t>(i);
        }
        return places;
    }();

    [[nodiscard]] bool has_index(std::uint64_t index) const noexcept { return index < direction_->frame_count; }
    /// Matches a whole burst at once. Returns false, and has gathered none, if its frames must be
    /// looked at one by one.
    [[nodiscard]] bool match_all(std::span<const std::span<const std::byte>> burst) noexcept {
        if (numbers_differ_) {
            return false;
        }
        const auto largest = recognizer_.match_all(burst, matched_);
        if (!largest || !has_index(*largest)) {
            matched_.count = 0;
            return false;
        }
        places_ = places_in_order;
        return true;
    }
    void gather(std::span<const std::span<const std::byte>> burst, std::uint32_t matches) noexcept {
        for (; matches != 0; matches &= matches - 1) {
            const auto i = static_cast<std::size_t>(std::countr_zero(matches));
            const std::uint64_t index = recognizer_.index(burst[i].data());
            std::uint64_t number = index;
            if (!has_index(index) || (numbers_differ_ && !is_of_class(index, number))) {
                continue;
            }
            places_[matched_.count] = static_cast<std::uint8_t>(i);
            recognizer_.gather(burst[i].data(), index, number, matched_);
        }
    }
    [[nodiscard]] bool is_of_class(std::uint64_t index, std::uint64_t& number) const noexcept {
        const auto place = direction_->mix.place_of(index);
        number = place.number_in_class;
        return place.foreground == (class_number_ == 0);
    }

    void note_identifications() noexcept {
        for (std::size_t k = 0; k < matched_.count && identifications_.wants_more(); ++k) {
            if ((wrong_ >> k & 1U) == 0) {
                identifications_.note(matched_.frames[k] + recognizer_.arrival().ip, matched_.indexes[k]);
            }
        }
    }

    frame::Recognizer recognizer_;
    record::Identifications identifications_;
    const ExpectedDirection* direction_;
    ClassRecording* recording_;
    std::size_t class_number_;
    bool numbers_differ_;  ///< in the class from the index: of two classes, or of flows that start one after another
    bool learns_;
    bool learns_quickly_;  ///< from nearly all frames
    frame::MatchedFrames matched_{};
    std::array<std::uint8_t, frame::burst_frames_max> places_{};
    std::uint32_t wrong_ = 0;
};

/// A frame with the mark of this trial, after every check. Direction, class, index and time are
/// those of the mark.
struct VerifiedFrame {
    std::size_t direction_number = 0, class_number = 0;
    std::uint64_t index = 0, number_in_class = 0;
    pace::Ticks sent{};
    bool has_arrived = false;        ///< where it should; otherwise it was damaged or not forwarded, and nothing else is checked
    bool is_of_other_trial = false;  ///< its time stamp says so; not to be recorded
    frame::Remarks remarks{};        ///< without a fault
    frame::Faults faults{};
};

/// The slow path: determines everything that is wrong with a frame of arbitrary bytes that carries
/// the mark of this trial. The state table learns from it.
[[nodiscard]] VerifiedFrame verify(std::span<const std::byte> bytes, const frame::Arrival& arrival, const ReceiverPlan& plan) noexcept;

/// The stream whose frame this is although its mark says that it is from elsewhere or, of a frame
/// that was sent in this trial, from another trial; otherwise nullptr. Its index is not known.
[[nodiscard]] const ArrivingStream* stream_of_damaged_mark(std::span<const ArrivingStream> streams, std::span<const std::byte> bytes,
                                                           const frame::Arrival& arrival, pace::Ticks earliest,
                                                           pace::Ticks arrived) noexcept;

}  // namespace gatemark::loop
