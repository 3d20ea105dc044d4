#include "base/paged_memory.hpp"

#include "base/pin_to.hpp"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

namespace gatemark {

namespace {

/// Threads for less would take longer to start than they save.
constexpr std::size_t part_bytes_min = std::size_t{64} << 20;
/// Parts end where huge pages do, so that no two threads want the same one.
constexpr std::size_t huge_page = std::size_t{2} << 20;

void touch(std::span<std::byte> memory) noexcept {
    constexpr std::size_t page = 4096;
    volatile std::byte* const bytes = memory.data();
    for (std::size_t i = 0; i < memory.size(); i += page) {
        bytes[i] = std::byte{0};
    }
}

}  // namespace

void touch_pages(std::span<std::byte> memory, std::span<const unsigned> cpus) {
    const std::size_t parts = std::min(cpus.size(), memory.size() / part_bytes_min);
    if (parts < 2) {
        touch(memory);
        return;
    }
    const std::size_t part_bytes = (memory.size() / parts + huge_page - 1) / huge_page * huge_page;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < parts; ++i) {
        const std::size_t begin = std::min(i * part_bytes, memory.size());
        const std::span<std::byte> part = memory.subspan(begin, std::min(part_bytes, memory.size() - begin));
        try {
            threads.emplace_back([part, cpu = cpus[i]] {
                (void)pin_to(cpu);  // a thread that may not run there touches its part all the same
                touch(part);
            });
        } catch (const std::system_error&) {  // there may be no more threads
            touch(part);
        }
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace gatemark
