#include "fuzz/holds.hpp"
#include "fuzz/reached.hpp"
#include "refdut/config.hpp"
#include "refdut/program.hpp"
#include "refdut/write_counts.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

/// Any bytes as a configuration file of the reference gateway: all that is wrong is told, and what
/// is accepted can be put into operation.
namespace gatemark::fuzz {
namespace {

using namespace refdut;

constexpr std::array<std::string_view, 3> outcome_names{"refused", "accepted", "accepted_stateful"};
Reached reached{"settings", outcome_names};
constexpr std::uint64_t connections_max = 1000;  ///< of a table that is made: memory is not the question here

void run(std::string_view text) {
    const auto parsed = parse_settings(text);
    if (const auto* const errors = std::get_if<Errors>(&parsed)) {
        holds(!errors->empty(), "a file is refused with a reason");
        holds(std::ranges::none_of(*errors, [](const Error& error) { return error.what.empty() || error.fix.empty(); }),
              "an error says what is wrong and how to mend it");
        reached.note(0);
        return;
    }
    Settings settings = std::get<Settings>(parsed);
    holds(check(settings.translation).empty() && check(settings.table).empty(), "what is accepted passes its own check");
    holds(what_needs_a_restart(settings, settings).empty(), "a file can replace itself");
    const bool stateful = is_stateful(settings.translation.mode);
    settings.table.capacity = std::min(settings.table.capacity, connections_max);
    if (make_program(settings, {}, 1'000'000'000, nullptr)->table != nullptr) {
        holds(stateful, "a NAT has a table, and nobody else");
    }
    reached.note(stateful ? std::size_t{2} : 1);
}

}  // namespace
}  // namespace gatemark::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gatemark::fuzz::run({reinterpret_cast<const char*>(data), size});
    return 0;
}
