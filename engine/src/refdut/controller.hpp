#pragma once

#include "io/forward_queue.hpp"
#include "io/kernel_drops.hpp"
#include "pace/tick_scale.hpp"
#include "refdut/gateway.hpp"
#include "refdut/worker.hpp"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <memory>
#include <string>

namespace gatemark::refdut {

using RealGateway = Gateway<io::ForwardQueue>;
using RealWorker = Worker<RealGateway, Command>;

/// Answers the control socket's lines: one JSON object in, one out.
class Controller {
public:
    /// `file` is what `reload` reads again. `program` is what the gateway follows. Ports, gateway
    /// and worker outlive the controller.
    Controller(std::string file, std::unique_ptr<Program> program, std::array<net::MacAddress, 2> own_macs, const pace::TickScale& scale,
               const std::array<const io::DpdkPort*, 2>& ports);

    /// The worker polls from now on; the counts begin.
    void start(RealWorker& worker);
    [[nodiscard]] std::string answer(const std::string& line);
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }
    [[nodiscard]] Program& program() noexcept { return *program_; }

private:
    [[nodiscard]] nlohmann::json execute(const nlohmann::json& request);
    [[nodiscard]] nlohmann::json load(const std::string& path);
    [[nodiscard]] Snapshot snapshot();
    /// Totals since the ports were opened, by side.
    [[nodiscard]] std::array<std::uint64_t, 2> missed();
    void reset_counts();

    std::string file_;
    std::unique_ptr<Program> program_;
    std::array<net::MacAddress, 2> own_macs_;
    pace::TickScale scale_;
    std::array<io::DropReader, 2> drops_;
    std::array<std::uint64_t, 2> missed_at_reset_{};
    RealWorker* worker_ = nullptr;
    bool stopped_ = false;
};

}  // namespace gatemark::refdut
