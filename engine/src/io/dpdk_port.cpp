#include "io/dpdk_port.hpp"

#include "io/dpdk_environment.hpp"
#include "io/port_devices.hpp"
#include "io/port_queues.hpp"

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <thread>

namespace gatemark::io {
namespace {

/// The AF_XDP driver keeps this many buffers in the fill and completion rings of a queue.
constexpr unsigned af_xdp_spare_frames = 3 * 2048;

/// Rings of buffers that a receive queue of a card has at most.
constexpr unsigned card_rings_max = 2;

/// The pool of one queue, of which the driver fills so many rings. Sockets that copy frames have
/// rings of their own.
unsigned receive_pool_frames(const PortName& name, unsigned ring_frames, unsigned rings) {
    if (copies_frames(name)) {
        return pool_spare_frames;
    }
    const unsigned held = name.kind == PortKind::af_xdp ? 2 * ring_frames + af_xdp_spare_frames : rings * ring_frames;
    return held + pool_spare_frames;
}

/// vmxnet3 fills a second ring, for the rest of long frames, with as many buffers as the first.
unsigned rings_of(const rte_eth_dev_info& information) {
    return std::string_view{information.driver_name} == "net_vmxnet3" ? card_rings_max : 1;
}

/// Hash functions for spreading frames over receive queues.
constexpr std::uint64_t spread_by = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP;

rte_eth_conf device_configuration(const PortOptions& options, const rte_eth_dev_info& information) {
    rte_eth_conf configuration{};
    const std::uint32_t overhead = information.max_rx_pktlen > RTE_ETHER_MTU + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN ? 0 : RTE_ETHER_MTU;
    // The packet socket driver reports a limit of 1518 bytes, but the size of its ring slots
    // decides.
    configuration.rxmode.mtu = overhead != 0 ? std::min(options.mtu, overhead) : options.mtu;
    if (options.queues > 1 && (information.flow_type_rss_offloads & spread_by) != 0) {
        configuration.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        configuration.rx_adv_conf.rss_conf.rss_hf = information.flow_type_rss_offloads & spread_by;
    }
    configuration.rxmode.offloads = information.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP;
    return configuration;
}

/// Frees the frames that were never received.
void drain(rte_ring& ring) {
    void* frame = nullptr;
    while (rte_ring_dequeue(&ring, &frame) == 0) {
        rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
    }
}

std::optional<Error> what_the_device_lacks(const PortOptions& options, const rte_eth_dev_info& information) {
    const unsigned queues_max = queues_of(information);
    if (options.queues > queues_max) {
        return Error{.what = std::to_string(options.queues) + " queues requested, but the driver has " + std::to_string(queues_max),
                     .where = where_of(options),
                     .fix = "set queues to " + std::to_string(queues_max) + " or less"};
    }
    const bool says_mtu = information.max_mtu != 0 && information.max_mtu != UINT16_MAX;
    if (says_mtu && options.mtu > information.max_mtu) {
        return Error{
            .what = "the driver cannot take packets of " + std::to_string(options.mtu) + " octets, at most " +
                    std::to_string(information.max_mtu),
            .where = where_of(options),
            .fix = options.name.kind == PortKind::af_xdp ? "use af_packet for this interface, or smaller frames" : "use smaller frames"};
    }
    return std::nullopt;
}

}  // namespace

/// Turns an existing device into a started port. If a step fails, the destructor of the port being
/// built undoes the others.
class PortOpener {
public:
    static Result<DpdkPort> start(const PortOptions& options, std::uint16_t port_id, std::shared_ptr<OwnedRings> rings,
                                  const std::vector<LinkSocket>& sockets_before) {
        PortOpener opener{DpdkPort{options, port_id, std::move(rings)}, sockets_before};
        for (const auto step : {&PortOpener::configure, &PortOpener::set_up_queues, &PortOpener::start_device,
                                &PortOpener::open_packet_sockets, &PortOpener::wait_for_link}) {
            if (auto error = (opener.*step)()) {
                return *std::move(error);
            }
        }
        return std::move(opener.port_);
    }

private:
    PortOpener(DpdkPort port, const std::vector<LinkSocket>& sockets_before) : port_{std::move(port)}, sockets_before_{sockets_before} {}

    [[nodiscard]] Error failed(const std::string& step, int status, std::string fix) const {
        return Error{.what = step + " failed: " + rte_strerror(status < 0 ? -status : status),
                     .where = where_of(port_.options_),
                     .fix = std::move(fix)};
    }

    std::optional<Error> configure() {
        const PortOptions& options = port_.options_;
        if (const int status = rte_eth_dev_info_get(port_.port_id_, &information_); status != 0) {
            return failed("asking the driver", status, "read the engine's messages");
        }
        if (auto lacking = what_the_device_lacks(options, information_)) {
            return lacking;
        }
        const rte_eth_conf configuration = device_configuration(options, information_);
        const auto queues = static_cast<std::uint16_t>(options.queues);
        if (const int status = rte_eth_dev_configure(port_.port_id_, queues, queues, &configuration); status != 0) {
            return failed("configuring " + std::to_string(options.queues) + " queues and an MTU of " + std::to_string(options.mtu), status,
                          "use fewer queues or smaller frames");
        }
        if (options.name.kind == PortKind::tap) {
            rte_eth_dev_set_mtu(port_.port_id_, static_cast<std::uint16_t>(options.mtu));
        }
        return std::nullopt;
    }

    rte_mempool* make_receive_pool(unsigned queue, unsigned ring_frames) {
        const unsigned frames = receive_pool_frames(port_.options_.name, ring_frames, rings_of(information_)) + port_.options_.extra_frames;
        const std::string name = "receive " + std::to_string(port_.port_id_) + "." + std::to_string(queue);
        return rte_pktmbuf_pool_create(name.c_str(), frames, pool_cache_frames, 0,
                                       static_cast<std::uint16_t>(receive_data_room(port_.options_)), pool_socket(port_.socket()));
    }

    std::optional<Error> set_up_queues() {
        auto receive_frames = static_cast<std::uint16_t>(std::min(port_.options_.ring_frames, 32768U));
        auto transmit_frames = receive_frames;
        if (const int status = rte_eth_dev_adjust_nb_rx_tx_desc(port_.port_id_, &receive_frames, &transmit_frames); status != 0) {
            return failed("setting rings of " + std::to_string(port_.options_.ring_frames) + " frames", status, "set ring_frames to 1024");
        }
        port_.transmit_ring_frames_ = transmit_frames;
        for (unsigned queue = 0; queue < port_.options_.queues; ++queue) {
            rte_mempool* const pool = make_receive_pool(queue, receive_frames);
            if (pool == nullptr) {
                return failed("making receive buffers", rte_errno, "give the engine more memory (huge pages), or fewer ring_frames");
            }
            port_.pools_.push_back(pool);
            const auto number = static_cast<std::uint16_t>(queue);
            const auto node = static_cast<unsigned>(port_.socket());
            int status = rte_eth_rx_queue_setup(port_.port_id_, number, receive_frames, node, nullptr, pool);
            if (status == 0) {
                status = rte_eth_tx_queue_setup(port_.port_id_, number, transmit_frames, node, nullptr);
            }
            if (status != 0) {
                return failed("setting up queue " + std::to_string(queue), status, queue_remedy(port_.options_));
            }
        }
        return std::nullopt;
    }

    /// A driver that keeps more buffers than we know of would have none to receive frames into, and
    /// not all of them count that: each frame would look as if the gateway had lost it.
    std::optional<Error> check_pools() {
        for (const rte_mempool* pool : port_.pools_) {
            if (rte_mempool_avail_count(pool) < pool_spare_frames / 2) {
                return Error{.what = "the driver keeps more receive buffers than its rings hold: of " + std::to_string(pool->size) + " " +
                                     std::to_string(rte_mempool_in_use_count(pool)) + " are with it",
                             .where = where_of(port_.options_),
                             .fix = "choose fewer ring_frames"};
            }
        }
        return std::nullopt;
    }

    std::optional<Error> start_device() {
        if (const int status = rte_eth_dev_start(port_.port_id_); status != 0) {
            return failed("starting", status, "read the engine's messages");
        }
        if (auto error = check_pools()) {
            return error;
        }
        rte_eth_promiscuous_enable(
            port_.port_id_);  // emulated hosts have arbitrary addresses; drivers without a filter refuse, which is fine
        rte_eth_allmulticast_enable(port_.port_id_);  // neighbour discovery
        if ((information_.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0) {
            auto clock = ReceiveClock::start(port_clock_reader(port_.port_id_));
            if (const auto field = TimestampField::find(); clock && field) {
                port_.stamp_arrivals(std::move(clock), *field);
            }
        }
        return std::nullopt;
    }

    std::optional<Error> open_packet_sockets() {
        const PortKind kind = port_.options_.name.kind;
        std::optional<Error> error;
        if (kind == PortKind::af_packet || kind == PortKind::af_xdp) {
            const auto interface = find_kernel_interface(port_.options_.name.argument);
            const auto* const kernel_interface = std::get_if<KernelInterface>(&interface);
            if (kind == PortKind::af_packet) {
                error = open_senders(kernel_interface != nullptr && kernel_interface->has_other_end());
                error = error ? error : open_receivers();
            } else if (copies_frames(port_.options_.name)) {
                error = open_xdp_sockets();
            }
        }
        for (const LinkSocket& socket : own_link_sockets()) {
            if (std::ranges::find(sockets_before_, socket) == sockets_before_.end()) {
                port_.kernel_sockets_.push_back(socket);
            }
        }
        return error;
    }

    std::optional<Error> open_senders(bool other_end_drops) {
        for (unsigned queue = 0; queue < port_.options_.queues; ++queue) {
            auto sender = PacketSender::open(port_.options_.name.argument, other_end_drops);
            if (const auto* const error = std::get_if<Error>(&sender)) {
                return *error;
            }
            port_.packet_senders_.push_back(std::get<0>(std::move(sender)));
        }
        return std::nullopt;
    }

    std::optional<Error> open_receivers() {
        const PacketRing ring{.slots = std::bit_ceil(port_.options_.ring_frames), .slot_bytes = packet_slot_bytes(port_.options_.mtu)};
        // Unique for every port in this namespace; the kernel refuses a group whose members differ.
        const auto group = port_.options_.queues == 1 ? 0U : (static_cast<unsigned>(getpid()) * 2 + port_.port_id_) % 65535 + 1;
        for (unsigned queue = 0; queue < port_.options_.queues; ++queue) {
            auto receiver =
                PacketReceiver::open(port_.options_.name.argument, ring, static_cast<std::uint16_t>(group), port_.pools_[queue]);
            if (const auto* const error = std::get_if<Error>(&receiver)) {
                return *error;
            }
            port_.packet_receivers_.push_back(std::get<0>(std::move(receiver)));
        }
        return std::nullopt;
    }

    std::optional<Error> open_xdp_sockets() {
        const PortOptions& options = port_.options_;
        std::vector<int> descriptors;
        for (unsigned queue = 0; queue < options.queues; ++queue) {
            auto socket = XdpSocket::open(options.name.argument, queue, std::bit_ceil(options.ring_frames), frame_bytes_max(options.mtu),
                                          port_.pools_[queue]);
            if (const auto* const error = std::get_if<Error>(&socket)) {
                return *error;
            }
            port_.xdp_sockets_.push_back(std::get<0>(std::move(socket)));
            descriptors.push_back(port_.xdp_sockets_.back()->descriptor());
        }
        auto redirect = XdpRedirect::attach(options.name.argument, descriptors);
        if (const auto* const error = std::get_if<Error>(&redirect)) {
            return *error;
        }
        port_.xdp_redirect_ = std::get<0>(std::move(redirect));
        return std::nullopt;
    }

    std::optional<Error> wait_for_link() {
        const PortKind kind = port_.options_.name.kind;
        const auto deadline = std::chrono::steady_clock::now() + port_.options_.link_timeout;
        while (port_.options_.needs_link && !port_.facts().link_up) {
            const bool waits = kind == PortKind::pci || kind == PortKind::memif || kind == PortKind::vdev;
            if (!waits || std::chrono::steady_clock::now() >= deadline) {
                return Error{
                    .what = "no link" + (waits ? " within " + std::to_string(port_.options_.link_timeout.count()) + " ms" : std::string{}),
                    .where = where_of(port_.options_),
                    .fix = kind == PortKind::memif ? "start the other end of the memif (one end has role=server)"
                                                   : "check the cable and that the other end is up"};
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        }
        return std::nullopt;
    }

    DpdkPort port_;
    const std::vector<LinkSocket>& sockets_before_;
    rte_eth_dev_info information_{};
};

void RingDeleter::operator()(rte_ring* ring) const { rte_ring_free(ring); }

DpdkPort::DpdkPort(DpdkPort&& other) noexcept
    : options_{std::move(other.options_)},
      port_id_{other.port_id_},
      owns_{std::exchange(other.owns_, false)},
      transmit_ring_frames_{other.transmit_ring_frames_},
      accepted_{std::move(other.accepted_)},
      pools_{std::exchange(other.pools_, {})},
      kernel_sockets_{std::exchange(other.kernel_sockets_, {})},
      packet_senders_{std::move(other.packet_senders_)},
      packet_receivers_{std::move(other.packet_receivers_)},
      xdp_sockets_{std::move(other.xdp_sockets_)},
      xdp_redirect_{std::move(other.xdp_redirect_)},
      receive_clock_{std::move(other.receive_clock_)},
      timestamp_field_{other.timestamp_field_},
      rings_{std::move(other.rings_)} {}

std::uint64_t DpdkPort::accepted_frames() const {
    const std::span<const AcceptedFrames> queues{accepted_.get(), options_.queues};
    return std::accumulate(queues.begin(), queues.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const AcceptedFrames& queue) { return sum + queue.count(); });
}

DpdkPort::~DpdkPort() {
    if (!owns_) {
        return;
    }
    rte_eth_dev_info information{};
    rte_device* const device = rte_eth_dev_info_get(port_id_, &information) == 0 ? information.device : nullptr;
    rte_eth_dev_stop(port_id_);
    rte_eth_dev_close(port_id_);
    if (device != nullptr && options_.name.kind != PortKind::pci) {
        rte_dev_remove(device);
    }
    if (rings_) {
        for (const auto& ring : *rings_) {
            drain(*ring);
        }
    }
    for (rte_mempool* pool : pools_) {
        rte_mempool_free(pool);
    }  // from here on no ring holds a buffer
}

int DpdkPort::socket() const { return options_.socket >= 0 ? options_.socket : rte_eth_dev_socket_id(port_id_); }

PortFacts DpdkPort::facts() const {
    PortFacts facts;
    facts.port = options_.name.text;
    rte_eth_dev_info information{};
    if (rte_eth_dev_info_get(port_id_, &information) == 0) {
        facts.driver = information.driver_name;
    }
    rte_ether_addr address{};
    if (rte_eth_macaddr_get(port_id_, &address) == 0) {
        std::memcpy(facts.mac.data(), address.addr_bytes, facts.mac.size());
    }
    if (rte_is_zero_ether_addr(&address) != 0) {
        // Rings and null ports have no address. A locally administered address distinguishes the
        // frames of the two sides.
        facts.mac = {std::byte{0x02}, std::byte{0x00}, std::byte{0x00},
                     std::byte{0x00}, std::byte{0x00}, static_cast<std::byte>(port_id_ + 1)};
    }
    facts.numa_node = rte_eth_dev_socket_id(port_id_);
    rte_eth_link link{};
    if (rte_eth_link_get_nowait(port_id_, &link) == 0) {
        facts.link_up = link.link_status == RTE_ETH_LINK_UP;
        facts.link_mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
    }
    if (is_kernel_interface(options_.name.kind)) {  // drivers report "up" from the start, whatever the state of the interface
        const auto interface = find_kernel_interface(options_.name.argument);
        const auto* const kernel_interface = std::get_if<KernelInterface>(&interface);
        facts.link_up = facts.link_up && kernel_interface != nullptr && kernel_interface->up && kernel_interface->running;
        if (options_.name.kind == PortKind::af_packet) {  // the driver only provides a port number
            facts.driver = "packet sockets (sendmmsg, TPACKET_V2)";
            facts.mac = kernel_interface != nullptr ? packet_port_address(*kernel_interface) : facts.mac;
            facts.link_mbps = 0;
        }
        if (options_.name.kind == PortKind::tap) {  // the driver gives the interface, the gateway's end, the same address
            facts.mac = another_address(facts.mac);
        }
        if (xdp_redirect_ != nullptr) {
            facts.driver = "AF_XDP sockets (copy mode)";
            facts.mac = kernel_interface != nullptr ? kernel_interface->mac : facts.mac;
            facts.link_mbps = 0;
        }
    }
    facts.mtu = options_.mtu;
    facts.stamps_arrivals = receive_clock_ != nullptr;
    return facts;
}

Result<DpdkPort> open_port(const PortOptions& options) {
    if (auto error = what_prevents_opening(options)) {
        return *std::move(error);
    }
    const auto sockets_before = own_link_sockets();
    std::uint16_t port_id = 0;
    if (options.name.kind == PortKind::pci) {
        if (rte_eth_dev_get_port_by_name(options.name.argument.c_str(), &port_id) != 0) {
            return Error{.what = "no DPDK driver took this device",
                         .where = where_of(options),
                         .fix = "bind it: dpdk-devbind.py --bind=vfio-pci " + options.name.argument};
        }
        return PortOpener::start(options, port_id, nullptr, sockets_before);
    }
    const Device device = virtual_device(options);
    // Not rte_dev_probe(): that of DPDK 24.11 refuses arguments of 128 characters, and a socket
    // may have a long path.
    if (const int status = rte_vdev_init(device.name.c_str(), device.arguments.c_str()); status != 0) {
        return Error{.what = "DPDK could not make the device \"" + device.name + "," + device.arguments + "\": " + rte_strerror(-status),
                     .where = where_of(options),
                     .fix = device_remedy(options)};
    }
    if (rte_eth_dev_get_port_by_name(device.name.c_str(), &port_id) != 0) {
        return Error{.what = "the device \"" + device.name + "\" has no port", .where = where_of(options), .fix = device_remedy(options)};
    }
    return PortOpener::start(options, port_id, nullptr, sockets_before);
}

Result<std::pair<DpdkPort, DpdkPort>> open_ring_pair(const PortOptions& left, const PortOptions& right) {
    if (left.queues != right.queues) {
        return Error{.what = "ring ports need the same number of queues on both sides",
                     .where = where_of(left) + ", " + where_of(right),
                     .fix = "set queues alike"};
    }
    static unsigned pair_number = 0;
    const std::string name = "gatemark" + std::to_string(pair_number++);
    auto rings = std::make_shared<OwnedRings>();
    std::vector<rte_ring*> forward, reverse;
    for (unsigned queue = 0; queue < left.queues; ++queue) {
        for (auto* direction : {&forward, &reverse}) {
            const std::string ring_name = name + (direction == &forward ? "f" : "r") + std::to_string(queue);
            const unsigned frames = std::bit_ceil(std::max(left.ring_frames, right.ring_frames));
            rte_ring* const ring = rte_ring_create(ring_name.c_str(), frames, left.socket, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
            if (ring == nullptr) {
                return Error{.what = std::string{"no memory for rings: "} + rte_strerror(rte_errno),
                             .where = where_of(left),
                             .fix = "use fewer ring_frames"};
            }
            rings->emplace_back(ring);
            direction->push_back(ring);
        }
    }
    const auto open_side = [&](const PortOptions& options, std::vector<rte_ring*>& receive,
                               std::vector<rte_ring*>& transmit) -> Result<DpdkPort> {
        const int port_id = rte_eth_from_rings((name + options.side).c_str(), receive.data(), options.queues, transmit.data(),
                                               options.queues, options.socket < 0 ? 0U : static_cast<unsigned>(options.socket));
        if (port_id < 0) {
            return Error{.what = std::string{"could not make a ring port: "} + rte_strerror(rte_errno),
                         .where = where_of(options),
                         .fix = "use at most 16 queues"};
        }
        return PortOpener::start(options, static_cast<std::uint16_t>(port_id), rings, own_link_sockets());
    };
    auto left_port = open_side(left, reverse, forward);
    if (auto* error = std::get_if<Error>(&left_port)) {
        return std::move(*error);
    }
    auto right_port = open_side(right, forward, reverse);
    if (auto* error = std::get_if<Error>(&right_port)) {
        return std::move(*error);
    }
    return std::pair{std::get<DpdkPort>(std::move(left_port)), std::get<DpdkPort>(std::move(right_port))};
}

std::vector<std::string> pci_addresses(const std::vector<PortName>& names) {
    std::vector<std::string> addresses;
    for (const PortName& name : names) {
        if (name.kind == PortKind::pci) {
            addresses.push_back(name.argument);
        }
    }
    return addresses;
}

std::size_t memory_needed_mib(const std::vector<PortOptions>& ports, const SendPools& pools) {
    constexpr std::size_t mebibyte = std::size_t{1} << 20;
    constexpr std::size_t buffer_overhead = 384;                              // mbuf, mempool header, padding
    constexpr std::size_t overhead = buffer_overhead + RTE_PKTMBUF_HEADROOM;  // of a buffer to send from
    constexpr std::size_t pool_overhead = sizeof(rte_mempool) + sizeof(rte_mempool_cache) * RTE_MAX_LCORE;
    std::size_t bytes = 0;
    for (const PortOptions& port : ports) {
        const std::size_t ring = std::bit_ceil(port.ring_frames);
        const unsigned rings = port.name.kind == PortKind::pci ? card_rings_max : 1;
        const std::size_t receive = (receive_pool_frames(port.name, static_cast<unsigned>(ring), rings) + port.extra_frames) *
                                    (receive_data_room(port) + buffer_overhead);
        const std::size_t held = copies_frames(port.name) ? 0 : ring;
        const std::size_t buffers = pools.largest * (frame_bytes_max(port.mtu) + overhead) + pools.small * (pools.small_bytes + overhead);
        bytes += port.queues * (receive + (held + pool_spare_frames) * buffers + (1 + pools.largest + pools.small) * pool_overhead);
    }
    return drivers_mib + bytes * 5 / 4 / mebibyte;
}

}  // namespace gatemark::io
