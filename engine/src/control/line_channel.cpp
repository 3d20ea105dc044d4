#include "control/line_channel.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace gatemark::control {

std::optional<std::string> LineChannel::take_line() {
    if (!put_back_.empty()) {
        std::string line = std::move(put_back_.front());
        put_back_.pop_front();
        return line;
    }
    const auto end = pending_.find('\n');
    if (end == std::string::npos) {
        return std::nullopt;
    }
    std::string line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    return line;
}

std::optional<std::string> LineChannel::read(std::chrono::nanoseconds time) {
    const auto start = std::chrono::steady_clock::now();
    while (true) {
        if (auto line = take_line()) {
            return line;
        }
        const auto rest = time - (std::chrono::steady_clock::now() - start);
        if (closed_ || (time.count() >= 0 && rest.count() <= 0)) {
            return std::nullopt;
        }
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(rest);
        const timespec limit{.tv_sec = seconds.count(), .tv_nsec = static_cast<long>((rest - seconds).count())};
        std::array<pollfd, 2> wanted{{{.fd = input_, .events = POLLIN, .revents = 0}, {.fd = end_, .events = POLLIN, .revents = 0}}};
        if (ppoll(wanted.data(), wanted.size(), time.count() < 0 ? nullptr : &limit, nullptr) <= 0) {
            continue;
        }
        if (wanted[1].revents != 0) {
            closed_ = true;
            pending_.clear();
            continue;
        }
        std::array<char, 65536> block;
        const ssize_t got = ::read(input_, block.data(), block.size());
        if (got > 0) {
            pending_.append(block.data(), static_cast<std::size_t>(got));
        }
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN) || pending_.size() > bytes_max) {
            closed_ = true;
        }
    }
}

void LineChannel::write(const std::string& line) {
    const std::string whole = line + '\n';
    for (std::size_t done = 0; done < whole.size();) {
        const ssize_t put = ::write(output_, whole.data() + done, whole.size() - done);
        if (put > 0) {
            done += static_cast<std::size_t>(put);
        } else if (errno != EINTR) {
            closed_ = true;  // the reader is gone
            return;
        }
    }
}

}  // namespace gatemark::control
