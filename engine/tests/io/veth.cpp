#include "veth.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace gatemark::io::test {

namespace {

bool run(const std::string& command) { return std::system(command.c_str()) == 0; }

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds patience{60};

/// Calls take(frame) for each frame that arrives until `count` have, and then none does for 100 ms.
template <class Take>
void receive_each(const DpdkPort& port, std::uint64_t count, const Take& take) {
    ReceiveQueue receive{port, 0};
    std::array<rte_mbuf*, 32> burst{};
    std::uint64_t received = 0;
    const auto begun = Clock::now();
    for (auto last = begun, now = begun; now - last < std::chrono::milliseconds{100} || (received < count && now - begun < patience);
         now = Clock::now()) {
        const std::size_t got = receive.receive(burst);
        received += got;
        std::ranges::for_each(std::span{burst}.first(got), take);
        receive.release(std::span{burst}.first(got));
        if (got != 0) {
            last = Clock::now();
        }
    }
}

std::string state_of(const std::string& interface) {
    std::string state;
    std::ifstream{"/sys/class/net/" + interface + "/operstate"} >> state;
    return state;
}

}  // namespace

VethPair::VethPair() : left{"gm-e-l" + std::to_string(getpid() % 100000)}, right{"gm-e-r" + std::to_string(getpid() % 100000)} {
    created = run("ip link add " + left + " type veth peer name " + right);
    for (const std::string& end : {left, right}) {
        created = created && run("sysctl -qw net.ipv6.conf." + end + ".disable_ipv6=1") && run("ip link set " + end + " up");
    }
    created = created && come_to_hold([this] { return state_of(left) == "up" && state_of(right) == "up"; });
}

VethPair::~VethPair() { static_cast<void>(run("ip link del " + left + " 2>/dev/null")); }

void OnVeth::SetUp() {
    if (geteuid() != 0) {
        GTEST_SKIP() << "making a veth pair needs root";
    }
    ASSERT_TRUE(start_environment());
    veth_.emplace();
    if (!veth_->created) {
        GTEST_SKIP() << "this kernel lets us make no veth pair";
    }
}

void OnVeth::set_mtu(unsigned mtu) const {
    for (const std::string& end : {veth_->left, veth_->right}) {
        ASSERT_TRUE(run("ip link set " + end + " mtu " + std::to_string(mtu)));
    }
}

void OnVeth::set_link(bool up) const {
    ASSERT_TRUE(run("ip link set " + veth_->left + (up ? " up" : " down")));
    ASSERT_TRUE(come_to_hold([this, up] { return (state_of(veth_->left) == "up") == up && (state_of(veth_->right) == "up") == up; }));
}

void OnVeth::open_ports(const std::string& kind) { open_ports(left_options(kind), right_options(kind)); }

void OnVeth::open_ports(const PortOptions& left, const PortOptions& right) {
    for (auto* const drops : {&left_drops_, &right_drops_}) {
        drops->reset();
    }
    left_.reset();
    right_.reset();
    auto left_port = open_port(left), right_port = open_port(right);
    ASSERT_EQ(error_of(left_port), nullptr) << error_of(left_port)->what;
    ASSERT_EQ(error_of(right_port), nullptr) << error_of(right_port)->what;
    left_.emplace(std::get<DpdkPort>(std::move(left_port)));
    right_.emplace(std::get<DpdkPort>(std::move(right_port)));
    static_cast<void>(receive_until_silence(*left_));
    static_cast<void>(receive_until_silence(*right_));
    left_drops_.emplace(*left_);
    right_drops_.emplace(*right_);
}

std::vector<std::byte> udp_frame(const net::MacAddress& destination, std::size_t bytes) {
    std::vector<std::byte> frame(bytes);
    std::ranges::copy(destination, frame.begin());
    frame[6] = std::byte{0x02};
    frame[12] = std::byte{0x08};
    frame[14] = std::byte{0x45};
    return frame;
}

std::uint64_t send_frames(DpdkPort& port, std::uint64_t count, const net::MacAddress& destination) {
    auto pool = FramePool::create(port, "drops " + std::to_string(port.port_id()), 2048);
    auto& frames = std::get<FramePool>(pool);
    frames.set_template(udp_frame(destination));
    TransmitQueue transmit{port, 0, std::span{&frames, 1}};
    std::array<rte_mbuf*, 32> burst{};
    std::uint64_t sent = 0;
    const auto deadline = Clock::now() + patience;
    while (sent < count && Clock::now() < deadline) {
        const std::size_t got = transmit.acquire(0, burst);
        const std::size_t accepted = transmit.send(std::span{burst}.first(got));
        transmit.release(std::span{burst}.first(got).subspan(accepted));
        sent += accepted;
    }
    return sent;
}

std::size_t send_some(DpdkPort& port, std::span<const std::byte> frame) {
    auto pool = FramePool::create(port, "some " + std::to_string(port.port_id()) + "." + std::to_string(std::rand()), frame.size());
    auto& frames = std::get<FramePool>(pool);
    frames.set_template(frame);
    TransmitQueue transmit{port, 0, std::span{&frames, 1}};
    std::array<rte_mbuf*, 32> burst{};
    const std::size_t got = transmit.acquire(0, burst);
    const std::size_t accepted = transmit.send(std::span{burst}.first(got));
    transmit.release(std::span{burst}.first(got).subspan(accepted));
    return accepted;
}

bool come_to_hold(const std::function<bool()>& holds) {
    const auto deadline = Clock::now() + patience;
    while (!holds()) {
        if (Clock::now() > deadline) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return true;
}

std::vector<std::vector<std::byte>> receive_frames(const DpdkPort& port, std::uint64_t count) {
    std::vector<std::vector<std::byte>> frames;
    receive_each(port, count, [&frames](const rte_mbuf* buffer) {
        const auto* const bytes = rte_pktmbuf_mtod(buffer, const std::byte*);
        frames.emplace_back(bytes, bytes + buffer->data_len);
    });
    return frames;
}

std::uint64_t receive_until_silence(const DpdkPort& port, std::uint64_t count) {
    std::uint64_t received = 0;
    receive_each(port, count, [&received](const rte_mbuf*) { ++received; });
    return received;
}

std::string text_of(const OwnDrops& drops) {
    std::string text = "peer_queue_drops " + std::to_string(drops.peer_queue_drops);
    drops.counts.visit(
        [&](OwnDrop reason, std::uint64_t count) { text.append(" ").append(name_of(reason)).append(" ").append(std::to_string(count)); });
    return text;
}

std::uint64_t sum_of_receiving(const OwnDrops& drops) {
    return drops[OwnDrop::rx_missed] + drops[OwnDrop::rx_no_buffer] + drops[OwnDrop::rx_errors] + drops[OwnDrop::socket_drops] +
           drops[OwnDrop::interface_rx_dropped];
}

}  // namespace gatemark::io::test
