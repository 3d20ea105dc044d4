#pragma once

#include "base/divider.hpp"
#include "base/random.hpp"

#include <cstdint>
#include <span>

namespace gatemark::enumerate {

/// Which connection frame number j of a class belongs to. Test phase 1 takes each connection once,
/// in order. In test phase 2 the Initiator draws at random, and the Responder reads its state table
/// in one of four orders (RFC 9693 section 4.10).
class ConnectionChoice {
public:
    enum class Mode : std::uint8_t { fixed, increasing, decreasing, pseudorandom };

    ConnectionChoice() = default;
    constexpr ConnectionChoice(Mode mode, std::uint64_t count, RandomSequence words) noexcept : mode_{mode}, count_{count}, words_{words} {}

    [[nodiscard]] constexpr std::uint64_t at(std::uint64_t j) const noexcept {
        switch (mode_) {
            case Mode::fixed: return 0;
            case Mode::increasing: return count_.remainder(j);
            case Mode::decreasing: return count_.divisor() - 1 - count_.remainder(j);
            case Mode::pseudorandom: break;
        }
        return scale_wide_to(words_.at(j), count_.divisor());
    }

    /// Replaces the numbers of frames with their connections, as `at` does for one frame.
    void put_at(std::span<std::uint64_t> numbers) const noexcept {
        if (mode_ == Mode::pseudorandom) {
            for (std::uint64_t& number : numbers) {
                number = scale_wide_to(words_.at(number), count_.divisor());
            }
        } else if (mode_ == Mode::increasing) {
            const Divider count = count_;
            for (std::uint64_t& number : numbers) {
                if (number >= count.divisor()) [[unlikely]] {  // test phase 1 takes each connection once
                    number = count.remainder(number);
                }
            }
        } else {
            for (std::uint64_t& number : numbers) {
                number = at(number);
            }
        }
    }

private:
    Mode mode_ = Mode::fixed;
    Divider count_{1};
    RandomSequence words_{0, 0};
};

}  // namespace gatemark::enumerate
