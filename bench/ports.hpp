#pragma once

#include "io/dpdk_environment.hpp"
#include "io/dpdk_queue.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

/// DPDK's ports for the benchmarks, opened once in the life of the program.
namespace gatemark::bench {

/// Whatever closes ports at the end of the program must be made after this.
inline void start_dpdk() {
    static auto environment =
        std::get<io::DpdkEnvironment>(io::DpdkEnvironment::start({.pci_addresses = {}, .huge_pages_allowed = true, .memory_mib = 512}));
}

inline io::PortOptions port_options(const char* side, const char* name) {
    start_dpdk();
    return {.side = side, .name = std::get<io::PortName>(io::parse_port_name(name))};
}

/// Frees what it is given.
inline io::DpdkPort& null_port() {
    static auto port = std::get<io::DpdkPort>(io::open_port(port_options("left", "null")));
    return port;
}

/// Hands out its own buffers, as they are, as received frames of so many bytes.
inline io::DpdkPort& endless_port(std::size_t frame_bytes) {
    start_dpdk();
    static std::map<std::size_t, io::DpdkPort> ports;
    if (const auto port = ports.find(frame_bytes); port != ports.end()) {
        return port->second;
    }
    const std::string size = std::to_string(frame_bytes), name = "vdev:net_null_endless" + size + ",size=" + size;
    return ports.emplace(frame_bytes, std::get<io::DpdkPort>(io::open_port(port_options("right", name.c_str())))).first->second;
}

inline std::pair<io::DpdkPort, io::DpdkPort>& ring_ports() {
    static auto ports =
        std::get<std::pair<io::DpdkPort, io::DpdkPort>>(io::open_ring_pair(port_options("left", "ring"), port_options("right", "ring")));
    return ports;
}

/// The pools of a sender with one template, made once for each length of frame: a port keeps its
/// pools until it is closed.
inline std::span<io::FramePool> pools_for(io::DpdkPort& port, const std::vector<std::byte>& frame) {
    static std::map<std::pair<std::uint16_t, std::size_t>, std::vector<io::FramePool>> pools_by_port;
    std::vector<io::FramePool>& pools = pools_by_port[{port.port_id(), frame.size()}];
    if (pools.empty()) {
        const std::string name = "bench" + std::to_string(pools_by_port.size());
        pools.push_back(std::get<io::FramePool>(io::FramePool::create(port, name, frame.size())));
    }
    pools[0].set_template(frame);
    return pools;
}

}  // namespace gatemark::bench
