#include "frame/edge_generator.hpp"

#include "base/for_each_cpu.hpp"

namespace gatemark::frame {

EdgeGenerator::EdgeGenerator(const Stream& stream, const FrameTemplate& side) noexcept
    : stream_{&stream}, is_ipv4_{side.layout.family == net::Family::ipv4}, in_tunnel_{side.layout.in_tunnel()} {
    const bool from_edges = stream.comes_from_edges();
    const Layout& layout = side.layout;
    const AddressField& hosts = from_edges ? side.destination : side.source;
    shared_ = from_edges ? layout.source_address() : layout.destination_address();
    map_ = from_edges ? layout.outer_source_address() : layout.outer_destination_address();
    if (const auto pair = hosts.only_pair()) {
        host_ = (from_edges ? layout.destination_address() : layout.source_address()) + pair->at;
        host_mask_ = 0xffff;
        is_odd_ = pair->is_odd;
    }
    if (host_mask_ != 0 || !hosts.varies()) {
        domain_ = stream.draws_from();
    }
}

GATEMARK_FOR_EACH_CPU
void EdgeGenerator::draw(const BurstNumbers& numbers, const BurstNumbers& edges, std::size_t count, BurstFields& __restrict fields,
                         BurstEdges& __restrict of_edges) const noexcept {
    const EdgeTraffic::OfDomain domain = *domain_;
    const EdgeDraws draws = stream_->edge_draws();
    const unsigned edge_shift = draws.edge_shift / 2, odd_shift = is_odd_ ? 0 : 8;
    const std::uint32_t host_mask = host_mask_;
    for (std::size_t k = 0; k < in_lanes(count); ++k) {
        const auto [edge_port, edge_host, port, drawn_host] = draws.at(numbers[k], {edges[k]}, domain);
        const std::uint32_t host = drawn_host & host_mask, bytes = (host >> 8 | host << 8) & 0xffff;
        fields.ports[k] = swap_bytes(std::uint32_t{edge_port} << edge_shift | std::uint32_t{port} << (16 - edge_shift));
        of_edges.hosts[k] = bytes;
        of_edges.shared[k] = swap_bytes(std::uint32_t{edge_host});
        fields.addresses[k] = (host >> odd_shift | host << odd_shift) & 0xffff;  // each byte in its half of a word
    }
    if (is_ipv4_) {
        for (std::size_t k = 0; k < in_lanes(count); ++k) {
            const std::uint32_t address = swap_bytes(domain.map.ipv4_of(Edge{edges[k]}.ea())) | of_edges.shared[k];
            of_edges.shared[k] = address;
            fields.addresses[k] += sum_of_words(address);
        }
    }
    if (!is_ipv4_ || in_tunnel_) {
        for (std::size_t k = 0; k < in_lanes(count); ++k) {
            const std::uint64_t ea = Edge{edges[k]}.ea();
            of_edges.high[k] = swap_bytes(domain.map.high_of(ea));
            of_edges.low[k] = swap_bytes(domain.map.low_of(ea));
        }
    }
    if (!is_ipv4_) {
        for (std::size_t k = 0; k < in_lanes(count); ++k) {
            const std::uint64_t halves = sums_of_words(of_edges.high[k]) + sums_of_words(of_edges.low[k]);
            fields.addresses[k] += static_cast<std::uint32_t>(halves) + static_cast<std::uint32_t>(halves >> 32);
        }
    }
}

template <class Call>
auto EdgeGenerator::with_addresses(const Call& call) const noexcept {
    return !is_ipv4_    ? call.template operator()<false, true>()
           : in_tunnel_ ? call.template operator()<true, true>()
                        : call.template operator()<true, false>();
}

void EdgeGenerator::store(const BurstFrames& frames, const BurstEdges& of_edges) const noexcept {
    with_addresses([&]<bool has_shared, bool has_map>() {
        const std::size_t shared = shared_, map = map_, host = host_;
        const bool hosts_vary = host_mask_ != 0;
        for (std::size_t k = 0; k < frames.count; ++k) {
            std::byte* const frame = frames.frames[k];
            if constexpr (has_shared) {
                store_raw(frame + shared, of_edges.shared[k]);
            }
            if constexpr (has_map) {
                store_raw(frame + map, of_edges.high[k]);
                store_raw(frame + map + sizeof(std::uint64_t), of_edges.low[k]);
            }
            if (hosts_vary) {
                store_raw(frame + host, static_cast<std::uint16_t>(of_edges.hosts[k]));
            }
        }
    });
}

std::uint32_t EdgeGenerator::compare(const ReceivedFrames& frames, const BurstEdges& of_edges) const noexcept {
    return with_addresses([&]<bool has_shared, bool has_map>() {
        const std::size_t shared = shared_, map = map_, host = host_;
        const std::uint32_t host_mask = host_mask_;
        std::uint32_t wrong = 0;
        for (std::size_t k = 0; k < frames.count; ++k) {
            const std::byte* const frame = frames.frames[k];
            std::uint64_t differences = (load_raw<std::uint16_t>(frame + host) ^ of_edges.hosts[k]) & host_mask;
            if constexpr (has_shared) {
                differences |= load_raw<std::uint32_t>(frame + shared) ^ of_edges.shared[k];
            }
            if constexpr (has_map) {
                differences |= (load_raw<std::uint64_t>(frame + map) ^ of_edges.high[k]) |
                               (load_raw<std::uint64_t>(frame + map + sizeof(std::uint64_t)) ^ of_edges.low[k]);
            }
            wrong |= std::uint32_t{differences != 0} << k;
        }
        return wrong;
    });
}

}  // namespace gatemark::frame
