#pragma once

#include <compare>
#include <concepts>
#include <cstdint>

namespace gatemark::pace {

/// A point in time or a duration on the Tester's clock. Only `tick_scale.hpp` converts it.
struct Ticks {
    std::uint64_t value = 0;
    friend constexpr auto operator<=>(Ticks, Ticks) = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads <=> in templates
};

template <class C>
concept TickClock = requires(const C& clock) {
    { clock.now() } noexcept -> std::same_as<Ticks>;
};

/// The CPU's constant-rate counter, which is the same on all cores of a socket.
struct CycleClock {
    [[nodiscard]] Ticks now() const noexcept {
#if defined(__x86_64__)
        return {__builtin_ia32_rdtsc()};
#elif defined(__aarch64__)
        std::uint64_t value;
        asm volatile("mrs %0, cntvct_el0" : "=r"(value));
        return {value};
#else
#error "no constant-rate counter known for this CPU"
#endif
    }
};
static_assert(TickClock<CycleClock>);

}  // namespace gatemark::pace
