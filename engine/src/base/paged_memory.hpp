#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace gatemark {

/// Touches every page of memory that is all zeros: in parts, each by a thread on a CPU of its own,
/// if there is enough of it. The kernel clears a page when it is first touched, and one thread
/// clears a few GB in a second.
void touch_pages(std::span<std::byte> memory, std::span<const unsigned> cpus);

/// Zeroed memory for a large table, straight from the kernel: huge pages where it has them, and
/// touched in advance on request, so that no frame waits for a page fault.
template <class T>
class PagedMemory {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    enum class Touch : std::uint8_t { now, later };

    PagedMemory() = default;
    /// Throws std::bad_alloc. Memory for pages that are touched later may be missing by then. Pages
    /// that are touched now are touched on `cpus`, or by this thread if there are none.
    explicit PagedMemory(std::size_t count, Touch touch = Touch::now, std::span<const unsigned> cpus = {}) : count_{count} {
        if (count == 0) {
            return;
        }
        const int reserve = touch == Touch::now ? 0 : MAP_NORESERVE;
        void* const memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | reserve, -1, 0);
        if (memory == MAP_FAILED) {
            throw std::bad_alloc{};
        }
        (void)madvise(memory, bytes(), MADV_HUGEPAGE);  // a hint: without it everything works, slower
        items_ = static_cast<T*>(memory);
        if (touch == Touch::now) {
            touch_pages({static_cast<std::byte*>(memory), bytes()}, cpus);
        }
    }
    PagedMemory(PagedMemory&& from) noexcept : items_{std::exchange(from.items_, nullptr)}, count_{std::exchange(from.count_, 0)} {}
    PagedMemory& operator=(PagedMemory&& from) noexcept {
        std::swap(items_, from.items_);
        std::swap(count_, from.count_);
        return *this;
    }
    PagedMemory(const PagedMemory&) = delete;
    PagedMemory& operator=(const PagedMemory&) = delete;
    ~PagedMemory() {
        if (items_ != nullptr) {
            munmap(items_, bytes());
        }
    }

    [[nodiscard]] T& operator[](std::size_t i) noexcept { return items_[i]; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return items_[i]; }
    [[nodiscard]] T* data() noexcept { return items_; }
    [[nodiscard]] const T* data() const noexcept { return items_; }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(T); }

private:
    T* items_ = nullptr;
    std::size_t count_ = 0;
};

}  // namespace gatemark
