#pragma once

#include "frame/echo.hpp"
#include "frame/gateway_edge.hpp"
#include "net/address_pool.hpp"
#include "pace/mix.hpp"
#include "pace/schedule.hpp"
#include "pace/tick_scale.hpp"
#include "record/tagged_delays.hpp"
#include "trial/requests.hpp"

#include <array>
#include <variant>

namespace gatemark::trial {

/// One direction of a trial, checked and computed.
struct DirectionPlan {
    Direction direction = Direction::forward;
    std::uint64_t frames_per_second = 1, frame_count = 0;
    std::optional<RateStep> step;
    std::optional<pace::BurstyTraffic> bursts;
    std::optional<pace::FlowStart> flow_start;
    std::optional<record::TagPlaces> tags;
    pace::Mix mix{1, 1};
    std::optional<frame::Stream> foreground, background;

    [[nodiscard]] pace::Load load(const pace::TickScale& scale) const noexcept;
    [[nodiscard]] std::uint64_t intended_foreground() const noexcept { return mix.foreground_before(frame_count); }
    [[nodiscard]] std::uint64_t intended_background() const noexcept { return frame_count - intended_foreground(); }
};

/// Which connections a state table was filled with: a trial that uses it must have the same ones.
struct ConnectionIdentity {
    enumerate::TupleRanges ranges;
    enumerate::Order order = enumerate::Order::pseudorandom;
    std::uint64_t count = 1, seed = 0;
    Side initiator = Side::left;
    frame::HostSet sources, destinations;
    std::optional<frame::HostSet> subscribers;  ///< whose hosts the sources are, in tunnels
    std::optional<frame::PeersRequest> peers;   ///< the destinations are other customer edges
    net::AddressPool pool;
    std::optional<frame::GatewayEdge> edge;  ///< the gateway is a customer edge
    friend bool operator==(const ConnectionIdentity&, const ConnectionIdentity&) = default;
};

/// The connections of a trial, checked and computed.
struct ConnectionPlan {
    state::Phase phase = state::Phase::establish;
    bool draws = false;  ///< the Initiator draws the connection of each frame, so that some come again and some never
    ConnectionIdentity identity;

    [[nodiscard]] Direction upload() const noexcept { return identity.initiator == Side::left ? Direction::forward : Direction::reverse; }
    [[nodiscard]] enumerate::ConnectionSet set() const noexcept;
};

/// The echo requests of a trial, checked and computed. They are the forward direction, their
/// replies the reverse one; neither has streams.
struct EchoPlan {
    frame::Echo echo;
    std::optional<std::chrono::nanoseconds> pace_without_reply;  ///< of a closed loop
    std::chrono::nanoseconds timeout{};
};

/// Everything about a trial that can be computed before its first frame. Making a plan is the last
/// step that may fail.
struct TrialPlan {
    std::uint32_t trial_id = 0;
    std::optional<ConnectionPlan> connections;
    std::optional<EchoPlan> echo;
    std::vector<DirectionPlan> directions;  ///< one or two, forward first

    [[nodiscard]] const DirectionPlan* direction(Direction wanted) const noexcept {
        for (const DirectionPlan& plan : directions) {
            if (plan.direction == wanted) {
                return &plan;
            }
        }
        return nullptr;
    }
};

/// What a trial must know about the ports: the link-layer addresses of Tester and gateway, and VLAN
/// tags.
struct LinkPlan {
    std::array<frame::LinkAddresses, 2> sides;  ///< by Side
};

/// Returns all problems at once.
[[nodiscard]] std::variant<TrialPlan, Errors> make_trial_plan(const TrialRequest& request, const LinkPlan& links);

/// One bit per frame is kept; a trial that needs more than 8 GiB of bits is a mistake.
constexpr std::uint64_t frame_count_limit = std::uint64_t{1} << 36;

/// Adds what only a stream of customer edges can have wrong; nothing for any other.
void check_edges(const frame::StreamRequest& request, std::uint64_t seed, frame::signature::TrafficClass traffic_class,
                 const std::string& where, Errors& errors);

/// The customer edge that the gateway is, if it is one. Its only public address is its MAP address,
/// or that of the family outside, which the pool must hold as well: who asks has computed it too.
/// `where` has the keys of both.
[[nodiscard]] std::optional<frame::GatewayEdge> plan_edge(const std::optional<EdgeRequest>& request, const std::vector<net::Prefix>& pool,
                                                          const frame::StreamRequest* initiator, net::Family outside,
                                                          const std::string& where, Errors& errors);

/// Adds what is wrong with a set of hosts.
void check_hosts(const frame::HostSet& hosts, const std::string& where, Errors& errors);

/// The number of frames in `duration` at `frames_per_second`: floor(duration * rate), in 128 bits.
[[nodiscard]] std::uint64_t frame_count_of(std::chrono::nanoseconds duration, std::uint64_t frames_per_second) noexcept;

}  // namespace gatemark::trial
