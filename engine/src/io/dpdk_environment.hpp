#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace gatemark::io {

struct EnvironmentOptions {
    /// Only these PCI devices are touched; none: the PCI bus is left alone.
    std::vector<std::string> pci_addresses;
    bool huge_pages_allowed = true;
    /// For all pools and rings together. Without huge pages it is address space that is only filled when used.
    std::size_t memory_mib = 1024;
};

/// DPDK's environment (EAL), once in the life of the process. Needs no rights of its own, writes no files (an empty run-time directory
/// stays), prints nothing on standard output: warnings go to standard error. The CPUs of the calling thread stay as they are.
class DpdkEnvironment {
public:
    [[nodiscard]] static Result<DpdkEnvironment> start(const EnvironmentOptions& options);

    DpdkEnvironment(DpdkEnvironment&& other) noexcept;
    DpdkEnvironment& operator=(DpdkEnvironment&&) = delete;
    DpdkEnvironment(const DpdkEnvironment&) = delete;
    DpdkEnvironment& operator=(const DpdkEnvironment&) = delete;
    /// Ports and pools must be gone by now.
    ~DpdkEnvironment();

    [[nodiscard]] bool uses_huge_pages() const { return uses_huge_pages_; }
    [[nodiscard]] static std::string version();

private:
    explicit DpdkEnvironment(bool uses_huge_pages) : uses_huge_pages_{uses_huge_pages} {}
    bool uses_huge_pages_;
    bool owns_ = true;
};

/// Makes the calling thread known to DPDK, which gives it its own cache of every pool; without it each burst takes the
/// pool's shared ring. To be held for the life of a worker thread, and created after the thread was pinned.
class RegisteredThread {
public:
    RegisteredThread();
    RegisteredThread(const RegisteredThread&) = delete;
    RegisteredThread& operator=(const RegisteredThread&) = delete;
    ~RegisteredThread();
    /// False if DPDK has no slot left: the thread works, but slower.
    [[nodiscard]] bool registered() const { return registered_; }

private:
    bool registered_;
};

/// Where pools for a port on `socket` are to be taken from: its memory, or transparent huge pages where DPDK has no huge pages.
[[nodiscard]] int pool_socket(int socket);

/// Loads all drivers of DPDK, which `DpdkEnvironment::start` does otherwise: 60 ms that may pass while the process waits for something
/// else.
void load_drivers();

/// Memory in huge pages that nobody uses, in MiB; 0 where there is none.
[[nodiscard]] std::size_t free_huge_pages_mib();

}  // namespace gatemark::io
