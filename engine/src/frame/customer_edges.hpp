#pragma once

#include "base/random.hpp"
#include "enumerate/sequence.hpp"
#include "frame/edge_numbers.hpp"
#include "frame/value_sequence.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace gatemark::frame {

/// One of the MAP domains of a set of customer edges, as requested.
struct EdgeDomain {
    net::MapRule rule;
    std::uint32_t weight = 1;          ///< its share of the edges
    bool except_suffixes = false;      ///< leaves out the IPv4 suffixes of zeros and of ones
    bool except_system_ports = false;  ///< leaves out PSIDs whose ports begin below 1024 (RFC 7596 section 5.1)
};

/// Which edge a frame belongs to: all in turn, or one drawn.
enum class EdgeChoice : std::uint8_t { cycle, pseudorandom };

/// The customer edges that the Tester emulates on one side, as requested.
struct EdgesRequest {
    std::vector<EdgeDomain> domains;
    std::uint64_t count = 1;
    enumerate::Order order = enumerate::Order::pseudorandom;
    EdgeChoice choice = EdgeChoice::cycle;
};

/// An edge as one number: that of its domain, above the value of its EA bits.
struct Edge {
    static constexpr unsigned domain_shift = net::MapDomain::ea_bits_max;
    std::uint64_t number = 0;

    [[nodiscard]] static constexpr Edge make(std::size_t domain, std::uint64_t ea) noexcept {
        return {std::uint64_t{domain} << domain_shift | ea};
    }
    [[nodiscard]] constexpr std::size_t domain() const noexcept { return number >> domain_shift; }
    [[nodiscard]] constexpr std::uint64_t ea() const noexcept { return number & ((std::uint64_t{1} << domain_shift) - 1); }
    friend bool operator==(const Edge&, const Edge&) = default;
};

/// A set of customer edges, numbered from 0. They are spread over their domains by weight, in the
/// smoothest pattern; edge number c is one of domain pattern[c mod W], W the sum of all weights. In
/// each domain they are the first ones of an order of all its EA values: nothing is kept for an
/// edge, so set-up and memory do not grow with their number.
class CustomerEdges {
public:
    static constexpr std::uint64_t count_limit = enumerate::Permutation::count_limit;
    static constexpr std::size_t domains_max = 1024;
    static constexpr std::uint64_t weights_max = 65'536;  ///< of all domains together

    /// Returns all problems at once. The set depends on `seed` if its order is pseudorandom and it
    /// has fewer edges than its domains.
    [[nodiscard]] static std::variant<CustomerEdges, Errors> make(const EdgesRequest& request, std::uint64_t seed,
                                                                  const std::string& where);

    /// The edges of one domain.
    struct Members {
        net::MapDomain map;
        EdgeNumbers numbers;
        std::optional<net::Prefix> dmr;
        std::uint32_t host_mask = 0;          ///< of the addresses of an edge, where it uses several
        std::uint64_t weight = 1, count = 0;  ///< of its edges
        enumerate::Order order = enumerate::Order::increasing;
        bool are_all = false;  ///< every number is an edge's
        enumerate::Permutation permutation{1, 0};
        std::uint64_t stride = 1;  ///< above 1 if there are more numbers than a permutation has

        /// The number at place `i` of the order, among those of `numbers`.
        [[nodiscard]] std::uint64_t number_at(std::uint64_t i) const noexcept;
        /// Replaces each place with the number at it, as `number_at` does for one place.
        void put_numbers(std::span<std::uint64_t> places) const noexcept;
        /// Whether an edge has this EA value.
        [[nodiscard]] bool has(std::uint64_t ea) const noexcept;

    private:
        /// Where in its stride a number lies.
        [[nodiscard]] std::uint64_t offset_in_stride(std::uint64_t block) const noexcept { return mix_bits(block) % stride; }
    };

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] const std::vector<Members>& domains() const noexcept { return domains_; }
    [[nodiscard]] const Members& domain_of(Edge edge) const noexcept { return domains_[edge.domain()]; }

    /// Where edge number `c` is: its domain, and its place there.
    struct Place {
        std::size_t domain;
        std::uint64_t place;
    };
    [[nodiscard]] Place place_of(std::uint64_t c) const noexcept {
        if (pattern_.empty()) {
            return {0, c};
        }
        const auto [round, position] = pattern_size_.divide(c);
        const Turn turn = pattern_[position];
        return {turn.domain, round * domains_[turn.domain].weight + turn.rank};
    }
    [[nodiscard]] Edge edge_at(Place place) const noexcept {
        const Members& members = domains_[place.domain];
        return Edge::make(place.domain, members.numbers.value_of(members.number_at(place.place)));
    }
    /// Edge number `c`.
    [[nodiscard]] Edge edge_of(std::uint64_t c) const noexcept { return edge_at(place_of(c)); }

    [[nodiscard]] Wide address_of(Edge edge) const noexcept { return domain_of(edge).map.address_of(edge.ea()); }
    /// An IPv4 address of an edge: that of this host behind it, if it has a prefix.
    [[nodiscard]] std::uint32_t ipv4_of(Edge edge, std::uint16_t host) const noexcept {
        const Members& members = domain_of(edge);
        return members.map.ipv4_of(edge.ea()) | (host & members.host_mask);
    }
    /// Whether this is the MAP address of an edge of the set.
    [[nodiscard]] bool contains(Wide address) const noexcept;
    /// Whether this is the MAP address of any edge of the domains, in the set or not.
    [[nodiscard]] bool is_of_any(Wide address) const noexcept;
    /// Whether this is an IPv4 address of a rule: who else uses it with its edges follows from the
    /// port.
    [[nodiscard]] bool contains_ipv4(std::uint32_t address) const noexcept;

private:
    /// A position of the pattern: whose turn it is, and how often it was before.
    struct Turn {
        std::uint32_t domain, rank;
    };
    CustomerEdges() = default;
    void take_weights(const EdgesRequest& request);
    void count_members();

    std::uint64_t count_ = 1;
    std::vector<Members> domains_;
    std::vector<Turn> pattern_;  ///< empty if there is one domain
    Divider pattern_size_{1};
};

/// The edges of one stream's frames, and their ports.
class EdgeTraffic {
public:
    /// `ports` says how a port of an edge's set is chosen; its limits are those of edges that may
    /// use any port. Each stream has its own order of the same edges: `key`.
    EdgeTraffic(std::shared_ptr<const CustomerEdges> edges, const EdgesRequest& request, const ValueRange& ports, std::uint64_t key);

    [[nodiscard]] const CustomerEdges& edges() const noexcept { return *edges_; }
    [[nodiscard]] const std::shared_ptr<const CustomerEdges>& shared_edges() const noexcept { return edges_; }

    /// The edge of frame number j of the class.
    [[nodiscard]] Edge edge_of(std::uint64_t j) const noexcept {
        CustomerEdges::Place place = edges_->place_of(number_of(j));
        place.place = visits_[place.domain].at(place.place);
        return edges_->edge_at(place);
    }
    /// Replaces the numbers of frames with those of their edges: for a whole burst at once, which
    /// is faster.
    void put_edges(std::span<std::uint64_t> numbers) const noexcept;
    /// The edges of one domain: what their addresses and ports follow from.
    struct OfDomain {
        net::MapDomain map;
        std::uint32_t first = 0, mask = 0;  ///< of ports
        unsigned range_bits = 0, range_shift = 0, psid_shift = 0;
        std::uint32_t drawn_count = 1;
        Divider count{1};
        std::uint32_t host_mask = 0;  ///< of the hosts behind an edge

        /// Port number `i` of an edge, as a sum of what follows from `i` and from the PSID.
        [[nodiscard]] std::uint16_t port_at(Edge edge, std::uint32_t i) const noexcept {
            const std::uint32_t psid = map.psid_of(edge.ea());
            return static_cast<std::uint16_t>(first + ((i >> range_bits) << range_shift) + (psid << psid_shift) + (i & mask));
        }
        [[nodiscard]] std::uint16_t drawn_port(Edge edge, std::uint32_t uniform) const noexcept {
            return port_at(edge, scale_to(uniform, drawn_count));
        }
    };
    [[nodiscard]] const OfDomain& of_domain(Edge edge) const noexcept { return of_domains_[edge.domain()]; }
    /// Of all edges; nullptr if they are of several domains.
    [[nodiscard]] const OfDomain* only_domain() const noexcept { return of_domains_.size() == 1 ? of_domains_.data() : nullptr; }
    /// The port of an edge in frame number j, which has these uniform bits.
    [[nodiscard]] std::uint16_t port_of(std::uint64_t j, Edge edge, std::uint32_t uniform) const noexcept {
        const OfDomain& domain = of_domain(edge);
        return counts_ ? domain.port_at(edge, place_of_visit(j, domain)) : domain.drawn_port(edge, uniform);
    }
    /// How many ports an edge has.
    [[nodiscard]] std::uint64_t port_count(Edge edge) const noexcept { return of_domain(edge).count.divisor(); }
    /// The i-th port of an edge in ascending order, and again the first one after the last one.
    [[nodiscard]] std::uint16_t port_at(Edge edge, std::uint64_t i) const noexcept {
        const OfDomain& domain = of_domain(edge);
        return domain.port_at(edge, static_cast<std::uint32_t>(domain.count.remainder(i)));
    }
    /// Which of an edge's ports this is; none if it is not the edge's.
    [[nodiscard]] std::optional<std::uint64_t> place_of_port(Edge edge, std::uint16_t port) const noexcept;

private:
    [[nodiscard]] static OfDomain of_domain(const CustomerEdges::Members& members, const ValueRange& ports);
    /// Frame number j is the v-th one of its edge; edges take their ports in turn.
    [[nodiscard]] std::uint32_t place_of_visit(std::uint64_t j, const OfDomain& domain) const noexcept {
        const std::uint64_t i = domain.count.remainder(count_.divide(j).quotient);
        return static_cast<std::uint32_t>(descends_ ? domain.count.divisor() - 1 - i : i);
    }
    void put_numbers(std::span<std::uint64_t> numbers) const noexcept;
    /// The number of the edge of frame number j.
    [[nodiscard]] std::uint64_t number_of(std::uint64_t j) const noexcept {
        return draws_ ? scale_wide_to(words_.at(j), count_.divisor()) : count_.remainder(j);
    }

    std::shared_ptr<const CustomerEdges> edges_;
    Divider count_;
    bool draws_, counts_, descends_;
    RandomSequence words_;
    std::vector<enumerate::Sequence> visits_;  ///< by domain: the order in which the places of its edges come
    std::vector<OfDomain> of_domains_;
};

}  // namespace gatemark::frame
