#pragma once

#include "frame/gateway_edge.hpp"
#include "frame/recognizer.hpp"
#include "frame/verification.hpp"
#include "net/address_pool.hpp"
#include "state/state_table.hpp"

#include <algorithm>
#include <span>

namespace gatemark::state {

/// Test phase 1 fills the state table; test phase 2 sends through a full one (RFC 9693 sections 4.2
/// and 4.7).
enum class Phase : std::uint8_t { establish, use };

/// Learns the translated source of the Initiator's frames and reports what is wrong with it. The
/// only assumption is that it is an address of the pool with a port: whether ports or their parity
/// are preserved, or one endpoint serves all destinations, is up to the gateway. A customer edge
/// must choose a port of its set.
class ConnectionKeeper {
public:
    /// `edge` is nullptr if the gateway is no customer edge.
    ConnectionKeeper(Phase phase, StateTable& table, const net::AddressPool& pool, const frame::GatewayEdge* edge = nullptr) noexcept
        : phase_{phase}, table_{table}, pool_{pool}, edge_{edge} {}

    /// Prefetches the entry of a connection that `learn` will need soon.
    void prefetch(std::uint64_t connection) const noexcept { table_.prefetch(connection); }

    /// Whether a source in the pool is enough to know that the gateway translated it, so that
    /// `learn_correct` may be asked first: no source of this Initiator's frames is in the pool.
    [[nodiscard]] bool knows_by_pool(const frame::Stream& stream) const noexcept {
        if (edge_ != nullptr) {
            return false;
        }
        if (stream.as_sent() || stream.sent().layout.family != pool_.family()) {
            return true;
        }
        const frame::HostSet& hosts = stream.source_hosts();
        for (std::uint32_t value = hosts.part.minimum; value <= hosts.part.maximum; ++value) {
            if (pool_.number_of(hosts.host(static_cast<std::uint16_t>(value), 0).bytes.data())) {
                return false;
            }
        }
        return true;
    }
    /// `learn` for the source of a frame without other faults, if there is nothing wrong with it,
    /// as with nearly all. Returns false, and has done nothing, if there may be.
    [[nodiscard]] bool learn_correct(const std::byte* frame, const frame::Arrival& arrival, std::uint64_t connection) const noexcept {
        const auto address = pool_.number_of(frame + arrival.source_address());
        const auto port = load_big_endian<std::uint16_t>(frame + arrival.udp + net::udp::source_port);
        if (!address || port == 0) [[unlikely]] {
            return false;
        }
        const Endpoint endpoint{.address = *address, .port = port};
        if (phase_ == Phase::use) {
            return table_.has(connection, endpoint);
        }
        table_.write(connection, endpoint);
        return true;
    }

    /// The same for the frames of a burst in turn, up to the first for which it would return false.
    /// Returns how many frames it has learned from.
    [[nodiscard]] std::size_t learn_correct(const frame::MatchedFrames& matched, const frame::Arrival& arrival) const noexcept;

    /// The faults of an arrived frame's source; `others` are those of the rest of the frame. The
    /// source is recorded for a frame without faults and for one whose only fault is a changed
    /// mapping, so the Responder sends to where the connection is now.
    frame::Faults learn(const std::byte* frame, const frame::Arrival& arrival, const frame::Stream& stream,
                        const frame::FrameValues& values, frame::Faults others) const noexcept {
        frame::Faults faults;
        const std::byte* const source = frame + arrival.source_address();
        if (!stream.as_sent() && arrival.family == stream.sent().layout.family &&
            stream.sent().source.matches(source, values.source_host, 0)) {
            faults.add(frame::Fault::untranslated_source);
            return faults;
        }
        if (arrival.family != pool_.family()) {
            return faults;  // the family is a fault already
        }
        const auto address = pool_.number_of(source);
        const auto port = load_big_endian<std::uint16_t>(frame + arrival.udp + net::udp::source_port);
        faults.add_if(!address, frame::Fault::source_address);
        faults.add_if(port == 0, frame::Fault::source_port);
        if (edge_ != nullptr) [[unlikely]] {
            faults.add(faults_of_edge(source, port, address.has_value()));
        }
        if (!faults.none() || !others.none()) {
            return faults;
        }
        const Endpoint endpoint{.address = *address, .port = port};
        if (phase_ == Phase::use) {
            const auto known = table_.read(values.connection);
            if (known == endpoint) {
                return faults;
            }
            faults.add(frame::Fault::mapping_changed);
        }
        table_.write(values.connection, endpoint);
        return faults;
    }

private:
    /// Makes endpoints of addresses, with the source ports of frames, up to the first port that is
    /// none. Returns how many.
    [[nodiscard]] static std::size_t pack(const frame::ArrivedFields::OfEach<std::uint32_t>& ports,
                                          std::span<std::uint64_t> addresses) noexcept;
    /// What a customer edge must not have as source. Out of line, so that others do not pay for it.
    [[gnu::noinline]] frame::Faults faults_of_edge(const std::byte* source, std::uint16_t port, bool has_address) const noexcept {
        frame::Faults faults;
        if (!has_address) {
            faults.add(edge_->fault_of_address(source, pool_.family()));
        }
        if (!edge_->has_port(port)) {
            faults.add(frame::Fault::source_port);
            faults.add(frame::Fault::outside_port_set);
        }
        return faults;
    }

    Phase phase_;
    StateTable& table_;
    const net::AddressPool& pool_;
    const frame::GatewayEdge* edge_;
};

/// The value of the host that a Responder's frame leads to; in a tunnel, of that host of the
/// subscriber.
[[nodiscard]] inline std::optional<std::uint16_t> destination_value(std::span<const std::byte> bytes, const frame::Arrival& arrival,
                                                                    const frame::Stream& stream) noexcept {
    const auto address_at = [&](std::size_t at, net::Family family) {
        net::Address address{.family = family, .bytes = {}};
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), net::address_bytes(family), address.bytes.begin());
        return address;
    };
    if (arrival.family != stream.expected().layout.family) {
        return std::nullopt;
    }
    const net::Address host = address_at(arrival.destination_address(), arrival.family);
    if (stream.subscriber_hosts() == nullptr) {
        return stream.destination_hosts().value_of(host);
    }
    if (!arrival.in_tunnel()) {
        return std::nullopt;
    }
    const net::Family outer = net::other_family(arrival.family);
    return stream.subscriber_hosts()->value_of(address_at(arrival.outer + net::destination_in(outer), outer), host);
}

/// Which fault a Responder's frame has that arrived at the wrong endpoint of the Initiator: the
/// endpoint belongs to another connection, or to none.
[[nodiscard]] inline frame::Fault misdelivery(std::span<const std::byte> bytes, const frame::Arrival& arrival, const frame::Stream& stream,
                                              const frame::FrameValues& values) noexcept {
    const auto host = destination_value(bytes, arrival, stream);
    if (!host) {
        return frame::Fault::unknown_connection;
    }
    const enumerate::Tuple tuple{.source_port = load_big_endian<std::uint16_t>(bytes.data() + arrival.udp + net::udp::destination_port),
                                 .destination_port = values.source_port,
                                 .source_host = *host,
                                 .destination_host = values.source_host};
    return stream.connections().connection_of(tuple) ? frame::Fault::wrong_owner : frame::Fault::unknown_connection;
}

}  // namespace gatemark::state
