#pragma once

#include "frame/echo_numbers.hpp"
#include "frame/stream.hpp"
#include "pace/schedule.hpp"
#include "state/connection_keeper.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The requests of the other half of gatemark, as types; `control` reads them from JSON.
namespace gatemark::trial {

enum class Side : std::uint8_t { left, right };
[[nodiscard]] constexpr const char* name_of(Side side) noexcept { return side == Side::left ? "left" : "right"; }

using frame::signature::Direction;
[[nodiscard]] constexpr const char* name_of(Direction direction) noexcept {
    return direction == Direction::forward ? "forward" : "reverse";
}
/// RFC 4814 section 4.2 numbers the Tester's ports from 1 on.
[[nodiscard]] constexpr net::HostMacs host_macs_of(Side side, std::uint64_t seed) noexcept {
    return {seed, static_cast<std::uint16_t>(static_cast<unsigned>(side) + 1)};
}
[[nodiscard]] constexpr Side sending_side(Direction direction) noexcept {
    return direction == Direction::forward ? Side::left : Side::right;
}
[[nodiscard]] constexpr Side receiving_side(Direction direction) noexcept {
    return direction == Direction::forward ? Side::right : Side::left;
}

struct SideRequest {
    std::string port;
    std::optional<unsigned> queues;  ///< if absent, `decide_layout` chooses
    unsigned ring_frames = 4096, mtu = 1500;
    std::optional<std::uint16_t> vlan_id;
    std::vector<frame::HostSet> answer_for;
    std::vector<frame::EdgesRequest> answer_for_edges{};  ///< that are on the link themselves
    bool random_host_macs = false;                        ///< each host has a MAC address of its own (RFC 4814 section 4.2)
    bool teach_hosts = true;                              ///< whether learning frames tell the gateway where each of them is
    std::optional<net::MacAddress> gateway_mac;
};

/// What the layout of the tasks depends on, apart from the machine.
struct LayoutRequest {
    std::array<std::string, 2> ports{};               ///< by Side
    std::array<std::optional<unsigned>, 2> queues{};  ///< if absent, `decide_layout` chooses
    std::vector<unsigned> cores{};                    ///< if empty, `decide_layout` chooses
};

struct OpenRequest {
    SideRequest left, right;
    std::uint64_t seed = 0;         ///< of the hosts' MAC addresses
    std::vector<unsigned> cores{};  ///< if empty, `decide_layout` chooses
    bool huge_pages_allowed = true;
};

struct ResolveRequest {
    Side side = Side::left;
    net::Address gateway, source;
    std::chrono::nanoseconds timeout{};
};

/// Packets that are sent exactly as they are, one after the other, both sides at once.
struct ExchangeRequest {
    static constexpr std::size_t packets_max = 1024;             ///< of one side
    std::array<std::vector<std::vector<std::byte>>, 2> packets;  ///< by Side: IP packets
    std::chrono::nanoseconds interval{};                         ///< from one packet of a side to the next
    std::chrono::nanoseconds wait{};                             ///< after the last one, for what comes back
};

/// RFC 2544 section 23: after a routing update, after learning frames, for residual frames, for the
/// DUT to restabilise.
struct Waits {
    std::chrono::nanoseconds settle{}, learn{}, drain{}, rest{};
};

/// From `after` on the load is different (RFC 2544 section 26.5).
struct RateStep {
    std::chrono::nanoseconds after{};
    std::uint64_t frames_per_second = 1;
};

struct DirectionRequest {
    Direction direction = Direction::forward;
    std::uint64_t frames_per_second = 1;  ///< 0 in a closed loop
    std::optional<RateStep> step{};
    std::optional<pace::BurstyTraffic> bursts{};
    std::optional<pace::FlowStart> flow_start{};
    std::uint32_t foreground_m = 1, foreground_n = 1;
    std::optional<frame::StreamRequest> foreground, background;
};

/// One customer edge: the rule of its domain, and the value of its EA bits.
struct EdgeRequest {
    net::MapRule rule;
    std::uint64_t ea = 0;
};

/// A trial as one phase of a stateful test (RFC 9693 section 4). The four-tuples are those of the
/// Initiator's foreground stream.
struct ConnectionsRequest {
    state::Phase phase = state::Phase::establish;
    Side initiator = Side::left;
    std::uint64_t count = 1;
    enumerate::Order order = enumerate::Order::pseudorandom;
    enumerate::ConnectionChoice::Mode send_order = enumerate::ConnectionChoice::Mode::increasing;    ///< of the Initiator
    enumerate::ConnectionChoice::Mode read_order = enumerate::ConnectionChoice::Mode::pseudorandom;  ///< of the Responder
    std::vector<net::Prefix> pool;
    std::optional<EdgeRequest> edge{};  ///< the gateway is this customer edge
};

/// The frames of a trial are echo requests and their replies: clients on the left, and a Responder
/// on the right that answers them.
struct EchoRequest {
    static constexpr std::uint64_t clients_max = 4096, window_max = 1024, count_max = 65536, destinations_max = std::uint64_t{1} << 24;
    frame::EchoShape shape;
    std::optional<std::vector<net::Prefix>> pool{};                ///< public addresses of a stateful gateway
    std::optional<EdgeRequest> edge{};                             ///< the gateway is this customer edge
    std::optional<std::chrono::nanoseconds> pace_without_reply{};  ///< of a closed loop; otherwise requests are due at the rate
    std::chrono::nanoseconds timeout{};                            ///< replies that take longer are late
};

/// `count` tagged frames in each direction, spread evenly from `first` on (RFC 8219 section 7.2).
struct TagsRequest {
    std::chrono::nanoseconds first{};
    std::uint64_t count = 1;
};

/// What is recorded of delays beyond the percentiles of all frames.
struct DelaysRequest {
    std::optional<std::chrono::nanoseconds> timeout{};  ///< frames that take longer are late
    std::optional<TagsRequest> tags{};
    bool variation = false, histogram = false;
};

struct TrialRequest {
    std::uint32_t trial_number = 0;
    std::uint64_t seed = 0;
    std::chrono::nanoseconds duration{};
    Waits waits;
    std::chrono::nanoseconds give_up_lateness{}, progress{};
    std::size_t kept_frames_max = 4;
    DelaysRequest delays{};
    std::optional<ConnectionsRequest> connections{};  ///< present for a stateful gateway
    std::optional<EchoRequest> echo{};
    std::vector<DirectionRequest> directions;
};

/// A preview of the frames that a trial would send; needs no port.
struct FramesRequest {
    std::uint64_t count = 1;
    TrialRequest trial;
    net::MacAddress left_mac{}, right_mac{};
    std::optional<std::uint16_t> left_vlan_id, right_vlan_id;
    std::array<bool, 2> random_host_macs{};  ///< by Side; keyed by the trial's seed
};

}  // namespace gatemark::trial
