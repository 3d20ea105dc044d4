#include "environment.hpp"

#include "io/dpdk_environment.hpp"
#include "io/dpdk_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <optional>
#include <vector>

namespace gatemark::io::test {

bool start_environment() {
    static std::optional<Result<DpdkEnvironment>> environment;
    if (!environment) {
        environment.emplace(DpdkEnvironment::start({.pci_addresses = {}, .huge_pages_allowed = false, .memory_mib = 512}));
    }
    const Error* const error = error_of(*environment);
    if (error != nullptr) {
        std::cerr << error->where << ": " << error->what << '\n';
    }
    return error == nullptr;
}

PortOptions port_options(const std::string& side, const std::string& text) {
    PortOptions options;
    options.side = side;
    options.name = std::get<PortName>(parse_port_name(text));
    options.ring_frames = 256;
    return options;
}

void expect_sent_buffers_unchanged(DpdkPort& port) {
    const std::string driver = port.facts().driver;
    auto pool = FramePool::create(port, "unchanged " + std::to_string(port.port_id()), 2048);
    auto& frames = std::get<FramePool>(pool);
    std::vector<std::byte> bytes(777);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(i);
    }
    frames.set_template(bytes);
    TransmitQueue transmit{port, 0, std::span{&frames, 1}};
    std::array<rte_mbuf*, 32> burst{};
    for (std::size_t sent = 0; sent < frames.size();) {
        const std::size_t got = transmit.acquire(0, burst);
        const std::size_t accepted = transmit.send(std::span{burst}.first(got));
        transmit.release(std::span{burst}.first(got).subspan(accepted));
        sent += accepted;
    }
    std::vector<rte_mbuf*> all(frames.size());
    const std::size_t got = transmit.acquire(0, all);
    EXPECT_GT(got, 0U) << driver;
    for (rte_mbuf* buffer : std::span{all}.first(got)) {
        const auto held = ReceiveQueue::bytes(buffer);
        ASSERT_TRUE(std::equal(held.begin(), held.end(), bytes.begin(), bytes.end())) << driver;
        ASSERT_TRUE(buffer->data_off == RTE_PKTMBUF_HEADROOM && buffer->pkt_len == bytes.size() && buffer->ol_flags == 0) << driver;
        ASSERT_TRUE(buffer->nb_segs == 1 && buffer->next == nullptr && rte_mbuf_refcnt_read(buffer) == 1) << driver;
    }
    transmit.release(std::span{all}.first(got));
}

}  // namespace gatemark::io::test
