#include "refdut/control_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace gatemark::refdut {

namespace {

constexpr std::size_t line_bytes_max = 65536;
constexpr int backlog = 16;

std::optional<sockaddr_un> address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path)) {
        return std::nullopt;
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

Error socket_error(const std::string& path, const std::string& what, std::string fix) {
    return {.what = what, .where = "control socket " + path, .fix = std::move(fix)};
}

int connect_to(const sockaddr_un& address) {
    const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor >= 0 && connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        const int reason = errno;
        close(descriptor);
        errno = reason;
        return -1;
    }
    return descriptor;
}

bool write_all(int descriptor, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t put = send(descriptor, text.data() + done, text.size() - done, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return false;
        }
        done += static_cast<std::size_t>(put);
    }
    return true;
}

}  // namespace

Result<std::unique_ptr<ControlSocket>> ControlSocket::open(const std::string& path) {
    const auto address = address_of(path);
    if (!address) {
        return socket_error(path, "the path is empty or too long for a socket", "choose one of 1 to 107 characters");
    }
    if (!remove_dead_socket(path)) {
        return socket_error(path, "another program listens here", "stop it, or choose another path");
    }
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
        listen(listener, backlog) != 0) {
        const int reason = errno;
        if (listener >= 0) {
            close(listener);
        }
        return socket_error(path, std::string{"cannot be opened: "} + std::strerror(reason), "the folder must exist and be writable");
    }
    return std::unique_ptr<ControlSocket>{new ControlSocket{path, listener}};
}

bool remove_dead_socket(const std::string& path) {
    const auto address = address_of(path);
    struct stat entry{};
    if (!address || lstat(path.c_str(), &entry) != 0 || !S_ISSOCK(entry.st_mode)) {
        return true;
    }
    if (const int other = connect_to(*address); other >= 0) {
        close(other);
        return false;
    }
    unlink(path.c_str());
    return true;
}

ControlSocket::~ControlSocket() {
    for (const Client& client : clients_) {
        close(client.descriptor);
    }
    close(listener_);
    unlink(path_.c_str());
}

std::vector<int> ControlSocket::descriptors() const {
    std::vector<int> all{listener_};
    for (const Client& client : clients_) {
        all.push_back(client.descriptor);
    }
    return all;
}

void ControlSocket::serve(const std::function<std::string(const std::string&)>& answer) {
    while (true) {
        const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (descriptor < 0) {
            break;
        }
        // A client that does not read must not block the others for long.
        const timeval limit{.tv_sec = 1, .tv_usec = 0};
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        clients_.push_back({.descriptor = descriptor, .pending = {}});
    }
    std::erase_if(clients_, [&](Client& client) {
        if (serve_client(client, answer)) {
            return false;
        }
        close(client.descriptor);
        return true;
    });
}

bool ControlSocket::serve_client(Client& client, const std::function<std::string(const std::string&)>& answer) {
    std::array<char, 4096> block;
    while (true) {
        const ssize_t got = recv(client.descriptor, block.data(), block.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return true;
        }
        if (got <= 0) {
            return false;
        }
        client.pending.append(block.data(), static_cast<std::size_t>(got));
        for (std::size_t end = client.pending.find('\n'); end != std::string::npos; end = client.pending.find('\n')) {
            const std::string line = client.pending.substr(0, end);
            client.pending.erase(0, end + 1);
            if (!write_all(client.descriptor, answer(line) + '\n')) {
                return false;
            }
        }
        if (client.pending.size() > line_bytes_max) {
            return false;
        }
    }
}

Result<std::string> ask_socket(const std::string& path, const std::string& line) {
    const auto address = address_of(path);
    const int descriptor = address ? connect_to(*address) : -1;
    if (descriptor < 0) {
        return socket_error(path, std::string{"nothing answers: "} + std::strerror(address ? errno : ENAMETOOLONG),
                            "start gatemark-refdut with this path as `control`");
    }
    std::string answer;
    std::array<char, 4096> block;
    bool whole = write_all(descriptor, line + '\n');
    while (whole && answer.find('\n') == std::string::npos) {
        const ssize_t got = recv(descriptor, block.data(), block.size(), 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        whole = got > 0;
        answer.append(block.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
    close(descriptor);
    if (!whole) {
        return socket_error(path, "the gateway went away without an answer", "read its messages on standard error");
    }
    return answer.substr(0, answer.find('\n'));
}

}  // namespace gatemark::refdut
