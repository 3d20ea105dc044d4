#pragma once

#include "frame/stream.hpp"
#include "net/address_pool.hpp"
#include "state/state_table.hpp"

namespace gatemark::state {

/// Writes the Responder's frames: each goes to the public endpoint that the state table has for its
/// connection.
class ReplyWriter {
public:
    /// The table must be full: phase 2 never starts otherwise.
    ReplyWriter(const frame::Stream& stream, const StateTable& table, const net::AddressPool& pool) noexcept
        : stream_{&stream}, table_{&table}, pool_{&pool} {}

    /// Replaces each frame's number with its connection, and writes the number of the connection's
    /// four-tuple to `tuples`. Entries are scattered over gigabytes, so those of a whole burst are
    /// prefetched before the first one is needed.
    void prepare(std::span<std::uint64_t> numbers, std::span<std::uint64_t> tuples) const noexcept {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] = tuples[i] = stream_->connection_of(numbers[i]);
            table_->prefetch(numbers[i]);
        }
        stream_->connections().put_tuples(tuples);
    }
    void write(std::byte* bytes, std::uint64_t connection, std::uint64_t tuple, std::uint64_t index, pace::Ticks now) const noexcept {
        const frame::FrameValues values = stream_->values_of(connection, stream_->connections().space().tuple(tuple));
        const Endpoint endpoint = table_->read(connection).value_or(Endpoint{});
        const frame::FrameTemplate& frame_template = stream_->sent();
        const Sum addresses = frame_template.source.write(bytes + frame_template.layout.source_address(), values.source_host, 0) +
                              pool_->write(bytes + frame_template.layout.destination_address(), endpoint.address);
        frame::complete_frame(frame_template, bytes, addresses, values.source_port, endpoint.port, stream_->id(), index, now);
    }

private:
    const frame::Stream* stream_;
    const StateTable* table_;
    const net::AddressPool* pool_;
};

}  // namespace gatemark::state
