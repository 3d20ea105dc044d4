#include "io/unmap_guard.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace gatemark::io {

namespace {

thread_local bool polls_here = false;

/// A thread that has not run for this long has worse problems than a missing page.
constexpr std::chrono::seconds patience{30};

void wait_for_the_polling_thread() {
    const std::uint64_t before = UnmapGuard::rounds.load(std::memory_order_acquire);
    const auto deadline = std::chrono::steady_clock::now() + patience;
    // The round that ends next may have begun before the memory was marked as gone; it ends before
    // anything is unmapped.
    while (before != 0 && UnmapGuard::rounds.load(std::memory_order_acquire) == before && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::microseconds{10});
    }
}

}  // namespace

UnmapGuard::UnmapGuard() {
    polls_here = true;
    rounds.store(1, std::memory_order_release);
}

UnmapGuard::~UnmapGuard() {
    rounds.store(0, std::memory_order_release);
    polls_here = false;
}

}  // namespace gatemark::io

/// Replaces the C library's munmap() in this program and all libraries that it loads.
extern "C" [[gnu::visibility("default")]] int munmap(void* address, std::size_t bytes) noexcept {
    if (!gatemark::io::polls_here) {
        gatemark::io::wait_for_the_polling_thread();
    }
    return static_cast<int>(syscall(SYS_munmap, address, bytes));
}
