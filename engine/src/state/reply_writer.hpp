#pragma once

#include "frame/stream.hpp"
#include "net/address_pool.hpp"
#include "state/state_table.hpp"

namespace gatemark::state {

/// Writes the Responder's frames: each goes to the public endpoint that the state table has for its connection.
class ReplyWriter {
public:
    /// The table is full: phase 2 is never started otherwise.
    ReplyWriter(const frame::Stream& stream, const StateTable& table, const net::AddressPool& pool) noexcept
        : stream_{&stream}, table_{&table}, pool_{&pool} {}

    /// Entries are scattered over gigabytes: a burst's are asked for before the first one is needed. Returns the connection of frame
    /// `number` for `write`: choosing it twice cost 17 of 356 instructions (bench/instructions.py, respond).
    [[nodiscard]] std::uint64_t prepare(std::uint64_t number) const noexcept {
        const std::uint64_t connection = stream_->connection_of(number);
        table_->prefetch(connection);
        return connection;
    }
    void write(std::byte* octets, std::uint64_t connection, std::uint64_t index, pace::Ticks now) const noexcept {
        const frame::FrameValues values = stream_->values_of(connection);
        const Endpoint endpoint = table_->read(connection).value_or(Endpoint{});
        const frame::FrameForm& form = stream_->sent();
        const Sum addresses = form.source.write(octets + form.layout.source_address(), values.source_host, 0) +
                              pool_->write(octets + form.layout.destination_address(), endpoint.address);
        frame::complete_frame(form, octets, addresses, values.source_port, endpoint.port, stream_->octet(), index, now);
    }

private:
    const frame::Stream* stream_;
    const StateTable* table_;
    const net::AddressPool* pool_;
};

}  // namespace gatemark::state
