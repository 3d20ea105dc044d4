#include "refdut/program.hpp"

#include "base/available_memory.hpp"

namespace gatemark::refdut {

namespace {

constexpr std::uint64_t purposes_a_direction = 100'000'000, purpose_of_delay = 50'000'000;

NeighbourConfig link_of(const SideSettings& side, const net::MacAddress& own_mac) {
    return {.own_mac = own_mac, .vlan_id = side.vlan_id, .ipv4 = side.ipv4, .ipv6 = side.ipv6, .peer_mac = side.peer_mac};
}

bool same_link(const NeighbourConfig& a, const NeighbourConfig& b) {
    return a.own_mac == b.own_mac && a.vlan_id == b.vlan_id && a.ipv4 == b.ipv4 && a.ipv6 == b.ipv6 && a.peer_mac == b.peer_mac;
}

Program::Way way_of(const Settings& settings, std::size_t direction, std::uint64_t ticks_per_second) {
    const DirectionSettings& wanted = settings.directions[direction];
    const std::uint64_t purpose = direction * purposes_a_direction;
    const ImpairmentSpec& spec = wanted.impairments;
    return {.shaper = Shaper{wanted.shaper, ticks_per_second},
            .delay = DelaySource{wanted.delay, settings.seed, purpose + purpose_of_delay, ticks_per_second},
            .impairments = Impairments{spec, settings.seed, purpose},
            .keep_order = wanted.keep_order,
            .impaired = !spec.loss.empty() || !spec.duplicate.empty() || !spec.reorder.empty() || !spec.corrupt.empty(),
            .flows = wanted.shaper.flow_cost_ns > 0 ? std::optional<FlowSet>{std::in_place} : std::nullopt};
}

bool keeps_table(const Settings& settings, const Program* before) {
    return before != nullptr && before->settings.translation_key == settings.translation_key;
}

std::shared_ptr<NatTable> table_of(const Settings& settings, const Program* before) {
    if (!is_stateful(settings.translation.mode)) {
        return nullptr;
    }
    if (keeps_table(settings, before)) {
        return before->table;
    }
    return std::make_shared<NatTable>(public_endpoints(settings.translation), settings.table);
}

}  // namespace

std::uint64_t table_bytes(const Settings& settings, const Program* before) {
    if (!is_stateful(settings.translation.mode)) {
        return 0;
    }
    return keeps_table(settings, before) ? before->table->growth(settings.table.capacity) : NatTable::bytes_for(settings.table.capacity);
}

std::optional<Error> check_table(const Settings& settings, const Program* before) {
    return check_memory(table_bytes(settings, before), "tables of " + std::to_string(settings.table.capacity) + " connections",
                        "table.size", "use a smaller one, or free memory");
}

std::unique_ptr<Program> make_program(const Settings& settings, const std::array<net::MacAddress, 2>& own_macs,
                                      std::uint64_t ticks_per_second, const Program* before) {
    auto table = table_of(settings, before);
    const auto left = link_of(settings.sides[0], own_macs[0]), right = link_of(settings.sides[1], own_macs[1]);
    const auto kept = [&](std::size_t side, const NeighbourConfig& link) {
        return before != nullptr && same_link(before->neighbours[side].config(), link);
    };
    NatTable* const used = table.get();
    return std::make_unique<Program>(
        Program{.settings = settings,
                .table = std::move(table),
                .translator = Translator{settings.translation, used},
                .test_frames = TestFrames{own_addresses(settings.translation), used, settings.translation.mode},
                .ways = {way_of(settings, 0, ticks_per_second), way_of(settings, 1, ticks_per_second)},
                .neighbours = {Neighbours{left}, Neighbours{right}},
                .keeps_neighbours = {kept(0, left), kept(1, right)}});
}

}  // namespace gatemark::refdut
