#include "state/state_table.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace gatemark::state {

namespace {

constexpr std::size_t huge_page_octets = std::size_t{2} << 20;

}  // namespace

StateTable::~StateTable() { release(); }

void StateTable::release() noexcept {
    if (entries_ != nullptr) {
        ::munmap(entries_, octets_);
    }
    entries_ = nullptr;
    octets_ = 0;
    generation_ = 0;
}

std::optional<Error> StateTable::reset(std::uint64_t count) {
    const std::size_t wanted =
        (static_cast<std::size_t>(count) * sizeof(std::uint64_t) + huge_page_octets - 1) / huge_page_octets * huge_page_octets;
    count_ = 0;
    if (wanted > octets_) {
        release();
        void* const memory = ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return Error{"there is no memory for a state table of " + std::to_string(wanted >> 20) + " MiB (" + std::strerror(errno) + ")",
                         "connections.count", "measure fewer connections, or add memory: each takes 8 octets"};
        }
        ::madvise(memory, wanted, MADV_HUGEPAGE);  // a kernel without huge pages serves us as well
        entries_ = static_cast<std::uint64_t*>(memory);
        octets_ = wanted;
    }
    count_ = count;
    ++generation_;
    if (generation_ <= 1) {  // fresh memory, or all generations used up
        std::memset(entries_, 0, octets_);
        generation_ = 1;
    }
    return std::nullopt;
}

}  // namespace gatemark::state
