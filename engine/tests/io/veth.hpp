#pragma once

#include "environment.hpp"
#include "io/dpdk_queue.hpp"
#include "io/kernel_drops.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gatemark::io::test {

/// A veth pair in this namespace, gone at the end of the scope.
class VethPair {
public:
    VethPair();
    VethPair(const VethPair&) = delete;
    VethPair& operator=(const VethPair&) = delete;
    ~VethPair();

    std::string left, right;
    bool created = false;
};

/// Tests on a veth pair; skipped, with the reason, where none can be made.
class OnVeth : public testing::Test {
protected:
    void SetUp() override;
    /// Gives both ends another MTU.
    void set_mtu(unsigned mtu) const;
    /// Opens ports of a kind on both ends, waits until nothing arrives any more, and begins to
    /// count drops. Fails the test if it cannot.
    void open_ports(const std::string& kind);
    void open_ports(const PortOptions& left, const PortOptions& right);
    [[nodiscard]] PortOptions left_options(const std::string& kind) const { return port_options("left", kind + ":" + veth_->left); }
    [[nodiscard]] PortOptions right_options(const std::string& kind) const { return port_options("right", kind + ":" + veth_->right); }
    [[nodiscard]] const VethPair& veth() const { return *veth_; }
    [[nodiscard]] DpdkPort& sender() { return *left_; }
    [[nodiscard]] DpdkPort& receiver() { return *right_; }
    /// Drops at either end since the ports were opened.
    [[nodiscard]] OwnDrops sender_drops() { return left_drops_->read(); }
    [[nodiscard]] OwnDrops receiver_drops() { return right_drops_->read(); }
    /// Takes the left end down or up; waits until both ends know.
    void set_link(bool up) const;

private:
    std::optional<VethPair> veth_;
    std::optional<DpdkPort> left_, right_;
    std::optional<DropReader> left_drops_, right_drops_;
};

/// The same, for each kind of port that a kernel's interface can have.
class OnVethOfKind : public OnVeth, public testing::WithParamInterface<const char*> {};

inline constexpr net::MacAddress some_host{std::byte{0x02}, std::byte{0x02}, std::byte{0x02},
                                           std::byte{0x02}, std::byte{0x02}, std::byte{0x02}};

/// A frame of an IPv4 packet.
[[nodiscard]] std::vector<std::byte> udp_frame(const net::MacAddress& destination = some_host, std::size_t bytes = 60);
/// Sends at least `count` frames as fast as the port takes them; returns how many it accepted.
std::uint64_t send_frames(DpdkPort& port, std::uint64_t count, const net::MacAddress& destination = some_host);
/// Offers a frame 32 times at once; returns how many the port accepted.
std::size_t send_some(DpdkPort& port, std::span<const std::byte> frame);
/// Calls `holds` until it is true, for a minute at most; returns what it said last.
bool come_to_hold(const std::function<bool()>& holds);
/// Every frame that arrives until at least `count` have, for a minute at most, and then none does
/// for 100 ms.
std::vector<std::vector<std::byte>> receive_frames(const DpdkPort& port, std::uint64_t count);
std::uint64_t receive_until_silence(const DpdkPort& port, std::uint64_t count = 0);

[[nodiscard]] std::string text_of(const OwnDrops& drops);
[[nodiscard]] std::uint64_t sum_of_receiving(const OwnDrops& drops);

}  // namespace gatemark::io::test
