#pragma once

#include "base/result.hpp"
#include "control/line_channel.hpp"
#include "trial/machine.hpp"
#include "trial/tester.hpp"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>

namespace gatemark::control {

/// Answers requests, one at a time, until a `close` request or the end of the client
/// (protocol/README.md).
class Server {
public:
    Server(LineChannel& channel, std::uint64_t ticks_per_second);
    ~Server();
    void serve();

private:
    /// Fills the answer, or returns what is wrong.
    [[nodiscard]] Errors handle(const std::string& kind, const nlohmann::json& message, nlohmann::json& answer);
    [[nodiscard]] Errors hello(nlohmann::json& answer) const;
    [[nodiscard]] Errors open(const nlohmann::json& message, nlohmann::json& answer);
    [[nodiscard]] Errors resolve(const nlohmann::json& message, nlohmann::json& answer);
    [[nodiscard]] Errors trial(const nlohmann::json& message, nlohmann::json& answer);
    [[nodiscard]] Errors exchange(const nlohmann::json& message, nlohmann::json& answer);
    [[nodiscard]] Errors connections(nlohmann::json& answer) const;
    [[nodiscard]] Errors frames(const nlohmann::json& message, nlohmann::json& answer) const;
    [[nodiscard]] Errors layout(const nlohmann::json& message, nlohmann::json& answer) const;
    [[nodiscard]] Errors link(nlohmann::json& answer) const;
    /// `id`: of the request that the line holds, as soon as it is known.
    void answer_line(const std::string& line, nlohmann::json& id);
    void answer_next_line();

    LineChannel& channel_;
    std::uint64_t ticks_per_second_;
    const trial::Machine machine_ = trial::read_machine();  ///< read before this thread leaves CPUs to the workers
    std::unique_ptr<trial::Tester> tester_;
    bool closing_ = false;
};

}  // namespace gatemark::control
