#include "refdut/control_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

namespace gatemark::refdut {
namespace {

std::string socket_path() { return (std::filesystem::temp_directory_path() / ("refdut_test." + std::to_string(getpid()))).string(); }

TEST(RefdutControlSocket, AnswersEachLine) {
    const std::string path = socket_path();
    auto opened = ControlSocket::open(path);
    ASSERT_EQ(error_of(opened), nullptr);
    auto control = std::get<0>(std::move(opened));
    std::atomic<bool> done{false};
    std::thread server{[&] {
        while (!done) {
            control->serve([](const std::string& line) { return "<" + line + ">"; });
            std::this_thread::yield();
        }
    }};
    for (const std::string line : {"one", "two"}) {
        const auto answer = ask_socket(path, line);
        EXPECT_TRUE(error_of(answer) == nullptr && std::get<std::string>(answer) == "<" + line + ">");
    }
    EXPECT_NE(error_of(ControlSocket::open(path)), nullptr) << "taken";
    done = true;
    server.join();
    control.reset();
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_NE(error_of(ask_socket(path, "x")), nullptr);
}

TEST(RefdutControlSocket, TakesThePlaceOfAProgramThatCrashed) {
    const std::string path = socket_path();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    close(dead);
    ASSERT_TRUE(std::filesystem::exists(path));
    EXPECT_EQ(error_of(ControlSocket::open(path)), nullptr);
}

TEST(RefdutControlSocket, NamesWhatIsWrong) {
    EXPECT_NE(error_of(ControlSocket::open("")), nullptr);
    EXPECT_NE(error_of(ControlSocket::open(std::string(200, 'x'))), nullptr);
    EXPECT_NE(error_of(ControlSocket::open("/nonexistent/socket")), nullptr);
}

}  // namespace
}  // namespace gatemark::refdut
