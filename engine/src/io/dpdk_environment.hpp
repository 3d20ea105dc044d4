#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace gatemark::io {

/// Memory for DPDK itself and the queues of its drivers.
constexpr std::size_t drivers_mib = 80;

struct EnvironmentOptions {
    /// Only these PCI devices are touched; with none, the PCI bus is left alone.
    std::vector<std::string> pci_addresses;
    bool huge_pages_allowed = true;
    /// For DPDK, all pools and all rings together, more than `drivers_mib`. Without huge pages the
    /// part of the pools is zeroed at once.
    std::size_t memory_mib = 1024;
};

/// DPDK's environment (EAL), once in the life of the process. Needs no privileges, leaves no files
/// but an empty run-time directory, and prints nothing to standard output; warnings go to standard
/// error. The CPU affinity of the calling thread stays as it is.
class DpdkEnvironment {
public:
    [[nodiscard]] static Result<DpdkEnvironment> start(const EnvironmentOptions& options);

    DpdkEnvironment(DpdkEnvironment&& other) noexcept;
    DpdkEnvironment& operator=(DpdkEnvironment&&) = delete;
    DpdkEnvironment(const DpdkEnvironment&) = delete;
    DpdkEnvironment& operator=(const DpdkEnvironment&) = delete;
    /// Ports and pools must be closed before this.
    ~DpdkEnvironment();

    [[nodiscard]] bool uses_huge_pages() const { return uses_huge_pages_; }
    [[nodiscard]] static std::string version();

private:
    explicit DpdkEnvironment(bool uses_huge_pages) : uses_huge_pages_{uses_huge_pages} {}
    bool uses_huge_pages_;
    bool owns_ = true;
};

/// Registers the calling thread with DPDK, which gives it a cache of its own in every pool; without
/// it each burst uses the shared ring of the pool. Hold it for the life of a worker thread, and
/// create it after the thread has been pinned.
class RegisteredThread {
public:
    RegisteredThread();
    RegisteredThread(const RegisteredThread&) = delete;
    RegisteredThread& operator=(const RegisteredThread&) = delete;
    ~RegisteredThread();
    /// False if DPDK has no slot left: the thread then works, but more slowly.
    [[nodiscard]] bool registered() const { return registered_; }

private:
    bool registered_;
};

/// The socket whose memory pools for a port on `socket` come from: that socket, or our heap of
/// transparent huge pages if DPDK has no huge pages.
[[nodiscard]] int pool_socket(int socket);

/// Loads all drivers of DPDK, which `DpdkEnvironment::start` would do otherwise. It takes a while,
/// which the process may otherwise spend waiting.
void load_drivers();

/// Free memory in huge pages, in MiB; 0 if there is none.
[[nodiscard]] std::size_t free_huge_pages_mib();

}  // namespace gatemark::io
