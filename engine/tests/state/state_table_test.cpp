#include "state/state_table.hpp"

#include "enumerate/connection_set.hpp"
#include "state/behaviour.hpp"

#include <gtest/gtest.h>

namespace gatemark::state {
namespace {

TEST(StateTable, KeepsWhatWasWrittenUntilItForgets) {
    StateTable table;
    ASSERT_EQ(table.reset(1000), std::nullopt);
    for (std::uint64_t k = 0; k < 1000; ++k) {
        EXPECT_EQ(table.read(k), std::nullopt);
        table.write(k, {.address = k * 0x3fff'ffff, .port = static_cast<std::uint16_t>(65'535 - k)});
    }
    for (std::uint64_t k = 0; k < 1000; ++k) {
        EXPECT_EQ(table.read(k), (Endpoint{.address = k * 0x3fff'ffff, .port = static_cast<std::uint16_t>(65'535 - k)}));
    }
    table.write(7, {.address = (std::uint64_t{1} << 40) - 1, .port = 65'535});
    EXPECT_EQ(table.read(7), (Endpoint{.address = (std::uint64_t{1} << 40) - 1, .port = 65'535}));
}

TEST(StateTable, ForgetsEverythingHoweverOftenItIsReset) {
    StateTable table;
    for (int generation = 0; generation < 600; ++generation) {
        ASSERT_EQ(table.reset(10), std::nullopt);
        for (std::uint64_t k = 0; k < 10; ++k) {
            ASSERT_EQ(table.read(k), std::nullopt) << "in generation " << generation;
        }
        table.write(static_cast<std::uint64_t>(generation) % 10, {.address = 1, .port = 2});
    }
}

TEST(StateTable, TakesEightBytesAConnection) {
    StateTable table;
    ASSERT_EQ(table.reset(4'000'000), std::nullopt);
    EXPECT_LT(table.bytes(), 8 * 4'000'000U + (2U << 20));
    const std::size_t before = table.bytes();
    ASSERT_EQ(table.reset(10), std::nullopt);
    EXPECT_EQ(table.bytes(), before) << "memory is kept for the next trial";
}

TEST(StateTable, RefusesWhatNoMemoryHolds) {
    StateTable table;
    const auto error = table.reset(std::uint64_t{1} << 44);
    ASSERT_TRUE(error);
    EXPECT_NE(error->what.find("MiB"), std::string::npos);
    EXPECT_EQ(table.count(), 0U);
}

class BehaviourTest : public testing::Test {
protected:
    static constexpr enumerate::TupleRanges ranges{
        .source_ports = {1000, 100}, .destination_ports = {1, 10}, .source_hosts = {0, 4}, .destination_hosts = {0, 2}};

    template <class Mapping>
    Behaviour of(Mapping&& mapping) {
        EXPECT_EQ(table_.reset(set_.count()), std::nullopt);
        for (std::uint64_t k = 0; k < set_.count(); ++k) {
            if (const std::optional<Endpoint> endpoint = mapping(k, set_.tuple_of(k))) {
                table_.write(k, *endpoint);
            }
        }
        return observe(set_, table_);
    }

    enumerate::ConnectionSet set_{ranges, enumerate::Order::pseudorandom, 8000, 42};
    StateTable table_;
};

TEST_F(BehaviourTest, SeesPreservedPortsAndIndependentMapping) {
    const Behaviour behaviour =
        of([](std::uint64_t, const enumerate::Tuple& tuple) { return Endpoint{tuple.source_host, tuple.source_port}; });
    EXPECT_EQ(behaviour[Observation::examined], 8000U);
    EXPECT_EQ(behaviour[Observation::port_preserved], 8000U);
    EXPECT_EQ(behaviour[Observation::parity_preserved], 8000U);
    EXPECT_EQ(behaviour[Observation::port_class_preserved], 8000U);
    EXPECT_EQ(behaviour[Observation::public_addresses], 4U);
    EXPECT_EQ(behaviour[Observation::public_ports], 100U);
    EXPECT_EQ(behaviour[Observation::public_port_minimum], 1000U);
    EXPECT_EQ(behaviour[Observation::public_port_maximum], 1099U);
    EXPECT_EQ(behaviour[Observation::sources_compared], 400U);
    EXPECT_EQ(behaviour[Observation::sources_endpoint_independent], 400U);
}

TEST_F(BehaviourTest, NoticesANewPortForEachDestination) {
    const Behaviour behaviour = of([](std::uint64_t k, const enumerate::Tuple& tuple) {
        return Endpoint{0, static_cast<std::uint16_t>(2000 + 2 * (k % 30'000) + tuple.source_port % 2)};
    });
    EXPECT_EQ(behaviour[Observation::port_preserved], 0U);
    EXPECT_EQ(behaviour[Observation::parity_preserved], 8000U);
    EXPECT_EQ(behaviour[Observation::port_class_preserved], 8000U * 76 / 100) << "source ports 1000 to 1023 went up";
    EXPECT_EQ(behaviour[Observation::public_addresses], 1U);
    EXPECT_EQ(behaviour[Observation::sources_compared], 400U);
    EXPECT_EQ(behaviour[Observation::sources_endpoint_independent], 0U);
}

TEST_F(BehaviourTest, SaysNothingOfAnEmptyTable) {
    const Behaviour behaviour = of([](std::uint64_t, const enumerate::Tuple&) { return std::optional<Endpoint>{}; });
    EXPECT_EQ(behaviour[Observation::examined] + behaviour[Observation::public_addresses] + behaviour[Observation::public_ports] +
                  behaviour[Observation::sources_compared],
              0U);
    EXPECT_EQ(behaviour[Observation::public_port_minimum], 0U);
}

}  // namespace
}  // namespace gatemark::state
