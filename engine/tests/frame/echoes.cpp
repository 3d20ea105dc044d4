#include "frame/echoes.hpp"

#include <stdexcept>

namespace gatemark::test {

frame::StreamRequest echo_request(Gateway gateway, std::size_t frame_octets) {
    frame::StreamRequest request = request_for(gateway, frame_octets);
    const bool is_ipv4 = gateway == Gateway::router44 || gateway == Gateway::siit46;
    request.frame_octets = frame_octets != 0 ? frame_octets : is_ipv4 ? 102 : 122;
    const auto hosts = [](const frame::HostSet& like, std::uint16_t last) {
        frame::HostSet result = like;
        result.offset = like.address.family == net::Family::ipv4 ? 2 : 14;
        result.part = {frame::ValueMode::increasing, 2, last};
        result.networks = 1;
        return result;
    };
    request.source = hosts(request.source, 254);
    request.destination = hosts(request.destination, 65535);
    request.source_ports = request.destination_ports = {};
    return request;
}

frame::StreamRequest echo_request_of(const frame::EdgesRequest& edges, std::size_t frame_octets) {
    frame::StreamRequest request = edges_request(edges, frame::signature::Direction::forward);
    request.frame_octets = frame_octets;
    request.destination.part = {frame::ValueMode::increasing, 2, 65535};
    request.source_ports = request.destination_ports = {};
    return request;
}

frame::Echo make_echo(const frame::StreamRequest& request, const frame::EchoShape& shape, const std::optional<std::string>& pool,
                      const Vlans& vlans, const std::optional<std::uint64_t>& host_macs_seed,
                      const std::optional<frame::GatewayEdge>& edge) {
    frame::LinkAddresses left{.source = sending_mac, .destination = receiving_mac, .vlan_id = vlans.sent};
    frame::LinkAddresses right{.source = receiving_mac, .destination = sending_mac, .vlan_id = vlans.received};
    if (host_macs_seed) {
        left.host_macs = sending_macs(*host_macs_seed);
        right.host_macs = receiving_macs(*host_macs_seed);
    }
    std::optional<frame::PublicSide> outside;
    if (pool) {
        outside = {std::get<net::AddressPool>(net::AddressPool::make({*net::parse_prefix(*pool)}, "pool")), edge};
    }
    auto echo = frame::Echo::make(request, shape, outside, seed, trial_id(), left, right, "stream");
    if (const Error* error = error_of(echo)) {
        throw std::invalid_argument{error->what};
    }
    return std::get<frame::Echo>(std::move(echo));
}

Bytes sent_request(const frame::Echo& echo, std::uint64_t index, std::uint64_t ticks) {
    Bytes bytes = echo.sent_request().frame_template.frame;
    echo.write_request(bytes.data(), index, {ticks});
    return bytes;
}

Bytes expected_request(const frame::Echo& echo, const frame::EchoAnswer& answer) {
    Bytes bytes = echo.expected_request().frame_template.frame;
    echo.write_expected_request(bytes.data(), answer);
    return bytes;
}

Bytes sent_reply(const frame::Echo& echo, const frame::EchoAnswer& answer) {
    Bytes bytes = echo.sent_reply().frame_template.frame;
    echo.write_reply(bytes.data(), answer);
    return bytes;
}

Bytes expected_reply(const frame::Echo& echo, std::uint64_t index, std::uint64_t ticks) {
    Bytes bytes = echo.expected_reply().frame_template.frame;
    echo.write_expected_reply(bytes.data(), index, {ticks});
    return bytes;
}

}  // namespace gatemark::test
