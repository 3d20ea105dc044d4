#include "refdut/nat_table.hpp"

#include "refdut/packets.hpp"
#include "refdut/ticks.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace gatemark::refdut {
namespace {

using Outcome = NatTable::Outcome;

NatEndpoint endpoint(std::uint32_t host, std::uint16_t port) {
    NatEndpoint result{.address = {}, .port = port};
    for (std::size_t i = 0; i < 4; ++i) {
        result.address[i] = static_cast<std::byte>(host >> (24 - 8 * i));
    }
    return result;
}
NatEndpoint inside(std::uint32_t number) { return endpoint(0x0a000000 + number / 1000, static_cast<std::uint16_t>(2000 + number % 1000)); }
const NatEndpoint server = endpoint(0xc6130002, 80);

TEST(RefdutNatTable, KeepsThePortWhereItIsFreeAndTakesTheNextWhereNot) {
    NatTable table{pool_of({"203.0.113.1/32"}, 1024, 2003), {.capacity = 10}};
    const auto port_of = [&](const NatEndpoint& from, const NatEndpoint& to) {
        const auto lookup = table.from_inside(from, to, 0);
        EXPECT_EQ(lookup.outcome, Outcome::created);
        EXPECT_EQ(table.pool_of(lookup.connection).address, endpoint(0xcb007101, 0).address);
        return table.pool_of(lookup.connection).port;
    };
    EXPECT_EQ(port_of(endpoint(1, 2002), server), 2002);
    EXPECT_EQ(port_of(endpoint(2, 2002), server), 2003);
    EXPECT_EQ(port_of(endpoint(3, 2002), server), 1024);  // from the lowest again
    EXPECT_EQ(port_of(endpoint(4, 80), server), 1025);    // not of the pool's range
    EXPECT_EQ(port_of(endpoint(1, 2002), endpoint(7, 53)), 2002) << "one mapping for all destinations";
    EXPECT_EQ(table.size(), 5U);
    EXPECT_EQ(table.from_inside(endpoint(3, 2002), server, 0).outcome, Outcome::known);
}

TEST(RefdutNatTable, FindsAConnectionFromOutsideByAllFourValues) {
    NatTable table{pool_of({"203.0.113.1/32"}), {.capacity = 10}};
    const auto lookup = table.from_inside(inside(5), server, 0);
    const NatEndpoint pool = table.pool_of(lookup.connection);
    EXPECT_EQ(table.from_outside(server, pool, 0), lookup.connection);
    EXPECT_EQ(table.inside_of(lookup.connection), inside(5));
    EXPECT_EQ(table.remote_of(lookup.connection), server);
    EXPECT_EQ(table.from_outside(endpoint(0xc6130002, 81), pool, 0), NatTable::none);
    EXPECT_EQ(table.from_outside(endpoint(0xc6130003, 80), pool, 0), NatTable::none);
    EXPECT_EQ(table.from_outside(server, endpoint(0xcb007101, 9), 0), NatTable::none);
    EXPECT_EQ(table.from_outside(server, endpoint(0xcb007102, pool.port), 0), NatTable::none);
}

TEST(RefdutNatTable, ThePoolIsExhaustedWhenEveryPortOfEveryAddressIsTaken) {
    NatTable table{pool_of({"203.0.113.0/31", "203.0.113.9/32"}, 5000, 5099), {.capacity = 1000}};
    std::set<std::pair<std::array<std::byte, 16>, std::uint16_t>> taken;
    for (std::uint32_t i = 0; i < 300; ++i) {
        const auto lookup = table.from_inside(inside(i), server, 0);
        ASSERT_EQ(lookup.outcome, Outcome::created);
        const NatEndpoint pool = table.pool_of(lookup.connection);
        EXPECT_TRUE(table.in_pool(pool.address));
        EXPECT_TRUE(taken.emplace(pool.address, pool.port).second);
    }
    EXPECT_EQ(table.from_inside(inside(300), server, 0).outcome, Outcome::pool_exhausted);
    EXPECT_EQ(table.from_inside(inside(299), endpoint(1, 1), 0).outcome, Outcome::created) << "its mapping is there already";
    EXPECT_EQ(table.counters()[NatCount::pool_exhausted], 1U);
}

TEST(RefdutNatTable, EndpointDependentMappingGivesEachDestinationEveryPort) {
    NatPool pool = pool_of({"203.0.113.1/32"}, 5000, 5099);
    pool.mapping = MappingKind::endpoint_dependent;
    NatTable table{pool, {.capacity = 1000, .timeout_ns = second}};
    const NatEndpoint other_server = endpoint(0xc6130003, 80);
    for (const NatEndpoint& remote : {server, other_server}) {
        std::set<std::uint16_t> ports;
        for (std::uint32_t i = 0; i < 100; ++i) {
            const auto lookup = table.from_inside(inside(i), remote, 0);
            ASSERT_EQ(lookup.outcome, Outcome::created);
            const NatEndpoint place = table.pool_of(lookup.connection);
            EXPECT_TRUE(ports.insert(place.port).second);
            EXPECT_EQ(table.from_outside(remote, place, 0), lookup.connection);
            EXPECT_EQ(table.inside_of(lookup.connection), inside(i));
        }
        EXPECT_EQ(*ports.begin(), 5000);
        EXPECT_EQ(*ports.rbegin(), 5099);
        EXPECT_EQ(table.from_inside(inside(100), remote, 0).outcome, Outcome::pool_exhausted);
        EXPECT_FALSE(table.change_mapping(table.from_inside(inside(0), remote, 0).connection)) << "no port is left";
    }
    EXPECT_EQ(table.size(), 200U);
    // What one connection gives back, another one of the same destination gets.
    EXPECT_EQ(table.from_inside(inside(0), server, second).outcome, Outcome::known);
    table.expire(2 * second);
    EXPECT_EQ(table.size(), 1U);
    EXPECT_EQ(table.from_inside(endpoint(1, 5007), server, 2 * second).outcome, Outcome::created);
    const auto kept = table.from_inside(endpoint(2, 5007), other_server, 2 * second);
    EXPECT_EQ(table.pool_of(kept.connection).port, 5007) << "the same port for another destination";
    EXPECT_TRUE(table.change_mapping(kept.connection));
    EXPECT_EQ(table.pool_of(kept.connection).port, 5008);
}

TEST(RefdutNatTable, AFullTableFollowsItsOverflowBehaviour) {
    for (const auto& [overflow, outcome] :
         {std::pair{Overflow::refuse, Outcome::refused}, std::pair{Overflow::drop, Outcome::dropped},
          std::pair{Overflow::evict_oldest, Outcome::created}, std::pair{Overflow::forward_untranslated, Outcome::untranslated}}) {
        NatTable table{pool_of({"203.0.113.1/32"}), {.capacity = 50, .overflow = overflow}};
        for (std::uint32_t i = 0; i < 50; ++i) {
            EXPECT_EQ(table.from_inside(inside(i), server, i).outcome, Outcome::created);
        }
        EXPECT_EQ(table.from_inside(inside(0), server, 60).outcome, Outcome::known);  // used last, yet established first
        for (std::uint32_t i = 50; i < 60; ++i) {
            EXPECT_EQ(table.from_inside(inside(i), server, 70).outcome, outcome);
        }
        const bool evicts = overflow == Overflow::evict_oldest;
        EXPECT_EQ(table.size(), 50U);
        EXPECT_EQ(table.counters()[NatCount::evicted], evicts ? 10U : 0U);
        EXPECT_EQ(table.counters()[NatCount::refused], overflow == Overflow::refuse || overflow == Overflow::drop ? 10U : 0U);
        EXPECT_EQ(table.counters()[NatCount::untranslated], overflow == Overflow::forward_untranslated ? 10U : 0U);
        for (std::uint32_t i = 0; i < 60; ++i) {
            const bool there = table.from_outside(server, endpoint(0xcb007101, inside(i).port), 80) != NatTable::none;
            EXPECT_EQ(there, evicts ? i >= 10 : i < 50) << i;
        }
    }
}

TEST(RefdutNatTable, EstablishesAtTheRateAskedFor) {
    NatTable table{pool_of({"203.0.113.1/32"}), {.capacity = 100'000, .establishment_per_second = 1000, .establishment_burst = 5}};
    // 3000 attempts a second for 2 s: a burst of 5, then 1000 a second.
    std::uint64_t created = 0;
    std::uint32_t number = 0;
    const std::uint64_t start = 77 * second;
    for (; number < 6000; ++number) {
        created += table.from_inside(inside(number), server, start + number * second / 3000).outcome == Outcome::created ? 1 : 0;
    }
    EXPECT_EQ(created, 5U + 1999);
    EXPECT_EQ(table.counters()[NatCount::rate_limited], 6000 - created);
    EXPECT_EQ(table.from_inside(inside(0), server, start + 2 * second).outcome, Outcome::known) << "known ones cost nothing";
    // Exactly at the rate nothing is refused, however long it lasts.
    table.set_limits({.capacity = 100'000, .establishment_per_second = 3, .establishment_burst = 2}, start + 10 * second);
    for (std::uint32_t i = 0; i < 300; ++i) {
        ASSERT_EQ(table.from_inside(inside(++number), server, start + 20 * second + (i * second + 2) / 3).outcome, Outcome::created) << i;
    }
}

TEST(RefdutNatTable, AConnectionExpiresWhenItWasNotUsedInEitherDirection) {
    NatTable table{pool_of({"203.0.113.1/32"}), {.capacity = 1000, .timeout_ns = 2 * second}};
    for (std::uint32_t i = 0; i < 30; ++i) {
        (void)table.from_inside(inside(i), server, 5 * second);
    }
    for (std::uint32_t i = 0; i < 10; ++i) {
        (void)table.from_inside(inside(i), server, 6 * second);
        EXPECT_NE(table.from_outside(server, endpoint(0xcb007101, inside(10 + i).port), 6 * second), NatTable::none);
    }
    table.expire(7 * second - ms);
    EXPECT_EQ(table.size(), 30U);
    table.expire(7 * second + 4 * ms);  // at most 2 s / 1024 later
    EXPECT_EQ(table.size(), 20U);
    EXPECT_EQ(table.counters()[NatCount::expired], 10U);
    // A frame never finds an expired connection, examined or not.
    EXPECT_EQ(table.from_outside(server, endpoint(0xcb007101, inside(3).port), 8 * second + ms), NatTable::none);
    EXPECT_EQ(table.from_inside(inside(4), server, 8 * second + ms).outcome, Outcome::created);
    table.expire(20 * second);
    EXPECT_EQ(table.size(), 0U);
    EXPECT_EQ(table.counters()[NatCount::expired], 31U);
}

TEST(RefdutNatTable, LimitsChangeWhileConnectionsStay) {
    NatTable table{pool_of({"203.0.113.1/32"}), {.capacity = 10, .timeout_ns = 0}};
    for (std::uint32_t i = 0; i < 12; ++i) {
        (void)table.from_inside(inside(i), server, i);
    }
    EXPECT_EQ(table.size(), 10U);
    table.set_limits({.capacity = 5000, .timeout_ns = second}, 20);
    for (std::uint32_t i = 0; i < 5000; ++i) {
        EXPECT_EQ(table.from_inside(inside(i), server, 30).outcome, i < 10 ? Outcome::known : Outcome::created);
    }
    table.set_limits({.capacity = 100, .overflow = Overflow::drop, .timeout_ns = second}, 40);
    EXPECT_EQ(table.size(), 5000U);
    EXPECT_EQ(table.from_inside(inside(5000), server, 50).outcome, Outcome::dropped);
    EXPECT_EQ(table.from_inside(inside(17), server, 50).outcome, Outcome::known);
    table.set_limits({.capacity = 100, .overflow = Overflow::evict_oldest, .timeout_ns = second}, 60);
    EXPECT_EQ(table.size(), 100U);
    EXPECT_EQ(table.from_inside(inside(4999), server, 70).outcome, Outcome::known);
    table.clear();
    EXPECT_EQ(table.size(), 0U);
    EXPECT_EQ(table.counters()[NatCount::cleared], 100U);
    EXPECT_EQ(table.from_inside(inside(4999), server, 80).outcome, Outcome::created);
    table.reset_counters();
    EXPECT_EQ(table.counters()[NatCount::created], 0U);
}

TEST(RefdutNatTable, AChangedMappingHoldsForTheConnectionAlone) {
    NatTable table{pool_of({"203.0.113.1/32"}, 5000, 5001), {.capacity = 10}};
    const auto first = table.from_inside(endpoint(1, 5000), server, 0).connection;
    const auto second_one = table.from_inside(endpoint(1, 5000), endpoint(9, 9), 0).connection;
    ASSERT_TRUE(table.change_mapping(first));
    EXPECT_EQ(table.pool_of(first).port, 5001);
    EXPECT_EQ(table.pool_of(second_one).port, 5000);
    EXPECT_EQ(table.from_outside(server, endpoint(0xcb007101, 5001), 0), first);
    EXPECT_EQ(table.from_outside(server, endpoint(0xcb007101, 5000), 0), NatTable::none);
    EXPECT_FALSE(table.change_mapping(first)) << "no third port";
    EXPECT_EQ(table.another_owner(first), NatTable::none);
}

TEST(RefdutNatTable, ChangedMappingsTakePortsThatWereGivenUpLast) {
    NatTable table{pool_of({"203.0.113.1/32"}, 5000, 5099), {.capacity = 100}};
    std::vector<NatTable::Connection> connections;
    for (std::uint16_t i = 0; i < 60; ++i) {
        connections.push_back(table.from_inside(endpoint(1, static_cast<std::uint16_t>(5000 + i)), server, 0).connection);
    }
    std::set<std::uint16_t> given_up;
    for (std::size_t i = 0; i < 40; ++i) {  // as many as there are ports without a connection
        given_up.insert(table.pool_of(connections[i]).port);
        ASSERT_TRUE(table.change_mapping(connections[i]));
        EXPECT_FALSE(given_up.contains(table.pool_of(connections[i]).port));
    }
    ASSERT_TRUE(table.change_mapping(connections[40]));
    EXPECT_EQ(table.pool_of(connections[40]).port, *given_up.begin()) << "the one that was given up first";
}

/// A table that is plain, slow and obvious.
struct Model {
    struct Connection {
        std::uint32_t from, to;
        friend auto operator<=>(const Connection&, const Connection&) = default;
    };
    std::map<Connection, std::uint64_t> used;
};

TEST(RefdutNatTable, AgreesWithAPlainMapOverALongRandomLife) {
    constexpr std::uint64_t timeout = 500 * ms, tick = std::uint64_t{1} << 16;
    NatTable table{pool_of({"203.0.113.0/30"}, 3000, 3100), {.capacity = 300, .overflow = Overflow::drop, .timeout_ns = timeout}};
    Model model;
    std::mt19937 random{11};
    std::uint64_t now = 0, undecided = 0;
    const auto remote = [](std::uint32_t number) { return endpoint(0xc6130000 + number, 80); };
    for (int i = 0; i < 300'000; ++i) {
        now += random() % ms;
        const Model::Connection key{static_cast<std::uint32_t>(random() % 200), static_cast<std::uint32_t>(random() % 4)};
        const auto known = model.used.find(key);
        const std::uint64_t age = known == model.used.end() ? 0 : now - known->second;
        if (age > timeout - tick && age < timeout + 3 * tick) {
            ++undecided;  // within the resolution of the clock
            continue;
        }
        const bool there = known != model.used.end() && age < timeout;
        if (known != model.used.end() && !there) {
            model.used.erase(key);
        }
        const auto lookup = table.from_inside(inside(key.from), remote(key.to), now);
        if (there) {
            ASSERT_EQ(lookup.outcome, Outcome::known) << i;
        } else {
            ASSERT_TRUE(lookup.outcome == Outcome::created || lookup.outcome == Outcome::dropped) << i;
        }
        if (lookup.connection != NatTable::none) {
            ASSERT_EQ(table.inside_of(lookup.connection), inside(key.from));
            ASSERT_EQ(table.remote_of(lookup.connection), remote(key.to));
            ASSERT_EQ(table.from_outside(remote(key.to), table.pool_of(lookup.connection), now), lookup.connection);
            model.used[key] = now;
        }
        ASSERT_LE(table.size(), 300U);
        if (random() % 50 == 0) {
            table.expire(now, random() % 20);
        }
        if (random() % 20000 == 0) {
            table.clear();
            model.used.clear();
        }
    }
    EXPECT_GT(table.counters()[NatCount::expired], 1000U);
    EXPECT_GT(table.counters()[NatCount::refused], 100U);
    EXPECT_LT(undecided, 3000U);
    EXPECT_EQ(table.counters()[NatCount::created],
              table.size() + table.counters()[NatCount::expired] + table.counters()[NatCount::cleared]);
    table.expire(now + 10 * second);
    EXPECT_EQ(table.size(), 0U);
}

TEST(RefdutNatTable, TakesLessThan150BytesAConnection) {
    const NatTable table{pool_of({"203.0.113.0/28"}), {.capacity = 1'000'000}};
    EXPECT_LT(table.memory_bytes(), 150'000'000U);
}

}  // namespace
}  // namespace gatemark::refdut
