#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace gatemark {

/// Where the kernel tells about memory.
struct MemoryFiles {
    std::filesystem::path machine = "/proc/meminfo";
    std::filesystem::path memberships = "/proc/self/cgroup";
    std::filesystem::path control_groups = "/sys/fs/cgroup";
};

/// Memory that this process can still take without swapping, and what sets that limit.
struct AvailableMemory {
    std::uint64_t bytes = ~std::uint64_t{0};
    std::string limit;  ///< such as "on this machine"
};

/// The least of what the machine has (MemAvailable) and what each control group above this process
/// leaves it, of version 1 or 2. What the kernel does not tell is no limit.
[[nodiscard]] AvailableMemory available_memory(const MemoryFiles& files = {});

/// Refuses to take `bytes` for `purpose`, such as "the records of the trial", where they are not
/// available. It must be asked before: memory that is promised but missing ends the process when it
/// is touched.
[[nodiscard]] std::optional<Error> check_memory(std::uint64_t bytes, const std::string& purpose, const std::string& where,
                                                const std::string& fix, const AvailableMemory& available = available_memory());

}  // namespace gatemark
