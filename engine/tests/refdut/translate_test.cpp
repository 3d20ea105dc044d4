#include "refdut/translate.hpp"

#include "golden/vectors.hpp"
#include "refdut/packets.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gatemark::refdut {
namespace {

using test::Bytes, test::SlowPacket;

/// From the IP header on, without the UDP data.
constexpr const char* rfc2544_in = test::rfc2544.headers;
constexpr const char* rfc2544_out = "4500002e0000000009112396c6120102c6130102 c0200007001a6917";
constexpr const char* nat64_in = test::nat64_in.headers;
constexpr const char* nat64_out = test::nat64_out.headers;
constexpr const char* own_prefix_in = test::own_prefix_in.headers;
constexpr const char* eam_in = test::eam_in.headers;
constexpr const char* eam_out = test::eam_out.headers;
constexpr const char* zero_ipv6 = test::zero_ipv6.headers;
constexpr const char* zero_ipv4 = test::zero_ipv4.headers;

Bytes frame_of(const char* headers) {
    Bytes frame = test::from_hex("020000000002 020000000001");
    test::append(frame, test::from_hex(headers[0] == '4' ? "0800" : "86dd"));
    test::append(frame, test::from_hex(headers));
    test::append(frame, test::from_hex(test::golden_data));
    return frame;
}

struct Result {
    Drop drop = Drop::none;
    Notes notes;
    Bytes frame;
};

/// One gateway.
class Gateway {
public:
    explicit Gateway(TranslationConfig config, NatLimits limits = {.capacity = 100}) {
        EXPECT_EQ(check(config), Errors{});
        if (is_stateful(config.mode)) {
            table = std::make_unique<NatTable>(config.pool, limits);
        }
        translator = std::make_unique<Translator>(std::move(config), table.get());
    }
    Result pass(Side from, const Bytes& frame, std::uint64_t now_ns = 0) {
        Buffer buffer{frame};
        Result result;
        result.drop = translator->translate(from, buffer.packet, now_ns, result.notes);
        EXPECT_TRUE(buffer.is_sound());
        result.frame.assign(buffer.frame().begin(), buffer.frame().end());
        return result;
    }
    Result pass(Side from, const SlowPacket& packet, std::uint64_t now_ns = 0) { return pass(from, test::write_packet(packet), now_ns); }

    std::unique_ptr<NatTable> table;
    std::unique_ptr<Translator> translator;
};

void expect_frame(Gateway& gateway, Side from, const char* in, const char* out) {
    const Result result = gateway.pass(from, frame_of(in));
    EXPECT_EQ(drop_names[static_cast<std::size_t>(result.drop)], "none");
    EXPECT_EQ(test::to_hex(result.frame), test::to_hex(frame_of(out)));
}

TranslationConfig siit_of(std::vector<EamEntry> eam) {
    TranslationConfig config;
    config.mode = Mode::siit;
    config.eam = std::move(eam);
    return config;
}

TranslationConfig nat_of(Mode mode, const std::string& pool, const char* prefix = nullptr) {
    TranslationConfig config;
    config.mode = mode;
    config.pool = pool_of({pool});
    if (prefix != nullptr) {
        config.pref64 = prefix_of(prefix);
    }
    return config;
}

TEST(RefdutGoldenFrames, ARouterForwardsThatOfRfc2544) {
    Gateway gateway{{}};
    expect_frame(gateway, Side::left, rfc2544_in, rfc2544_out);
    EXPECT_EQ(gateway.pass(Side::left, frame_of(rfc2544_in)).notes.treatment, Treatment::routed);
}

TEST(RefdutGoldenFrames, Nat64WithTheWellKnownPrefixAndWithAnother) {
    for (const auto& [prefix, in] : {std::pair{"64:ff9b::/96", nat64_in}, std::pair{"2001:2:0:1::/96", own_prefix_in}}) {
        Gateway gateway{nat_of(Mode::nat64, "198.19.0.1/32", prefix)};
        expect_frame(gateway, Side::left, in, nat64_out);
        EXPECT_EQ(gateway.table->size(), 1U);
    }
}

TEST(RefdutGoldenFrames, ExplicitMappingsInBothDirections) {
    Gateway gateway{siit_of({eam_of("198.18.0.0/24", "2001:2::/120"), eam_of("198.19.0.0/24", "2001:2:0:1000::/120")})};
    expect_frame(gateway, Side::left, eam_in, eam_out);
    Bytes back = frame_of("4500002e000000000a112496c6130002c6120002 00500401001a26ee");
    const Result result = gateway.pass(Side::right, back);
    EXPECT_EQ(test::to_hex(result.frame), test::to_hex(frame_of("60000000001a1109 20010002000010000000000000000002"
                                                                "20010002000000000000000000000002 00500401001a630e")));
}

TEST(RefdutGoldenFrames, AChecksumThatBecomesZeroIsWrittenAsAllOnes) {
    Gateway to_ipv4{siit_of({eam_of("198.18.0.0/24", "2001:2::/120"), eam_of("198.19.0.0/24", "2001:2:0:1000::/120")})};
    const Result four = to_ipv4.pass(Side::left, udp_packet("2001:2::2", "2001:2:0:1000::2", 11064, 7));
    EXPECT_EQ(test::to_hex(std::span{four.frame}.subspan(34, 8)), "2b380007001affff");
    Gateway to_ipv6{siit_of({eam_of("198.18.0.0/24", "2001:2::/120"), eam_of("198.19.0.0/24", "2001:2:0:8000::/120")})};
    const Result six = to_ipv6.pass(Side::left, udp_packet("198.18.0.2", "198.19.0.2", 63319, 7));
    EXPECT_EQ(test::to_hex(std::span{six.frame}.subspan(54, 8)), "f7570007001affff");
    Gateway router{{}};
    for (const char* headers : {zero_ipv4, zero_ipv6}) {
        const Bytes in = frame_of(headers);
        const Result kept = router.pass(Side::left, in);
        EXPECT_EQ(test::to_hex(std::span{kept.frame}.last(20)), test::to_hex(std::span{in}.last(20)));
    }
}

TEST(RefdutTranslator, AgreesWithTheSlowTranslatorOnAnyPacket) {
    std::mt19937 random{3};
    TranslationConfig config;
    config.mode = Mode::siit;
    config.pref64 = prefix_of("64:ff9b::/96");
    config.hop_limit_decrement = 3;
    Gateway siit{config};
    config = {};
    config.hop_limit_decrement = 3;
    Gateway router{config};
    std::uint16_t identification = 0;
    for (int i = 0; i < 20000; ++i) {
        const bool ipv4 = random() % 2 == 0;
        SlowPacket packet = udp_packet(ipv4 ? "198.18.0.0" : "64:ff9b::c612:0", ipv4 ? "198.19.0.0" : "64:ff9b::c613:0",
                                       static_cast<std::uint16_t>(random()), static_cast<std::uint16_t>(random()),
                                       random() % 16 == 0 ? random() % 9000 : random() % 100);
        packet.source.bytes[ipv4 ? 3 : 15] = static_cast<std::byte>(random());
        packet.destination.bytes[ipv4 ? 3 : 15] = static_cast<std::byte>(random());
        packet.hop_limit = static_cast<std::uint8_t>(4 + random() % 252);
        packet.traffic_class = static_cast<std::uint8_t>(random());
        packet.flow_label = ipv4 ? 0 : random() % 0x100000;
        packet.dont_fragment = ipv4 && random() % 2 == 0;
        packet.identification = static_cast<std::uint16_t>(ipv4 ? random() : 0);
        packet.vlan = random() % 2 == 0 ? std::optional<std::uint16_t>{5} : std::nullopt;
        SlowPacket expected = test::translated(packet, 3, test::embedding_96("64:ff9b::"), identification);
        expected.vlan = packet.vlan;
        identification = static_cast<std::uint16_t>(identification + (ipv4 ? 0 : 1));
        const Result translated = siit.pass(Side::left, packet);
        ASSERT_EQ(translated.drop, Drop::none);
        ASSERT_TRUE(translated.notes.udp && translated.notes.crossed);
        Bytes frame = test::write_packet(expected);
        frame.resize(std::max<std::size_t>(frame.size(), ipv4 ? 0 : 60));  // padded, as the slow writer does not
        ASSERT_EQ(test::to_hex(translated.frame), test::to_hex(frame)) << i;
        const Result routed = router.pass(Side::left, packet);
        ASSERT_EQ(test::to_hex(routed.frame), test::to_hex(test::write_packet(test::routed(packet, 3)))) << i;
    }
}

TEST(RefdutTranslator, SetsDontFragmentByTheRuleAskedFor) {
    for (const bool always : {false, true}) {
        TranslationConfig config;
        config.mode = Mode::siit;
        config.pref64 = prefix_of("64:ff9b::/96");
        config.dont_fragment_always = always;
        Gateway gateway{config};
        for (const std::size_t ip_bytes : {46U, 1260U, 1261U, 1500U}) {
            const Result result = gateway.pass(Side::left, udp_packet("64:ff9b::c612:2", "64:ff9b::c613:2", 1, 2, ip_bytes - 28));
            EXPECT_EQ(test::read_packet(result.frame).dont_fragment, always || ip_bytes > 1260) << ip_bytes;
        }
    }
}

TEST(RefdutTranslator, FragmentsNothing) {
    TranslationConfig config;
    config.mode = Mode::siit;
    config.pref64 = prefix_of("64:ff9b::/96");
    config.lowest_ipv6_mtu = 1280;
    Gateway gateway{config};
    SlowPacket packet = udp_packet("198.18.0.2", "198.19.0.2", 1, 2, 1260 - 28);
    EXPECT_EQ(gateway.pass(Side::left, packet).drop, Drop::none);
    packet.payload.resize(1261 - 28);
    EXPECT_EQ(gateway.pass(Side::left, packet).drop, Drop::unsupported);
    packet.dont_fragment = true;
    EXPECT_EQ(gateway.pass(Side::left, packet).drop, Drop::none);
}

TEST(RefdutTranslator, ComputesAnAbsentChecksumTowardsIpv6AndKeepsItAbsentInNat44) {
    TranslationConfig config;
    config.mode = Mode::siit;
    config.pref64 = prefix_of("64:ff9b::/96");
    Gateway siit{config};
    SlowPacket packet = udp_packet("198.18.0.2", "198.19.0.2", 4000, 80, 19);
    packet.udp_checksum_absent = true;
    SlowPacket expected = test::translated(packet, 1, test::embedding_96("64:ff9b::"));
    EXPECT_EQ(test::to_hex(siit.pass(Side::left, packet).frame), test::to_hex(test::write_packet(expected)));
    Gateway nat{nat_of(Mode::nat44, "203.0.113.9/32")};
    const Result result = nat.pass(Side::left, packet);
    expected = test::routed(packet, 1);
    expected.source = test::address_of("203.0.113.9");
    EXPECT_EQ(test::to_hex(result.frame), test::to_hex(test::write_packet(expected)));
}

struct NatCase {
    Mode mode;
    const char *inside, *seen_outside, *outside, *pool;  ///< seen_outside: the outside host as inside hosts name it
};

class RefdutNat : public testing::TestWithParam<NatCase> {};

TEST_P(RefdutNat, TranslatesOutwardsAndBack) {
    const NatCase& nat = GetParam();
    for (const Side inside : {Side::left, Side::right}) {
        const bool crosses = nat.mode == Mode::nat64 || nat.mode == Mode::nat46;
        TranslationConfig config = nat_of(nat.mode, nat.pool, crosses ? "64:ff9b::/96" : nullptr);
        config.inside = inside;
        Gateway gateway{config};
        const SlowPacket sent = udp_packet(nat.inside, nat.seen_outside, 5000, 80, 40);
        const auto across = [&](const SlowPacket& packet, std::uint16_t identification) {
            return crosses ? test::translated(packet, 1, test::embedding_96("64:ff9b::"), identification) : test::routed(packet, 1);
        };
        const net::Address pool = prefix_of(nat.pool).address;
        SlowPacket expected = across(sent, 0);
        expected.source = pool;
        const Result out = gateway.pass(inside, sent);
        EXPECT_EQ(out.drop, Drop::none);
        EXPECT_EQ(out.notes.treatment, Treatment::outward);
        EXPECT_TRUE(out.notes.new_connection);
        EXPECT_EQ(test::to_hex(out.frame), test::to_hex(test::write_packet(expected)));
        EXPECT_FALSE(gateway.pass(inside, sent).notes.new_connection);

        SlowPacket reply = udp_packet(nat.outside, net::to_text(pool), 80, 5000, 40);
        expected = across(reply, 0);
        expected.source = sent.destination;
        expected.destination = sent.source;
        const Result back = gateway.pass(other(inside), reply);
        EXPECT_EQ(back.drop, Drop::none);
        EXPECT_EQ(back.notes.treatment, Treatment::inward);
        EXPECT_EQ(test::to_hex(back.frame), test::to_hex(test::write_packet(expected)));
        // From another remote port no connection is known.
        reply.source_port = 81;
        EXPECT_EQ(gateway.pass(other(inside), reply).drop, Drop::no_state);
        EXPECT_EQ(gateway.table->size(), 1U);
    }
}

TEST_P(RefdutNat, AFullTableFollowsItsOverflowBehaviour) {
    const NatCase& nat = GetParam();
    const bool crosses = nat.mode == Mode::nat64 || nat.mode == Mode::nat46;
    for (const Overflow overflow : {Overflow::refuse, Overflow::drop, Overflow::evict_oldest, Overflow::forward_untranslated}) {
        Gateway gateway{nat_of(nat.mode, nat.pool, crosses ? "64:ff9b::/96" : nullptr), {.capacity = 1, .overflow = overflow}};
        EXPECT_EQ(gateway.pass(Side::left, udp_packet(nat.inside, nat.seen_outside, 5000, 80)).drop, Drop::none);
        const SlowPacket second = udp_packet(nat.inside, nat.seen_outside, 5001, 80);
        const Result result = gateway.pass(Side::left, second);
        EXPECT_EQ(gateway.table->size(), 1U);
        EXPECT_EQ(result.notes.error_wanted, overflow == Overflow::refuse);
        switch (overflow) {
            case Overflow::refuse:
            case Overflow::drop:
                EXPECT_EQ(result.drop, Drop::table_full);
                EXPECT_EQ(test::to_hex(result.frame), test::to_hex(test::write_packet(second))) << "quoted in the error, so not changed";
                break;
            case Overflow::evict_oldest: EXPECT_EQ(result.notes.treatment, Treatment::outward); break;
            case Overflow::forward_untranslated:
                EXPECT_EQ(result.notes.treatment, Treatment::untranslated);
                EXPECT_EQ(test::to_hex(result.frame), test::to_hex(test::write_packet(test::routed(second, 1))));
                break;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, RefdutNat,
                         testing::Values(NatCase{Mode::nat44, "10.0.0.2", "198.19.0.2", "198.19.0.2", "198.19.0.1/32"},
                                         NatCase{Mode::nat64, "2001:2::2", "64:ff9b::c613:2", "198.19.0.2", "198.19.0.1/32"},
                                         NatCase{Mode::nat66, "2001:2::2", "2001:2:0:8000::2", "2001:2:0:8000::2", "2001:2:0:8000::1/128"},
                                         NatCase{Mode::nat46, "198.18.0.2", "198.19.0.2", "64:ff9b::c613:2", "2001:2:0:8000::1/128"}));

TEST(RefdutTranslator, NativeIpv6IsRoutedByEveryTranslatorButNat66) {
    const SlowPacket forward = udp_packet("2001:2::2", "2001:2:0:8000::2", 7, 7), back = udp_packet("2001:2:0:8000::2", "2001:2::2", 7, 7);
    Gateway siit{siit_of({eam_of("198.18.0.0/24", "2001:2::/120"), eam_of("198.19.0.0/24", "2001:2:0:1000::/120")})};
    Gateway nat44{nat_of(Mode::nat44, "198.19.0.1/32")}, nat64{nat_of(Mode::nat64, "198.19.0.1/32", "64:ff9b::/96")};
    Gateway nat46{nat_of(Mode::nat46, "2001:2:0:8000::1/128", "64:ff9b::/96")};
    for (Gateway* gateway : {&siit, &nat44, &nat64, &nat46}) {
        for (const auto& [side, packet] : {std::pair{Side::left, forward}, std::pair{Side::right, back}}) {
            const Result result = gateway->pass(side, packet);
            EXPECT_EQ(result.notes.treatment, Treatment::routed);
            EXPECT_EQ(test::to_hex(result.frame), test::to_hex(test::write_packet(test::routed(packet, 1))));
        }
    }
}

TEST(RefdutTranslator, DropsWithTheReason) {
    TranslationConfig config = nat_of(Mode::nat64, "198.19.0.1/32", "64:ff9b::/96");
    config.assigned_addresses = {test::address_of("2001:2::1"), test::address_of("198.19.0.1")};
    Gateway gateway{config};
    const SlowPacket good = udp_packet("2001:2::2", "64:ff9b::c613:2", 5000, 80), reply = udp_packet("198.19.0.2", "198.19.0.1", 80, 5000);
    const auto changed = [](SlowPacket packet, auto&& change) {
        change(packet);
        return packet;
    };
    const auto drop = [&](Side side, const auto& frame) { return gateway.pass(side, frame).drop; };
    EXPECT_EQ(drop(Side::left, good), Drop::none);
    EXPECT_EQ(drop(Side::right, reply), Drop::none);
    EXPECT_EQ(drop(Side::left, changed(good, [](SlowPacket& p) { p.hop_limit = 1; })), Drop::hop_limit);
    EXPECT_EQ(drop(Side::left, changed(good, [](SlowPacket& p) { p.udp_checksum_absent = true; })), Drop::unsupported);
    EXPECT_EQ(drop(Side::left, changed(good, [](SlowPacket& p) { p.fragment_header = true; })), Drop::unsupported);
    EXPECT_EQ(drop(Side::left, changed(good, [](SlowPacket& p) { p.destination = test::address_of("2001:2::1"); })), Drop::not_for_us);
    EXPECT_EQ(drop(Side::left, changed(good, [](SlowPacket& p) { p.destination = test::address_of("ff02::1"); })), Drop::not_for_us);
    EXPECT_EQ(drop(Side::left, changed(good, [](SlowPacket& p) { p.source = test::address_of("fe80::1"); })), Drop::not_for_us);
    EXPECT_EQ(drop(Side::left, changed(good, [](SlowPacket& p) { p.wrong_ip_length = 4000; })), Drop::truncated);
    EXPECT_EQ(drop(Side::left, changed(good, [](SlowPacket& p) { p.wrong_udp_length = 4000; })), Drop::unsupported);
    EXPECT_EQ(drop(Side::right, changed(reply, [](SlowPacket& p) { p.header_checksum_xor = 1; })), Drop::bad_header_checksum);
    EXPECT_EQ(drop(Side::right, changed(reply, [](SlowPacket& p) { p.destination_port = 1; })), Drop::no_state);
    EXPECT_EQ(drop(Side::right, changed(reply, [](SlowPacket& p) { p.destination = test::address_of("198.19.0.7"); })), Drop::no_mapping);
    EXPECT_EQ(drop(Side::left, test::from_hex("ffffffffffff020000000001080600010800")), Drop::not_ip);
    EXPECT_EQ(drop(Side::left, test::from_hex("ffffffffffff02000000000108")), Drop::truncated);
    // RFC 7915 section 4.1: an unexpired source route is not translated, other options are left
    // out.
    Gateway siit{siit_of({eam_of("198.18.0.0/24", "2001:2::/120"), eam_of("198.19.0.0/24", "2001:2:0:1000::/120")})};
    SlowPacket options = udp_packet("198.18.0.2", "198.19.0.2", 5, 6);
    options.options = test::from_hex("0101018307040a00000100000000");
    options.options.resize(12);
    EXPECT_EQ(siit.pass(Side::left, options).drop, Drop::unsupported);
    options.options = test::from_hex("01010101 0101010101010101");
    const Result result = siit.pass(Side::left, options);
    EXPECT_EQ(result.drop, Drop::none);
    EXPECT_EQ(result.frame.size(), 14U + 40 + 8 + 18);
    EXPECT_EQ(siit.pass(Side::left, udp_packet("198.18.1.2", "198.19.0.2", 5, 6)).drop, Drop::no_mapping);
}

TEST(RefdutCheck, NamesAllThatIsWrongAtOnce) {
    TranslationConfig config = nat_of(Mode::nat64, "2001:2::/64", "2001:2::/95");
    config.hop_limit_decrement = 0;
    config.lowest_ipv6_mtu = 1000;
    config.pool.port_min = 5;
    config.pool.port_max = 4;
    config.eam = {eam_of("10.0.0.0/8", "2001:db8::/112"), eam_of("10.0.0.0/8", "2001:db9::/96")};
    std::vector<std::string> where;
    for (const Error& error : check(config)) {
        where.push_back(error.where);
    }
    EXPECT_EQ(where, (std::vector<std::string>{"translation.prefix", "translation.eam[0]", "translation.eam[1]", "translation.pool[0]",
                                               "translation.pool", "translation.pool_ports", "translation.hop_limit_decrement",
                                               "translation.lowest_ipv6_mtu"}));
    EXPECT_EQ(check(TranslationConfig{}), Errors{});
    config = {};
    config.mode = Mode::nat44;
    EXPECT_EQ(check(config).size(), 1U);
    config.mode = Mode::siit;
    EXPECT_EQ(check(config).size(), 1U);
    config.mode = Mode::router;
    config.pool = pool_of({"10.0.0.1/32"});
    config.pref64 = prefix_of("64:ff9b::/96");
    EXPECT_EQ(check(config).size(), 2U);
    EXPECT_EQ(check(NatLimits{.capacity = 0, .establishment_per_second = ~0ULL, .establishment_burst = 0, .timeout_ns = ~0ULL}).size(), 4U);
    EXPECT_EQ(check(NatLimits{}), Errors{});
}

}  // namespace
}  // namespace gatemark::refdut
