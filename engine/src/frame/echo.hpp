#pragma once

#include "frame/echo_numbers.hpp"
#include "frame/gateway_edge.hpp"
#include "frame/stream.hpp"
#include "net/address_pool.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace gatemark::frame {

/// A frame on one side of the gateway, and what a receiver there must find in its IP header. Of its
/// layout `udp` is where the ICMP message begins.
struct EchoFrame {
    FrameTemplate frame_template;  ///< `udp_sum` is that of the message, with the pseudo-header of ICMPv6
    std::uint8_t hop_limit = 0, type = 0;
    DontFragment dont_fragment = DontFragment::clear;
};

/// The source that a stateful gateway gave to a request.
struct PublicSource {
    std::uint64_t address = 0;  ///< its number in the pool
    std::uint16_t identifier = 0;
};

/// What a stateful gateway may use: its public addresses, and all identifiers or those of the edge
/// that it is.
struct PublicSide {
    net::AddressPool pool;
    std::optional<GatewayEdge> edge{};
};

/// The hosts of a reply: those of its request, the other way round.
[[nodiscard]] constexpr FrameValues turned_round(const FrameValues& request) noexcept {
    FrameValues reply = request;
    std::swap(reply.source_host, reply.destination_host);
    reply.network = 0;
    return reply;
}

/// What a reply takes over from its request.
struct EchoAnswer {
    std::uint64_t index = 0;
    pace::Ticks sent{};  ///< the time stamp of the request
    PublicSource source{};
};

/// The echo requests of a trial and their replies: request number i is a pure function of (seed,
/// stream, i), as the client sends it and as a correct gateway forwards it; a reply is one of its
/// request and of what a stateful gateway chose. Clients are on the left: hosts, or the customer
/// edges of a border relay, which send what their translation makes of IPv4 requests, or the
/// requests themselves through tunnels, as B4s do. The mark is at the beginning of the data, which
/// a reply takes over.
class Echo {
public:
    /// `request` says what is sent, as for any stream, but has no ports; if its source is customer
    /// edges, they are as many as the clients. `outside` is that of a stateful gateway.
    [[nodiscard]] static Result<Echo> make(const StreamRequest& request, const EchoShape& shape, std::optional<PublicSide> outside,
                                           std::uint64_t seed, std::uint32_t trial_id, const LinkAddresses& left,
                                           const LinkAddresses& right, const std::string& where);

    [[nodiscard]] const EchoNumbers& numbers() const noexcept { return numbers_; }
    [[nodiscard]] const Stream& stream() const noexcept { return *stream_; }
    [[nodiscard]] const HostSet& clients() const noexcept { return clients_; }
    /// Of the link of the clients.
    [[nodiscard]] std::optional<std::uint16_t> client_vlan() const noexcept { return client_vlan_; }
    /// nullptr for a stateless gateway.
    [[nodiscard]] const net::AddressPool* pool() const noexcept { return outside_ ? &outside_->pool : nullptr; }
    /// nullptr if the gateway is no customer edge.
    [[nodiscard]] const GatewayEdge* gateway_edge() const noexcept { return outside_ && outside_->edge ? &*outside_->edge : nullptr; }
    [[nodiscard]] const EchoFrame& sent_request() const noexcept { return sent_request_; }
    [[nodiscard]] const EchoFrame& expected_request() const noexcept { return expected_request_; }
    [[nodiscard]] const EchoFrame& sent_reply() const noexcept { return sent_reply_; }
    [[nodiscard]] const EchoFrame& expected_reply() const noexcept { return expected_reply_; }

    /// The numbers of the hosts at both ends, or of the customer edge and the host.
    [[nodiscard]] FrameValues values_of(const EchoPlace& place) const noexcept;
    /// The identifier that the client sends: a new one for each destination, as if an echo program
    /// were started for each. Those of a customer edge are the ports of its set (RFC 7599 section
    /// 9).
    [[nodiscard]] std::uint16_t identifier_of(const EchoPlace& place, const FrameValues& values) const noexcept {
        return edges() == nullptr ? place.identifier() : edges()->port_at(values.edge(), place.destination);
    }
    /// nullptr if clients are hosts.
    [[nodiscard]] const EdgeTraffic* edges() const noexcept { return stream_->edges(); }

    // Each writes what varies into a buffer that holds the template.
    void write_request(std::byte* frame, std::uint64_t index, pace::Ticks now) const noexcept;
    void write_reply(std::byte* frame, const EchoAnswer& answer) const noexcept;
    /// As a correct gateway forwards it; a stateful one, if it chose this source.
    void write_expected_request(std::byte* frame, const EchoAnswer& answer) const noexcept;
    void write_expected_reply(std::byte* frame, std::uint64_t index, pace::Ticks now) const noexcept;

private:
    Echo() = default;
    [[nodiscard]] std::uint16_t public_identifier(const EchoPlace& place, const FrameValues& values,
                                                  const PublicSource& source) const noexcept {
        return outside_ ? source.identifier : identifier_of(place, values);
    }

    EchoNumbers numbers_;
    std::optional<Stream> stream_;  ///< of the requests, for the addresses of hosts on the link
    HostSet clients_;
    std::vector<std::uint64_t> client_edges_;  ///< their numbers, by client
    std::optional<std::uint16_t> client_vlan_;
    Divider values_{1};  ///< how many values the hosts of a network have
    Divider hosts_{1};   ///< how many hosts there are; clients with more destinations than that together share them
    std::uint16_t first_client_ = 0, first_destination_ = 0;
    std::optional<PublicSide> outside_;
    EchoFrame sent_request_, expected_request_, sent_reply_, expected_reply_;
};

}  // namespace gatemark::frame
