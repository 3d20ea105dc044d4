#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gatemark::fuzz {

/// An input of the fuzzer, read as the numbers of a script: which frames to make, and how to damage
/// them. So most inputs get beyond the first comparison, and one that is found today means the same
/// tomorrow, whatever a test frame looks like then. Past its end every number is zero.
class Script {
public:
    explicit Script(std::span<const std::uint8_t> input) noexcept : rest_{input} {}

    [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }
    [[nodiscard]] std::uint8_t byte() noexcept {
        if (rest_.empty()) {
            return 0;
        }
        const std::uint8_t value = rest_.front();
        rest_ = rest_.subspan(1);
        return value;
    }
    [[nodiscard]] std::uint16_t word() noexcept {
        const unsigned high = byte();
        return static_cast<std::uint16_t>(high << 8 | byte());
    }
    /// A number below `limit`, which is at most 65,536; it takes no more of the script than needed.
    [[nodiscard]] std::size_t below(std::size_t limit) noexcept {
        return limit <= 1 ? 0 : (limit <= 256 ? std::size_t{byte()} : std::size_t{word()}) % limit;
    }
    [[nodiscard]] bool one_in(unsigned count) noexcept { return byte() % count == count - 1; }
    /// The next numbers as they are, `count` at most.
    [[nodiscard]] std::span<const std::byte> take(std::size_t count) noexcept {
        const auto taken = rest_.first(count < rest_.size() ? count : rest_.size());
        rest_ = rest_.subspan(taken.size());
        return std::as_bytes(taken);
    }

private:
    std::span<const std::uint8_t> rest_;
};

/// What a fuzzer does with one input; each program has its own.
void run(Script& script);

}  // namespace gatemark::fuzz
