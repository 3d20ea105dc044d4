#include "io/dpdk_environment.hpp"

#include <rte_debug.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_version.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

namespace gatemark::io {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// rte_eal_init works once: a second call fails, also after rte_eal_cleanup.
bool environment_was_started = false;

/// "0,2-3" style list of the processors that this thread may use.
std::string processor_list(const cpu_set_t& allowed) {
    std::string list;
    for (unsigned processor = 0; processor < CPU_SETSIZE; ++processor) {
        if (!CPU_ISSET(processor, &allowed)) {
            continue;
        }
        if (!list.empty()) {
            list += ',';
        }
        list += std::to_string(processor);
    }
    return list;
}

/// A pool of huge pages may be visible and yet out of reach (cgroup limit): ask for one page.
bool may_map_huge_page() {
    void* const page = mmap(nullptr, 2 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (page == MAP_FAILED) {
        return false;
    }
    munmap(page, 2 * mib);
    return true;
}

/// Standard output carries the engine's protocol, but rte_eal_init prints its usage there when it fails.
class QuietStandardOutput {
public:
    QuietStandardOutput() : kept_{fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)} {
        std::fflush(stdout);
        dup2(STDERR_FILENO, STDOUT_FILENO);
    }
    QuietStandardOutput(const QuietStandardOutput&) = delete;
    QuietStandardOutput& operator=(const QuietStandardOutput&) = delete;
    ~QuietStandardOutput() {
        std::fflush(stdout);
        if (kept_ < 0) {
            return;
        }
        dup2(kept_, STDOUT_FILENO);
        close(kept_);
    }

private:
    int kept_;
};

/// Packet rings and XDP memory are locked; the default soft limit is far below what a ring takes.
void raise_locked_memory_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
        return;
    }
    rlimit unlimited{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    if (setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0) {
        return;
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &limit);
}

std::vector<std::string> arguments(const EnvironmentOptions& options, bool huge_pages, const cpu_set_t& allowed) {
    std::vector<std::string> list{"gatemark-engine", "--no-telemetry", "--log-level=warning", "--lcores",
                                  "0@(" + processor_list(allowed) + ")"};
    // Nothing shared, no files: any number of engines run side by side. DPDK refuses --in-memory together with --no-huge.
    if (huge_pages) {
        list.emplace_back("--in-memory");
    } else {
        list.insert(list.end(), {"--no-shconf", "--no-huge", "-m", std::to_string(options.memory_mib)});
    }
    if (options.pci_addresses.empty()) {
        list.emplace_back("--no-pci");
    }
    for (const std::string& address : options.pci_addresses) {
        list.insert(list.end(), {"-a", address});
    }
    return list;
}

}  // namespace

std::size_t free_huge_pages_mib() {
    std::size_t total = 0;
    std::error_code ignored;
    for (const auto& size : std::filesystem::directory_iterator{"/sys/kernel/mm/hugepages", ignored}) {
        const std::string name = size.path().filename().string();  // hugepages-2048kB
        const std::size_t dash = name.find('-');
        std::size_t kib = 0, pages = 0;
        if (dash == std::string::npos) {
            continue;
        }
        std::from_chars(name.data() + dash + 1, name.data() + name.size(), kib);
        std::ifstream{size.path() / "free_hugepages"} >> pages;
        total += kib * pages / 1024;
    }
    return total;
}

Result<DpdkEnvironment> DpdkEnvironment::start(const EnvironmentOptions& options) {
    const std::string where = "DPDK environment";
    if (std::exchange(environment_was_started, true)) {
        return Error{.what = "DPDK was started before in this process", .where = where, .fix = "start another engine"};
    }
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    pthread_getaffinity_np(pthread_self(), sizeof(allowed), &allowed);
    const bool huge_pages = options.huge_pages_allowed && free_huge_pages_mib() >= options.memory_mib && may_map_huge_page();
    raise_locked_memory_limit();
    // DPDK's own stream copies each message to syslog; a stream of our own keeps them on standard error alone.
    rte_openlog_stream(stderr);

    std::vector<std::string> list = arguments(options, huge_pages, allowed);
    std::vector<char*> pointers;
    for (std::string& argument : list) {
        pointers.push_back(argument.data());
    }
    int status = -1;
    {
        const QuietStandardOutput quiet;
        status = rte_eal_init(static_cast<int>(pointers.size()), pointers.data());
    }
    const int reason = rte_errno;
    pthread_setaffinity_np(pthread_self(), sizeof(allowed), &allowed);
    if (status < 0) {
        return Error{.what = std::string{"DPDK did not start: "} + rte_strerror(reason),
                     .where = where,
                     .fix = "read the engine's messages above; with PCI ports: run as root and bind the devices to vfio-pci"};
    }
    return DpdkEnvironment{huge_pages};
}

DpdkEnvironment::DpdkEnvironment(DpdkEnvironment&& other) noexcept
    : uses_huge_pages_{other.uses_huge_pages_}, owns_{std::exchange(other.owns_, false)} {}

DpdkEnvironment::~DpdkEnvironment() {
    if (owns_) {
        rte_eal_cleanup();
    }
}

std::string DpdkEnvironment::version() { return rte_version(); }

RegisteredThread::RegisteredThread() : registered_{rte_thread_register() == 0} {}

RegisteredThread::~RegisteredThread() {
    if (registered_) {
        rte_thread_unregister();
    }
}

}  // namespace gatemark::io
