#include "refdut/impairment.hpp"

namespace gatemark::refdut {

namespace {

/// Pseudorandom sequences reserved for one stage; no list in a file is this long.
constexpr std::uint64_t purposes_per_stage = 1'000'000;

}  // namespace

Impairments::Impairments(const ImpairmentSpec& spec, std::uint64_t seed, std::uint64_t purpose)
    : loss_{spec.loss, seed, purpose}, duplicate_{spec.duplicate, seed, purpose + purposes_per_stage} {
    std::uint64_t next = purpose + 2 * purposes_per_stage;
    for (const CorruptSpec& corrupt : spec.corrupt) {
        corrupt_.push_back({.selector = Selector{corrupt.selector, seed, next++}, .field = corrupt.field});
    }
    next = purpose + 3 * purposes_per_stage;
    for (const ReorderSpec& reorder : spec.reorder) {
        reorder_.push_back({.selector = Selector{reorder.selector, seed, next++}, .by = reorder.by});
    }
}

void Impairments::restart() noexcept {
    loss_.restart();
    duplicate_.restart();
    for (Corrupt& corrupt : corrupt_) {
        corrupt.selector.restart();
    }
    for (Reorder& reorder : reorder_) {
        reorder.selector.restart();
    }
    not_applicable_ = 0;
}

}  // namespace gatemark::refdut
