#include "base/available_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace gatemark {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// What the kernel tells, in a folder of the test.
class Kernel : public testing::Test {
protected:
    ~Kernel() override { fs::remove_all(folder_); }

    void write(const std::string& path, const std::string& text) const {
        fs::create_directories((folder_ / path).parent_path());
        std::ofstream{folder_ / path} << text;
    }
    [[nodiscard]] AvailableMemory available() const {
        return available_memory({.machine = folder_ / "meminfo", .memberships = folder_ / "cgroup", .control_groups = folder_ / "groups"});
    }

    fs::path folder_ = fs::temp_directory_path() / ("gatemark-memory-" + std::to_string(getpid()));
};

TEST_F(Kernel, TheMachineIsTheLimitWhereNoGroupIs) {
    write("meminfo", "MemTotal:       2000 kB\nMemFree:        10 kB\nMemAvailable:   1000 kB\n");
    EXPECT_EQ(available().bytes, 1000U * 1024);
    EXPECT_EQ(available().limit, "on this machine");
    write("cgroup", "0::/\nnothing\n4:memory\n");
    write("groups/memory.max", "max\n");
    EXPECT_EQ(available().bytes, 1000U * 1024);
}

TEST_F(Kernel, NothingThatIsNotToldIsALimit) { EXPECT_EQ(available().bytes, ~std::uint64_t{0}); }

TEST_F(Kernel, TheTightestGroupAboveThisProcessIsTheLimit) {
    write("meminfo", "MemAvailable: 1000000 kB\n");
    write("cgroup", "1:cpu:/elsewhere\n0::/slice/run.scope\n");
    write("groups/slice/run.scope/memory.max", "max\n");
    write("groups/slice/run.scope/memory.current", "5\n");
    write("groups/slice/memory.max", "100000\n");
    write("groups/slice/memory.current", "70000\n");
    write("groups/slice/memory.stat", "anon 60000\ninactive_file 10000\nactive_file 1\n");
    EXPECT_EQ(available().bytes, 40'000U) << "what the kernel can drop is available";
    EXPECT_EQ(available().limit, "within the limit of control group /slice");
    write("groups/slice/memory.max", "50000\n");
    EXPECT_EQ(available().bytes, 0U) << "the group is above its limit";
}

TEST_F(Kernel, GroupsOfTheFirstVersionAreReadAsWell) {
    write("meminfo", "MemAvailable: 1000000 kB\n");
    write("cgroup", "5:cpu,cpuacct:/other\n4:hugetlb,memory:/job\n");
    write("groups/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    write("groups/memory/job/memory.usage_in_bytes", "1\n");
    EXPECT_EQ(available().bytes, 1000000U * 1024);
    write("groups/memory/job/memory.limit_in_bytes", "5000\n");
    write("groups/memory/job/memory.usage_in_bytes", "3000\n");
    write("groups/memory/job/memory.stat", "total_inactive_file 500\n");
    EXPECT_EQ(available().bytes, 2500U);
    EXPECT_EQ(available().limit, "within the limit of control group /job");
}

TEST_F(Kernel, InAContainerThePathOfTheGroupIsNotThereButItsRootIs) {
    write("meminfo", "MemAvailable: 1000000 kB\n");
    write("cgroup", "4:memory:/outside/container\n");
    write("groups/memory/memory.limit_in_bytes", "5000\n");
    write("groups/memory/memory.usage_in_bytes", "1000\n");
    EXPECT_EQ(available().bytes, 4000U);
    EXPECT_EQ(available().limit, "within the limit of control group /");
}

TEST(CheckMemory, NamesNeedAndWhatIsThereAndTheRemedy) {
    const AvailableMemory available{.bytes = 164 * mib, .limit = "on this machine"};
    EXPECT_EQ(check_memory(100 * mib, "the records", "memory", "free some", available), std::nullopt);
    EXPECT_EQ(
        check_memory(100 * mib + 1, "the records", "memory", "free some", available),
        (Error{
            .what = "the records need 101 MiB of memory, 100 MiB are available on this machine", .where = "memory", .fix = "free some"}));
    EXPECT_TRUE(check_memory(1, "one byte", "memory", "free some", {.bytes = 3, .limit = "here"}));
}

TEST(CheckMemory, ThisMachineTellsWhatItHas) {
    EXPECT_GT(available_memory().bytes, mib);
    EXPECT_EQ(check_memory(1, "one byte", "memory", "free some"), std::nullopt);
    EXPECT_TRUE(check_memory(std::uint64_t{1} << 60, "an exbibyte", "memory", "free some"));
}

}  // namespace
}  // namespace gatemark
