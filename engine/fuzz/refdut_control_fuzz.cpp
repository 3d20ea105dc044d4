#include "fuzz/holds.hpp"
#include "fuzz/reached.hpp"
#include "fuzz/script.hpp"
#include "refdut/control_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

/// Clients of the reference gateway's control socket that send any bytes in any pieces: each line
/// is answered once and in order, and a client that sends no line for long is sent away.
namespace gatemark::fuzz {
namespace {

constexpr std::size_t clients_max = 3, steps_max = 16, line_bytes_max = 65536;

constexpr std::array<std::string_view, 4> event_names{"answered", "sent_away", "left", "two_lines_at_once"};
Reached reached{"client", event_names};

const std::string path = "/tmp/gatemark-fuzz-" + std::to_string(getpid());

refdut::ControlSocket& server() {
    static auto opened = refdut::ControlSocket::open(path);
    holds(error_of(opened) == nullptr, "the socket opens");
    return *std::get<0>(opened);
}

/// A client, and the lines that it has begun.
class Client {
public:
    Client() : descriptor_{socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)} {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        holds(connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "a client may come");
    }
    ~Client() { leave(); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    void leave() {
        if (descriptor_ >= 0) {
            close(descriptor_);
        }
        descriptor_ = -1;
    }
    void say(std::string_view text) {
        if (descriptor_ < 0 || send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
            return leave();
        }
        pending_ += text;
    }
    /// After the server has read all that was said.
    void hear() {
        if (descriptor_ < 0) {
            return;
        }
        std::string expected;
        std::size_t lines = 0, longest = 0;
        for (std::size_t end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n'), ++lines) {
            longest = std::max(longest, end);
            expected += '<' + pending_.substr(0, end) + ">\n";
            pending_.erase(0, end + 1);
        }
        if (std::max(longest, pending_.size()) > line_bytes_max) {  // it may be sent away before its answers
            reached.note(1);
            return leave();
        }
        std::string heard(expected.size() + 1, '\0');
        const ssize_t got = recv(descriptor_, heard.data(), heard.size(), 0);
        heard.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        holds(got != 0 && heard == expected, "each line is answered once, and in order");
        if (lines != 0) {
            reached.note(lines > 1 ? std::size_t{3} : 0);
        }
    }

private:
    int descriptor_;
    std::string pending_;
};

}  // namespace

void run(Script& script) {
    refdut::ControlSocket& control = server();
    std::array<std::optional<Client>, clients_max> clients;
    for (std::size_t step = 0; step < steps_max && !script.at_end(); ++step) {
        std::optional<Client>& client = clients[script.below(clients_max)];
        const std::uint8_t kind = script.byte() % 8;
        if (!client) {
            client.emplace();
        } else if (kind == 7) {
            client.reset();
            reached.note(2);
        } else {
            const auto bytes = script.take(script.below(40));
            std::string text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
            if (kind == 6) {  // a long line
                text = std::string(1000 * script.below(256) / 4, 'x') + text;
            }
            client->say(text);
        }
        control.serve([](const std::string& line) { return '<' + line + '>'; });
        for (std::optional<Client>& other : clients) {
            if (other) {
                other->hear();
            }
        }
    }
    for (std::optional<Client>& client : clients) {
        client.reset();
    }
    control.serve([](const std::string& line) { return line; });
    holds(control.descriptors().size() == 1, "who leaves is forgotten");
}

}  // namespace gatemark::fuzz
