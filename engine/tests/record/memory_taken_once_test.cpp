#include "frame/customer_edges.hpp"
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

void* take(std::size_t bytes) noexcept {
    large_allocations += bytes >= large_bytes ? 1 : 0;
    return std::malloc(bytes);
}

}  // namespace

void* operator new(std::size_t bytes) {
    void* const memory = take(bytes);
    return memory != nullptr ? memory : throw std::bad_alloc{};
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept { return take(bytes); }
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

/// Nothing is kept for an edge.
TEST(MemoryOfCustomerEdges, DoesNotGrowWithTheirNumber) {
    frame::EdgeDomain domain;
    domain.rule = {.ipv6 = net::parse_prefix("2001:db8::/32").value(),
                   .ipv4 = net::parse_prefix("0.0.0.0/0").value(),
                   .ea_bits = 48,
                   .psid_offset = 0,
                   .dmr = net::parse_prefix("64:ff9b::/96").value()};
    const unsigned before = large_allocations;
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{16'777'216}, frame::CustomerEdges::count_limit}) {
        const frame::EdgesRequest request{.domains = {domain}, .count = count};
        auto edges = std::get<frame::CustomerEdges>(frame::CustomerEdges::make(request, 1, "edges"));
        const frame::EdgeTraffic traffic{std::make_shared<const frame::CustomerEdges>(std::move(edges)), request, {}, 1};
        EXPECT_NE(traffic.edge_of(0), frame::Edge::make(1, 0));
    }
    EXPECT_EQ(large_allocations, before);
}

}  // namespace
}  // namespace gatemark::record
