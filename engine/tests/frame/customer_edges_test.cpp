#include "frame/customer_edges.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace gatemark::frame {
namespace {

using enumerate::Order;
using test::edge_domain;

constexpr std::uint64_t key = 7;
constexpr ValueRange any_port{ValueMode::pseudorandom, 1024, 65535};
constexpr std::array orders{Order::increasing, Order::decreasing, Order::pseudorandom};

CustomerEdges edges_of(const EdgesRequest& request, std::uint64_t seed = test::seed) {
    return std::get<CustomerEdges>(CustomerEdges::make(request, seed, "source.edges"));
}
EdgeTraffic traffic_of(const EdgesRequest& request, const ValueRange& ports = any_port, std::uint64_t of_key = key) {
    return {std::make_shared<const CustomerEdges>(edges_of(request)), request, ports, of_key};
}
std::vector<std::string> places_of_problems(const EdgesRequest& request) {
    std::vector<std::string> places;
    const auto result = CustomerEdges::make(request, test::seed, "edges");
    if (const auto* errors = std::get_if<Errors>(&result)) {
        for (const Error& error : *errors) {
            EXPECT_FALSE(error.what.empty() || error.fix.empty());
            places.push_back(error.where);
        }
    }
    return places;
}

/// 8 bits of a suffix and `psid_bits` of a PSID.
EdgesRequest small_request(std::uint64_t count, Order order, unsigned psid_bits = 3) {
    return {.domains = {edge_domain("2001:db8::/40", "192.0.2.0/24", 8 + psid_bits, 6)}, .count = count, .order = order};
}

/// A rule whose edges can all be looked at.
EdgeDomain random_domain(std::mt19937_64& random, unsigned number, bool in_identifier = false) {
    const auto ipv4_bits = static_cast<unsigned>(20 + random() % 13), ea_bits = static_cast<unsigned>(random() % 11);
    const unsigned psid_bits = ipv4_bits + ea_bits > 32 ? ipv4_bits + ea_bits - 32 : 0;
    EdgeDomain domain =
        edge_domain("2001:db8::/40", "192.0.2.0/24", ea_bits, static_cast<unsigned>(random() % (std::min(15U, 16 - psid_bits) + 1)));
    domain.rule.in_identifier = in_identifier;
    domain.rule.ipv6.length = in_identifier ? 64 : static_cast<unsigned>(40 + random() % 50);
    domain.rule.ipv4.length = ipv4_bits;
    domain.rule.ipv4.address = net::ipv4_of(number << 12);  // 20 bits
    domain.rule.ipv6.address.bytes[4] = static_cast<std::byte>(number);
    domain.weight = static_cast<std::uint32_t>(1 + random() % 5);
    domain.except_suffixes = ipv4_bits < 31 && random() % 2 == 0 && std::min(ea_bits, 32 - ipv4_bits) > 1;
    domain.except_system_ports = random() % 2 == 0 && psid_bits > 0 && psid_bits < 7;
    return domain;
}

/// How many edges an exhaustive look at all EA values finds.
std::uint64_t slow_count(const EdgeDomain& domain) {
    const net::MapDomain map{domain.rule};
    const std::uint64_t suffixes = std::uint64_t{1} << map.suffix_bits(), psids = std::uint64_t{1} << map.ea_psid_bits();
    std::uint64_t count = 0;
    for (std::uint64_t suffix = 0; suffix < suffixes; ++suffix) {
        for (std::uint64_t psid = 0; psid < psids; ++psid) {
            const bool at_end = domain.except_suffixes && map.suffix_bits() > 0 && (suffix == 0 || suffix == suffixes - 1);
            const bool has_system_port = domain.except_system_ports && domain.rule.psid_offset == 0 && map.psid_bits() > 0 &&
                                         map.port(static_cast<std::uint16_t>(psid), 0) < 1024;
            count += at_end || has_system_port ? 0 : 1;
        }
    }
    return count;
}

TEST(CustomerEdges, OfRulesDrawnAtRandomAreAllReachedOnceAndFoundByTheirAddresses) {
    std::mt19937_64 random{11};
    for (int round = 0; round < 300; ++round) {
        const bool in_identifier = round % 4 == 3;
        EdgesRequest request{.domains = {random_domain(random, 1, in_identifier)}, .order = orders[static_cast<std::size_t>(round % 3)]};
        const std::uint64_t all = slow_count(request.domains[0]);
        ASSERT_GT(all, 0U);
        for (const std::uint64_t count : {all, 1 + random() % all}) {
            request.count = count;
            const CustomerEdges edges = edges_of(request);
            const EdgeTraffic traffic = traffic_of(request);
            std::set<std::pair<std::uint32_t, std::uint16_t>> endpoints;
            std::set<std::uint64_t> members, visited;
            for (std::uint64_t c = 0; c < count; ++c) {
                const Edge edge = edges.edge_of(c);
                const net::MapDomain& map = edges.domain_of(edge).map;
                endpoints.insert({edges.ipv4_of(edge, 0), map.psid_of(edge.ea())});
                members.insert(edge.number);
                visited.insert(traffic.edge_of(c).number);
                ASSERT_TRUE(edges.contains(edges.address_of(edge)) && edges.contains_ipv4(edges.ipv4_of(edge, 0))) << round;
                ASSERT_EQ(map.owner_of(edges.address_of(edge)), edge.ea()) << round;
            }
            ASSERT_EQ(endpoints.size(), count) << round << ": no two edges share address and ports";
            ASSERT_EQ(members.size(), count) << round;
            ASSERT_EQ(visited, members) << round << ": a stream has its own order of the same edges";
            std::uint64_t contained = 0;
            const net::MapDomain& map = edges.domains()[0].map;
            for (std::uint64_t ea = 0; ea < map.ea_values(); ++ea) {
                contained += edges.contains(map.address_of(ea)) ? 1 : 0;
            }
            ASSERT_EQ(contained, count) << round;
            const Wide nobodys = map.address_of(0) ^ (in_identifier ? Wide{1} << 63 : Wide{1});
            EXPECT_FALSE(edges.contains(nobodys) && edges.contains(map.address_of(0)));
        }
        request.count = all + 1;
        EXPECT_EQ(places_of_problems(request), std::vector<std::string>{"edges.domains[0]"});
    }
}

TEST(CustomerEdges, ComeInTheOrderThatIsAskedFor) {
    const auto values = [](Order order, std::uint64_t count) {
        const EdgeTraffic traffic = traffic_of(small_request(count, order));
        std::vector<std::uint64_t> list;
        for (std::uint64_t j = 0; j < count; ++j) {
            list.push_back(traffic.edge_of(j).ea());
        }
        return list;
    };
    EXPECT_EQ(values(Order::increasing, 4), (std::vector<std::uint64_t>{0, 1, 2, 3}));
    EXPECT_EQ(values(Order::decreasing, 4), (std::vector<std::uint64_t>{2047, 2046, 2045, 2044}));
    const auto drawn = values(Order::pseudorandom, 2048);
    EXPECT_FALSE(std::ranges::is_sorted(drawn));
}

TEST(CustomerEdges, TakeTurnsEachOnceInARound) {
    constexpr std::uint64_t count = 1000, frames = 12'345;
    for (const Order order : orders) {
        const EdgeTraffic traffic = traffic_of(small_request(count, order));
        std::map<std::uint64_t, std::uint64_t> visits;
        for (std::uint64_t j = 0; j < frames; ++j) {
            ++visits[traffic.edge_of(j).number];
        }
        ASSERT_EQ(visits.size(), count);
        for (const auto& [edge, times] : visits) {
            EXPECT_TRUE(times == 12 || times == 13);
        }
    }
}

TEST(CustomerEdges, AreTheSameInBothDirectionsInAnotherOrder) {
    const EdgesRequest request = small_request(1000, Order::pseudorandom);
    const EdgeTraffic forward = traffic_of(request), reverse = traffic_of(request, any_port, key + 1);
    std::set<std::uint64_t> of_forward, of_reverse;
    std::uint64_t same = 0;
    for (std::uint64_t j = 0; j < 1000; ++j) {
        of_forward.insert(forward.edge_of(j).number);
        of_reverse.insert(reverse.edge_of(j).number);
        same += forward.edge_of(j) == reverse.edge_of(j) ? 1 : 0;
    }
    EXPECT_EQ(of_forward, of_reverse);
    EXPECT_LT(same, 10U);
    const CustomerEdges other = edges_of(request, test::seed + 1);
    EXPECT_FALSE(std::ranges::all_of(of_forward, [&](std::uint64_t edge) { return other.contains(other.address_of(Edge{edge})); }))
        << "which edges there are follows from the seed";
}

TEST(CustomerEdges, MayBeDrawn) {
    EdgesRequest request = small_request(64, Order::pseudorandom);
    request.choice = EdgeChoice::pseudorandom;
    const EdgeTraffic traffic = traffic_of(request);
    std::map<std::uint64_t, double> visits;
    constexpr double frames = 64'000;
    for (std::uint64_t j = 0; j < static_cast<std::uint64_t>(frames); ++j) {
        ++visits[traffic.edge_of(j).number];
    }
    ASSERT_EQ(visits.size(), 64U);
    double chi_square = 0;
    for (const auto& [edge, times] : visits) {
        chi_square += (times - 1000) * (times - 1000) / 1000;
    }
    EXPECT_LT(chi_square, 130) << "63 degrees of freedom: above 130 once in a million";
    EXPECT_GT(chi_square, 20) << "they do not take turns";
}

TEST(CustomerEdges, OfABurstAreThoseOfItsFrames) {
    std::mt19937_64 random{2};
    for (int round = 0; round < 100; ++round) {
        EdgesRequest request{.domains = {}, .order = orders[static_cast<std::size_t>(round % 3)]};
        for (unsigned number = 1; number <= 1 + random() % 3; ++number) {
            request.domains.push_back(random_domain(random, number));
        }
        request.choice = random() % 2 == 0 ? EdgeChoice::cycle : EdgeChoice::pseudorandom;
        const EdgeTraffic traffic = traffic_of(request);
        std::array<std::uint64_t, 32> burst{};
        for (std::uint64_t& j : burst) {
            j = random() % 100'000;
        }
        const auto numbers = burst;
        traffic.put_edges(burst);
        for (std::size_t i = 0; i < burst.size(); ++i) {
            ASSERT_EQ(burst[i], traffic.edge_of(numbers[i]).number) << round;
        }
    }
}

/// By its definition: the turn of the domain with the largest (t + 1) * weight - W * turns so far.
std::vector<std::size_t> slow_pattern(const std::vector<std::uint32_t>& weights) {
    const auto sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    std::vector<std::int64_t> turns(weights.size());
    std::vector<std::size_t> pattern;
    for (std::int64_t t = 0; t < sum; ++t) {
        std::size_t next = 0;
        const auto behind = [&](std::size_t i) { return (t + 1) * weights[i] - sum * turns[i]; };
        for (std::size_t i = 1; i < weights.size(); ++i) {
            next = behind(i) > behind(next) ? i : next;
        }
        ++turns[next];
        pattern.push_back(next);
    }
    return pattern;
}

TEST(CustomerEdges, AreSpreadOverDomainsByWeight) {
    for (const auto& weights :
         std::vector<std::vector<std::uint32_t>>{{1, 1, 1}, {5, 1, 1}, {3, 2}, {6, 4}, {1, 10, 5, 7}, {65533, 1, 2}}) {
        const std::vector<std::size_t> pattern = slow_pattern(weights);
        EdgesRequest request{.domains = {}, .order = Order::increasing};
        for (std::size_t i = 0; i < weights.size(); ++i) {
            EdgeDomain domain = edge_domain("2001:db8::/48", "10.0.0.0/12", 20, 6);
            domain.rule.ipv6.address.bytes[5] = static_cast<std::byte>(i);
            domain.rule.ipv4.address.bytes[1] = static_cast<std::byte>(16 * i);
            domain.weight = weights[i];
            request.domains.push_back(domain);
        }
        request.count = 2 * pattern.size() + pattern.size() / 2;
        const CustomerEdges edges = edges_of(request);
        std::vector<std::uint64_t> counts(weights.size());
        for (std::uint64_t c = 0; c < request.count; ++c) {
            const Edge edge = edges.edge_of(c);
            ASSERT_EQ(edge.domain(), pattern[c % pattern.size()]) << c;
            ASSERT_EQ(edge.ea(), counts[edge.domain()]++) << c << ": the next one of its domain";
        }
        for (std::size_t i = 0; i < weights.size(); ++i) {
            EXPECT_EQ(edges.domains()[i].count, counts[i]);
        }
    }
}

/// A gateway takes the longest prefix, so the outer domain has no edge there.
TEST(CustomerEdges, LeaveAddressesToTheLongestPrefix) {
    EdgesRequest request{
        .domains = {edge_domain("2001:db8::/40", "192.0.2.0/24", 11, 6), edge_domain("2001:db8:12:3400::/56", "192.0.2.18/32", 0, 6)},
        .count = 1,
        .order = Order::increasing};
    request.domains[1].rule.psid_bits = 3;
    request.domains[1].rule.psid = 4;
    CustomerEdges edges = edges_of(request);
    // Eight PSIDs of 192.0.2.18. The IPv6 prefix 2001:db8:12:3400::/56 has EA bits 0x12 and 3400's
    // upper three: PSID 1, one of them.
    EXPECT_EQ(edges.domains()[0].numbers.count(), 2048U - 8);
    EXPECT_FALSE(edges.domains()[0].numbers.number_of(0x12 << 3 | 7));
    request.domains[1].rule.ipv6 = net::parse_prefix("2001:db8:20::/43").value();  // 32 of 256 suffixes
    request.domains[1].rule.ipv4 = net::parse_prefix("198.51.100.1/32").value();
    edges = edges_of(request);
    EXPECT_EQ(edges.domains()[0].numbers.count(), 2048U - 256);
    for (std::uint64_t c = 0; c < 2048 - 256; ++c) {
        const std::uint64_t ea = edges.domains()[0].numbers.value_of(c);
        ASSERT_FALSE(edges.domains()[1].map.contains_ipv6(edges.domains()[0].map.address_of(ea)));
    }
}

TEST(CustomerEdges, AreAsManyAsTheLargestDomainsHold) {
    for (const Order order : orders) {
        for (const unsigned ea_bits : {40U, 41U, 47U, 48U}) {
            EdgesRequest request{
                .domains = {edge_domain("2001:db9::/32", "0.0.0.0/0", ea_bits, 0)}, .count = CustomerEdges::count_limit, .order = order};
            const EdgeTraffic traffic = traffic_of(request);
            std::set<std::uint64_t> values;
            std::uint64_t high = 0;
            for (std::uint64_t j = 0; j < 4000; ++j) {
                const Edge edge = traffic.edge_of(j % 2 == 0 ? j : request.count - j);
                values.insert(edge.ea());
                high += edge.ea() >> (ea_bits - 1);
                ASSERT_LT(edge.ea(), std::uint64_t{1} << ea_bits);
                ASSERT_TRUE(traffic.edges().contains(traffic.edges().address_of(edge)));
            }
            EXPECT_EQ(values.size(), 4000U);
            if (order == Order::pseudorandom) {
                EXPECT_NEAR(static_cast<double>(high), 2000, 200) << "spread over all values";
            }
        }
    }
}

/// The CPU time of this thread: other programs do not count.
std::chrono::nanoseconds cpu_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

/// Beside a few edges, in turn. A step for each of 2^24 edges would take 65,536 times as long, and
/// a table of 2^40 would not fit.
TEST(CustomerEdges, AreSetUpInATimeThatTheirNumberDoesNotChange) {
    constexpr std::array<std::uint64_t, 3> counts{256, 16'777'216, CustomerEdges::count_limit};
    std::array<std::chrono::nanoseconds, counts.size()> shortest{};
    shortest.fill(std::chrono::nanoseconds::max());
    for (int round = 0; round < 20; ++round) {
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const EdgesRequest request{.domains = {edge_domain("2001:db9::/32", "0.0.0.0/0", 48, 0)}, .count = counts[i]};
            const auto start = cpu_time();
            const EdgeTraffic traffic = traffic_of(request);
            EXPECT_TRUE(traffic.edges().contains(traffic.edges().address_of(traffic.edge_of(counts[i] - 1))));
            shortest[i] = std::min(shortest[i], cpu_time() - start);
        }
    }
    EXPECT_LT(shortest[1], 100 * shortest[0]);
    EXPECT_LT(shortest[2], 100 * shortest[0]);
}

TEST(EdgeTraffic, TakesPortsInTurnWithinTheSetOfEachEdge) {
    const EdgesRequest request = small_request(10, Order::pseudorandom, 8);
    const net::MapDomain map{request.domains[0].rule};
    for (const auto& [mode, first, second] : std::vector<std::tuple<ValueMode, std::uint32_t, std::uint32_t>>{
             {ValueMode::fixed, 0, 0}, {ValueMode::increasing, 0, 1}, {ValueMode::decreasing, 251, 250}}) {
        const EdgeTraffic traffic = traffic_of(request, {mode, 1, 2});
        for (std::uint64_t j = 0; j < 10; ++j) {
            const Edge edge = traffic.edge_of(j);
            const std::uint16_t psid = map.psid_of(edge.ea());
            ASSERT_EQ(traffic.edge_of(j + 10), edge);
            EXPECT_EQ(traffic.port_of(j, edge, 99), map.port(psid, first));
            EXPECT_EQ(traffic.port_of(j + 10, edge, 99), map.port(psid, second));
            EXPECT_EQ(traffic.port_of(j + 10 * 252, edge, 99), map.port(psid, first)) << "from the beginning again";
        }
    }
}

TEST(EdgeTraffic, GivesEdgesWithoutAPortSetTheRangeOfTheStream) {
    EdgesRequest request = small_request(10, Order::increasing, 0);
    const EdgeTraffic up = traffic_of(request, {ValueMode::increasing, 2000, 2002}),
                      fixed = traffic_of(request, {ValueMode::fixed, 2000, 2002}),
                      drawn = traffic_of(request, {ValueMode::pseudorandom, 0, 65535});
    std::vector<std::uint16_t> ports;
    for (std::uint64_t j = 3; j < 45; j += 10) {
        ports.push_back(up.port_of(j, up.edge_of(j), 0));
        EXPECT_EQ(fixed.port_of(j, fixed.edge_of(j), 0xffff'ffff), 2000);
    }
    EXPECT_EQ(ports, (std::vector<std::uint16_t>{2000, 2001, 2002, 2000, 2001}));
    EXPECT_EQ(drawn.port_of(0, drawn.edge_of(0), 0xffff'ffff), 65535);
    EXPECT_EQ(drawn.port_of(0, drawn.edge_of(0), 0), 0);
}

/// RFC 4814 section 4.5 asks for uniform ports. Chi-square with 251 degrees of freedom: above 334
/// once in 5000.
TEST(EdgeTraffic, DrawsEveryPortOfASetAndNoOther) {
    const EdgesRequest request = small_request(1, Order::pseudorandom, 8);
    const EdgeTraffic traffic = traffic_of(request);
    const Edge edge = traffic.edge_of(0);
    const net::MapDomain map{request.domains[0].rule};
    std::map<std::uint16_t, double> times;
    constexpr double frames = 1'000'000;
    const RandomSequence words{test::seed, 1};
    for (std::uint64_t j = 0; j < static_cast<std::uint64_t>(frames); ++j) {
        ++times[traffic.port_of(j, edge, static_cast<std::uint32_t>(words.at(j) >> 32))];
    }
    ASSERT_EQ(times.size(), map.ports());
    double chi_square = 0;
    for (const auto& [port, count] : times) {
        EXPECT_EQ(map.psid_of_port(port), map.psid_of(edge.ea()));
        chi_square += (count - frames / 252) * (count - frames / 252) / (frames / 252);
    }
    EXPECT_LT(chi_square, 334);
}

TEST(CustomerEdges, NameEveryProblemOfTheirDomainsAtOnce) {
    const EdgeDomain usual = edge_domain("2001:db8::/40", "192.0.2.0/24", 16, 6);
    EdgesRequest request{.domains = {usual, usual, edge_domain("2001:db8:ffff::/48", "203.0.113.0/24", 8, 6)}, .count = 1};
    EXPECT_EQ(places_of_problems(request),
              (std::vector<std::string>{"edges.domains[0].dmr", "edges.domains[1].ipv6", "edges.domains[1].ipv4"}));
    request.domains = {usual};
    request.domains[0].weight = 0;
    request.domains[0].rule.ea_bits = 49;
    request.count = 0;
    EXPECT_EQ(places_of_problems(request), (std::vector<std::string>{"edges.count", "edges.domains[0].weight", "edges.domains[0].ea_bits",
                                                                     "edges.domains[0].ea_bits", "edges.domains[0].psid_offset"}));
    request.domains.clear();
    EXPECT_EQ(places_of_problems(request), (std::vector<std::string>{"edges.count", "edges.domains"}));
    request = {.domains = {usual, edge_domain("2001:db8:1:2::/64", "203.0.113.0/24", 8, 0)}, .count = 1};
    request.domains[1].rule.dmr.reset();
    request.domains[1].rule.in_identifier = true;
    EXPECT_EQ(places_of_problems(request), std::vector<std::string>{"edges.domains[1].in_identifier"}) << "not both kinds together";
}

TEST(CustomerEdges, MayShareAnAddressOnlyByPortsOfOneForm) {
    EdgesRequest request{
        .domains = {edge_domain("2001:db8:1::/56", "192.0.2.18/32", 0, 6), edge_domain("2001:db8:2::/56", "192.0.2.18/32", 0, 6)},
        .count = 2,
        .order = Order::increasing};
    EXPECT_EQ(places_of_problems(request), std::vector<std::string>{"edges.domains[1].ipv4"});
    for (std::size_t i = 0; i < 2; ++i) {
        request.domains[i].rule.psid_bits = 8;
        request.domains[i].rule.psid = static_cast<std::uint16_t>(0x34 + i);
    }
    EXPECT_EQ(places_of_problems(request), std::vector<std::string>{});
    const CustomerEdges edges = edges_of(request);
    EXPECT_EQ(edges.ipv4_of(edges.edge_of(0), 0), edges.ipv4_of(edges.edge_of(1), 0));
    request.domains[1].rule.psid = 0x34;
    EXPECT_EQ(places_of_problems(request), std::vector<std::string>{"edges.domains[1].psid"});
    request.domains[1].rule.psid_bits = 7;
    EXPECT_EQ(places_of_problems(request), std::vector<std::string>{"edges.domains[1].psid_offset"});
    request.count = 3;
    request.domains[1].rule.psid_bits = 8;
    request.domains[1].rule.psid = 1;
    EXPECT_EQ(places_of_problems(request), std::vector<std::string>{"edges.domains[0]"}) << "a rule without EA bits is one edge's";
}

}  // namespace
}  // namespace gatemark::frame
