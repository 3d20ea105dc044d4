#pragma once

#include "frame/stream_writer.hpp"
#include "net/address_pool.hpp"
#include "state/connections_ahead.hpp"
#include "state/state_table.hpp"

namespace gatemark::state {

/// Writes the Responder's frames: each goes to the public endpoint that the state table has for its
/// connection.
class ReplyWriter {
public:
    /// The table must be full: phase 2 never starts otherwise. The numbers of the frames grow by
    /// `step`; 0 if they do not grow evenly.
    ReplyWriter(const frame::Stream& stream, const StateTable& table, const net::AddressPool& pool, std::uint64_t step = 0) noexcept
        : stream_{&stream}, table_{&table}, pool_{&pool}, ahead_{stream, table, step}, generator_{stream, stream.sent()} {}

    /// Replaces each number with the connection.
    void write(frame::BurstFrames& frames, pace::Ticks now) noexcept {
        ahead_.put(std::span{frames.numbers}.first(frames.count));
        ahead_.request_some();
        tuples_ = frames.numbers;
        stream_->connections().put_tuples(std::span{tuples_}.first(frames.count));
        generator_.set_tuples(tuples_, frames.count, fields_);
        ahead_.request_some();
        look_up_endpoints(frames);
        ahead_.request_some();
        fields_.times.fill(swap_bytes(now.value));
        generator_.complete(frames.indexes, frames.count, fields_);
        ahead_.request_some();
        generator_.store(frames, fields_);
        frame::write_special(*stream_, frames);
    }

private:
    /// The four-tuples are the Initiator's; where the frames go is what the gateway made of its
    /// sources.
    void look_up_endpoints(const frame::BurstFrames& frames) noexcept {
        const net::AddressPool& pool = *pool_;
        const std::size_t destination = stream_->sent().layout.destination_address();
        for (std::size_t k = 0; k < frames.count; ++k) {
            const Endpoint endpoint = table_->read(frames.numbers[k]).value_or(Endpoint{});
            fields_.ports[k] = (fields_.ports[k] & 0xffff) | swap_bytes(std::uint32_t{endpoint.port});
            fields_.addresses[k] = fold(pool.write(frames.frames[k] + destination, endpoint.address));
        }
        if (!generator_.words_suffice()) [[unlikely]] {
            write_sources(frames);
        }
    }
    [[gnu::noinline]] void write_sources(const frame::BurstFrames& frames) noexcept {
        const frame::FrameTemplate& sent = stream_->sent();
        for (std::size_t k = 0; k < frames.count; ++k) {
            const std::uint16_t host = stream_->connections().space().tuple(tuples_[k]).destination_host;
            fields_.addresses[k] += fold(sent.source.write(frames.frames[k] + sent.layout.source_address(), host, 0));
        }
    }

    const frame::Stream* stream_;
    const StateTable* table_;
    const net::AddressPool* pool_;
    ConnectionsAhead ahead_;
    frame::FieldGenerator generator_;
    frame::BurstFields fields_;
    frame::BurstNumbers tuples_{};
};

}  // namespace gatemark::state
