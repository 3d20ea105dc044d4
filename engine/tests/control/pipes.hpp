#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>

namespace gatemark::test {

/// A pipe whose two ends are closed one by one, or with it.
class Pipe {
public:
    Pipe() {
        std::signal(SIGPIPE, SIG_IGN);
        if (pipe2(ends_.data(), O_CLOEXEC) != 0) {
            throw std::runtime_error{"no pipe"};
        }
    }
    ~Pipe() {
        close_reading();
        close_writing();
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    [[nodiscard]] int reading() const { return ends_[0]; }
    [[nodiscard]] int writing() const { return ends_[1]; }
    void write(const std::string& text) {
        if (!write_ignoring_errors(text)) {
            throw std::runtime_error{"pipe broken"};
        }
    }
    bool write_ignoring_errors(const std::string& text) {
        for (std::size_t done = 0; done < text.size();) {
            const ssize_t put = ::write(ends_[1], text.data() + done, text.size() - done);
            if (put <= 0) {
                return false;
            }
            done += static_cast<std::size_t>(put);
        }
        return true;
    }
    void close_reading() { close_end(0); }
    void close_writing() { close_end(1); }

private:
    void close_end(std::size_t end) {
        if (ends_[end] >= 0) {
            ::close(ends_[end]);
        }
        ends_[end] = -1;
    }
    std::array<int, 2> ends_{-1, -1};
};

}  // namespace gatemark::test
