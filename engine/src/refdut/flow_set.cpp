#include "refdut/flow_set.hpp"

#include "base/bytes.hpp"
#include "refdut/headers.hpp"
#include "refdut/nat_hash.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace gatemark::refdut {

namespace {

std::uint64_t hash_of_flow(const Packet& packet, const View& view, std::size_t udp) noexcept {
    std::array<std::byte, 16> source{}, destination{};
    std::memcpy(source.data(), packet.at(view.source()), view.address_bytes());
    std::memcpy(destination.data(), packet.at(view.destination()), view.address_bytes());
    const std::uint64_t from = load_raw<std::uint16_t>(packet.at(udp + udp_at::source));
    const std::uint64_t to = load_raw<std::uint16_t>(packet.at(udp + udp_at::destination));
    const std::uint64_t hash = hash_of(source, from) + 0x9e3779b97f4a7c15 * hash_of(destination, to << 32);
    return folded_product(hash ^ 0x8ebc6af09c88c6e3, 0x589965cc75374cc3) | 1;
}

}  // namespace

std::size_t FlowSet::add(const Packet& packet) noexcept {
    View view;
    if (read_headers(packet, view) != Drop::none) {
        return size_;
    }
    View inner = view;
    if ((view.carries_packet() && read_carried(packet, view, inner) != Drop::none) || !inner.udp) {
        return size_;
    }
    const std::uint64_t hash = hash_of_flow(packet, view, inner.upper);
    for (std::size_t at = hash >> 1;; ++at) {
        std::uint64_t& slot = slots_[at % slots_.size()];
        if (slot == hash) {
            return size_;
        }
        if (slot == 0) {
            if (size_ < flows_max) {
                slot = hash;
                ++size_;
            }
            return size_;
        }
    }
}

void FlowSet::clear() noexcept {
    std::fill(slots_.begin(), slots_.end(), 0);
    size_ = 0;
}

}  // namespace gatemark::refdut
