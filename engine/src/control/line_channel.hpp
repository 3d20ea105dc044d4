#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace gatemark::control {

/// Lines in on one descriptor, lines out on another; waiting never takes longer than requested.
class LineChannel {
public:
    LineChannel(int input, int output) : input_{input}, output_{output} {}

    /// The next complete line, or none within `time`. A negative time waits indefinitely.
    [[nodiscard]] std::optional<std::string> read(std::chrono::nanoseconds time);
    /// True once the other end has closed and every line was read.
    [[nodiscard]] bool ended() const noexcept { return closed_ && pending_.find('\n') == std::string::npos; }
    void write(const std::string& line);

private:
    [[nodiscard]] std::optional<std::string> take_line();

    /// A longer line is not one of our messages.
    static constexpr std::size_t bytes_max = std::size_t{16} << 20;
    int input_, output_;
    bool closed_ = false;
    std::string pending_;
};

}  // namespace gatemark::control
