#pragma once

#include "frame/burst.hpp"
#include "net/address_pool.hpp"
#include "state/state_table.hpp"

namespace gatemark::state {

/// Writes the Responder's frames: each goes to the public endpoint that the state table has for its
/// connection.
class ReplyWriter {
public:
    /// The table must be full: phase 2 never starts otherwise.
    ReplyWriter(const frame::Stream& stream, const StateTable& table, const net::AddressPool& pool) noexcept
        : stream_{&stream}, table_{&table}, pool_{&pool}, burst_{stream, stream.sent()} {}

    /// Replaces each number with the connection. Entries are scattered over gigabytes, so those of
    /// a whole burst are prefetched before the first one is needed.
    void write(frame::BurstFrames& frames, pace::Ticks now) noexcept {
        stream_->put_connections(std::span{frames.numbers}.first(frames.count));
        for (std::size_t k = 0; k < frames.count; ++k) {
            tuples_[k] = frames.numbers[k];
            table_->prefetch(frames.numbers[k]);
        }
        stream_->connections().put_tuples(std::span{tuples_}.first(frames.count));
        const enumerate::TupleSpace& space = stream_->connections().space();
        for (std::size_t k = 0; k < frames.count; ++k) {
            take(k, frames.frames[k], frames.numbers[k], space.tuple(tuples_[k]));
        }
        fields_.times.fill(swap_bytes(now.value));
        burst_.complete(frames.indexes, frames.count, fields_);
        burst_.store(frames, fields_);
    }

private:
    /// The four-tuple is the Initiator's, so its destination is the source here.
    void take(std::size_t k, std::byte* frame, std::uint64_t connection, const enumerate::Tuple& tuple) noexcept {
        const Endpoint endpoint = table_->read(connection).value_or(Endpoint{});
        const frame::FrameTemplate& sent = stream_->sent();
        burst_.take(k,
                    {.source_port = tuple.destination_port,
                     .destination_port = endpoint.port,
                     .source_host = tuple.destination_host,
                     .destination_host = 0,
                     .network = 0},
                    fields_);
        Sum addresses = pool_->write(frame + sent.layout.destination_address(), endpoint.address);
        if (!burst_.words_suffice()) [[unlikely]] {
            addresses += sent.source.write(frame + sent.layout.source_address(), tuple.destination_host, 0);
        }
        fields_.addresses[k] = fold(addresses);
    }

    const frame::Stream* stream_;
    const StateTable* table_;
    const net::AddressPool* pool_;
    frame::Burst burst_;
    frame::BurstFields fields_;
    frame::BurstNumbers tuples_{};
};

}  // namespace gatemark::state
