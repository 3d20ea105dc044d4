#pragma once

#include "frame/echo.hpp"
#include "frame/streams.hpp"

/// Echo requests for tests.
namespace gatemark::test {

/// 3 clients with a window of 2, 4 destinations each and 3 requests to each of them: 36 requests.
inline constexpr frame::EchoShape small_shape{.clients = 3, .window = 2, .count = 3, .destinations = 4};

/// Clients from ...:2 on, destinations from ...:2 on, 56 octets of data, which is what `ping`
/// sends; translation as in `request_for`.
[[nodiscard]] frame::StreamRequest echo_request(Gateway gateway, std::size_t frame_octets = 0);
/// Customer edges as clients, through a border relay that decrements by 1.
[[nodiscard]] frame::StreamRequest echo_request_of(const frame::EdgesRequest& edges, std::size_t frame_octets = 122);
[[nodiscard]] frame::Echo make_echo(const frame::StreamRequest& request, const frame::EchoShape& shape = small_shape,
                                    const std::optional<std::string>& pool = std::nullopt, const Vlans& vlans = {},
                                    const std::optional<std::uint64_t>& host_macs_seed = std::nullopt,
                                    const std::optional<frame::GatewayEdge>& edge = std::nullopt);

[[nodiscard]] Bytes sent_request(const frame::Echo& echo, std::uint64_t index, std::uint64_t ticks = 1000);
[[nodiscard]] Bytes expected_request(const frame::Echo& echo, const frame::EchoAnswer& answer);
[[nodiscard]] Bytes sent_reply(const frame::Echo& echo, const frame::EchoAnswer& answer);
[[nodiscard]] Bytes expected_reply(const frame::Echo& echo, std::uint64_t index, std::uint64_t ticks = 1000);

}  // namespace gatemark::test
