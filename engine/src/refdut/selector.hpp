#pragma once

#include "base/random.hpp"

#include <cstdint>
#include <vector>

namespace gatemark::refdut {

/// Which frames an impairment takes.
struct SelectorSpec {
    enum class Kind : std::uint8_t {
        every,        ///< frames n, 2n, 3n, ... counted from 1
        probability,  ///< each with this probability, on its own
        first,        ///< the first n
        window,       ///< those that arrive in [from, to) after the direction's first test frame
    };
    Kind kind = Kind::every;
    std::uint64_t count = 1;  ///< n of `every` (at least 1) and `first`
    double probability = 0;   ///< in [0, 1]
    std::uint64_t from_ns = 0, to_ns = 0;
    friend bool operator==(const SelectorSpec&, const SelectorSpec&) = default;
};

/// One selector in operation. It counts the frames that it is asked about; the same seed makes the
/// same choices.
class Selector {
public:
    /// `purpose` separates the pseudorandom numbers of all selectors of a gateway.
    Selector(const SelectorSpec& spec, std::uint64_t seed, std::uint64_t purpose) noexcept;

    /// Called once for each frame, in order of arrival; `elapsed_ns` is the time since the
    /// direction's first test frame.
    [[nodiscard]] bool takes(std::uint64_t elapsed_ns) noexcept {
        switch (spec_.kind) {
            case SelectorSpec::Kind::every: return ++asked_ % spec_.count == 0;
            case SelectorSpec::Kind::probability: return random_.at(asked_++) < threshold_ || always_;
            case SelectorSpec::Kind::first: return asked_++ < spec_.count;
            case SelectorSpec::Kind::window: return elapsed_ns >= spec_.from_ns && elapsed_ns < spec_.to_ns;
        }
        return false;
    }
    void restart() noexcept { asked_ = 0; }

private:
    SelectorSpec spec_;
    RandomSequence random_;
    std::uint64_t threshold_;  ///< probability times 2^64
    bool always_;
    std::uint64_t asked_ = 0;
};

/// Several selectors: a frame is taken if any of them takes it. Each counts all the frames.
class Selectors {
public:
    Selectors() = default;
    Selectors(const std::vector<SelectorSpec>& specs, std::uint64_t seed, std::uint64_t purpose);

    [[nodiscard]] bool takes(std::uint64_t elapsed_ns) noexcept {
        bool taken = false;
        for (Selector& selector : selectors_) {
            taken |= selector.takes(elapsed_ns);
        }
        return taken;
    }
    void restart() noexcept;

private:
    std::vector<Selector> selectors_;
};

}  // namespace gatemark::refdut
