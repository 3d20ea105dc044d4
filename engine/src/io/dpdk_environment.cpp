#include "io/dpdk_environment.hpp"

#include <rte_build_config.h>
#include <rte_debug.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_version.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

namespace gatemark::io {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// rte_eal_init works only once per process: a second call fails even after rte_eal_cleanup.
bool environment_was_started = false;
/// The socket number that DPDK assigned to our heap; -1 if there is none.
int transparent_heap = -1;

/// The CPUs that this thread may use, as a list such as "0,2-3".
std::string cpu_list(const cpu_set_t& allowed) {
    std::string list;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) {
            continue;
        }
        if (!list.empty()) {
            list += ',';
        }
        list += std::to_string(cpu);
    }
    return list;
}

/// Huge pages may be visible but out of reach (cgroup limit), so try to map one.
bool may_map_huge_page() {
    void* const page = mmap(nullptr, 2 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (page == MAP_FAILED) {
        return false;
    }
    munmap(page, 2 * mib);
    return true;
}

/// Standard output carries the engine's protocol, but rte_eal_init prints its usage there when it
/// fails.
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

/// Gives DPDK a heap of transparent huge pages, for pools when DPDK has no huge pages of its own;
/// -1 if that fails. DPDK's own heap is then a memfd with pages of 4 KiB: filling pools takes
/// longer, because of page faults, and frames need far more TLB entries.
int make_transparent_heap(std::size_t memory_mib) {
    constexpr std::size_t huge_page_bytes = 2 * mib;
    const char* const name = "gatemark";
    const std::size_t bytes = (memory_mib * mib + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
    void* const mapped = mmap(nullptr, bytes + huge_page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        return -1;
    }
    const auto address = (reinterpret_cast<std::uintptr_t>(mapped) + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
    auto* const memory = reinterpret_cast<void*>(address);  // stays for the life of the process, like DPDK's own heap
    if (madvise(memory, bytes, MADV_HUGEPAGE) != 0 || rte_malloc_heap_create(name) != 0 ||
        rte_malloc_heap_memory_add(name, memory, bytes, nullptr, static_cast<unsigned>(bytes / huge_page_bytes), huge_page_bytes) != 0) {
        munmap(mapped, bytes + huge_page_bytes);
        return -1;
    }
    return rte_malloc_heap_get_socket(name);
}

/// Whether the device reads and writes memory at addresses that only huge pages give it: it does
/// where the kernel's driver does nothing but hand it to a program. Cards that keep their driver
/// register any memory with it.
bool needs_huge_pages(const std::string& pci_address) {
    std::error_code ignored;
    const auto driver = std::filesystem::read_symlink("/sys/bus/pci/devices/" + pci_address + "/driver", ignored).filename();
    return driver == "vfio-pci" || driver == "uio_pci_generic" || driver == "igb_uio";
}

std::vector<std::string> arguments(const EnvironmentOptions& options, bool huge_pages, const cpu_set_t& allowed) {
    std::vector<std::string> list{"gatemark-engine", "--no-telemetry", "--log-level=warning", "--lcores", "0@(" + cpu_list(allowed) + ")"};
    // Nothing shared and no files, so any number of engines can run side by side. DPDK refuses
    // --in-memory together with --no-huge.
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

int pool_socket(int socket) { return transparent_heap >= 0 ? transparent_heap : socket; }

void load_drivers() {
    std::error_code ignored;
    for (const auto& file : std::filesystem::directory_iterator{RTE_EAL_PMD_PATH, ignored}) {
        if (file.path().extension() == ".so") {
            (void)dlopen(file.path().c_str(), RTLD_NOW);  // DPDK reports what cannot be loaded
        }
    }
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
    if (const auto card = std::ranges::find_if(options.pci_addresses, needs_huge_pages);
        !huge_pages && card != options.pci_addresses.end()) {
        return Error{
            .what = "the card " + *card + " needs " + std::to_string(options.memory_mib) + " MiB of huge pages; " +
                    (options.huge_pages_allowed ? std::to_string(free_huge_pages_mib()) + " MiB are free" : "they are not allowed"),
            .where = where,
            .fix = options.huge_pages_allowed
                       ? "sysctl vm.nr_hugepages=" + std::to_string(options.memory_mib / 2 + 1) + ", or choose fewer ring_frames"
                       : "allow them: leave testbed.huge_pages out"};
    }
    raise_locked_memory_limit();
    // DPDK's default log stream copies each message to syslog; this one writes to standard error
    // only.
    rte_openlog_stream(stderr);

    std::vector<std::string> list = arguments(options, huge_pages, allowed);
    std::vector<char*> pointers;
    pointers.reserve(list.size());
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
    if (!huge_pages) {
        transparent_heap = make_transparent_heap(options.memory_mib - drivers_mib);
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
