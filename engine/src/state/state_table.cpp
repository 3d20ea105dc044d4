#include "state/state_table.hpp"

#include <cstring>
#include <new>

namespace gatemark::state {

std::optional<Error> StateTable::reset(std::uint64_t count, std::span<const unsigned> cpus) {
    count_ = 0;
    if (count > entries_.size()) {
        entries_ = {};
        generation_ = 0;
        try {
            entries_ = PagedMemory<std::uint64_t>{static_cast<std::size_t>(count), PagedMemory<std::uint64_t>::Touch::now, cpus};
        } catch (const std::bad_alloc&) {
            return Error{"there is no memory for a state table of " + std::to_string(count * sizeof(std::uint64_t) >> 20) + " MiB",
                         "connections.count", "measure fewer connections, or add memory: each takes 8 bytes"};
        }
    }
    count_ = count;
    ++generation_;
    if (generation_ == 0) {  // all generations used up
        std::memset(entries_.data(), 0, entries_.bytes());
        generation_ = 1;
    }
    return std::nullopt;
}

std::uint64_t StateTable::filled() const noexcept {
    std::uint64_t filled = 0;
    for (std::uint64_t connection = 0; connection < count_; ++connection) {
        filled += read(connection).has_value() ? 1 : 0;
    }
    return filled;
}

}  // namespace gatemark::state
