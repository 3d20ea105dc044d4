#pragma once

#include "frame/customer_edges.hpp"
#include "frame/recognizer.hpp"
#include "frame/stream.hpp"
#include "frame/verification.hpp"
#include "golden/slow_packet.hpp"

/// Streams for tests: a request for each kind of gateway, and their frames.
namespace gatemark::test {

constexpr std::uint64_t seed = 42;
constexpr std::uint32_t trial_number = 7;
constexpr const char* prefix_96 = "64:ff9b::";
[[nodiscard]] inline std::uint32_t trial_id() { return frame::signature::trial_id_of(seed, trial_number); }

/// Of the ports. What the gateway forwards has them as well: it is as if each of its ports had the
/// address of the Tester's port at its other side.
inline constexpr net::MacAddress sending_mac{std::byte{2}, {}, {}, {}, {}, std::byte{1}},
    receiving_mac{std::byte{2}, {}, {}, {}, {}, std::byte{2}};

enum class Gateway : std::uint8_t { router44, router66, siit64, siit46 };
inline constexpr std::array<Gateway, 4> all_gateways{Gateway::router44, Gateway::router66, Gateway::siit64, Gateway::siit46};

[[nodiscard]] frame::HostSet fixed_host(const std::string& address);
[[nodiscard]] frame::HostSet varying_host(const std::string& address, std::size_t offset, frame::ValueMode mode, std::uint16_t minimum,
                                          std::uint16_t maximum, std::uint16_t networks = 1);
[[nodiscard]] net::AddressMapping mapping_of(const std::string& prefix,
                                             const std::vector<std::pair<std::string, std::string>>& explicit_mappings = {});

/// A MAP domain whose default mapping rule has the prefix 2001:db8:ffff::/64.
[[nodiscard]] frame::EdgeDomain edge_domain(const std::string& ipv6, const std::string& ipv4, unsigned ea_bits, unsigned psid_offset);

/// Hosts that vary, ports that vary, the smallest frame; translation, if any, by RFC 6052 with
/// prefix_96/96. Translators decrement by 3, routers by 1.
[[nodiscard]] frame::StreamRequest request_for(Gateway gateway, std::size_t frame_octets = 0);
/// Customer edges on the left, IPv4 hosts on the right, a border relay that decrements by 1 between
/// them.
[[nodiscard]] frame::StreamRequest edges_request(const frame::EdgesRequest& edges, frame::signature::Direction direction,
                                                 frame::ValueMode ports = frame::ValueMode::pseudorandom, bool as_sent = false,
                                                 std::size_t frame_octets = 0);
/// The same with tunnels in the place of translation: the border relay of MAP-E has the address
/// 2001:db8:ffff::1 and writes hop limit 64.
[[nodiscard]] frame::StreamRequest map_e_request(frame::EdgesRequest edges, frame::signature::Direction direction,
                                                 std::size_t inner_octets = 64);
/// `count` connections through an AFTR at 2001:db8:0:2::1 that writes hop limit 64 (RFC 6333): from
/// 5 ports of each of the `hosts` that each of the `subscribers` has, to 5 hosts with 2 ports.
[[nodiscard]] frame::StreamRequest aftr_request(frame::Role role, const frame::HostSet& subscribers, const frame::HostSet& hosts,
                                                std::uint64_t count, enumerate::ConnectionChoice::Mode choice);
[[nodiscard]] constexpr std::size_t smallest_frame(Gateway gateway) {
    return gateway == Gateway::router44 || gateway == Gateway::siit46 ? 64 : 84;
}

struct Vlans {
    std::optional<std::uint16_t> sent, received;
};
[[nodiscard]] frame::Stream make_stream(const frame::StreamRequest& request, const Vlans& vlans = {},
                                        frame::signature::TrafficClass traffic_class = frame::signature::TrafficClass::foreground,
                                        frame::signature::Direction direction = frame::signature::Direction::forward,
                                        const std::optional<std::uint64_t>& host_macs_seed = std::nullopt);
/// The addresses of the hosts behind the sending port and behind the receiving one.
[[nodiscard]] inline net::HostMacs sending_macs(std::uint64_t host_macs_seed) { return {host_macs_seed, 1}; }
[[nodiscard]] inline net::HostMacs receiving_macs(std::uint64_t host_macs_seed) { return {host_macs_seed, 2}; }

[[nodiscard]] Bytes frame_in(const frame::FrameTemplate& frame_template, const frame::Stream& stream, std::uint64_t number_in_class,
                             std::uint64_t index, std::uint64_t ticks = 0x0123456789abcdef);
[[nodiscard]] Bytes sent_frame(const frame::Stream& stream, std::uint64_t number_in_class, std::uint64_t index);

/// The names of all reasons in a set.
[[nodiscard]] std::string names_of(const frame::Faults& faults);
/// What verification says of a frame that claims to have this number in its class.
[[nodiscard]] std::string faults_of(const frame::Stream& stream, std::span<const std::byte> frame, std::uint64_t number_in_class = 5);

/// Whether the recognizer takes a frame for the correct one with this number in its class.
[[nodiscard]] bool recognizes(const frame::Recognizer& recognizer, std::span<const std::byte> frame, std::uint64_t number_in_class);

/// What a correct gateway makes of `sent`, by the slow translator. The identification of translated
/// IPv4 packets is 0xbeef.
[[nodiscard]] SlowPacket forwarded(std::span<const std::byte> sent, Gateway gateway,
                                   std::optional<std::uint16_t> received_vlan = std::nullopt);

}  // namespace gatemark::test
