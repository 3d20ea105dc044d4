#include "state/connection_keeper.hpp"

#include "base/for_each_cpu.hpp"

namespace gatemark::state {

GATEMARK_FOR_EACH_CPU
std::size_t ConnectionKeeper::pack(const frame::ArrivedFields::OfEach<std::uint32_t>& ports, std::span<std::uint64_t> addresses) noexcept {
    std::uint32_t none = 0;
    for (std::size_t k = 0; k < addresses.size(); ++k) {
        const std::uint32_t port = swap_bytes(ports[k]) >> 16;
        addresses[k] = StateTable::packed(addresses[k], static_cast<std::uint16_t>(port));
        none |= std::uint32_t{port == 0};
    }
    std::size_t count = none == 0 ? addresses.size() : 0;
    while (count < addresses.size() && (addresses[count] & 0xffff) != 0) {
        ++count;
    }
    return count;
}

/// Follows `pack`: with clang the versions of a function must be defined before use.
std::size_t ConnectionKeeper::learn_correct(const frame::MatchedFrames& matched, const frame::Arrival& arrival) const noexcept {
    std::array<std::uint64_t, frame::burst_frames_max> endpoints;
    std::size_t count = pool_.put_numbers(std::span{matched.frames}.first(matched.count), arrival.source_address(), endpoints);
    count = pack(matched.arrived.ports, std::span{endpoints}.first(count));
    const auto connections = std::span{matched.connections}.first(count);
    if (phase_ == Phase::use) {
        return table_.count_same(connections, endpoints);
    }
    table_.write_all(connections, endpoints);
    return count;
}

}  // namespace gatemark::state
