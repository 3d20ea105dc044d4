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
        for (std::size_t k = 0; k < frames.count; ++k) {
            frames.numbers[k] = tuples_[k] = stream_->connection_of(frames.numbers[k]);
            table_->prefetch(frames.numbers[k]);
        }
        stream_->connections().put_tuples(std::span{tuples_}.first(frames.count));
        for (std::size_t k = 0; k < frames.count; ++k) {
            take(k, frames.frames[k], stream_->values_of(frames.numbers[k], stream_->connections().space().tuple(tuples_[k])));
        }
        fields_.times.fill(swap_bytes(now.value));
        burst_.complete(frames, fields_);
        burst_.store(frames, fields_);
    }

private:
    void take(std::size_t k, std::byte* frame, frame::FrameValues values) noexcept {
        const Endpoint endpoint = table_->read(values.connection).value_or(Endpoint{});
        const frame::FrameTemplate& sent = stream_->sent();
        values.destination_port = endpoint.port;
        burst_.take(k, values, fields_);
        Sum addresses = pool_->write(frame + sent.layout.destination_address(), endpoint.address);
        if (!burst_.words_suffice()) [[unlikely]] {
            addresses += sent.source.write(frame + sent.layout.source_address(), values.source_host, 0);
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
