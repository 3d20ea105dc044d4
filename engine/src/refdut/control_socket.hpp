#pragma once

#include "base/result.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gatemark::refdut {

/// A Unix stream socket that takes lines and answers each with one line; any number of clients, one
/// request at a time.
class ControlSocket {
public:
    /// Replaces a socket that no process listens on.
    [[nodiscard]] static Result<std::unique_ptr<ControlSocket>> open(const std::string& path);
    ControlSocket(const ControlSocket&) = delete;
    ControlSocket& operator=(const ControlSocket&) = delete;
    ~ControlSocket();

    /// Descriptors to wait for.
    [[nodiscard]] std::vector<int> descriptors() const;
    /// Handles what has arrived, without waiting; `answer` returns the answer to one line.
    void serve(const std::function<std::string(const std::string&)>& answer);

private:
    struct Client {
        int descriptor;
        std::string pending;
    };
    ControlSocket(std::string path, int listener) : path_{std::move(path)}, listener_{listener} {}
    /// False once the client is gone.
    [[nodiscard]] static bool serve_client(Client& client, const std::function<std::string(const std::string&)>& answer);

    std::string path_;
    int listener_;
    std::vector<Client> clients_;
};

/// Removes a socket that a crashed program has left behind. False if a process listens on it.
[[nodiscard]] bool remove_dead_socket(const std::string& path);

/// Sends one line to the socket and returns the line that answers it.
[[nodiscard]] Result<std::string> ask_socket(const std::string& path, const std::string& line);

}  // namespace gatemark::refdut
