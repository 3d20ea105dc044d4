#include "control/server.hpp"

#include "base/wide.hpp"
#include "control/read_requests.hpp"
#include "control/write_answers.hpp"
#include "pace/calibrate.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <list>
#include <new>
#include <system_error>

namespace gatemark::control {

namespace {

using Json = nlohmann::json;

constexpr int protocol_version = 22;

/// Watches for `cancel`, `close` and the end of the client while a request takes its time. All
/// lines but `cancel` are answered after that request.
class ClientWatcher final : public trial::Watcher {
public:
    ClientWatcher(LineChannel& channel, Json id) : channel_{channel}, id_(std::move(id)) {}
    ~ClientWatcher() override { channel_.put_back(std::move(later_)); }
    ClientWatcher(const ClientWatcher&) = delete;
    ClientWatcher& operator=(const ClientWatcher&) = delete;

    bool wait(std::chrono::nanoseconds time) override {
        auto line = channel_.read(time);
        if (!line) {
            return !channel_.ended();
        }
        const Json message = Json::parse(*line, nullptr, false);
        const auto asks_for = [&](const char* kind) {  // `value` would throw if "request" were not a string
            return message.is_object() && message.contains("request") && message["request"] == kind;
        };
        if (asks_for("cancel")) {
            return false;
        }
        const bool closes = asks_for("close");
        later_.push_back(std::move(*line));
        return !closes;
    }
    void report(const trial::Progress& progress) override {
        Json answer = to_json(progress);
        answer["answer"] = "progress";
        answer["id"] = id_;
        channel_.write(answer.dump());
    }

private:
    LineChannel& channel_;
    Json id_;
    std::list<std::string> later_;
};

bool counter_is_invariant() {
    std::ifstream info{"/proc/cpuinfo"};
    for (std::string line; std::getline(info, line);) {
        if (line.starts_with("flags")) {
            return line.find(" constant_tsc") != std::string::npos && line.find(" nonstop_tsc") != std::string::npos;
        }
    }
#if defined(__aarch64__)
    return true;  // guaranteed by the architecture for the generic timer
#else
    return false;
#endif
}

Errors not_open() { return {{"no port is open", "", "send `open` first"}}; }

}  // namespace

Server::Server(LineChannel& channel, std::uint64_t ticks_per_second) : channel_{channel}, ticks_per_second_{ticks_per_second} {}
Server::~Server() = default;

void Server::serve() {
    while (!closing_ && !channel_.ended()) {
        answer_next_line();
    }
}

/// Whatever memory or thread is missing, for whatever step of a request, its answer is one error,
/// and the next request is taken.
void Server::answer_next_line() {
    Json id;
    const auto refuse = [&](const Error& error) {
        channel_.write(Json{{"answer", "error"}, {"id", id}, {"errors", to_json(Errors{error})}}.dump());
    };
    try {
        if (const auto line = channel_.read(std::chrono::nanoseconds{-1}); line && !line->empty()) {
            answer_line(*line, id);
        }
    } catch (const std::bad_alloc&) {
        refuse({"no memory is left for this request", "memory",
                "free memory, or raise the limits of this process (ulimit -v, control group); or ask for less"});
    } catch (const std::system_error& error) {
        refuse({error.what(), "this machine", "raise the limits of this process (ulimit -u, control group)"});
    }
}

void Server::answer_line(const std::string& line, Json& id) {
    const Json message = Json::parse(line, nullptr, false);
    Json answer{{"answer", "ok"}, {"id", nullptr}};
    Errors errors;
    if (!message.is_object() || !message.contains("id") || !message["id"].is_number_integer() || !message.contains("request") ||
        !message["request"].is_string()) {
        errors.push_back({"a line is not a request", "", "send one JSON object per line with `request` and an integer `id`"});
    } else {
        answer["id"] = id = message["id"];
        if (message["request"] == "cancel") {
            return;  // its trial has already ended
        }
        errors = handle(message["request"].get<std::string>(), message, answer);
    }
    if (!errors.empty()) {
        answer = {{"answer", "error"}, {"id", answer["id"]}, {"errors", to_json(errors)}};
    }
    channel_.write(answer.dump());
}

Errors Server::handle(const std::string& kind, const Json& message, Json& answer) {
    if (kind == "hello" || kind == "link" || kind == "connections" || kind == "close") {
        Errors errors;
        read_bare_request(message, errors);
        if (!errors.empty()) {
            return errors;
        }
    }
    if (kind == "hello") {
        return hello(answer);
    }
    if (kind == "open") {
        return open(message, answer);
    }
    if (kind == "layout") {
        return layout(message, answer);
    }
    if (kind == "frames") {
        return frames(message, answer);
    }
    if (kind == "close") {
        tester_.reset();
        closing_ = true;
        return {};
    }
    if (kind == "resolve" || kind == "trial" || kind == "exchange" || kind == "connections" || kind == "link") {
        if (!tester_) {
            return not_open();
        }
        return kind == "resolve"       ? resolve(message, answer)
               : kind == "trial"       ? trial(message, answer)
               : kind == "exchange"    ? exchange(message, answer)
               : kind == "connections" ? connections(answer)
                                       : link(answer);
    }
    return {{"request `" + kind + "` is unknown", "request",
             "send hello, open, resolve, trial, exchange, connections, frames, layout, link or close"}};
}

Errors Server::hello(Json& answer) const {
    answer["protocol"] = protocol_version;
    answer["version"] = GATEMARK_VERSION;
    answer["build"] = GATEMARK_BUILD;
    answer["dpdk"] = io::DpdkEnvironment::version();
    answer["tsc_hz"] = ticks_per_second_;
    answer["tsc_invariant"] = counter_is_invariant();
    const pace::ClockQuality clock = pace::clock_quality();
    const auto picoseconds = [&](std::uint64_t ticks) {
        return static_cast<std::uint64_t>(static_cast<Wide>(ticks) * 1'000'000'000'000 / ticks_per_second_);
    };
    answer["clock"] = {{"resolution_ps", picoseconds(clock.resolution.value)},
                       {"read_ps", picoseconds(clock.ticks_per_hundred_reads) / 100}};
    answer["cpus"] = machine_.allowed();
    return {};
}

Errors Server::open(const Json& message, Json& answer) {
    if (tester_) {
        return {{"ports are open already", "", "ports are opened once in the life of an engine; start another one"}};
    }
    Errors errors;
    const trial::OpenRequest request = read_open_request(message, errors);
    if (!errors.empty()) {
        return errors;
    }
    auto opened = trial::Tester::open(request, machine_, ticks_per_second_);
    if (auto* problems = std::get_if<Errors>(&opened)) {
        return std::move(*problems);
    }
    tester_ = std::get<std::unique_ptr<trial::Tester>>(std::move(opened));
    const trial::OpenedFacts facts = tester_->facts();
    answer["left"] = to_json(facts.ports[0]);
    answer["right"] = to_json(facts.ports[1]);
    answer.update(to_json(facts.layout));
    answer["huge_pages"] = facts.huge_pages;
    return {};
}

Errors Server::resolve(const Json& message, Json& answer) {
    Errors errors;
    const trial::ResolveRequest request = read_resolve_request(message, errors);
    if (!errors.empty()) {
        return errors;
    }
    ClientWatcher watcher{channel_, message["id"]};
    const auto resolved = tester_->resolve(request, watcher);
    if (const auto* problems = std::get_if<Errors>(&resolved)) {
        return *problems;
    }
    answer["side"] = trial::name_of(request.side);
    answer["gateway"] = net::to_text(request.gateway);
    answer["mac"] = net::to_text(std::get<net::MacAddress>(resolved));
    return {};
}

Errors Server::trial(const Json& message, Json& answer) {
    Errors errors;
    const trial::TrialRequest request = read_trial_request(message, errors);
    if (!errors.empty()) {
        return errors;
    }
    ClientWatcher watcher{channel_, message["id"]};
    auto report = tester_->run(request, watcher);
    if (auto* problems = std::get_if<Errors>(&report)) {
        return std::move(*problems);
    }
    answer.update(to_json(std::get<trial::TrialReport>(report), pace::TickScale{ticks_per_second_}));
    return {};
}

Errors Server::exchange(const Json& message, Json& answer) {
    Errors errors;
    const trial::ExchangeRequest request = read_exchange_request(message, errors);
    if (!errors.empty()) {
        return errors;
    }
    ClientWatcher watcher{channel_, message["id"]};
    const auto report = tester_->exchange(request, watcher);
    if (const auto* problems = std::get_if<Errors>(&report)) {
        return *problems;
    }
    answer.update(to_json(std::get<trial::ExchangeReport>(report)));
    return {};
}

Errors Server::connections(Json& answer) const {
    const auto behaviour = tester_->behaviour();
    if (const auto* problems = std::get_if<Errors>(&behaviour)) {
        return *problems;
    }
    answer.update(to_json(std::get<state::Behaviour>(behaviour)));
    answer["count"] = tester_->connection_count();
    return {};
}

Errors Server::frames(const Json& message, Json& answer) const {
    Errors errors;
    const trial::FramesRequest request = read_frames_request(message, errors);
    if (!errors.empty()) {
        return errors;
    }
    const auto frames = trial::preview_frames(request);
    if (const auto* problems = std::get_if<Errors>(&frames)) {
        return *problems;
    }
    answer["frames"] = to_json(std::get<std::vector<trial::PreviewedFrame>>(frames));
    return {};
}

Errors Server::layout(const Json& message, Json& answer) const {
    Errors errors;
    const trial::LayoutRequest request = read_layout_request(message, errors);
    if (!errors.empty()) {
        return errors;
    }
    const auto layout = trial::preview_layout(request, machine_);
    if (const auto* problems = std::get_if<Errors>(&layout)) {
        return *problems;
    }
    answer.update(to_json(std::get<trial::Layout>(layout)));
    return {};
}

Errors Server::link(Json& answer) const {
    const trial::OpenedFacts facts = tester_->facts();
    answer["left"] = to_json(facts.ports[0]);
    answer["right"] = to_json(facts.ports[1]);
    return {};
}

}  // namespace gatemark::control
