#include "record/arrival_bitmap.hpp"
#include "record/delay_variation.hpp"
#include "record/tagged_delays.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

/// Allocations of this program that no small object makes.
std::atomic<unsigned> large_allocations{0};
constexpr std::size_t large_bytes = 64 * 1024;

void* take(std::size_t bytes) {
    large_allocations += bytes >= large_bytes ? 1 : 0;
    void* const memory = std::malloc(bytes);
    return memory != nullptr ? memory : throw std::bad_alloc{};
}

}  // namespace

void* operator new(std::size_t bytes) { return take(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

/// In place of the C library's, whose malloc() has one of its own.
extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int descriptor, off_t offset) noexcept {
    large_allocations += bytes >= large_bytes ? 1 : 0;
    return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, descriptor, offset));
}

namespace gatemark::record {
namespace {

TEST(MemoryOfRecorders, IsTakenOnceForTheLongestTrial) {
    constexpr std::uint64_t frames = 8'000'000, tags = 50'000;
    ArrivalBitmap bitmap;
    TaggedDelays tagged;
    DelayWindow window;
    const auto reset = [&](std::uint64_t divisor) {
        bitmap.reset(frames / divisor);
        tagged.reset({.first = 0, .frames = frames / divisor, .count = tags / divisor});
        window.reset();
    };
    reset(1);
    EXPECT_EQ(large_allocations, 3U);
    for (const std::uint64_t divisor : {7, 1, 2, 1}) {
        reset(divisor);
    }
    EXPECT_EQ(large_allocations, 3U);
}

}  // namespace
}  // namespace gatemark::record
