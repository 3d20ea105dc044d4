#pragma once

#include "frame/edge_generator.hpp"
#include "frame/outer_writer.hpp"

#include <span>

namespace gatemark::frame {

/// Writes `write_special` over the frames of a burst of a stream that needs it. The numbers are the
/// prepared ones (`values_of_prepared`).
inline void write_special(const Stream& stream, const BurstFrames& frames) noexcept {
    if (stream.is_special()) [[unlikely]] {
        for (std::size_t k = 0; k < frames.count; ++k) {
            stream.write_special(frames.frames[k], stream.values_of_prepared(frames.numbers[k]));
        }
    }
}

/// Writes the frames of one stream as they are sent, a burst at a time: what `write_frame` writes
/// for one frame. For frames that depend on their number alone; those of a Responder also depend on
/// what it has learned (state/reply_writer.hpp).
class StreamWriter {
public:
    /// `stream` outlives this.
    explicit StreamWriter(const Stream& stream) noexcept
        : stream_{&stream}, generator_{stream, stream.sent()}, edge_generator_{stream, stream.sent()}, outer_writer_{stream.sent()} {}

    /// Of a stream of connections, replaces each number with the connection.
    void write(BurstFrames& frames, pace::Ticks now) noexcept {
        if (stream_->draws() && generator_.words_suffice()) {
            generator_.draw(frames.numbers, frames.count, fields_);
        } else if (stream_->role() == Role::initiator) {
            compute_connections(frames);
        } else if (stream_->has_rule()) {
            compute_by_rule(frames);
        } else {
            for (std::size_t k = 0; k < frames.count; ++k) {
                compute(frames, k, stream_->values(frames.numbers[k]));
            }
        }
        fields_.times.fill(swap_bytes(now.value));
        generator_.complete(frames.indexes, frames.count, fields_);
        generator_.store(frames, fields_);
        if (outer_writer_.applies()) [[unlikely]] {
            outer_writer_.store(frames, fields_);
        }
        write_special(*stream_, frames);
    }

private:
    void compute(const BurstFrames& frames, std::size_t k, const FrameValues& values) noexcept {
        generator_.set(k, values, fields_);
        if (!generator_.words_suffice()) [[unlikely]] {
            write_addresses(frames, k, values);
        }
    }
    void write_addresses(const BurstFrames& frames, std::size_t k, const FrameValues& values) noexcept {
        fields_.addresses[k] = fold(frame::write_addresses(stream_->sent(), frames.frames[k], values));
    }
    /// The four-tuples of a whole burst at once.
    void compute_connections(BurstFrames& frames) noexcept {
        stream_->put_connections(std::span{frames.numbers}.first(frames.count));
        tuples_ = frames.numbers;
        stream_->connections().put_tuples(std::span{tuples_}.first(frames.count));
        generator_.set_tuples(tuples_, frames.count, fields_);
        if (!generator_.words_suffice()) [[unlikely]] {
            for (std::size_t k = 0; k < frames.count; ++k) {
                write_addresses(frames, k, values_of_tuple(frames, k));
            }
        }
        if (stream_->subscriber_hosts() != nullptr && !outer_writer_.applies()) [[unlikely]] {
            for (std::size_t k = 0; k < frames.count; ++k) {
                write_tunnel(stream_->sent(), frames.frames[k], values_of_tuple(frames, k));
            }
        }
    }
    [[nodiscard]] FrameValues values_of_tuple(const BurstFrames& frames, std::size_t k) const noexcept {
        return stream_->values_of(frames.numbers[k], stream_->connections().space().tuple(tuples_[k]));
    }
    void compute_by_rule(const BurstFrames& frames) noexcept {
        stream_->prepare_by_rule(std::span{frames.numbers}.first(frames.count), std::span{tuples_}.first(frames.count));
        if (edge_generator_.applies()) {
            edge_generator_.draw(frames.numbers, tuples_, frames.count, fields_, edges_);
            edge_generator_.store(frames, edges_);
            return;
        }
        for (std::size_t k = 0; k < frames.count; ++k) {
            const FrameValues values = stream_->values_by_rule(frames.numbers[k], tuples_[k]);
            generator_.set(k, values, fields_);
            fields_.addresses[k] = fold(stream_->write_addresses_by_rule(frames.frames[k], values));
        }
        for (std::size_t k = 0; stream_->sent().layout.in_tunnel() && k < frames.count; ++k) {
            stream_->write_subscriber_by_rule(frames.frames[k], tuples_[k]);
        }
    }

    const Stream* stream_;
    FieldGenerator generator_;
    EdgeGenerator edge_generator_;
    OuterWriter outer_writer_;
    BurstFields fields_;
    BurstEdges edges_;
    BurstNumbers tuples_{};
};

}  // namespace gatemark::frame
