#include "base/paged_memory.hpp"

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mman.h>

#include <vector>

namespace gatemark {
namespace {

constexpr std::size_t page = 4096;

std::size_t resident_pages(const PagedMemory<std::byte>& memory) {
    std::vector<unsigned char> residence((memory.bytes() + page - 1) / page);
    EXPECT_EQ(mincore(const_cast<std::byte*>(memory.data()), memory.bytes(), residence.data()), 0);
    std::size_t pages = 0;
    for (const unsigned char flags : residence) {
        pages += flags & 1U;
    }
    return pages;
}

/// Two parts and some, the last of them short; a CPU that no machine has is no obstacle.
TEST(PagedMemory, TouchesEveryPageOnWhateverCpus) {
    constexpr std::size_t bytes = (std::size_t{130} << 20) + 5;
    for (const std::vector<unsigned>& cpus : {std::vector<unsigned>{}, {0}, {0, 1}, {0, CPU_SETSIZE - 1, 1}}) {
        const PagedMemory<std::byte> memory{bytes, PagedMemory<std::byte>::Touch::now, cpus};
        EXPECT_EQ(resident_pages(memory), (bytes + page - 1) / page) << cpus.size() << " CPUs";
        EXPECT_EQ(memory[bytes - 1], std::byte{0});
    }
}

TEST(PagedMemory, LeavesPagesUntouchedIfAskedTo) {
    const PagedMemory<std::byte> memory{std::size_t{64} << 20, PagedMemory<std::byte>::Touch::later};
    EXPECT_EQ(resident_pages(memory), 0U);
}

}  // namespace
}  // namespace gatemark
