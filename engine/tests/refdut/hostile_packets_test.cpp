#include "refdut/corrupt.hpp"
#include "refdut/headers.hpp"
#include "refdut/icmp_error.hpp"
#include "refdut/map_vectors.hpp"
#include "refdut/neighbours.hpp"
#include "refdut/tunnel_packets.hpp"

#include "loop/neighbor_messages.hpp"

#include <gtest/gtest.h>

#include <random>

/// Bytes of any kind through everything that reads or changes them. The address sanitizer watches
/// each byte around the frame.
namespace gatemark::refdut {
namespace {

using test::Bytes;

class RefdutHostilePackets : public testing::TestWithParam<Mode> {
protected:
    RefdutHostilePackets() {
        TranslationConfig config;
        config.mode = GetParam();
        const bool public_ipv6 = config.mode == Mode::nat66 || config.mode == Mode::nat46;
        if (has_pool(config.mode)) {
            config.pool = pool_of({public_ipv6 ? "2001:2:0:8000::1/128" : "198.19.0.1/32"}, 5000, 5200);
        }
        if (has_rules(config.mode)) {
            config.domains = {rule_of("2001:2:0:8000::/52", "198.19.0.0/24", 12, 4)};
            if (!is_map_t(config.mode)) {
                config.domains[0].dmr.reset();
            }
            if (has_softwires(config.mode)) {
                config.domains[0].ipv6 = prefix_of("2001:2:0:8023::/64");
                config.domains[0].in_identifier = true;
            } else if (config.mode == Mode::sixrd_br) {
                config.domains[0] = rule_of("2001:2::/48", "198.19.0.0/16", 16, 0);
                config.domains[0].dmr.reset();
            }
        }
        if (config.mode == Mode::b4) {
            config.tunnel = {.relay = test::address_of(customer), .subscriber = test::address_of(relay)};
        } else if (has_tunnels(config.mode)) {
            config.tunnel.relay = test::address_of(tunnel_family(config.mode) == net::Family::ipv6 ? relay : "198.19.0.1");
        }
        if (is_edge(config.mode)) {
            config.end_user_prefix = prefix_of(has_softwires(config.mode) ? std::string{customer} + "/128" : "2001:2:0:8023::/64");
        }
        if (is_stateful(config.mode)) {
            table_ = std::make_unique<NatTable>(public_endpoints(config), NatLimits{.capacity = 100, .overflow = Overflow::evict_oldest});
        }
        if (uses_address_map(config.mode)) {
            config.pref64 = prefix_of("64:ff9b::/96");
            config.eam = {eam_of("198.18.0.0/24", "2001:2::/120")};
        }
        EXPECT_EQ(check(config), Errors{});
        translator_ = std::make_unique<Translator>(config, table_.get());
    }

    std::uint32_t random(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }

    Bytes some_frame() {
        static constexpr std::array addresses4{"198.18.0.2", "198.19.0.2", "198.19.0.1", "10.0.0.7", "240.0.0.1"};
        static constexpr std::array addresses6{"2001:2::2", "64:ff9b::c613:2", "2001:2:0:8000::1", "64:ff9b::c612:2", "2001:2:0:8000::2"};
        const bool ipv4 = random(2) == 0, of_customer = !ipv4 && has_rules(GetParam()) && random(2) == 0;
        const auto address = [&] {
            return ipv4 ? addresses4[random(5)] : of_customer && random(2) == 0 ? customer : addresses6[random(5)];
        };
        auto packet = udp_packet(address(), address(), static_cast<std::uint16_t>(5000 + random(100)),
                                 static_cast<std::uint16_t>(5000 + random(100)), random(60));
        packet.vlan = random(3) == 0 ? std::optional<std::uint16_t>{5} : std::nullopt;
        packet.fragment_header = !ipv4 && random(10) == 0;
        packet.more_fragments = ipv4 && random(10) == 0;
        packet.udp_checksum_absent = random(10) == 0;
        if (ipv4 && random(4) == 0) {
            packet.options.resize(4 * random(11));
            for (std::byte& byte : packet.options) {
                byte = static_cast<std::byte>(random(256));
            }
        }
        Bytes bytes = test::write_packet(packet);
        if (!ipv4 && GetParam() == Mode::sixrd_br && random(2) == 0) {
            SlowTunnel tunnel{.source = test::address_of(random(4) == 0 ? "198.19.0.3" : "198.19.0.2"),
                              .destination = test::address_of(random(8) == 0 ? "198.18.0.2" : "198.19.0.1")};
            tunnel.longer_by = random(8) == 0 ? static_cast<int>(random(9)) - 4 : 0;
            return tunnel.around(bytes);
        }
        if (ipv4 && has_tunnels(GetParam()) && random(2) == 0) {
            SlowTunnel tunnel{.source = test::address_of(random(4) == 0 ? "2001:2::2" : customer),
                              .destination = test::address_of(random(8) == 0 ? "2001:2::2" : relay)};
            tunnel.longer_by = random(8) == 0 ? static_cast<int>(random(9)) - 4 : 0;
            bytes = tunnel.around(bytes);
        }
        if (!ipv4 && random(4) == 0) {  // an extension header, perhaps one too long
            const std::size_t ip = packet.vlan ? 18 : 14;
            static constexpr std::array<std::uint8_t, 4> kinds{0, 43, 60, 58};
            Bytes extension(8 * (1 + random(3)));
            extension[0] = bytes[ip + 6];
            extension[1] = static_cast<std::byte>(random(4));
            bytes[ip + 6] = static_cast<std::byte>(kinds[random(4)]);
            bytes[ip + 5] = static_cast<std::byte>(bytes.size() - ip - 40 + extension.size());
            bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(ip) + 40, extension.begin(), extension.end());
        }
        return bytes;
    }

    void damage(Bytes& bytes) {
        for (std::uint32_t i = random(4); i > 0 && !bytes.empty(); --i) {
            bytes[random(static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), 80)))] = static_cast<std::byte>(random(256));
        }
        if (random(4) == 0) {
            bytes.resize(random(static_cast<std::uint32_t>(bytes.size() + 1)));
        }
        if (random(10) == 0) {
            bytes.resize(bytes.size() + random(30));
        }
        // A correct header checksum lets the damage through.
        if (bytes.size() >= 34 && bytes[12] == std::byte{8} && random(2) == 0) {
            const std::size_t header = 4 * (std::to_integer<std::size_t>(bytes[14]) & 0x0f);
            if (header >= 20 && 14 + header <= bytes.size()) {
                bytes[24] = bytes[25] = std::byte{0};
                const std::uint16_t checksum = test::slow_checksum(std::span{bytes}.subspan(14, header));
                bytes[24] = static_cast<std::byte>(checksum >> 8);
                bytes[25] = static_cast<std::byte>(checksum);
            }
        }
    }

    /// The relay, and the customer with 198.19.0.2 and PSID 3, who has the ports 4864 to 5119.
    static constexpr const char *relay = "2001:db8:ffff::1", *customer = "2001:2:0:8023:0:c613:2:3";
    std::mt19937 random_{17};
    std::unique_ptr<NatTable> table_;
    std::unique_ptr<Translator> translator_;
};

TEST_P(RefdutHostilePackets, AreTranslatedCorruptedOrDroppedWithinTheirBuffers) {
    static constexpr std::array<std::size_t, 4> rooms{0, 4, 20, 64};
    std::array<std::uint64_t, drop_count> drops{};
    std::uint64_t corrupted = 0;
    for (std::uint64_t i = 0; i < 40'000; ++i) {
        Bytes bytes = some_frame();
        damage(bytes);
        Buffer buffer{bytes, rooms[random(4)], rooms[random(4)]};
        Notes notes;
        const Drop drop = translator_->translate(random(2) == 0 ? Side::left : Side::right, buffer.packet, i * 1000, notes);
        ASSERT_TRUE(buffer.is_sound());
        ++drops[static_cast<std::size_t>(drop)];
        if (drop != Drop::none) {
            ErrorFrame error;
            write_refusal(buffer.packet, drop, test::address_of(random(2) == 0 ? "198.18.0.1" : "2001:2::1"), error);
            continue;
        }
        View view;
        ASSERT_EQ(read_headers(buffer.packet, view), Drop::none) << "what leaves is sound";
        if (random(3) == 0) {
            (void)set_vlan(buffer.packet, random(2) == 0 ? std::optional<std::uint16_t>{9} : std::nullopt);  // there may be no room
        }
        corrupted += corrupt(static_cast<Field>(random(field_count)), buffer.packet, notes, table_.get()).none() ? 0U : 1U;
        ASSERT_TRUE(buffer.is_sound());
    }
    EXPECT_GT(drops[0], 400U);
    EXPECT_GT(drops[static_cast<std::size_t>(Drop::truncated)], 400U);
    EXPECT_GT(drops[static_cast<std::size_t>(Drop::bad_header_checksum)], 400U);
    EXPECT_GT(corrupted, 200U);
}

TEST_P(RefdutHostilePackets, OfNeighboursAreReadWithinTheirBuffers) {
    Neighbours neighbours{{.own_mac = *net::parse_mac("02:00:00:00:00:02"),
                           .vlan_id = std::nullopt,
                           .ipv4 = test::address_of("198.18.0.1"),
                           .ipv6 = test::address_of("2001:2::1"),
                           .peer_mac = std::nullopt}};
    const loop::NeighborLink tester{.own_mac = *net::parse_mac("02:00:00:00:00:01"), .vlan_id = std::nullopt};
    Neighbours::Taken taken;
    for (int i = 0; i < 50'000; ++i) {
        const bool ipv4 = random(2) == 0;
        const auto question = loop::write_question(tester, test::address_of(ipv4 ? "198.18.0.1" : "2001:2::1"),
                                                   test::address_of(ipv4 ? "198.18.0.2" : "2001:2::2"));
        Bytes bytes(question.data.begin(), question.data.begin() + static_cast<std::ptrdiff_t>(question.bytes));
        damage(bytes);
        const Buffer buffer{bytes, 0, 0};
        neighbours.take(buffer.frame(), taken);
        ASSERT_LE(taken.answer_frame.bytes, NeighbourFrame::bytes_max);
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, RefdutHostilePackets,
                         testing::Values(Mode::router, Mode::siit, Mode::nat44, Mode::nat64, Mode::nat66, Mode::nat46, Mode::map_t_br,
                                         Mode::map_t_ce, Mode::map_e_br, Mode::lwaftr, Mode::sixrd_br, Mode::aftr, Mode::b4, Mode::map_e_ce,
                                         Mode::lwb4));

}  // namespace
}  // namespace gatemark::refdut
