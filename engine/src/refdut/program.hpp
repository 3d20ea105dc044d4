#pragma once

#include "refdut/classify.hpp"
#include "refdut/flow_set.hpp"
#include "refdut/neighbours.hpp"
#include "refdut/settings.hpp"

#include <array>
#include <memory>
#include <optional>

namespace gatemark::refdut {

/// Settings in operation: what the worker follows, created by the control thread and handed over as
/// a whole. From then on only the worker changes it.
struct Program {
    struct Way {
        Shaper shaper;
        DelaySource delay;
        Impairments impairments;
        bool keep_order = true;
        bool impaired = false;           ///< any selector is set
        std::optional<FlowSet> flows{};  ///< if they cost the shaper time
    };

    Settings settings;
    std::shared_ptr<NatTable> table;  ///< of NAT modes
    Translator translator;
    TestFrames test_frames;
    std::array<Way, 2> ways;                 ///< forward, reverse
    std::array<Neighbours, 2> neighbours;    ///< by Side
    std::array<bool, 2> keeps_neighbours{};  ///< if the link is unchanged, what was learned stays known
};

/// What `make_program` and `Gateway::execute` would allocate for the table of connections.
[[nodiscard]] std::uint64_t table_bytes(const Settings& settings, const Program* before);
/// Refuses a table for which memory is missing.
[[nodiscard]] std::optional<Error> check_table(const Settings& settings, const Program* before);

/// May throw std::bad_alloc: tables can be large. `before` is the program to be replaced, or
/// nullptr: its table is taken over if the translation is the same.
[[nodiscard]] std::unique_ptr<Program> make_program(const Settings& settings, const std::array<net::MacAddress, 2>& own_macs,
                                                    std::uint64_t ticks_per_second, const Program* before);

}  // namespace gatemark::refdut
