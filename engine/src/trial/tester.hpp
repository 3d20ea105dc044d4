#pragma once

#include "base/result.hpp"
#include "io/dpdk_environment.hpp"
#include "io/dpdk_port.hpp"
#include "state/behaviour.hpp"
#include "trial/layout.hpp"
#include "trial/machine.hpp"
#include "trial/report.hpp"
#include "trial/requests.hpp"
#include "trial/watcher.hpp"

#include <array>
#include <memory>
#include <variant>

namespace gatemark::trial {

struct TesterParts;

struct OpenedFacts {
    std::array<io::PortFacts, 2> ports;  ///< by Side
    Layout layout;
    bool huge_pages = false;
};

/// How `Tester::open` would lay out the tasks. Opens nothing, so it does not include what only a
/// driver knows, and says so.
[[nodiscard]] std::variant<Layout, Errors> preview_layout(const LayoutRequest& request, const Machine& machine);

/// The opened Tester: two ports, their queues, and the workers that poll them. It answers
/// neighbours for its whole life, between trials as well.
class Tester {
public:
    /// From then on the calling thread runs on the CPUs that the workers leave.
    [[nodiscard]] static std::variant<std::unique_ptr<Tester>, Errors> open(const OpenRequest& request, const Machine& machine,
                                                                            std::uint64_t ticks_per_second);
    ~Tester();
    Tester(const Tester&) = delete;
    Tester& operator=(const Tester&) = delete;

    [[nodiscard]] OpenedFacts facts() const;
    /// Resolves the gateway's link-layer address and remembers it for the port (RFC 826, RFC 4861
    /// section 7.2).
    [[nodiscard]] std::variant<net::MacAddress, Errors> resolve(const ResolveRequest& request, Watcher& watcher);
    [[nodiscard]] std::variant<TrialReport, Errors> run(const TrialRequest& request, Watcher& watcher);
    /// Sends packets as they are and returns all that arrives meanwhile. Neighbours are answered.
    [[nodiscard]] std::variant<ExchangeReport, Errors> exchange(const ExchangeRequest& request, Watcher& watcher);
    /// What the state table says about the gateway, after a trial that established connections.
    [[nodiscard]] std::variant<state::Behaviour, Errors> behaviour() const;
    /// Connections of the last trial that established any; 0 before the first such trial.
    [[nodiscard]] std::uint64_t connection_count() const;

private:
    explicit Tester(std::unique_ptr<TesterParts> parts);
    std::unique_ptr<TesterParts> parts_;
};

}  // namespace gatemark::trial
