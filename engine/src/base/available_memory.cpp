#include "base/available_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <vector>

namespace gatemark {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// Left to everything else, so that what is taken does not drive the machine to its end.
constexpr std::uint64_t left_over = 64 * mib;

/// The number after `name` at the beginning of a line of a file such as /proc/meminfo.
std::optional<std::uint64_t> number_after(const fs::path& path, const std::string& name) {
    std::ifstream file{path};
    for (std::string word; file >> word; file.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
        std::uint64_t number = 0;
        if (word == name && file >> number) {
            return number;
        }
    }
    return std::nullopt;
}

/// The number that is all of a file. None for the "max" of a group without a limit.
std::optional<std::uint64_t> number_in(const fs::path& path) {
    std::uint64_t number = 0;
    return std::ifstream{path} >> number ? std::optional{number} : std::nullopt;
}

struct Version {
    const char *limit, *use, *reclaimable;
};
constexpr Version version_1{.limit = "memory.limit_in_bytes", .use = "memory.usage_in_bytes", .reclaimable = "total_inactive_file"};
constexpr Version version_2{.limit = "memory.max", .use = "memory.current", .reclaimable = "inactive_file"};

std::optional<std::uint64_t> left_by(const fs::path& group, const Version& version) {
    const auto limit = number_in(group / version.limit), use = number_in(group / version.use);
    if (!limit || !use) {
        return std::nullopt;
    }
    const std::uint64_t kept = *use - std::min(*use, number_after(group / "memory.stat", version.reclaimable).value_or(0));
    return *limit - std::min(*limit, kept);
}

/// The directory of the control group that limits the memory of this process, with its version and
/// the directory above which there are no groups.
struct Membership {
    fs::path root, group;
    Version version;
};

std::vector<Membership> memberships(const MemoryFiles& files) {
    std::vector<Membership> all;
    std::ifstream file{files.memberships};
    for (std::string line; std::getline(file, line);) {  // such as 4:memory:/a/b, or 0::/a/b of version 2
        const auto first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) {
            continue;
        }
        std::string controllers{','};
        controllers.append(line, first + 1, second - first - 1).push_back(',');
        const std::string path = line.substr(std::min(second + 2, line.size()));
        if (controllers == ",,") {
            all.push_back({files.control_groups, files.control_groups / path, version_2});
        } else if (controllers.find(",memory,") != std::string::npos) {
            all.push_back({files.control_groups / "memory", files.control_groups / "memory" / path, version_1});
        }
    }
    return all;
}

}  // namespace

AvailableMemory available_memory(const MemoryFiles& files) {
    AvailableMemory available;
    if (const auto kib = number_after(files.machine, "MemAvailable:")) {
        available = {.bytes = *kib * 1024, .limit = "on this machine"};
    }
    for (const Membership& membership : memberships(files)) {
        for (fs::path group = membership.group;; group = group.parent_path()) {
            if (const auto left = left_by(group, membership.version); left && *left < available.bytes) {
                const std::string name = group.lexically_relative(membership.root).string();
                available = {.bytes = *left, .limit = "within the limit of control group /" + (name == "." ? "" : name)};
            }
            if (group == membership.root || !group.has_relative_path()) {
                break;
            }
        }
    }
    return available;
}

std::optional<Error> check_memory(std::uint64_t bytes, const std::string& purpose, const std::string& where, const std::string& fix,
                                  const AvailableMemory& available) {
    const std::uint64_t usable = available.bytes - std::min(available.bytes, left_over);
    if (bytes <= usable) {
        return std::nullopt;
    }
    return Error{.what = purpose + " need " + std::to_string((bytes + mib - 1) / mib) + " MiB of memory, " + std::to_string(usable / mib) +
                         " MiB are available " + available.limit,
                 .where = where,
                 .fix = fix};
}

}  // namespace gatemark
