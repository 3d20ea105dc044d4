#include "frame/customer_edges.hpp"

#include "base/for_each_cpu.hpp"
#include "base/random.hpp"

#include <numeric>

namespace gatemark::frame {

namespace {

/// Purposes of a seed: which edges there are is the same for all streams.
constexpr std::uint64_t members_purpose = 0x10000, visits_purpose = 0, draws_purpose = 1;
constexpr std::uint32_t system_ports = 1024;

std::string name_of(const std::string& where, std::size_t domain) { return where + ".domains[" + std::to_string(domain) + "]"; }

bool overlap(const net::Prefix& a, const net::Prefix& b) { return a.length < b.length ? a.contains(b.address) : b.contains(a.address); }

/// What two rules must not have in common, named at the later one.
void check_pair(const net::MapRule& earlier, const net::MapRule& later, const std::string& name, const std::string& where, Errors& errors) {
    if (earlier.in_identifier != later.in_identifier) {
        errors.push_back({"is not that of " + name, where + ".in_identifier", "give MAP rules, or softwires, but not both"});
    }
    if (earlier.ipv6 == later.ipv6) {
        errors.push_back({"the IPv6 prefix is that of " + name + " as well", where + ".ipv6", "give each rule one of its own"});
    }
    if (earlier.ipv4 != later.ipv4) {
        return;
    }
    if (earlier.ea_bits != 0 || later.ea_bits != 0 || !earlier.psid || !later.psid) {
        errors.push_back({"the IPv4 prefix is that of " + name + " as well", where + ".ipv4",
                          "give each rule one of its own; only rules without EA bits may share an address, each with its PSID"});
    } else if (earlier.psid_offset != later.psid_offset || earlier.psid_bits != later.psid_bits) {
        errors.push_back({"the port sets overlap those of " + name + ", which has the same IPv4 address", where + ".psid_offset",
                          "give rules that share an address one PSID offset and one length of the PSID"});
    } else if (earlier.psid == later.psid) {
        errors.push_back({"address and PSID are those of " + name + " as well", where + ".psid", "give each rule one of its own"});
    }
}

void check_together(const std::vector<EdgeDomain>& domains, const std::string& where, Errors& errors) {
    for (std::size_t i = 0; i < domains.size(); ++i) {
        const net::MapRule& rule = domains[i].rule;
        const std::string name = name_of(where, i);
        const std::size_t before = errors.size();
        for (std::size_t k = 0; k < i && errors.size() == before; ++k) {
            check_pair(domains[k].rule, rule, name_of(where, k), name, errors);
        }
        if (!rule.dmr || (i > 0 && rule.dmr == domains[i - 1].rule.dmr)) {
            continue;  // compared already
        }
        const auto inside = std::ranges::find_if(domains, [&](const EdgeDomain& other) { return overlap(*rule.dmr, other.rule.ipv6); });
        if (inside != domains.end()) {
            errors.push_back({"the prefix of the default mapping rule overlaps the rule's of " +
                                  name_of(where, static_cast<std::size_t>(inside - domains.begin())),
                              name + ".dmr", "give it a prefix of its own (RFC 7599 section 5.1)"});
        }
    }
}

Errors problems_of(const EdgesRequest& request, const std::string& where) {
    Errors errors;
    if (request.count == 0 || request.count > CustomerEdges::count_limit) {
        errors.push_back({std::to_string(request.count) + " customer edges", where + ".count", "choose 1 to 2^40"});
    }
    if (request.domains.empty() || request.domains.size() > CustomerEdges::domains_max) {
        errors.push_back({std::to_string(request.domains.size()) + " domains", where + ".domains", "give 1 to 1024"});
        return errors;
    }
    std::uint64_t weights = 0;
    for (std::size_t i = 0; i < request.domains.size(); ++i) {
        const EdgeDomain& domain = request.domains[i];
        weights += domain.weight;
        if (domain.weight == 0) {
            errors.push_back({"a domain of weight 0 has no customer edges", name_of(where, i) + ".weight", "choose 1 or more"});
        }
        const Errors of_rule = net::problems_of(domain.rule, name_of(where, i));
        errors.insert(errors.end(), of_rule.begin(), of_rule.end());
    }
    if (weights > CustomerEdges::weights_max) {
        errors.push_back({"the weights sum to " + std::to_string(weights), where + ".domains", "choose weights of 65536 together"});
    }
    if (errors.empty()) {
        check_together(request.domains, where, errors);
    }
    return errors;
}

/// The EA values whose edges have an IPv4 address in `inner`, a longer prefix.
EdgeNumbers::Range values_in_ipv4(const net::MapDomain& map, const net::MapRule& outer, const net::Prefix& inner) {
    const unsigned whole = outer.ipv4.length + map.suffix_bits();  // bits of an address that differ from edge to edge, and those above
    const std::uint64_t first = std::uint64_t{net::word_of(inner.address) ^ net::word_of(outer.ipv4.address)} >> (32 - whole);
    const std::uint64_t suffixes = inner.length < whole ? std::uint64_t{1} << (whole - inner.length) : 1;
    return {.first = first << map.ea_psid_bits(), .last = ((first + suffixes) << map.ea_psid_bits()) - 1};
}

/// The EA values whose edges have a MAP address in `inner`, a longer prefix, or might have one.
EdgeNumbers::Range values_in_ipv6(const net::MapDomain& map, const net::MapRule& outer, const net::Prefix& inner) {
    const unsigned end = outer.ipv6.length + outer.ea_bits;
    const std::uint64_t first = map.ea_of(net::wide_of(inner.address));
    const std::uint64_t values = inner.length < end ? std::uint64_t{1} << (end - inner.length) : 1;
    return {.first = first, .last = first + values - 1};
}

/// A gateway looks up the longest prefix, so an edge whose address is inside the longer prefix of
/// another rule would be mapped by that one.
std::vector<EdgeNumbers::Range> taken_by_others(const std::vector<EdgeDomain>& domains, std::size_t number, const net::MapDomain& map) {
    const net::MapRule& outer = domains[number].rule;
    std::vector<EdgeNumbers::Range> taken;
    for (const EdgeDomain& other : domains) {
        const net::MapRule& inner = other.rule;
        if (inner.ipv4.length > outer.ipv4.length && outer.ipv4.contains(inner.ipv4.address)) {
            const EdgeNumbers::Range range = values_in_ipv4(map, outer, inner.ipv4);
            if (!outer.dmr || inner.ipv4.contains(net::ipv4_of(map.ipv4_of(range.first)))) {
                taken.push_back(range);
            }
        }
        if (inner.ipv6.length > outer.ipv6.length && outer.ipv6.contains(inner.ipv6.address)) {
            const EdgeNumbers::Range range = values_in_ipv6(map, outer, inner.ipv6);
            if (inner.ipv6.contains(net::ipv6_of(map.address_of(range.first)))) {
                taken.push_back(range);
            }
        }
    }
    return taken;
}

EdgeNumbers numbers_of(const std::vector<EdgeDomain>& domains, std::size_t number, const net::MapDomain& map) {
    std::vector<EdgeNumbers::Range> left_out = taken_by_others(domains, number, map);
    if (domains[number].except_suffixes && map.suffix_bits() != 0) {
        const std::uint64_t psids = std::uint64_t{1} << map.ea_psid_bits();
        left_out.push_back({.first = 0, .last = psids - 1});
        left_out.push_back({.first = map.ea_values() - psids, .last = map.ea_values() - 1});
    }
    std::uint32_t lowest_psid = 0;
    if (domains[number].except_system_ports && map.psid_offset() == 0 && map.restricts_ports()) {
        const std::uint32_t ports = 1U << map.port_bits(), psids = (system_ports + ports - 1) / ports;
        if (map.ea_bits() == 0 && map.psid_of(0) < psids) {
            left_out.push_back({.first = 0, .last = 0});
        } else if (map.ea_bits() != 0) {
            lowest_psid = std::min(psids, 1U << map.ea_psid_bits());
        }
    }
    return {map, lowest_psid, std::move(left_out)};
}

}  // namespace

std::variant<CustomerEdges, Errors> CustomerEdges::make(const EdgesRequest& request, std::uint64_t seed, const std::string& where) {
    Errors errors = problems_of(request, where);
    if (!errors.empty()) {
        return errors;
    }
    CustomerEdges edges;
    edges.count_ = request.count;
    for (std::size_t i = 0; i < request.domains.size(); ++i) {
        Members& members = edges.domains_.emplace_back();
        members.map = net::MapDomain{request.domains[i].rule};
        members.numbers = numbers_of(request.domains, i, members.map);
        members.dmr = request.domains[i].rule.dmr;
        // By translation, all addresses of a prefix have the same MAP address (RFC 7599 section 6).
        members.host_mask = members.dmr ? 0 : members.map.host_mask() & 0xffff;
        members.order = request.order;
    }
    edges.take_weights(request);
    edges.count_members();
    for (std::size_t i = 0; i < edges.domains_.size(); ++i) {
        Members& members = edges.domains_[i];
        const std::uint64_t numbers = members.numbers.count();
        if (members.count > numbers) {
            errors.push_back({std::to_string(request.count) + " customer edges need " + std::to_string(members.count) +
                                  " of this domain, which has " + std::to_string(numbers),
                              name_of(where, i), "emulate fewer, change the weights, or give more EA bits"});
            continue;
        }
        members.are_all = members.count == numbers;
        members.stride = std::max(numbers / enumerate::Permutation::count_limit, std::uint64_t{1});
        members.permutation = {std::clamp<std::uint64_t>(numbers, 1, enumerate::Permutation::count_limit),
                               RandomSequence{seed, members_purpose}.at(i)};
    }
    if (!errors.empty()) {
        return errors;
    }
    return edges;
}

/// Position t of the pattern is the turn of the domain which is furthest behind its share (t + 1) *
/// weight / W. A common factor of all weights only repeats the pattern.
void CustomerEdges::take_weights(const EdgesRequest& request) {
    std::uint64_t common = 0, sum = 0;
    for (const EdgeDomain& domain : request.domains) {
        common = std::gcd(common, std::uint64_t{domain.weight});
        sum += domain.weight;
    }
    const std::uint64_t factor = std::max(common, std::uint64_t{1});
    for (std::size_t i = 0; i < domains_.size(); ++i) {
        domains_[i].weight = request.domains[i].weight / factor;
    }
    if (domains_.size() == 1) {
        return;
    }
    const auto turns = static_cast<std::int64_t>(sum / factor);
    pattern_size_ = Divider{sum / factor};
    std::vector<std::int64_t> behind(domains_.size());  // W times what is missing from its share
    std::vector<std::uint32_t> ranks(domains_.size());
    for (std::int64_t t = 0; t < turns; ++t) {
        std::size_t next = 0;
        for (std::size_t i = 0; i < domains_.size(); ++i) {
            behind[i] += static_cast<std::int64_t>(domains_[i].weight);
            next = behind[i] > behind[next] ? i : next;
        }
        behind[next] -= turns;
        pattern_.push_back({.domain = static_cast<std::uint32_t>(next), .rank = ranks[next]++});
    }
}

void CustomerEdges::count_members() {
    if (pattern_.empty()) {
        domains_[0].count = count_;
        return;
    }
    const auto [rounds, rest] = pattern_size_.divide(count_);
    for (Members& members : domains_) {
        members.count = rounds * members.weight;
    }
    for (std::uint64_t t = 0; t < rest; ++t) {
        ++domains_[pattern_[t].domain].count;
    }
}

std::uint64_t CustomerEdges::Members::number_at(std::uint64_t i) const noexcept {
    switch (order) {
        case enumerate::Order::increasing: return i;
        case enumerate::Order::decreasing: return numbers.count() - 1 - i;
        case enumerate::Order::pseudorandom: break;
    }
    if (are_all) {
        return i;
    }
    const std::uint64_t block = permutation.at(i);
    return stride == 1 ? block : block * stride + offset_in_stride(block);
}

void CustomerEdges::Members::put_numbers(std::span<std::uint64_t> places) const noexcept {
    if (order == enumerate::Order::pseudorandom && stride == 1) {
        if (!are_all) {
            permutation.put_at(places);
        }
    } else {
        std::ranges::transform(places, places.begin(), [this](std::uint64_t place) { return number_at(place); });
    }
}

bool CustomerEdges::Members::has(std::uint64_t ea) const noexcept {
    const auto number = numbers.number_of(ea);
    if (!number || are_all) {
        return number.has_value();
    }
    switch (order) {
        case enumerate::Order::increasing: return *number < count;
        case enumerate::Order::decreasing: return numbers.count() - 1 - *number < count;
        case enumerate::Order::pseudorandom: break;
    }
    const std::uint64_t block = *number / stride;
    return block < permutation.count() && block * stride + offset_in_stride(block) == *number && permutation.place_of(block) < count;
}

bool CustomerEdges::contains(Wide address) const noexcept {
    return std::ranges::any_of(domains_, [&](const Members& members) {
        const auto ea = members.map.owner_of(address);
        return ea && members.has(*ea);
    });
}

bool CustomerEdges::is_of_any(Wide address) const noexcept {
    return std::ranges::any_of(domains_, [&](const Members& members) { return members.map.owner_of(address).has_value(); });
}

bool CustomerEdges::contains_ipv4(std::uint32_t address) const noexcept {
    return std::ranges::any_of(domains_, [&](const Members& members) { return members.map.contains_ipv4(address); });
}

EdgeTraffic::EdgeTraffic(std::shared_ptr<const CustomerEdges> edges, const EdgesRequest& request, const ValueRange& ports,
                         std::uint64_t key)
    : edges_{std::move(edges)},
      count_{edges_->count()},
      draws_{request.choice == EdgeChoice::pseudorandom},
      counts_{ports.mode == ValueMode::increasing || ports.mode == ValueMode::decreasing},
      descends_{ports.mode == ValueMode::decreasing},
      words_{key, draws_purpose} {
    const bool shuffles = request.order == enumerate::Order::pseudorandom && !draws_;
    for (std::size_t i = 0; i < edges_->domains().size(); ++i) {
        const CustomerEdges::Members& members = edges_->domains()[i];
        visits_.emplace_back(shuffles ? enumerate::Order::pseudorandom : enumerate::Order::increasing,
                             std::max(members.count, std::uint64_t{1}), RandomSequence{key, visits_purpose}.at(i));
        of_domains_.push_back(of_domain(members, ports));
    }
}

/// As `number_of`; the frames of a burst mostly belong to one round of all edges.
GATEMARK_FOR_EACH_CPU
void EdgeTraffic::put_numbers(std::span<std::uint64_t> numbers) const noexcept {
    if (numbers.empty()) {
        return;
    }
    const std::uint64_t count = count_.divisor(), begin = numbers.front() - count_.remainder(numbers.front());
    std::uint64_t furthest = 0;
    for (const std::uint64_t number : numbers) {
        furthest = std::max(furthest, number - begin);  // far away if it is before the round
    }
    if (draws_ || furthest >= count) [[unlikely]] {
        std::ranges::transform(numbers, numbers.begin(), [this](std::uint64_t j) { return number_of(j); });
        return;
    }
    for (std::uint64_t& number : numbers) {
        number -= begin;
    }
}

void EdgeTraffic::put_edges(std::span<std::uint64_t> numbers) const noexcept {
    if (visits_.size() != 1) {
        std::ranges::transform(numbers, numbers.begin(), [this](std::uint64_t j) { return edge_of(j).number; });
        return;
    }
    const CustomerEdges::Members& members = edges_->domains()[0];
    put_numbers(numbers);
    visits_[0].put_at(numbers);
    members.put_numbers(numbers);
    if (!members.numbers.is_identity()) {
        std::ranges::transform(numbers, numbers.begin(), [&](std::uint64_t number) { return members.numbers.value_of(number); });
    }
}

std::optional<std::uint64_t> EdgeTraffic::place_of_port(Edge edge, std::uint16_t port) const noexcept {
    const OfDomain& domain = of_domain(edge);
    const std::uint32_t above = std::uint32_t{port} - domain.first;  // wraps below the first port
    const std::uint32_t i = domain.range_bits == 16 ? above : (above >> domain.range_shift) << domain.range_bits | (port & domain.mask);
    const bool is_one = port >= domain.first && i < domain.count.divisor() && domain.port_at(edge, i) == port;
    return is_one ? std::optional<std::uint64_t>{i} : std::nullopt;
}

EdgeTraffic::OfDomain EdgeTraffic::of_domain(const CustomerEdges::Members& members, const ValueRange& ports) {
    const net::MapDomain& map = members.map;
    const bool restricted = map.restricts_ports();
    const std::uint32_t count = restricted ? map.ports() : ports.count();
    OfDomain domain{
        .map = map, .drawn_count = ports.mode == ValueMode::fixed ? 1 : count, .count = Divider{count}, .host_mask = members.host_mask};
    if (!restricted) {  // one range of any size
        domain.first = ports.minimum;
        domain.mask = 0xffff;
        domain.range_bits = domain.psid_shift = 16;
        return domain;
    }
    domain.range_bits = domain.psid_shift = map.port_bits();
    domain.range_shift = 16 - map.psid_offset();
    domain.mask = (1U << map.port_bits()) - 1;
    domain.first = map.psid_offset() == 0 ? 0 : 1U << domain.range_shift;
    return domain;
}

}  // namespace gatemark::frame
