#include "refdut/config.hpp"

#include "refdut/config_reader.hpp"
#include "refdut/packets.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace gatemark::refdut {
namespace {

const std::string sides = "[left]\nport = \"memif:/tmp/l\"\n[right]\nport = \"memif:/tmp/r\"\n";

Errors errors_of(const std::string& toml) {
    const auto parsed = parse_settings(toml);
    const auto* const errors = std::get_if<Errors>(&parsed);
    return errors == nullptr ? Errors{} : *errors;
}

std::vector<std::string> places(const std::string& toml) {
    std::vector<std::string> list;
    for (const Error& error : errors_of(toml)) {
        EXPECT_FALSE(error.what.empty() || error.fix.empty()) << error.where;
        list.push_back(error.where);
    }
    std::ranges::sort(list);
    return list;
}

Settings settings_of(const std::string& toml) {
    auto parsed = parse_settings(toml);
    if (const auto* const errors = std::get_if<Errors>(&parsed)) {
        for (const Error& error : *errors) {
            ADD_FAILURE() << error.where << ": " << error.what;
        }
        return {};
    }
    return std::get<Settings>(parsed);
}

TEST(RefdutDuration, IsExactOrNothing) {
    EXPECT_EQ(parse_duration("100 us"), 100'000U);
    EXPECT_EQ(parse_duration("1.5ms"), 1'500'000U);
    EXPECT_EQ(parse_duration("0"), 0U);
    EXPECT_EQ(parse_duration("0.000000001 s"), 1U);
    EXPECT_EQ(parse_duration("24 h"), 86'400'000'000'000U);
    EXPECT_EQ(parse_duration("2 min"), 120'000'000'000U);
    for (const char* const wrong :
         {"", "5", "us", "1.5 ns", "-1 s", "1. s", "1 sec", "25 h", "99999999999999999999 ns", "1 s ", "0.1234567890123 s"}) {
        EXPECT_EQ(parse_duration(wrong), std::nullopt) << wrong;
    }
}

constexpr const char* all_keys = R"(
mode = "nat64"
seed = 7
control = "/run/x.sock"
cpu = 1
inside = "right"
huge_pages = false
held_frames = 50000
[left]
port = "af_packet:eth0"
mtu = 2000
ring_frames = 512
vlan = 100
ipv4 = "198.18.0.1"
mac = "02:00:00:00:00:01"
peer_mac = "02:00:00:00:00:02"
[right]
port = "memif:/tmp/r.sock,role=server"
ipv6 = "2001:2::1"
[translation]
prefix = "64:ff9b::/96"
eam = [{ipv4 = "192.0.2.0/24", ipv6 = "2001:db8::/120"}]
pool = ["198.18.1.0/24", "198.18.2.1/32"]
pool_ports = "2000-3000"
hop_limit_decrement = 2
dont_fragment_rule = "rfc6145"
lowest_ipv6_mtu = 1500
[table]
size = 1000
overflow = "evict_oldest"
establishment_rate = 500
establishment_burst = 5
udp_timeout = "2 s"
[forward]
capacity = 100000
queue = 77
recovery = "200 ms"
recovery_loss = 3
flow_cost = "250 ns"
delay = {kind = "uniform", minimum = "10 us", maximum = "1 ms"}
keep_order = false
loss = [{every = 1000}, {probability = 0.25}, {first = 10}, {from = "100 ms", to = "200 ms"}]
duplicate = [{every = 5}]
reorder = [{every = 7, by = 5}]
corrupt = [{field = "hop_limit", every = 9}]
[reverse]
delay = {kind = "periodic", values = ["10 us", "50 us"]}
)";

TEST(RefdutConfig, AllKeys) {
    const Settings settings = settings_of(all_keys);
    EXPECT_TRUE(settings.seed == 7 && settings.control == "/run/x.sock" && settings.cpu == 1U && !settings.huge_pages_allowed);
    EXPECT_EQ(settings.held_frames, 50'000U);
    const SideSettings& left = settings.sides[0];
    EXPECT_TRUE(left.port.kind == io::PortKind::af_packet && left.mtu == 2000 && left.ring_frames == 512 && left.vlan_id == 100);
    EXPECT_TRUE(left.ipv4 && !left.ipv6 && left.mac && left.peer_mac);
    const TranslationConfig& translation = settings.translation;
    EXPECT_TRUE(translation.mode == Mode::nat64 && translation.inside == Side::right && translation.hop_limit_decrement == 2);
    EXPECT_TRUE(translation.pref64 && translation.eam.size() == 1 && translation.pool.prefixes.size() == 2);
    EXPECT_TRUE(translation.pool.port_min == 2000 && translation.pool.port_max == 3000);
    EXPECT_TRUE(translation.dont_fragment_always && translation.lowest_ipv6_mtu == 1500);
    EXPECT_EQ(translation.assigned_addresses.size(), 2U);
    EXPECT_TRUE(settings.table.capacity == 1000 && settings.table.overflow == Overflow::evict_oldest);
    EXPECT_TRUE(settings.table.establishment_per_second == 500 && settings.table.establishment_burst == 5);
    EXPECT_EQ(settings.table.timeout_ns, 2'000'000'000U);
    const DirectionSettings& forward = settings.directions[0];
    EXPECT_EQ(forward.shaper,
              (ShaperSpec{
                  .frames_per_second = 100'000, .queue_frames = 77, .recovery_ns = 200'000'000, .recovery_loss = 3, .flow_cost_ns = 250}));
    EXPECT_EQ(forward.delay, (DelaySpec{.kind = DelaySpec::Kind::uniform, .values_ns = {10'000, 1'000'000}}));
    EXPECT_FALSE(forward.keep_order);
    using Kind = SelectorSpec::Kind;
    const ImpairmentSpec& spec = forward.impairments;
    EXPECT_EQ(spec.loss, (std::vector<SelectorSpec>{{.kind = Kind::every, .count = 1000},
                                                    {.kind = Kind::probability, .probability = 0.25},
                                                    {.kind = Kind::first, .count = 10},
                                                    {.kind = Kind::window, .from_ns = 100'000'000, .to_ns = 200'000'000}}));
    EXPECT_EQ(spec.duplicate, (std::vector<SelectorSpec>{{.kind = Kind::every, .count = 5}}));
    EXPECT_EQ(spec.reorder, (std::vector<ReorderSpec>{{.selector = {.kind = Kind::every, .count = 7}, .by = 5}}));
    EXPECT_EQ(spec.corrupt, (std::vector<CorruptSpec>{{.selector = {.kind = Kind::every, .count = 9}, .field = Field::hop_limit}}));
    EXPECT_EQ(settings.directions[1].delay, (DelaySpec{.kind = DelaySpec::Kind::periodic, .values_ns = {10'000, 50'000}}));
}

TEST(RefdutConfig, Defaults) {
    const Settings settings = settings_of("mode = \"router\"\n" + sides);
    EXPECT_TRUE(settings.seed == 1 && settings.control.empty() && !settings.cpu && settings.huge_pages_allowed);
    EXPECT_EQ(settings.held_frames, 16'384U);
    EXPECT_TRUE(settings.sides[0].mtu == 1500 && settings.sides[0].ring_frames == 4096 && !settings.sides[0].vlan_id);
    EXPECT_EQ(settings.directions[0].shaper,
              (ShaperSpec{.frames_per_second = 0, .queue_frames = 1000, .recovery_ns = 0, .recovery_loss = 2}));
    EXPECT_TRUE(settings.directions[0].keep_order && settings.directions[0].delay.kind == DelaySpec::Kind::none);
    const Settings queued = settings_of("mode = \"router\"\n" + sides + "[reverse]\ncapacity = 10\nqueue = 100000\n");
    EXPECT_EQ(queued.held_frames, 116'384U);
}

TEST(RefdutConfig, ReportsAllProblemsAtOnce) {
    const auto problems = places(R"(
mode = "nat45"
sed = 1
cpu = -1
[left]
port = "memifs:/tmp/l"
ipv4 = "2001:2::1"
[right]
port = "ring"
vlan = 4095
[forward]
capacity = 0
loss = [{every = 10, first = 3}, {from = "2 s", to = "1 s"}, {probability = 2}, 7, {}]
delay = {kind = "uniform", minimum = "1 s", value = "1 parsec"}
reorder = [{every = 5}]
corrupt = [{every = 5, field = "colour"}, {every = 5}]
[reverse]
queue = 5
flow_cost = "1 us"
delay = {kind = "periodic", values = []}
)");
    const std::vector<std::string> expected{"cpu",
                                            "forward.capacity",
                                            "forward.corrupt[0].field",
                                            "forward.corrupt[1].field",
                                            "forward.delay.maximum",
                                            "forward.delay.value",
                                            "forward.delay.value",
                                            "forward.loss[0].every",
                                            "forward.loss[1].to",
                                            "forward.loss[2].probability",
                                            "forward.loss[3]",
                                            "forward.loss[4].every",
                                            "forward.reorder[0].by",
                                            "left.ipv4",
                                            "left.port",
                                            "mode",
                                            "reverse.delay.values",
                                            "reverse.flow_cost",
                                            "reverse.queue",
                                            "right.port",
                                            "right.vlan",
                                            "sed"};
    EXPECT_EQ(problems, expected);
}

TEST(RefdutConfig, NamesTheNearestKeyAndRefusesSettingsThatWouldDoNothing) {
    const auto errors = errors_of("mode = \"router\"\nheld_farmes = 1\n" + sides);
    ASSERT_EQ(errors.size(), 1U);
    EXPECT_NE(errors[0].fix.find("held_frames"), std::string::npos);
    EXPECT_EQ(places("mode = \"router\"\ninside = \"left\"\n" + sides +
                     "[table]\nsize = 5\n[translation]\npool_ports = \"1-5\"\nprefix = \"64:ff9b::/96\"\n"),
              (std::vector<std::string>{"inside", "table", "translation.pool_ports", "translation.prefix"}));
    EXPECT_EQ(places("mode = \"nat44\"\n" + sides), (std::vector<std::string>{"translation.pool"}));
    for (const std::string ports : {"0-5", "5-4", "5-", "-5", "5", "1-65536", "1-4294967297", "4294967297-5", "1-5x", "1 -5"}) {
        EXPECT_EQ(places("mode = \"nat44\"\n" + sides + "[translation]\npool = [\"192.0.2.1/32\"]\npool_ports = \"" + ports + "\"\n"),
                  (std::vector<std::string>{"translation.pool_ports"}))
            << ports;
    }
    EXPECT_EQ(places("mode = \"router\"\n"), (std::vector<std::string>{"left", "right"}));
    EXPECT_EQ(places("mode = \n"), (std::vector<std::string>{"line 1, column 8"}));
    EXPECT_EQ(places("mode = \"router\"\n[left]\nport=\"memif:/a\"\n[right]\nport=\"memif:/a\"\n"),
              (std::vector<std::string>{"right.port"}));
}

TEST(RefdutConfig, RulesOfMapGateways) {
    const std::string
        first = "{ipv6 = \"2001:db8::/40\", ipv4 = \"192.0.2.0/24\", ea_bits = 16, dmr = \"64:ff9b::/96\"}",
        second =
            "{ipv6 = \"2001:db8:100::/56\", ipv4 = \"198.51.100.1/32\", ea_bits = 0, psid_offset = 4, psid_bits = 8, psid = 52, dmr = "
            "\"64:ff9b::/96\"";
    const Settings relay = settings_of("mode = \"map_t_br\"\ninside = \"right\"\n" + sides + "[translation]\ndomains = [" + first + ", " +
                                       second + "}]\ndont_fragment_rule = \"rfc6145\"\n");
    ASSERT_EQ(relay.translation.domains.size(), 2U);
    const MapRuleSpec &of_many = relay.translation.domains[0], &alone = relay.translation.domains[1];
    EXPECT_TRUE(of_many.ea_bits == 16 && of_many.psid_offset == 6 && of_many.psid_bits == 0 && !of_many.forwarding);
    EXPECT_TRUE(of_many.ipv6.length == 40 && of_many.ipv4.length == 24 && of_many.dmr->length == 96);
    EXPECT_TRUE(alone.ea_bits == 0 && alone.psid_offset == 4 && alone.psid_bits == 8 && alone.psid == 52 && alone.number == 1);
    EXPECT_TRUE(relay.translation.inside == Side::right && relay.translation.dont_fragment_always);
    const Settings edge = settings_of("mode = \"map_t_ce\"\n" + sides + "[translation]\ndomains = [" + first + ", " + second +
                                      ", fmr = true}]\nend_user_prefix = \"2001:db8:12:3400::/56\"\n[table]\nsize = 100\n");
    EXPECT_TRUE(edge.translation.end_user_prefix && edge.translation.domains[1].forwarding && edge.table.capacity == 100);
}

TEST(RefdutConfig, TheRelayOfAMapEDomain) {
    const std::string mode = "mode = \"map_e_br\"\n" + sides,
                      domains = "[translation]\ndomains = [{ipv6 = \"2001:db8::/40\", ipv4 = \"192.0.2.0/24\", ea_bits = 16}]\n";
    const TunnelConfig tunnel = settings_of(mode + domains + "[tunnel]\nrelay = \"2001:db8:ffff::1\"\n").translation.tunnel;
    EXPECT_TRUE(tunnel.relay == test::address_of("2001:db8:ffff::1") && tunnel.hop_limit == 64 && !tunnel.traffic_class);
    const TunnelConfig fixed =
        settings_of(mode + domains + "[tunnel]\nrelay = \"2001:db8:ffff::1\"\nhop_limit = 255\ntraffic_class = 184\necn = \"normal\"\n")
            .translation.tunnel;
    EXPECT_TRUE(fixed.hop_limit == 255 && fixed.traffic_class == 184 && fixed.ecn == EcnMode::normal && !tunnel.ecn);
    EXPECT_EQ(places(mode + domains), (std::vector<std::string>{"tunnel.relay"}));
    EXPECT_EQ(places(mode), (std::vector<std::string>{"translation.domains", "tunnel.relay"}));
    EXPECT_EQ(places(mode + R"(
[table]
size = 5
[tunnel]
relay = "192.0.2.1"
hop_limit = 0
traffic_class = 256
ecn = "limited"
flow_label = 1
[translation]
dont_fragment_rule = "rfc6145"
domains = [{ipv6 = "2001:db8::/40", ipv4 = "192.0.2.0/24", ea_bits = 16, dmr = "64:ff9b::/96"}, {ipv6 = "2001:db9::/40"}]
)"),
              (std::vector<std::string>{"table", "translation.domains[0].dmr", "translation.domains[1].ea_bits",
                                        "translation.domains[1].ipv4", "translation.dont_fragment_rule", "tunnel.ecn", "tunnel.flow_label",
                                        "tunnel.hop_limit", "tunnel.relay", "tunnel.traffic_class"}));
    EXPECT_EQ(places("mode = \"router\"\n" + sides + "[tunnel]\nrelay = \"2001:db8:ffff::1\"\n"), (std::vector<std::string>{"tunnel"}));
}

TEST(RefdutConfig, TheSoftwiresOfALwaftr) {
    const auto with = [](const std::string& ipv6, const std::string& more) {
        return "mode = \"lwaftr\"\n" + sides + "[tunnel]\nrelay = \"2001:db8:ffff::1\"\n[translation]\ndomains = [{ipv6 = \"" + ipv6 +
               "\", ipv4 = \"192.0.2.0/24\", ea_bits = 14" + more + "}]\n";
    };
    const MapRuleSpec rule = settings_of(with("2001:db8:1:2::/64", "")).translation.domains.at(0);
    EXPECT_TRUE(rule.in_identifier && rule.psid_offset == 0 && !rule.dmr);
    EXPECT_EQ(settings_of(with("2001:db8:1:2::/64", ", psid_offset = 4")).translation.domains.at(0).psid_offset, 4U);
    EXPECT_EQ(places(with("2001:db8:1::/48", ", dmr = \"64:ff9b::/96\"")),
              (std::vector<std::string>{"translation.domains[0].dmr", "translation.domains[0].ipv6"}));
}

TEST(RefdutConfig, TheRelayOfA6rdDomain) {
    const std::string mode = "mode = \"sixrd_br\"\n" + sides;
    const Settings settings = settings_of(mode + "[tunnel]\nrelay = \"198.18.0.1\"\ndont_fragment = true\n" +
                                          "[translation]\ndomains = [{ipv6 = \"2001:db8::/32\", ipv4 = \"10.0.0.0/8\"}]\n");
    EXPECT_TRUE(settings.translation.domains.at(0).ea_bits == 24 && settings.translation.tunnel.dont_fragment);
    EXPECT_EQ(
        places(mode + R"(
[tunnel]
relay = "2001:db8:ffff::1"
dont_fragment = 1
[translation]
domains = [{ipv6 = "2001:db8::/32", ipv4 = "2001:db8::/32", ea_bits = 8, psid_offset = 0}, {ipv6 = "2001:db9::/40"}]
)"),
        (std::vector<std::string>{"translation.domains[0].ea_bits", "translation.domains[0].ipv4", "translation.domains[0].psid_offset",
                                  "translation.domains[1].ipv4", "tunnel.dont_fragment", "tunnel.relay"}));
}

TEST(RefdutConfig, AnAftr) {
    const std::string mode = "mode = \"aftr\"\n" + sides;
    const Settings settings = settings_of(mode +
                                          "[tunnel]\nrelay = \"2001:db8:0:2::1\"\n[translation]\npool = [\"192.0.2.1/32\"]\n"
                                          "mapping = \"endpoint_dependent\"\n[table]\nsize = 5\n");
    EXPECT_TRUE(settings.table.capacity == 5 && settings.translation.pool.mapping == MappingKind::endpoint_dependent);
    EXPECT_EQ(places(mode), (std::vector<std::string>{"translation.pool", "tunnel.relay"}));
    EXPECT_EQ(places(mode + "[tunnel]\nrelay = \"ff02::1\"\n[translation]\npool = [\"2001:db8::1/128\"]\nprefix = \"64:ff9b::/96\"\n" +
                     "domains = [{ipv6 = \"2001:db8::/40\", ipv4 = \"192.0.2.0/24\", ea_bits = 16}]\n"),
              (std::vector<std::string>{"translation.domains", "translation.pool[0]", "translation.prefix", "tunnel.relay"}));
}

TEST(RefdutConfig, AB4) {
    const std::string mode = "mode = \"b4\"\n" + sides, aftr = "[tunnel]\nrelay = \"2001:db8:0:2::1\"\n";
    const TunnelConfig tunnel = settings_of(mode + aftr + "subscriber = \"2001:db8:0:1::1\"\n").translation.tunnel;
    EXPECT_TRUE(tunnel.relay == test::address_of("2001:db8:0:2::1") && tunnel.subscriber == test::address_of("2001:db8:0:1::1"));
    EXPECT_EQ(places(mode), (std::vector<std::string>{"tunnel.relay", "tunnel.subscriber"}));
    for (const char* const end : {"2001:db8:0:2::1", "fe80::1", "192.0.2.1"}) {
        EXPECT_EQ(places(mode + aftr + "subscriber = \"" + end + "\"\n"), std::vector<std::string>{"tunnel.subscriber"}) << end;
    }
    EXPECT_EQ(places("mode = \"aftr\"\n" + sides + aftr + "subscriber = \"2001:db8:0:1::1\"\n[translation]\npool = [\"192.0.2.1/32\"]\n"),
              std::vector<std::string>{"tunnel.subscriber"});
}

TEST(RefdutConfig, CustomerEdgesWithATunnel) {
    const std::string relay = "[tunnel]\nrelay = \"2001:db8:ffff::1\"\n", map_e = "mode = \"map_e_ce\"\n" + sides + relay,
                      lwb4 = "mode = \"lwb4\"\n" + sides + relay;
    const auto rules = [](const char* ipv6, const char* prefix, const char* more = "") {
        return std::string{"[translation]\nend_user_prefix = \""} + prefix + "\"\ndomains = [{ipv6 = \"" + ipv6 +
               "\", ipv4 = \"192.0.2.0/24\", ea_bits = 16" + more + "}]\n";
    };
    const Settings settings = settings_of(map_e + rules("2001:db8::/40", "2001:db8:12:3400::/56") + "[table]\nsize = 5\n");
    EXPECT_EQ(settings.table.capacity, 5U);
    EXPECT_EQ(public_endpoints(settings.translation).prefixes[0].address, test::address_of("192.0.2.18"));
    const Settings softwire = settings_of(lwb4 + rules("2001:db8:1:2::/64", "2001:db8:1:2:0:c000:212:34/128"));
    EXPECT_EQ(public_endpoints(softwire.translation).prefixes[0].address, test::address_of("192.0.2.18"));
    EXPECT_EQ(softwire.translation.domains[0].psid_offset, 0U);
    const auto wrong = [](const std::string& where) { return std::vector<std::string>{where}; };
    EXPECT_EQ(places(map_e + rules("2001:db8::/40", "2001:db8:12:3400::/57")), wrong("translation.end_user_prefix"));
    EXPECT_EQ(places(lwb4 + rules("2001:db8:1:2::/64", "2001:db8:1:2::/64")), wrong("translation.end_user_prefix"));
    EXPECT_EQ(places(lwb4 + rules("2001:db8:1:2::/64", "2001:db8:1:2:1:c000:212:34/128")), wrong("translation.end_user_prefix"));
    EXPECT_EQ(places(map_e + rules("2001:db8::/40", "2001:db8:12:3400::/56", ", dmr = \"64:ff9b::/96\"")),
              wrong("translation.domains[0].dmr"));
    EXPECT_FALSE(settings.translation.domains[0].forwarding);
    EXPECT_TRUE(settings_of(map_e + rules("2001:db8::/40", "2001:db8:12:3400::/56", ", fmr = true")).translation.domains[0].forwarding);
    EXPECT_EQ(places(lwb4 + rules("2001:db8:1:2::/64", "2001:db8:1:2:0:c000:212:34/128", ", fmr = true")),
              wrong("translation.domains[0].fmr"));
    EXPECT_EQ(places("mode = \"map_e_br\"\n" + sides + relay +
                     "[translation]\ndomains = [{ipv6 = \"2001:db8::/40\", ipv4 = \"192.0.2.0/24\", ea_bits = 16, fmr = true}]\n"),
              wrong("translation.domains[0].fmr"));
    EXPECT_EQ(places(map_e), (std::vector<std::string>{"translation.domains", "translation.end_user_prefix"}));
}

TEST(RefdutConfig, ANatMapsByEndpointsOrByDestinations) {
    const std::string nat = "mode = \"nat44\"\n" + sides + "[translation]\npool = [\"198.19.0.1/32\"]\n";
    EXPECT_EQ(settings_of(nat).translation.pool.mapping, MappingKind::endpoint_independent);
    EXPECT_EQ(settings_of(nat + "mapping = \"endpoint_dependent\"\n").translation.pool.mapping, MappingKind::endpoint_dependent);
    EXPECT_EQ(places(nat + "mapping = \"symmetric\"\n"), (std::vector<std::string>{"translation.mapping"}));
    EXPECT_EQ(places("mode = \"router\"\n" + sides + "[translation]\nmapping = \"endpoint_dependent\"\n"),
              (std::vector<std::string>{"translation.mapping"}));
}

TEST(RefdutConfig, ReportsAllProblemsOfMapRulesAtOnce) {
    EXPECT_EQ(places("mode = \"map_t_br\"\n" + sides + R"(
[table]
size = 5
[translation]
pool_ports = "1-5"
end_user_prefix = "2001:db8::/56"
domains = [
    {ipv6 = "2001:db8::/40", ipv4 = "192.0.2.0/24", ea_bits = 49, psid_ofset = 6, dmr = "64:ff9b::/96"},
    7,
    {ipv6 = "2001:db9::/40", ipv4 = "198.51.100.0/24", ea_bits = 30, dmr = "2001:db9::/33"},
    {ipv4 = "192.0.2.7/24"},
]
)"),
              (std::vector<std::string>{"table", "translation.domains[0].ea_bits", "translation.domains[0].psid_ofset",
                                        "translation.domains[1]", "translation.domains[2].dmr", "translation.domains[2].ea_bits",
                                        "translation.domains[3].dmr", "translation.domains[3].ea_bits", "translation.domains[3].ipv4",
                                        "translation.domains[3].ipv6", "translation.pool_ports"}));
    EXPECT_EQ(places("mode = \"map_t_ce\"\n" + sides), (std::vector<std::string>{"translation.domains", "translation.end_user_prefix"}));
    EXPECT_EQ(places("mode = \"map_t_br\"\n" + sides + "[translation]\ndomains = []\n"), (std::vector<std::string>{"translation.domains"}));
}

TEST(RefdutConfig, OnlyWhatNeedsNoNewPortsCanBeReloaded) {
    const Settings running = settings_of("mode = \"router\"\n" + sides);
    EXPECT_TRUE(what_needs_a_restart(running, settings_of("mode = \"router\"\nseed = 9\n" + sides + "[forward]\ncapacity = 5\nqueue = 0\n"))
                    .empty());
    const Errors errors = what_needs_a_restart(
        running,
        settings_of("mode = \"router\"\ncontrol = \"/x\"\n[left]\nport = \"null\"\nmtu = 9000\n[right]\nport = \"memif:/tmp/r\"\n"));
    EXPECT_EQ(errors.size(), 3U);
    EXPECT_EQ(what_needs_a_restart(running, settings_of("mode = \"router\"\nheld_frames = 20000\n" + sides)).size(), 1U);
    const std::string queue = "mode = \"router\"\n" + sides + "[forward]\ncapacity = 5\nqueue = ";
    EXPECT_TRUE(what_needs_a_restart(running, settings_of(queue + "16384")).empty());
    EXPECT_EQ(what_needs_a_restart(running, settings_of(queue + "16385")).size(), 1U);
}

}  // namespace
}  // namespace gatemark::refdut
