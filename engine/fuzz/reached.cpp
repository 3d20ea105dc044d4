#include "fuzz/reached.hpp"

#include "fuzz/holds.hpp"

namespace gatemark::fuzz {

namespace {

constexpr std::size_t counters_max = 4096;
/// libFuzzer clears them before each input and reads them after it.
[[gnu::section("__libfuzzer_extra_counters")]] std::uint8_t counters[counters_max];
std::size_t counters_taken = 0;

}  // namespace

Reached::Reached(std::string_view what, std::span<const std::string_view> names, std::size_t groups)
    : what_{what}, names_{names}, first_{counters_taken}, reached_(names.size()) {
    counters_taken += names.size() * groups;
    holds(counters_taken <= counters_max, "there are counters enough");
}

Reached::~Reached() {
    if (std::getenv("GATEMARK_FUZZ_REACHED") == nullptr) {
        return;
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
        std::printf("%s %.*s %.*s\n", reached_[i] ? "reached" : "missed", static_cast<int>(what_.size()), what_.data(),
                    static_cast<int>(names_[i].size()), names_[i].data());
    }
}

void Reached::note(std::size_t name, std::size_t group) noexcept {
    reached_[name] = true;
    counters[first_ + group * names_.size() + name] = 1;
}

}  // namespace gatemark::fuzz
