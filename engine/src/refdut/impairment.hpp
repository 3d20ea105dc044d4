#pragma once

#include "refdut/corrupt.hpp"
#include "refdut/selector.hpp"

#include <cstdint>
#include <vector>

namespace gatemark::refdut {

struct ReorderSpec {
    SelectorSpec selector;
    std::uint32_t by = 1;  ///< how many later frames leave before it
    friend bool operator==(const ReorderSpec&, const ReorderSpec&) = default;
};
struct CorruptSpec {
    SelectorSpec selector;
    Field field = Field::payload;
    friend bool operator==(const CorruptSpec&, const CorruptSpec&) = default;
};

struct ImpairmentSpec {
    std::vector<SelectorSpec> loss, duplicate;
    std::vector<ReorderSpec> reorder;
    std::vector<CorruptSpec> corrupt;
    friend bool operator==(const ImpairmentSpec&, const ImpairmentSpec&) = default;
};

/// What happens to one frame: at most one thing, so that each can be counted on its own.
struct Fate {
    enum class Kind : std::uint8_t { forward, lose, corrupt, duplicate, reorder };
    Kind kind = Kind::forward;
    Field field{};         ///< of corrupt
    Fields reasons{};      ///< of corrupt: the reasons that the Tester will count
    std::uint32_t by = 0;  ///< of reorder
};

/// Decides for each test frame that the gateway would forward. The stages are asked in the order
/// loss, corrupt (in the order of the file), duplicate, reorder (in the order of the file); each
/// stage is asked only about frames that the stages before it have left alone.
class Impairments {
public:
    Impairments() = default;
    Impairments(const ImpairmentSpec& spec, std::uint64_t seed, std::uint64_t purpose);

    /// `damage(field)` damages the frame and returns the reasons the Tester will count; none if
    /// this frame has no such field, in which case the frame is counted as `not_applicable` and
    /// goes on to the next stage.
    template <class Damage>
    [[nodiscard]] Fate next(std::uint64_t elapsed_ns, Damage&& damage) noexcept {
        if (loss_.takes(elapsed_ns)) {
            return {.kind = Fate::Kind::lose};
        }
        for (Corrupt& corrupt : corrupt_) {
            if (!corrupt.selector.takes(elapsed_ns)) {
                continue;
            }
            const Fields reasons = damage(corrupt.field);
            if (!reasons.none()) {
                return {.kind = Fate::Kind::corrupt, .field = corrupt.field, .reasons = reasons};
            }
            ++not_applicable_;
        }
        if (duplicate_.takes(elapsed_ns)) {
            return {.kind = Fate::Kind::duplicate};
        }
        for (Reorder& reorder : reorder_) {
            if (reorder.selector.takes(elapsed_ns)) {
                return {.kind = Fate::Kind::reorder, .by = reorder.by};
            }
        }
        return {};
    }
    void restart() noexcept;
    [[nodiscard]] std::uint64_t not_applicable() const noexcept { return not_applicable_; }

private:
    struct Corrupt {
        Selector selector;
        Field field;
    };
    struct Reorder {
        Selector selector;
        std::uint32_t by;
    };
    Selectors loss_, duplicate_;
    std::vector<Corrupt> corrupt_;
    std::vector<Reorder> reorder_;
    std::uint64_t not_applicable_ = 0;
};

}  // namespace gatemark::refdut
