#pragma once

#include <chrono>
#include <list>
#include <optional>
#include <string>

namespace gatemark::control {

/// Lines in on one descriptor, lines out on another; waiting never takes longer than requested.
class LineChannel {
public:
    /// `end`: a descriptor that becomes readable when the channel must end; -1: there is none.
    LineChannel(int input, int output, int end = -1) : input_{input}, output_{output}, end_{end} {}

    /// The next complete line, or none within `time`. A negative time waits indefinitely.
    [[nodiscard]] std::optional<std::string> read(std::chrono::nanoseconds time);
    /// True once the other end has closed and every line was read.
    [[nodiscard]] bool ended() const noexcept { return closed_ && put_back_.empty() && pending_.find('\n') == std::string::npos; }
    /// Lines that were read too early: they are read again before all others.
    void put_back(std::list<std::string> lines) noexcept { put_back_.splice(put_back_.begin(), lines); }
    void write(const std::string& line);

private:
    [[nodiscard]] std::optional<std::string> take_line();

    /// A longer line is not one of our messages.
    static constexpr std::size_t bytes_max = std::size_t{16} << 20;
    int input_, output_, end_;
    bool closed_ = false;
    std::list<std::string> put_back_;
    std::string pending_;
};

}  // namespace gatemark::control
