#include "fuzz/holds.hpp"
#include "fuzz/reached.hpp"
#include "fuzz/script.hpp"
#include "golden/bytes.hpp"
#include "io/dpdk_environment.hpp"
#include "io/packet_ring.hpp"
#include "io/wire_format.hpp"
#include "io/xdp_ring.hpp"

#include <rte_mbuf.h>

#include <linux/if_packet.h>
#include <linux/if_xdp.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <vector>

/// Frames as drivers and the kernel hand them over, in pieces or without their VLAN tag, become
/// the frames that were on the wire. Short buffers, so that frames do not fit. Descriptors of
/// AF_XDP may have any place and length.
namespace gatemark::fuzz {
namespace {

using test::Bytes;

constexpr std::uint16_t room = 160;  ///< of a buffer, behind the headroom
constexpr unsigned buffers = 32, slot_bytes = 512, slots = 8;
constexpr std::size_t addresses_bytes = 12;

constexpr std::array<std::string_view, 5> format_names{"whole", "pieces", "tag", "cut", "short"};
Reached reached{"frame", format_names};
constexpr std::array<std::string_view, 5> descriptor_names{"whole", "cut", "empty", "outside", "more_than_the_ring"};
Reached reached_descriptors{"descriptor", descriptor_names};

/// DPDK, and a pool of short buffers.
rte_mempool* pool() {
    static rte_mempool* const made = [] {
        static std::optional<Result<io::DpdkEnvironment>> environment;
        environment.emplace(io::DpdkEnvironment::start({.pci_addresses = {}, .huge_pages_allowed = false, .memory_mib = 64}));
        holds(error_of(*environment) == nullptr, "DPDK starts");
        return rte_pktmbuf_pool_create("fuzz", buffers - 1, 0, 0, RTE_PKTMBUF_HEADROOM + room, SOCKET_ID_ANY);
    }();
    holds(made != nullptr, "there is a pool");
    return made;
}

Bytes bytes_of(const rte_mbuf& buffer) {
    const auto* const begin = rte_pktmbuf_mtod(&buffer, const std::byte*);
    return {begin, begin + buffer.data_len};
}

Bytes with_tag(Bytes frame, std::uint16_t type, std::uint16_t tag) {
    Bytes both;
    test::append_16(both, type);
    test::append_16(both, tag);
    frame.insert(frame.begin() + addresses_bytes, both.begin(), both.end());
    return frame;
}

void expect_frame(const rte_mbuf& buffer, const Bytes& expected) {
    holds(buffer.nb_segs == 1 && buffer.next == nullptr && buffer.pkt_len == buffer.data_len, "a frame is in one piece");
    holds(buffer.data_off + buffer.data_len <= buffer.buf_len, "a frame lies in its buffer");
    holds(bytes_of(buffer) == expected, "a frame is as it was on the wire");
}

/// A frame in pieces, with a tag that the driver has removed.
void restore(Script& script) {
    rte_mbuf* const first = rte_pktmbuf_alloc(pool());
    Bytes whole;
    const std::size_t pieces = 1 + script.below(4);
    rte_mbuf* last = nullptr;
    for (std::size_t i = 0; i < pieces; ++i) {
        rte_mbuf* const piece = i == 0 ? first : rte_pktmbuf_alloc(pool());
        const auto bytes = script.take(script.below(room + 1));
        std::ranges::copy(bytes, rte_pktmbuf_mtod(piece, std::byte*));
        piece->data_len = static_cast<std::uint16_t>(bytes.size());
        first->pkt_len += static_cast<std::uint32_t>(bytes.size());
        test::append(whole, bytes);
        if (last != nullptr) {
            last->next = piece;
            ++first->nb_segs;
        }
        last = piece;
    }
    const bool cut = whole.size() > room;
    whole.resize(std::min<std::size_t>(whole.size(), room));
    // A driver removes the tag of frames that are longer than their addresses.
    if (script.one_in(2) && whole.size() >= addresses_bytes && first->data_len >= addresses_bytes) {
        first->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
        first->vlan_tci = script.word();
        whole = with_tag(whole, 0x8100, first->vlan_tci);
        reached.note(2);
    }
    io::restore_wire_format(*first);
    expect_frame(*first, whole);
    reached.note(cut ? std::size_t{3} : pieces > 1 ? 1 : 0);
    rte_pktmbuf_free(first);
}

/// A ring that the kernel fills: frames behind their headers, the status last.
class Ring {
public:
    void put(Script& script) {
        if (waiting_.size() == slots) {
            return;
        }
        auto& header = *reinterpret_cast<tpacket2_hdr*>(memory_.data() + std::size_t{slot_bytes} * (put_++ % slots));
        const std::size_t begin = sizeof(tpacket2_hdr) + script.below(64);
        const auto frame = script.take(script.below(slot_bytes - begin + 1));
        header.tp_mac = static_cast<std::uint16_t>(begin);
        header.tp_snaplen = static_cast<std::uint32_t>(frame.size());
        header.tp_len = header.tp_snaplen + static_cast<std::uint32_t>(script.below(2));
        header.tp_vlan_tci = script.word();
        header.tp_vlan_tpid = script.one_in(2) ? 0x88a8 : 0x8100;
        std::ranges::copy(frame, reinterpret_cast<std::byte*>(&header) + begin);
        const std::uint8_t flags = script.byte();
        const bool with_tag = (flags & 1U) != 0, with_type = (flags & 2U) != 0;
        header.tp_status = TP_STATUS_USER | (with_tag ? TP_STATUS_VLAN_VALID : 0U) | (with_type ? TP_STATUS_VLAN_TPID_VALID : 0U) |
                           (flags & TP_STATUS_COPY);
        waiting_.push_back(expected(frame, with_tag ? std::optional{with_type ? header.tp_vlan_tpid : std::uint16_t{0x8100}} : std::nullopt,
                                    header.tp_vlan_tci));
    }
    void take(std::size_t count) {
        std::array<rte_mbuf*, slots> burst{};
        const std::size_t received = reader_.receive(std::span{burst}.first(count));
        holds(received == std::min(count, waiting_.size()), "what is ready is received");
        for (std::size_t i = 0; i < received; ++i) {
            expect_frame(*burst[i], waiting_[i]);
            rte_pktmbuf_free(burst[i]);
        }
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(received));
    }

private:
    [[nodiscard]] static Bytes expected(std::span<const std::byte> frame, std::optional<std::uint16_t> type, std::uint16_t tag) {
        Bytes bytes{frame.begin(), frame.end()};
        const bool tagged = type && bytes.size() >= addresses_bytes;
        const bool cut = bytes.size() + (tagged ? 4 : 0) > room;
        bytes.resize(std::min<std::size_t>(bytes.size(), room - (tagged ? 4U : 0U)));
        reached.note(cut ? std::size_t{3} : bytes.size() < addresses_bytes ? 4 : tagged ? 2 : 0);
        return tagged ? with_tag(bytes, *type, tag) : bytes;
    }

    alignas(16) std::array<std::byte, std::size_t{slots} * slot_bytes> memory_{};
    io::PacketRingReader reader_{{.slots = slots, .slot_bytes = slot_bytes}, memory_.data(), pool()};
    std::vector<Bytes> waiting_;
    std::size_t put_ = 0;
};

/// The rings of an AF_XDP socket. Their other side writes any descriptor, and any number of them.
class XdpRings {
public:
    void put(Script& script) {
        static constexpr std::array<std::uint64_t, 4> far{memory_bytes - 40, memory_bytes, ~std::uint64_t{0}, ~std::uint64_t{0} - 40};
        const std::uint8_t kind = script.byte();
        xdp_desc& descriptor = descriptors_[produced_ % slots];
        descriptor.addr = (kind & 3U) != 0 ? script.below(memory_bytes) : far[script.below(far.size())];
        descriptor.len = (kind & 4U) != 0 ? static_cast<std::uint32_t>(script.below(room + 20))
                                          : std::uint32_t{script.word()} * (script.one_in(4) ? 65537U : 1U);
        if (descriptor.addr < memory_bytes) {
            const auto frame = script.take(script.below(20));
            std::copy_n(frame.begin(), std::min<std::size_t>(frame.size(), memory_bytes - descriptor.addr),
                        memory_.begin() + static_cast<std::ptrdiff_t>(descriptor.addr));
        }
        produced_ += script.one_in(16) ? static_cast<std::uint32_t>(script.word()) : 1U;
    }
    void take(std::size_t count) {
        std::array<rte_mbuf*, slots> burst{};
        const std::uint32_t first = consumed_, given_back = filled_, ready = produced_ - first;
        if (ready > slots) {
            reached_descriptors.note(4);
        }
        const std::size_t received = reader_.receive(std::span{burst}.first(count));
        holds(received == std::min<std::size_t>({count, ready, slots}), "what is ready is received, a ring of it at most");
        holds(consumed_ - first == received && filled_ - given_back == received, "each frame makes room for another one");
        for (std::uint32_t i = 0; i < received; ++i) {
            const xdp_desc& descriptor = descriptors_[(first + i) % slots];
            expect_frame(*burst[i], expected(descriptor));
            holds(fill_[(given_back + i) % slots] == descriptor.addr / chunk_bytes * chunk_bytes, "a chunk is given back from its begin");
            rte_pktmbuf_free(burst[i]);
        }
    }

private:
    static constexpr unsigned chunk_bytes = 256;
    static constexpr std::size_t memory_bytes = std::size_t{slots} * chunk_bytes;

    [[nodiscard]] Bytes expected(const xdp_desc& descriptor) const {
        const bool inside = descriptor.addr <= memory_bytes && descriptor.len <= memory_bytes - descriptor.addr;
        const std::size_t bytes = inside ? std::min<std::size_t>(descriptor.len, room) : 0;
        reached_descriptors.note(!inside ? std::size_t{3} : bytes == 0 ? 2 : bytes < descriptor.len ? 1 : 0);
        const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(bytes == 0 ? 0 : descriptor.addr);
        return {begin, begin + static_cast<std::ptrdiff_t>(bytes)};
    }

    std::vector<std::byte> memory_ = std::vector<std::byte>(memory_bytes);
    std::array<xdp_desc, slots> descriptors_{};
    std::array<std::uint64_t, slots> fill_{};
    std::uint32_t produced_ = 0, consumed_ = 0, filled_ = 0, taken_ = 0;
    io::XdpReader reader_{{.begin = memory_.data(), .bytes = memory_bytes, .chunk_bytes = chunk_bytes},
                          {.producer = &produced_, .consumer = &consumed_, .entries = descriptors_.data(), .size = slots},
                          {.producer = &filled_, .consumer = &taken_, .entries = fill_.data(), .size = slots},
                          pool()};
};

/// Whatever fills the rings, now and then some of it is taken, and what is left at the end.
template <class Rings>
void fill_and_take(Script& script) {
    Rings rings;
    while (!script.at_end()) {
        rings.put(script);
        if (script.one_in(2)) {
            rings.take(1 + script.below(slots));
        }
    }
    rings.take(slots);
}

}  // namespace

void run(Script& script) {
    const std::uint8_t kind = script.byte() % 4;
    if (kind == 0) {
        restore(script);
    } else if (kind == 1) {
        fill_and_take<Ring>(script);
    } else {
        fill_and_take<XdpRings>(script);
    }
    holds(rte_mempool_in_use_count(pool()) == 0, "no buffer is lost");
}

}  // namespace gatemark::fuzz
