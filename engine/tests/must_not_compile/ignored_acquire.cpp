// The number of buffers acquired, or of frames accepted, must not be ignored.
#include "io/memory_port.hpp"

#ifdef MUST_NOT_COMPILE
#pragma GCC diagnostic error "-Wunused-result"
#endif

[[maybe_unused]] static std::size_t get(gatemark::io::MemoryTransmitQueue& queue, std::span<gatemark::io::MemoryFrame*> burst) {
#ifdef MUST_NOT_COMPILE
    queue.acquire(0, burst);
    return 0;
#else
    return queue.acquire(0, burst);
#endif
}
