#include "control/server.hpp"
#include "io/dpdk_environment.hpp"
#include "pace/calibrate.hpp"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

namespace {

/// Keeps what a trial frees for the next one: otherwise returning pages and requesting them again,
/// for histograms of 288 kB each, would be half of the work between two short trials.
void keep_freed_memory() {
    constexpr int mib = 1 << 20;
    mallopt(M_MMAP_THRESHOLD, 32 * mib);
    mallopt(M_TRIM_THRESHOLD, 256 * mib);
}

/// A descriptor that is readable once somebody wants this process to end: a terminal that hung up,
/// or `kill`. The trial in progress then ends as cancelled, and the ports are closed. To be called
/// before the first thread starts, so that no thread takes these signals.
int end_requests() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    return signalfd(-1, &signals, SFD_CLOEXEC);
}

}  // namespace

/// The engine's process: JSON lines on standard input and output (protocol/README.md), messages for
/// people on standard error.
int main(int argument_count, char** arguments) {
    if (argument_count == 2 && std::strcmp(arguments[1], "--version") == 0) {
        std::puts("gatemark-engine " GATEMARK_VERSION);
        return 0;
    }
    if (argument_count != 1) {
        std::fputs(
            "usage: gatemark-engine [--version]\nReads requests as JSON lines on standard input; see protocol/README.md. People use "
            "`gatemark`.\n",
            stderr);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // an engine without its parent would send for ever
    std::signal(SIGPIPE, SIG_IGN);     // a client that went away is noticed by the channel
    std::signal(SIGINT, SIG_IGN);      // Ctrl-C in a terminal reaches us too; the parent decides and sends `cancel`

    // DPDK and its drivers may print to standard output, but only the protocol may reach the
    // client.
    const int ends = end_requests(), output = dup(STDOUT_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);

    keep_freed_memory();
    const gatemark::pace::Calibration calibration;
    gatemark::io::load_drivers();  // while the calibration waits
    gatemark::control::LineChannel channel{STDIN_FILENO, output, ends};
    gatemark::control::Server{channel, calibration.ticks_per_second()}.serve();
    return 0;
}
