#include "refdut/config.hpp"

#include "base/names.hpp"
#include "refdut/config_reader.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gatemark::refdut {

namespace {

constexpr auto side_names = names_of<Side>;
constexpr std::array<std::string_view, 2> dont_fragment_rules{"rfc7915", "rfc6145"};
constexpr std::array<std::string_view, 2> mapping_kinds{"endpoint_independent", "endpoint_dependent"};
constexpr std::array<std::string_view, 3> delay_kinds{"fixed", "uniform", "periodic"};
constexpr std::uint64_t rate_max = 1'000'000'000, frames_max = 10'000'000, count_max = std::uint64_t{1} << 60;

template <class T, class U>
void set_if(T& to, const std::optional<U>& value) {
    if (value) {
        to = static_cast<T>(*value);
    }
}

SideSettings read_side(TableReader& file, std::string_view name, Errors& errors) {
    SideSettings side;
    const toml::table* const table = file.table(name);
    if (table == nullptr) {
        if (!file.has(name)) {
            file.missing(name, "write [" + std::string{name} + "] with port = \"af_packet:INTERFACE\" or another port");
        }
        return side;
    }
    TableReader reader{*table, std::string{name}, errors};
    if (const auto port = reader.text("port")) {
        auto parsed = io::parse_port_name(*port);
        if (const Error* const error = error_of(parsed)) {
            reader.wrong("port", error->what, error->fix);
        } else {
            side.port = std::get<io::PortName>(std::move(parsed));
            if (side.port.kind == io::PortKind::ring) {
                reader.wrong("port", "a ring joins two ports of one process", "use memif to reach a Tester on the same machine");
            }
        }
    } else if (!reader.has("port")) {
        reader.missing("port", "name a port such as af_packet:INTERFACE or memif:/run/left.sock,role=server");
    }
    set_if(side.mtu, reader.integer("mtu", 576, 9500));
    set_if(side.ring_frames, reader.integer("ring_frames", 16, 65536));
    if (const auto vlan = reader.integer("vlan", 1, 4094)) {
        side.vlan_id = static_cast<std::uint16_t>(*vlan);
    }
    side.ipv4 = reader.address("ipv4", net::Family::ipv4);
    side.ipv6 = reader.address("ipv6", net::Family::ipv6);
    side.mac = reader.mac("mac");
    side.peer_mac = reader.mac("peer_mac");
    reader.finish();
    return side;
}

void read_ports(TableReader& reader, NatPool& pool) {
    const auto text = reader.text("pool_ports");
    if (!text) {
        return;
    }
    std::uint16_t low = 0, high = 0;
    const char* const end = text->data() + text->size();
    const auto [dash, error] = std::from_chars(text->data(), end, low);
    const bool has_both = error == std::errc{} && dash != end && *dash == '-' && std::from_chars(dash + 1, end, high).ptr == end;
    if (!has_both || low < 1 || low > high) {
        reader.wrong("pool_ports", "\"" + *text + "\" is not a range of ports", "write \"1024-65535\", the lower one first, 1 to 65535");
        return;
    }
    pool.port_min = low;
    pool.port_max = high;
}

/// One MAP rule, as far as it is complete.
std::optional<MapRuleSpec> read_domain(TableReader& reader, Mode mode) {
    MapRuleSpec rule;
    if (has_softwires(mode)) {
        rule.in_identifier = true;
        rule.psid_offset = 0;
    }
    const std::size_t errors_before = reader.errors().size();
    const auto ipv6 = reader.prefix("ipv6"), ipv4 = reader.prefix("ipv4");
    rule.dmr = reader.prefix("dmr");
    const auto ea_bits = reader.integer("ea_bits", 0, 48);
    for (const std::string_view key : {"ipv6", "ipv4", "ea_bits", "dmr"}) {
        if (!reader.has(key) && (key != "dmr" || is_map_t(mode))) {
            reader.missing(key, "a rule is {ipv6 = \"PREFIX\", ipv4 = \"PREFIX\", ea_bits = BITS, dmr = \"PREFIX\"}; dmr: MAP-T only");
        }
    }
    set_if(rule.psid_offset, reader.integer("psid_offset", 0, 15));
    set_if(rule.psid_bits, reader.integer("psid_bits", 0, 16));
    set_if(rule.psid, reader.integer("psid", 0, 65535));
    set_if(rule.forwarding, reader.boolean("fmr"));
    reader.finish();
    if (reader.errors().size() != errors_before || !ipv6 || !ipv4 || !ea_bits) {
        return std::nullopt;
    }
    rule.ipv6 = *ipv6;
    rule.ipv4 = *ipv4;
    rule.ea_bits = static_cast<unsigned>(*ea_bits);
    return rule;
}

/// One rule of 6rd, as far as it is complete: its EA bits are all that is behind the IPv4 prefix.
std::optional<MapRuleSpec> read_6rd(TableReader& reader) {
    const auto ipv6 = reader.prefix("ipv6"), ipv4 = reader.prefix("ipv4");
    for (const std::string_view key : {"ipv6", "ipv4"}) {
        if (!reader.has(key)) {
            reader.missing(key, "a rule is {ipv6 = \"PREFIX\", ipv4 = \"PREFIX\"}");
        }
    }
    reader.finish();
    if (!ipv6 || !ipv4) {
        return std::nullopt;
    }
    MapRuleSpec rule;
    rule.ipv6 = *ipv6;
    rule.ipv4 = *ipv4;
    rule.ea_bits = 32 - std::min(ipv4->length, 32U);
    return rule;
}

/// False if a rule is not among `domains` for what is wrong with it.
bool read_domains(TableReader& translation, Mode mode, std::vector<MapRuleSpec>& domains, Errors& errors) {
    const toml::array* const list = translation.array("domains");
    const std::size_t count = list == nullptr ? 0 : list->size();
    for (std::size_t i = 0; i < count; ++i) {
        const std::string where = translation.where("domains", i);
        const toml::table* const entry = (*list)[i].as_table();
        if (entry == nullptr) {
            errors.push_back({.what = "is not a table", .where = where, .fix = "write {key = value, ...}"});
            continue;
        }
        TableReader reader{*entry, where, errors};
        if (auto rule = mode == Mode::sixrd_br ? read_6rd(reader) : read_domain(reader, mode)) {
            rule->number = i;
            domains.push_back(*rule);
        }
    }
    return domains.size() == count;
}

/// False if MAP rules are missing in `translation`, whose problems have been told.
bool read_translation(TableReader& file, TranslationConfig& translation, Errors& errors) {
    const toml::table* const table = file.table("translation");
    if (table == nullptr) {
        return true;
    }
    TableReader reader{*table, "translation", errors};
    translation.pref64 = reader.prefix("prefix");
    for (const auto& [eam, where] : reader.tables("eam")) {
        TableReader entry{*eam, where, errors};
        const auto ipv4 = entry.prefix("ipv4"), ipv6 = entry.prefix("ipv6");
        if (ipv4 && ipv6) {
            translation.eam.push_back({.ipv4 = *ipv4, .ipv6 = *ipv6});
        }
        for (const std::string_view key : {"ipv4", "ipv6"}) {
            if (!entry.has(key)) {
                entry.missing(key, "a mapping is {ipv4 = \"PREFIX\", ipv6 = \"PREFIX\"}");
            }
        }
        entry.finish();
    }
    const bool all_domains = read_domains(reader, translation.mode, translation.domains, errors);
    translation.end_user_prefix = reader.prefix("end_user_prefix");
    const toml::array* const pool = reader.array("pool");
    for (std::size_t i = 0; pool != nullptr && i < pool->size(); ++i) {
        const auto text = (*pool)[i].value<std::string>();
        const auto prefix = text ? net::parse_prefix(*text) : std::nullopt;
        if (prefix) {
            translation.pool.prefixes.push_back(*prefix);
        } else {
            errors.push_back(
                {"is not a prefix", reader.where("pool", i), "write \"198.19.0.1/32\"; the bits after the prefix must be zero"});
        }
    }
    read_ports(reader, translation.pool);
    if (!has_pool(translation.mode) && reader.has("pool_ports")) {
        reader.wrong("pool_ports", "this mode has no pool", "leave it out, or set mode to nat44, nat64, nat66, nat46 or aftr");
    }
    set_if(translation.pool.mapping, reader.choice("mapping", mapping_kinds));
    if (!is_stateful(translation.mode) && reader.has("mapping")) {
        reader.wrong("mapping", "this mode maps no endpoints",
                     "leave it out, or set mode to nat44, nat64, nat66, nat46, aftr, map_t_ce, map_e_ce or lwb4");
    }
    set_if(translation.hop_limit_decrement, reader.integer("hop_limit_decrement", 1, 254));
    if (const auto rule = reader.choice("dont_fragment_rule", dont_fragment_rules)) {
        translation.dont_fragment_always = *rule == 1;
    }
    set_if(translation.lowest_ipv6_mtu, reader.integer("lowest_ipv6_mtu", 1280, 65535));
    for (const std::string_view key : {"dont_fragment_rule", "lowest_ipv6_mtu"}) {
        if (reader.has(key) && !changes_family(translation.mode)) {
            reader.wrong(key, "this mode does not translate between IPv4 and IPv6",
                         "leave it out, or set mode to siit, nat64, nat46, map_t_br or map_t_ce");
        }
    }
    reader.finish();
    return all_domains;
}

void read_tunnel(TableReader& file, Mode mode, TunnelConfig& tunnel, Errors& errors) {
    const toml::table* const table = file.table("tunnel");
    if (table == nullptr) {
        return;
    }
    if (!has_tunnels(mode)) {
        file.wrong("tunnel", "mode " + std::string{name_of(mode)} + " has no tunnels",
                   "leave it out, or set mode to map_e_br, lwaftr, sixrd_br, aftr, b4, map_e_ce or lwb4");
    }
    TableReader reader{*table, "tunnel", errors};
    tunnel.relay = reader.address("relay", tunnel_family(mode));
    if (mode == Mode::b4) {
        tunnel.subscriber = reader.address("subscriber", tunnel_family(mode));
    }
    set_if(tunnel.hop_limit, reader.integer("hop_limit", 1, 255));
    if (const auto traffic_class = reader.integer("traffic_class", 0, 255)) {
        tunnel.traffic_class = static_cast<std::uint8_t>(*traffic_class);
    }
    if (const auto ecn = reader.choice("ecn", names_of<EcnMode>)) {
        tunnel.ecn = static_cast<EcnMode>(*ecn);
    }
    if (mode == Mode::sixrd_br) {
        set_if(tunnel.dont_fragment, reader.boolean("dont_fragment"));
    }
    reader.finish();
}

void read_table(TableReader& file, Mode mode, NatLimits& limits, Errors& errors) {
    const toml::table* const table = file.table("table");
    if (table == nullptr) {
        return;
    }
    if (!is_stateful(mode)) {
        file.wrong("table", "mode " + std::string{name_of(mode)} + " has no table of connections",
                   "leave it out, or set mode to nat44, nat64, nat66, nat46, aftr, map_t_ce, map_e_ce or lwb4");
    }
    TableReader reader{*table, "table", errors};
    set_if(limits.capacity, reader.integer("size", 1, NatTable::capacity_max));
    set_if(limits.overflow, reader.choice("overflow", names_of<Overflow>));
    set_if(limits.establishment_per_second, reader.integer("establishment_rate", 1, rate_max));
    limits.establishment_burst = reader.integer("establishment_burst", 1, rate_max).value_or(100);
    if (reader.has("establishment_burst") && !reader.has("establishment_rate")) {
        reader.wrong("establishment_burst", "there is no rate for it to exceed", "set establishment_rate, or leave it out");
    }
    set_if(limits.timeout_ns, reader.duration("udp_timeout"));
    reader.finish();
}

/// The selector in a table that may have more keys, which the caller reads.
std::optional<SelectorSpec> read_selector(TableReader& reader) {
    SelectorSpec spec;
    const int kinds = static_cast<int>(reader.has("every")) + static_cast<int>(reader.has("probability")) +
                      static_cast<int>(reader.has("first")) + static_cast<int>(reader.has("from") || reader.has("to"));
    const std::size_t errors_before = reader.errors().size();
    const auto every = reader.integer("every", 1, count_max), first = reader.integer("first", 1, count_max);
    const auto probability = reader.probability("probability");
    const auto from = reader.duration("from"), to = reader.duration("to");
    if (kinds != 1) {
        reader.wrong("every", kinds == 0 ? "or another selector is missing" : "and another selector exclude each other",
                     "write one of: every = N, probability = P, first = N, or from = \"TIME\" and to = \"TIME\"");
        return std::nullopt;
    }
    if (reader.errors().size() != errors_before) {
        return std::nullopt;
    }
    if (every) {
        spec = {.kind = SelectorSpec::Kind::every, .count = *every};
    } else if (first) {
        spec = {.kind = SelectorSpec::Kind::first, .count = *first};
    } else if (probability) {
        spec = {.kind = SelectorSpec::Kind::probability, .probability = *probability};
    } else if (!to || from.value_or(0) >= *to) {
        reader.wrong("to", to ? "is not after from" : "is missing", "write from = \"100 ms\", to = \"200 ms\"");
        return std::nullopt;
    } else {
        spec = {.kind = SelectorSpec::Kind::window, .from_ns = from.value_or(0), .to_ns = *to};
    }
    return spec;
}

/// Reads a list of selectors; `more(reader, spec)` reads the other keys of each and keeps it.
template <class More>
void read_selectors(TableReader& direction, std::string_view key, Errors& errors, More&& more) {
    for (const auto& [entry, where] : direction.tables(key)) {
        TableReader reader{*entry, where, errors};
        more(reader, read_selector(reader));
        reader.finish();
    }
}

void read_delay(TableReader& direction, DelaySpec& delay, Errors& errors) {
    const toml::table* const table = direction.table("delay");
    if (table == nullptr) {
        return;
    }
    TableReader reader{*table, direction.where("delay"), errors};
    const auto kind = reader.choice("kind", delay_kinds);
    const auto value = reader.duration("value"), minimum = reader.duration("minimum"), maximum = reader.duration("maximum");
    const toml::array* const values = reader.array("values");
    std::vector<std::uint64_t> periodic;
    for (std::size_t i = 0; values != nullptr && i < values->size(); ++i) {
        const auto text = (*values)[i].value<std::string>();
        const auto ns = text ? parse_duration(*text) : std::nullopt;
        if (!ns) {
            errors.push_back({"is not a duration", reader.where("values", i), "write \"100 us\""});
        }
        periodic.push_back(ns.value_or(0));
    }
    reader.finish();
    if (!kind) {
        if (!reader.has("kind")) {
            reader.missing("kind", "write fixed, uniform or periodic");
        }
        return;
    }
    struct Wanted {
        std::string_view key, kind;
    };
    for (const auto& [key, of] :
         {Wanted{"value", "fixed"}, Wanted{"minimum", "uniform"}, Wanted{"maximum", "uniform"}, Wanted{"values", "periodic"}}) {
        const bool mine = of == delay_kinds[*kind];
        if (mine && !reader.has(key)) {
            reader.missing(key,
                           "a delay is {kind = \"fixed\", value = ..}, {kind = \"uniform\", minimum = .., maximum = ..} or {kind = "
                           "\"periodic\", values = [..]}");
        } else if (!mine && reader.has(key)) {
            reader.wrong(key, "is not of this kind of delay", "leave it out, or set kind to " + std::string{of});
        }
    }
    if (*kind == 0 && value) {
        delay = {.kind = DelaySpec::Kind::fixed, .values_ns = {*value}};
    } else if (*kind == 1 && minimum && maximum) {
        delay = {.kind = DelaySpec::Kind::uniform, .values_ns = {*minimum, *maximum}};
        if (*minimum > *maximum) {
            reader.wrong("minimum", "is above maximum", "write the lower one as minimum");
        }
    } else if (*kind == 2 && values != nullptr) {
        delay = {.kind = DelaySpec::Kind::periodic, .values_ns = periodic};
        if (periodic.empty()) {
            reader.wrong("values", "is empty", "write one delay or more");
        }
    }
}

void read_shaper(TableReader& reader, ShaperSpec& shaper) {
    set_if(shaper.frames_per_second, reader.integer("capacity", 1, rate_max));
    set_if(shaper.queue_frames, reader.integer("queue", 0, frames_max));
    set_if(shaper.flow_cost_ns, reader.duration("flow_cost"));
    set_if(shaper.recovery_ns, reader.duration("recovery"));
    set_if(shaper.recovery_loss, reader.integer("recovery_loss", 1, count_max));
    for (const std::string_view key : {"queue", "recovery", "recovery_loss", "flow_cost"}) {
        if (reader.has(key) && !reader.has("capacity")) {
            reader.wrong(key, key == "flow_cost" ? "nothing takes time without a capacity" : "nothing waits without a capacity",
                         "set capacity in frames/s, or leave it out");
        }
    }
    if (reader.has("recovery_loss") && !reader.has("recovery")) {
        reader.wrong("recovery_loss", "there is no recovery", "set recovery, or leave it out");
    }
}

DirectionSettings read_direction(TableReader& file, std::string_view name, Errors& errors) {
    DirectionSettings direction;
    const toml::table* const table = file.table(name);
    if (table == nullptr) {
        return direction;
    }
    TableReader reader{*table, std::string{name}, errors};
    read_shaper(reader, direction.shaper);
    read_delay(reader, direction.delay, errors);
    set_if(direction.keep_order, reader.boolean("keep_order"));
    ImpairmentSpec& spec = direction.impairments;
    const auto plain = [](std::vector<SelectorSpec>& list) {
        return [&list](TableReader&, const std::optional<SelectorSpec>& selector) {
            if (selector) {
                list.push_back(*selector);
            }
        };
    };
    read_selectors(reader, "loss", errors, plain(spec.loss));
    read_selectors(reader, "duplicate", errors, plain(spec.duplicate));
    read_selectors(reader, "reorder", errors, [&](TableReader& entry, const std::optional<SelectorSpec>& selector) {
        const auto by = entry.integer("by", 1, 1000);
        if (!entry.has("by")) {
            entry.missing("by", "the number of later frames that leave before the selected one: by = 1");
        } else if (selector && by) {
            spec.reorder.push_back({.selector = *selector, .by = static_cast<std::uint32_t>(*by)});
        }
    });
    read_selectors(reader, "corrupt", errors, [&](TableReader& entry, const std::optional<SelectorSpec>& selector) {
        const auto field = entry.choice("field", field_names);
        if (!entry.has("field")) {
            entry.missing("field", "name the field to damage, such as hop_limit");
        } else if (selector && field) {
            spec.corrupt.push_back({.selector = *selector, .field = static_cast<Field>(*field)});
        }
    });
    reader.finish();
    return direction;
}

void append(Errors& errors, Errors more) {
    for (Error& error : more) {
        const bool told = std::ranges::any_of(errors, [&](const Error& known) { return known.where == error.where; });
        if (!told) {
            errors.push_back(std::move(error));
        }
    }
}

std::string key_of(const toml::table& file, const TranslationConfig& translation) {
    std::ostringstream text;
    text << name_of(translation.mode) << ' ' << name_of(translation.inside) << ' ';
    if (const toml::table* const table = file["translation"].as_table()) {
        text << *table;
    }
    return text.str();
}

Settings read_file(const toml::table& file, Errors& errors) {
    Settings settings;
    TableReader reader{file, "", errors};
    if (const auto mode = reader.choice("mode", names_of<Mode>)) {
        settings.translation.mode = static_cast<Mode>(*mode);
    } else if (!reader.has("mode")) {
        reader.missing("mode", "write mode = \"router\", or another one of: " + list_of(names_of<Mode>));
    }
    set_if(settings.seed, reader.integer("seed", 0, count_max));
    settings.control = reader.text("control").value_or("");
    if (const auto cpu = reader.integer("cpu", 0, 1023)) {
        settings.cpu = static_cast<unsigned>(*cpu);
    }
    set_if(settings.huge_pages_allowed, reader.boolean("huge_pages"));
    if (const auto inside = reader.choice("inside", side_names)) {
        settings.translation.inside = static_cast<Side>(*inside);
        if (!has_inside(settings.translation.mode)) {
            reader.wrong("inside", "this mode has no inside", "leave it out, or set another mode than router and siit");
        }
    }
    for (std::size_t i = 0; i < 2; ++i) {
        settings.sides[i] = read_side(reader, side_names[i], errors);
        for (const auto& assigned : {settings.sides[i].ipv4, settings.sides[i].ipv6}) {
            if (assigned) {
                settings.translation.assigned_addresses.push_back(*assigned);
            }
        }
    }
    if (!settings.sides[0].port.text.empty() && settings.sides[0].port == settings.sides[1].port) {
        reader.wrong("right.port", "is the left port as well", "name another port");
    }
    const bool all_domains = read_translation(reader, settings.translation, errors);
    read_tunnel(reader, settings.translation.mode, settings.translation.tunnel, errors);
    read_table(reader, settings.translation.mode, settings.table, errors);
    settings.directions[0] = read_direction(reader, "forward", errors);
    settings.directions[1] = read_direction(reader, "reverse", errors);
    for (const DirectionSettings& direction : settings.directions) {
        const std::uint64_t waiting = direction.shaper.frames_per_second > 0 ? direction.shaper.queue_frames : 0;
        settings.held_frames = std::max<std::uint64_t>(settings.held_frames, 16384 + waiting);
    }
    settings.held_frames_given = reader.has("held_frames");
    set_if(settings.held_frames, reader.integer("held_frames", 1024, 2 * frames_max));
    reader.finish();
    Errors more = check(settings.translation);
    if (!all_domains) {  // what follows from a missing rule
        std::erase_if(
            more, [](const Error& error) { return error.where == "translation.domains" || error.where == "translation.end_user_prefix"; });
    }
    append(errors, std::move(more));
    if (is_stateful(settings.translation.mode)) {
        append(errors, check(settings.table));
    }
    settings.translation_key = key_of(file, settings.translation);
    return settings;
}

}  // namespace

std::variant<Settings, Errors> parse_settings(std::string_view toml) {
    try {
        const toml::table file = toml::parse(toml);
        Errors errors;
        Settings settings = read_file(file, errors);
        return errors.empty() ? std::variant<Settings, Errors>{std::move(settings)} : errors;
    } catch (const toml::parse_error& error) {
        return Errors{
            {.what = std::string{error.description()},
             .where = "line " + std::to_string(error.source().begin.line) + ", column " + std::to_string(error.source().begin.column),
             .fix = "the file must be TOML (https://toml.io)"}};
    }
}

std::variant<Settings, Errors> read_settings(const std::string& path) {
    constexpr std::uintmax_t bytes_max = std::uintmax_t{1} << 20;
    std::error_code unreadable;
    const bool is_file = std::filesystem::is_regular_file(path, unreadable);
    if (is_file && std::filesystem::file_size(path, unreadable) > bytes_max) {
        return Errors{{.what = "is longer than 1 MiB", .where = path, .fix = "name a configuration of the gateway"}};
    }
    std::ifstream file{path};
    std::ostringstream text;
    if (!is_file || !(text << file.rdbuf())) {
        return Errors{{.what = "cannot be read", .where = path, .fix = "name a file that exists and can be read"}};
    }
    auto settings = parse_settings(text.str());
    if (auto* const errors = std::get_if<Errors>(&settings)) {
        for (Error& error : *errors) {
            error.where = path + ": " + error.where;
        }
    }
    return settings;
}

Errors what_needs_a_restart(const Settings& running, const Settings& wanted) {
    Errors errors;
    const auto same = [&](bool is_same, const std::string& where) {
        if (!is_same) {
            errors.push_back(
                {.what = "cannot be changed while the gateway runs", .where = where, .fix = "keep it, or restart the gateway"});
        }
    };
    for (std::size_t i = 0; i < 2; ++i) {
        const SideSettings &is = running.sides[i], &to = wanted.sides[i];
        const std::string side{side_names[i]};
        same(is.port == to.port, side + ".port");
        same(is.mtu == to.mtu, side + ".mtu");
        same(is.ring_frames == to.ring_frames, side + ".ring_frames");
        same(is.mac == to.mac, side + ".mac");
    }
    same(running.control == wanted.control, "control");
    same(running.cpu == wanted.cpu, "cpu");
    same(running.huge_pages_allowed == wanted.huge_pages_allowed, "huge_pages");
    same(!wanted.held_frames_given || wanted.held_frames == running.held_frames, "held_frames");
    for (std::size_t i = 0; i < 2; ++i) {
        const ShaperSpec& shaper = wanted.directions[i].shaper;
        if (shaper.frames_per_second > 0 && shaper.queue_frames > running.held_frames) {
            errors.push_back({.what = "the running gateway can hold " + std::to_string(running.held_frames) + " frames only",
                              .where = i == 0 ? "forward.queue" : "reverse.queue",
                              .fix = "start it with a larger held_frames"});
        }
    }
    return errors;
}

}  // namespace gatemark::refdut
