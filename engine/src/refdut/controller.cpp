#include "refdut/controller.hpp"

#include "refdut/config.hpp"
#include "refdut/write_counts.hpp"

#include <nlohmann/json.hpp>

#include <new>

namespace gatemark::refdut {

namespace {

using nlohmann::json;

constexpr std::uint64_t reset_ns_max = std::uint64_t{3600} * 1'000'000'000;

json refuse(const std::string& what, const std::string& where, const std::string& fix) { return write_errors({{what, where, fix}}); }

}  // namespace

Controller::Controller(std::string file, std::unique_ptr<Program> program, std::array<net::MacAddress, 2> own_macs,
                       const pace::TickScale& scale, const std::array<const io::DpdkPort*, 2>& ports)
    : file_{std::move(file)},
      program_{std::move(program)},
      own_macs_{own_macs},
      scale_{scale},
      drops_{io::DropReader{*ports[0]}, io::DropReader{*ports[1]}} {}

void Controller::start(RealWorker& worker) {
    worker_ = &worker;
    reset_counts();
}

std::string Controller::answer(const std::string& line) {
    const auto written = [](const json& answer) { return answer.dump(-1, ' ', false, json::error_handler_t::replace); };
    try {
        const json request = json::parse(line, nullptr, false);
        if (!request.is_object() || !request.contains("command") || !request["command"].is_string()) {
            // The line may be of any octets, and may be cut within a character.
            return written(
                refuse("is not a command", line.substr(0, 80), "send one JSON object per line, such as {\"command\":\"counts\"}"));
        }
        return written(execute(request));
    } catch (const std::bad_alloc&) {
        return written(refuse("no memory for this command", "memory", "ask for less, or free memory"));
    }
}

json Controller::execute(const json& request) {
    const std::string command = request["command"];
    const auto only = [&](std::string_view key) {
        return request.size() == (key.empty() ? 1U : 2U) && (key.empty() || request.contains(key));
    };
    if (command == "load") {
        return only("path") && request["path"].is_string() ? load(request["path"]) : refuse("has no path", "load", "give \"path\"");
    }
    if (command == "reset") {
        const bool given = only("duration_ns") && request["duration_ns"].is_number_unsigned();
        const std::uint64_t duration = given ? request["duration_ns"].get<std::uint64_t>() : 0;
        if (!given || duration > reset_ns_max) {
            return refuse("has no duration", "reset", "give \"duration_ns\", in nanoseconds, at most an hour");
        }
        Command order{.kind = Command::Kind::reset, .duration_ns = duration};
        worker_->run(order);
        return {{"ok", true}};
    }
    if (!only("")) {
        return refuse("has a key that it does not take", command, "send \"command\" alone");
    }
    if (command == "counts") {
        const Snapshot taken = snapshot();
        auto now = missed();
        for (std::size_t i = 0; i < now.size(); ++i) {
            now[i] -= missed_at_reset_[i];
        }
        return write_counts(taken, now, scale_);
    }
    if (command == "connections") {
        return {{"ok", true}, {"connections", snapshot().connections}};
    }
    if (command == "reset_counts") {
        reset_counts();
        return {{"ok", true}};
    }
    if (command == "clear") {
        Command order{.kind = Command::Kind::clear};
        worker_->run(order);
        return {{"ok", true}};
    }
    if (command == "reload") {
        return load(file_);
    }
    if (command == "stop") {
        stopped_ = true;
        return {{"ok", true}};
    }
    return refuse("is not a command", command, "use counts, reset_counts, reload, load, clear, connections, reset or stop");
}

json Controller::load(const std::string& path) {
    auto read = read_settings(path);
    if (const auto* const errors = std::get_if<Errors>(&read)) {
        return write_errors(*errors);
    }
    const Settings& wanted = std::get<Settings>(read);
    if (const Errors errors = what_needs_a_restart(program_->settings, wanted); !errors.empty()) {
        return write_errors(errors);
    }
    if (const auto error = check_table(wanted, program_.get())) {
        return write_errors({*error});
    }
    try {
        Settings settings = wanted;
        settings.held_frames = program_->settings.held_frames;  // as many as there are buffers
        auto new_program = make_program(settings, own_macs_, scale_.ticks_per_second(), program_.get());
        Command order{.kind = Command::Kind::load, .program = new_program.get()};
        worker_->run(order);
        if (order.out_of_memory) {
            throw std::bad_alloc{};
        }
        program_ = std::move(new_program);
    } catch (const std::bad_alloc&) {
        return refuse("no memory for a table of " + std::to_string(wanted.table.capacity) + " connections", "table.size",
                      "use a smaller one, or free memory");
    }
    file_ = path;
    missed_at_reset_ = missed();
    return {{"ok", true}};
}

Snapshot Controller::snapshot() {
    Command order{.kind = Command::Kind::counts};
    worker_->run(order);
    return order.snapshot;
}

std::array<std::uint64_t, 2> Controller::missed() {
    std::array<std::uint64_t, 2> sums{};
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const io::OwnDrops drops = drops_[i].read();
        for (const auto reason : {io::OwnDrop::rx_missed, io::OwnDrop::rx_no_buffer, io::OwnDrop::rx_errors, io::OwnDrop::socket_drops,
                                  io::OwnDrop::interface_rx_dropped}) {
            sums[i] += drops[reason];
        }
    }
    return sums;
}

void Controller::reset_counts() {
    Command order{.kind = Command::Kind::reset_counts};
    worker_->run(order);
    missed_at_reset_ = missed();
}

}  // namespace gatemark::refdut
