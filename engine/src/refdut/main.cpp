#include "refdut/config.hpp"
#include "refdut/config_reader.hpp"
#include "refdut/control_socket.hpp"
#include "refdut/messages.hpp"
#include "refdut/runtime.hpp"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace gatemark;
using nlohmann::json;

constexpr int exit_error = 1, exit_usage = 2;
constexpr const char* usage =
    "usage: gatemark-refdut run FILE                      run the gateway that FILE describes\n"
    "       gatemark-refdut check FILE                    only check FILE\n"
    "       gatemark-refdut ask SOCKET COMMAND [ARGUMENT] ask a running gateway: counts, reset_counts, reload, load FILE, clear,\n"
    "                                                     connections, reset DURATION, stop\n"
    "       gatemark-refdut --version\n";

int check_or_run(const std::string& file, bool run) {
    // DPDK and its drivers may print; standard output is reserved for the line that says ready.
    const int output = dup(STDOUT_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    const auto settings = refdut::read_settings(file);
    if (const auto* const errors = std::get_if<Errors>(&settings)) {
        refdut::print_errors(*errors);
        return exit_usage;
    }
    if (!run) {
        dprintf(output, "%s is in order\n", file.c_str());
        return 0;
    }
    return refdut::run_gateway(file, std::get<refdut::Settings>(settings), output);
}

/// The request for a command and its argument as words, or none if they make no sense.
std::optional<json> request_of(const std::string& command, const std::optional<std::string>& argument) {
    json request{{"command", command}};
    if (command == "load" && argument) {
        request["path"] = *argument;
    } else if (command == "reset" && argument) {
        const auto duration = refdut::parse_duration(*argument);
        if (!duration) {
            return std::nullopt;
        }
        request["duration_ns"] = *duration;
    } else if (argument || command == "load" || command == "reset") {
        return std::nullopt;
    }
    return request;
}

int ask(const std::string& socket, const std::string& command, const std::optional<std::string>& argument) {
    const auto request = request_of(command, argument);
    if (!request) {
        std::fprintf(stderr, "error: %s: the argument is missing or invalid\n\nhint: load FILE, reset \"500 ms\"; others take none\n",
                     command.c_str());
        return exit_usage;
    }
    const auto answered = refdut::ask_socket(socket, request->dump());
    if (const Error* const error = error_of(answered)) {
        refdut::print_errors({*error});
        return exit_error;
    }
    const json answer = json::parse(std::get<std::string>(answered), nullptr, false);
    if (!answer.is_object() || !answer.value("ok", false)) {
        Errors errors;
        for (const json& error : answer.is_object() ? answer.value("errors", json::array()) : json::array()) {
            errors.push_back({error.value("what", ""), error.value("where", ""), error.value("fix", "")});
        }
        refdut::print_errors(errors);
        return exit_error;
    }
    std::puts(command == "connections" ? answer["connections"].dump().c_str() : answer.dump().c_str());
    return 0;
}

}  // namespace

int main(int argument_count, char** arguments) try {
    std::signal(SIGPIPE, SIG_IGN);
    const std::vector<std::string> words{arguments + 1, arguments + argument_count};
    if (words.size() == 1 && words[0] == "--version") {
        std::puts("gatemark-refdut " GATEMARK_VERSION);
        return 0;
    }
    if (words.size() == 2 && (words[0] == "run" || words[0] == "check")) {
        return check_or_run(words[1], words[0] == "run");
    }
    if ((words.size() == 3 || words.size() == 4) && words[0] == "ask") {
        return ask(words[1], words[2], words.size() == 4 ? std::optional{words[3]} : std::nullopt);
    }
    std::fputs(usage, stderr);
    return exit_usage;
} catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return exit_error;
}
