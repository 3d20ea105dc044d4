#include "refdut/runtime.hpp"

#include "base/available_memory.hpp"
#include "io/dpdk_environment.hpp"
#include "pace/calibrate.hpp"
#include "refdut/control_socket.hpp"
#include "refdut/controller.hpp"
#include "refdut/messages.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdio>
#include <new>
#include <vector>

namespace gatemark::refdut {

namespace {

constexpr int exit_error = 1, exit_configuration = 2;
/// Buffers that the worker processes or sends, apart from those that are held.
constexpr unsigned spare_frames = 4096;

io::PortOptions options_of(const Settings& settings, std::size_t side) {
    const SideSettings& wanted = settings.sides[side];
    return {.side = side == 0 ? "left" : "right",
            .name = wanted.port,
            .ring_frames = wanted.ring_frames,
            .extra_frames = static_cast<unsigned>(2 * settings.held_frames) + spare_frames,
            .mtu = wanted.mtu,
            // The Tester opens its end later, and may close and open it again.
            .needs_link = wanted.port.kind != io::PortKind::memif};
}

/// The socket of a crashed gateway would keep this one from listening; if another process listens
/// on it, opening the port reports that.
void remove_dead_memif(const io::PortName& name) {
    constexpr std::string_view server = ",role=server";
    if (name.kind == io::PortKind::memif && name.argument.ends_with(server)) {
        (void)remove_dead_socket(name.argument.substr(0, name.argument.size() - server.size()));
    }
}

/// SIGTERM and SIGINT as a descriptor to wait for; they are blocked in all threads started after
/// this.
int block_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

void wait_for_the_end(int signals, ControlSocket* control, Controller& controller) {
    while (!controller.stopped()) {
        std::vector<pollfd> waited{{.fd = signals, .events = POLLIN, .revents = 0}};
        for (const int descriptor : control != nullptr ? control->descriptors() : std::vector<int>{}) {
            waited.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
        }
        if (poll(waited.data(), waited.size(), -1) < 0) {
            continue;
        }
        if (waited[0].revents != 0) {
            return;
        }
        if (control != nullptr) {
            control->serve([&](const std::string& line) { return controller.answer(line); });
        }
    }
}

void print_ready(int output, const Settings& settings, const std::vector<io::DpdkPort>& ports, const std::array<net::MacAddress, 2>& macs,
                 bool huge_pages) {
    nlohmann::json ready{{"ready", true},
                         {"mode", name_of(settings.translation.mode)},
                         {"control", settings.control},
                         {"pid", getpid()},
                         {"huge_pages", huge_pages}};
    for (std::size_t i = 0; i < ports.size(); ++i) {
        const io::PortFacts facts = ports[i].facts();
        ready[i == 0 ? "left" : "right"] = {
            {"port", facts.port}, {"driver", facts.driver}, {"mac", net::to_text(macs[i])}, {"mtu", facts.mtu}};
    }
    dprintf(output, "%s\n", ready.dump().c_str());
}

/// With ports and socket open, creates the gateway and runs it until it ends.
int run_opened(const std::string& file, const Settings& settings, int output, int signals, std::vector<io::DpdkPort>& ports,
               ControlSocket* control, bool huge_pages) {
    const std::array<net::MacAddress, 2> macs{settings.sides[0].mac.value_or(ports[0].facts().mac),
                                              settings.sides[1].mac.value_or(ports[1].facts().mac)};
    const pace::TickScale scale{pace::ticks_per_second()};
    Controller controller{file, make_program(settings, macs, scale.ticks_per_second(), nullptr), macs, scale, {&ports[0], &ports[1]}};
    io::ForwardQueue left{ports[0], 0}, right{ports[1], 0};
    RealGateway gateway{controller.program(), left, right, scale.ticks_per_second()};
    RealWorker worker{gateway, settings.cpu};
    if (!worker.pinned()) {
        print_errors({{"the worker could not be pinned to CPU " + std::to_string(*settings.cpu), "cpu",
                       "choose a CPU that this process may use, or leave it out"}});
        return exit_configuration;
    }
    controller.start(worker);
    print_ready(output, settings, ports, macs, huge_pages);
    wait_for_the_end(signals, control, controller);
    return 0;
}

}  // namespace

void print_errors(const Errors& errors) {
    for (const Error& error : errors) {
        std::fprintf(stderr, "error: %s: %s\n\nhint: %s\n\n", error.where.c_str(), error.what.c_str(), error.fix.c_str());
    }
}

int run_gateway(const std::string& file, const Settings& settings, int output) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    const int signals = block_signals();
    std::unique_ptr<ControlSocket> control;
    if (!settings.control.empty()) {
        auto opened = ControlSocket::open(settings.control);
        if (const Error* const error = error_of(opened)) {
            print_errors({*error});
            return exit_error;
        }
        control = std::get<0>(std::move(opened));
    }
    const std::vector<io::PortOptions> wanted{options_of(settings, 0), options_of(settings, 1)};
    const std::size_t buffers_mib = io::memory_needed_mib(wanted, {});
    auto too_large = check_table(settings, nullptr);
    if (!too_large && !(settings.huge_pages_allowed && io::free_huge_pages_mib() >= buffers_mib)) {
        too_large =
            check_memory((std::uint64_t{buffers_mib} << 20) + table_bytes(settings, nullptr), "the buffers and the table of connections",
                         "held_frames", "hold fewer frames, use shorter queues, smaller rings or a smaller table, or free memory");
    }
    if (too_large) {
        print_errors({*too_large});
        return exit_error;
    }
    auto environment = io::DpdkEnvironment::start({.pci_addresses = io::pci_addresses({wanted[0].name, wanted[1].name}),
                                                   .huge_pages_allowed = settings.huge_pages_allowed,
                                                   .memory_mib = buffers_mib});
    if (const Error* const error = error_of(environment)) {
        print_errors({*error});
        return exit_error;
    }
    Errors errors;
    std::vector<io::DpdkPort> ports;
    for (const io::PortOptions& options : wanted) {
        remove_dead_memif(options.name);
        auto port = io::open_port(options);
        if (const Error* const error = error_of(port)) {
            errors.push_back(*error);
        } else {
            ports.push_back(std::get<io::DpdkPort>(std::move(port)));
        }
    }
    if (!errors.empty()) {
        print_errors(errors);
        return exit_error;
    }
    int status = exit_error;
    try {
        status =
            run_opened(file, settings, output, signals, ports, control.get(), std::get<io::DpdkEnvironment>(environment).uses_huge_pages());
    } catch (const std::bad_alloc&) {
        print_errors(
            {{"no memory for a table of " + std::to_string(settings.table.capacity) + " connections", "table.size", "use a smaller one"}});
    }
    // Either port may hold buffers of the other's pool, so both are stopped before either is
    // closed.
    for (io::DpdkPort& port : ports) {
        io::ForwardQueue::rest(port);
    }
    return status;
}

}  // namespace gatemark::refdut
