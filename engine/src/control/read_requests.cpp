#include "control/read_requests.hpp"

#include "control/object_reader.hpp"
#include "io/port_queues.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace gatemark::control {

namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t tags_max = 100'000'000;  // 800 MB of delays
constexpr std::uint64_t frames_per_second_max = 1'000'000'000;
constexpr std::uint64_t echo_timeout_max = std::uint64_t{600} * 1'000'000'000;
constexpr std::uint64_t nanoseconds_max = std::uint64_t{7} * 24 * 3600 * 1'000'000'000;  // a week

std::chrono::nanoseconds read_time(ObjectReader& reader, const std::string& key, std::uint64_t minimum = 0) {
    return std::chrono::nanoseconds{static_cast<std::int64_t>(reader.integer(key, minimum, nanoseconds_max))};
}

/// One of several words, each standing for a value.
template <class Value>
Value read_word(ObjectReader& reader, const std::string& key, std::initializer_list<std::pair<const char*, Value>> words) {
    const std::string word = reader.text(key);
    std::string known;
    for (const auto& [name, value] : words) {
        if (word == name) {
            return value;
        }
        known += (known.empty() ? "" : ", ") + std::string{name};
    }
    reader.problem(key, "is unknown", "send one of " + known);
    return words.begin()->second;
}

frame::ValueMode read_mode(ObjectReader& reader) {
    using Mode = frame::ValueMode;
    return read_word<Mode>(
        reader, "mode",
        {{"fixed", Mode::fixed}, {"increasing", Mode::increasing}, {"decreasing", Mode::decreasing}, {"pseudorandom", Mode::pseudorandom}});
}

enumerate::ConnectionChoice::Mode read_choice(ObjectReader& reader, const std::string& key) {
    using Mode = enumerate::ConnectionChoice::Mode;
    return read_word<Mode>(
        reader, key,
        {{"fixed", Mode::fixed}, {"increasing", Mode::increasing}, {"decreasing", Mode::decreasing}, {"pseudorandom", Mode::pseudorandom}});
}

enumerate::Order read_order(ObjectReader& reader) {
    using Order = enumerate::Order;
    return read_word<Order>(reader, "order",
                            {{"increasing", Order::increasing}, {"decreasing", Order::decreasing}, {"pseudorandom", Order::pseudorandom}});
}

frame::ValueRange read_range(ObjectReader& reader) {
    frame::ValueRange range;
    range.mode = read_mode(reader);
    range.minimum = static_cast<std::uint16_t>(reader.integer("minimum", 0, 65535));
    range.maximum = static_cast<std::uint16_t>(reader.integer("maximum", 0, 65535));
    return range;
}

net::Address read_address(ObjectReader& reader, const std::string& key) {
    const auto address = net::parse_address(reader.text(key));
    if (!address) {
        reader.problem(key, "is neither an IPv4 nor an IPv6 address", "send one");
    }
    return address.value_or(net::Address{});
}

std::optional<std::uint16_t> read_vlan(ObjectReader& reader, const std::string& key) {
    if (reader.optional(key) == nullptr) {
        return std::nullopt;
    }
    return static_cast<std::uint16_t>(reader.integer(key, 1, 4094));
}

net::MacAddress read_mac(ObjectReader& reader, const std::string& key) {
    const auto mac = net::parse_mac(reader.text(key));
    if (!mac) {
        reader.problem(key, "is not a MAC address", "send six bytes such as 02:00:00:00:00:01");
    }
    return mac.value_or(net::MacAddress{});
}

frame::HostSet read_hosts(const Json& value, const std::string& where, Errors& errors) {
    ObjectReader reader{value, where, errors};
    frame::HostSet hosts;
    hosts.address = read_address(reader, "address");
    hosts.offset = reader.integer("offset", 0, 14);
    hosts.part = read_range(reader);
    hosts.networks = static_cast<std::uint16_t>(reader.integer("networks", 1, 256));
    if (hosts.part.mode == frame::ValueMode::fixed) {
        hosts.offset = 0;
        hosts.part.minimum = hosts.part.maximum = 0;
    }
    return hosts;
}

net::Prefix read_prefix(ObjectReader& reader, const std::string& key, net::Family family) {
    const auto prefix = net::parse_prefix(reader.text(key));
    if (!prefix || prefix->address.family != family) {
        const std::string name = family == net::Family::ipv4 ? "an IPv4" : "an IPv6";
        reader.problem(key, "is not " + name + " prefix with all bits below its length zero",
                       family == net::Family::ipv4 ? "send one such as 192.0.2.0/24" : "send one such as 2001:db8::/40");
        return {.address = {.family = family, .bytes = {}}};
    }
    return *prefix;
}

/// One of the optional whole numbers of a MAP rule.
std::optional<unsigned> read_bits(ObjectReader& reader, const std::string& key, unsigned maximum) {
    if (reader.optional(key) == nullptr) {
        return std::nullopt;
    }
    return static_cast<unsigned>(reader.integer(key, 0, maximum));
}

net::MapRule read_rule(ObjectReader& reader) {
    net::MapRule rule;
    rule.ipv6 = read_prefix(reader, "ipv6", net::Family::ipv6);
    rule.ipv4 = read_prefix(reader, "ipv4", net::Family::ipv4);
    rule.ea_bits = static_cast<unsigned>(reader.integer("ea_bits", 0, net::MapDomain::ea_bits_max));
    rule.psid_offset = static_cast<unsigned>(reader.integer("psid_offset", 0, 15));
    rule.psid_bits = read_bits(reader, "psid_bits", 16);
    if (const auto psid = read_bits(reader, "psid", 65535)) {
        rule.psid = static_cast<std::uint16_t>(*psid);
    }
    if (reader.optional("dmr") != nullptr) {
        rule.dmr = read_prefix(reader, "dmr", net::Family::ipv6);
    }
    return rule;
}

frame::EdgeDomain read_edge_domain(const Json& value, const std::string& where, Errors& errors) {
    ObjectReader reader{value, where, errors};
    frame::EdgeDomain domain;
    domain.rule = read_rule(reader);
    domain.rule.in_identifier = reader.boolean("in_identifier");
    domain.weight = static_cast<std::uint32_t>(reader.integer("weight", 1, frame::CustomerEdges::weights_max));
    domain.except_suffixes = reader.boolean("except_suffixes");
    domain.except_system_ports = reader.boolean("except_system_ports");
    return domain;
}

/// Whether a set of hosts is one of customer edges, `{"edges": ...}`.
bool is_edges(const Json& value) { return value.is_object() && value.contains("edges"); }

frame::EdgesRequest read_edges(const Json& value, const std::string& where, Errors& errors) {
    ObjectReader parent{value, where, errors};
    ObjectReader reader{parent.required("edges"), parent.path("edges"), errors};
    frame::EdgesRequest edges;
    std::size_t i = 0;
    for (const Json& domain : reader.list("domains")) {
        edges.domains.push_back(read_edge_domain(domain, reader.path("domains[" + std::to_string(i++) + "]"), errors));
    }
    edges.count = reader.integer("count", 1, frame::CustomerEdges::count_limit);
    edges.order = read_order(reader);
    edges.choice = read_word<frame::EdgeChoice>(reader, "choice",
                                                {{"cycle", frame::EdgeChoice::cycle}, {"pseudorandom", frame::EdgeChoice::pseudorandom}});
    return edges;
}

/// `null`: the engine chooses.
std::optional<unsigned> read_queues(ObjectReader& reader) {
    if (reader.optional("queues") == nullptr) {
        return std::nullopt;
    }
    return static_cast<unsigned>(reader.integer("queues", 1, io::port_queues_max));
}

std::vector<unsigned> read_cores(ObjectReader& reader) {
    std::vector<unsigned> cores;
    for (const Json& core : reader.list("cores")) {
        if (core.is_number_unsigned() && core.get<std::uint64_t>() < 4096) {
            cores.push_back(core.get<unsigned>());
        } else {
            reader.problem("cores", "holds something that is not a CPU number", "send whole numbers");
        }
    }
    return cores;
}

bool read_host_macs(ObjectReader& reader, const std::string& key) {
    return read_word<bool>(reader, key, {{"fixed", false}, {"random", true}});
}

trial::SideRequest read_side(const Json& value, const std::string& where, Errors& errors) {
    ObjectReader reader{value, where, errors};
    trial::SideRequest side;
    side.port = reader.text("port");
    side.queues = read_queues(reader);
    side.ring_frames = static_cast<unsigned>(reader.integer("ring_frames", 16, 65536));
    side.mtu = static_cast<unsigned>(reader.integer("mtu", 576, 9500));
    side.vlan_id = read_vlan(reader, "vlan_id");
    std::size_t i = 0;
    for (const Json& hosts : reader.list("answer_for")) {
        const std::string place = reader.path("answer_for[" + std::to_string(i++) + "]");
        if (is_edges(hosts)) {
            side.answer_for_edges.push_back(read_edges(hosts, place, errors));
        } else {
            side.answer_for.push_back(read_hosts(hosts, place, errors));
        }
    }
    side.random_host_macs = read_host_macs(reader, "host_macs");
    side.teach_hosts = reader.optional("teach_hosts") == nullptr || reader.boolean("teach_hosts");
    if (reader.optional("gateway_mac") != nullptr) {
        side.gateway_mac = read_mac(reader, "gateway_mac");
    }
    return side;
}

std::optional<net::AddressMapping> read_mapping(ObjectReader& reader, const std::string& where, Errors& errors) {
    std::optional<net::Prefix> embedding;
    if (reader.optional("prefix") != nullptr) {
        embedding = net::parse_prefix(reader.text("prefix"));
        if (!embedding) {
            reader.problem("prefix", "is not an IPv6 prefix with all bits below its length zero", "send one such as 2001:db8::/96");
        }
    }
    std::vector<net::ExplicitMapping> mappings;
    std::size_t i = 0;
    for (const Json& entry : reader.list("eam")) {
        ObjectReader mapping{entry, reader.path("eam[" + std::to_string(i++) + "]"), errors};
        const auto ipv4 = net::parse_prefix(mapping.text("ipv4")), ipv6 = net::parse_prefix(mapping.text("ipv6"));
        if (!ipv4 || !ipv6) {
            mapping.problem("", "does not map one prefix to another",
                            "send an IPv4 and an IPv6 prefix with all bits below their lengths zero");
            continue;
        }
        mappings.push_back({*ipv4, *ipv6});
    }
    auto mapping = net::AddressMapping::make(embedding, std::move(mappings));
    if (const Error* error = error_of(mapping)) {
        errors.push_back({error->what, where, error->fix});
        return std::nullopt;
    }
    return std::get<net::AddressMapping>(std::move(mapping));
}

/// One end of a stream: hosts, or customer edges in their place.
void read_end(ObjectReader& reader, const std::string& key, frame::HostSet& hosts, std::optional<frame::EdgesRequest>& edges,
              Errors& errors) {
    const Json& value = reader.required(key);
    if (is_edges(value)) {
        edges = read_edges(value, reader.path(key), errors);
    } else {
        hosts = read_hosts(value, reader.path(key), errors);
    }
}

/// Ports, which the frames of an echo trial have none of.
frame::ValueRange read_ports(ObjectReader& reader, const std::string& key, bool is_echo, Errors& errors) {
    if (is_echo) {
        if (reader.optional(key) != nullptr) {
            reader.problem(key, "is not null, but echo messages have no ports", "send null");
        }
        return {};
    }
    ObjectReader ports{reader.required(key), reader.path(key), errors};
    return read_range(ports);
}

/// Traffic classes, and a flow label or, if it is null, one of each flow.
frame::MarkingRequest read_marking(ObjectReader& reader) {
    frame::MarkingRequest marking;
    const Json& classes = reader.list("traffic_classes");
    const auto is_class = [](const Json& value) { return value.is_number_unsigned() && value.get<std::uint64_t>() <= 255; };
    if (classes.empty() || classes.size() > 256 || !std::ranges::all_of(classes, is_class)) {
        reader.problem("traffic_classes", "are not 1 to 256 octets", "send 0 to 255 each");
    } else {
        marking.traffic_classes = classes.get<std::vector<std::uint8_t>>();
    }
    marking.labels_flows = reader.required("flow_label").is_null();
    marking.flow_label = marking.labels_flows ? 0 : static_cast<std::uint32_t>(reader.integer("flow_label", 0, net::ipv6::flow_label_max));
    return marking;
}

std::vector<frame::ExtensionHeader> read_extension_headers(ObjectReader& reader) {
    using Header = frame::ExtensionHeader;
    static const std::map<std::string, Header> names{{"hop_by_hop", Header::hop_by_hop},
                                                     {"destination_options", Header::destination_options},
                                                     {"routing", Header::routing},
                                                     {"fragment", Header::fragment}};
    std::vector<Header> headers;
    const Json& list = reader.list("extension_headers");
    for (const Json& item : list) {
        const auto name = item.is_string() ? names.find(item.get<std::string>()) : names.end();
        if (name == names.end() || list.size() > 4) {
            reader.problem("extension_headers", "are not up to four that are known",
                           "send hop_by_hop, destination_options, routing or fragment");
            return {};
        }
        headers.push_back(name->second);
    }
    if (std::count(headers.begin() + (headers.empty() ? 0 : 1), headers.end(), Header::hop_by_hop) != 0) {
        reader.problem("extension_headers", "have hop-by-hop options behind another one", "send them first (RFC 8200 section 4.1)");
    }
    return headers;
}

/// `null`: the packets of that end are in no tunnel.
std::optional<frame::TunnelRequest> read_tunnel(ObjectReader& parent, const std::string& key, Errors& errors) {
    const Json* const value = parent.optional(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    ObjectReader reader{*value, parent.path(key), errors};
    frame::TunnelRequest tunnel;
    tunnel.gateway = read_address(reader, "gateway");
    if (const Json* const subscribers = reader.optional("subscribers")) {
        tunnel.subscribers = read_hosts(*subscribers, reader.path("subscribers"), errors);
    }
    tunnel.hop_limit = static_cast<std::uint8_t>(reader.integer("hop_limit", 1, 255));
    const auto octet = [&](const char* name) {
        return reader.optional(name) == nullptr ? std::nullopt : std::optional{static_cast<std::uint8_t>(reader.integer(name, 0, 255))};
    };
    tunnel.expected_hop_limit = octet("expected_hop_limit");
    tunnel.traffic_class = octet("traffic_class");
    if (reader.optional("ecn") != nullptr) {
        using Congestion = frame::OuterCongestion;
        tunnel.congestion = read_word<Congestion>(reader, "ecn",
                                                  {{"normal", Congestion::normal},
                                                   {"compatibility", Congestion::compatibility},
                                                   {"full_functionality", Congestion::full_functionality}});
    }
    return tunnel;
}

/// `null`: the hosts of that end are no customer edges.
std::optional<frame::PeersRequest> read_peers(ObjectReader& parent, const std::string& key, bool is_echo, Errors& errors) {
    const Json* const value = parent.optional(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (is_echo) {
        parent.problem(key, "is not null, but other customer edges get no echo requests", "send null");
    }
    ObjectReader reader{*value, parent.path(key), errors};
    frame::PeersRequest peers;
    ObjectReader rule{reader.required("rule"), reader.path("rule"), errors};
    peers.rule = read_rule(rule);
    peers.psid = static_cast<std::uint16_t>(reader.integer("psid", 0, 65535));
    return peers;
}

std::optional<frame::StreamRequest> read_stream(ObjectReader& parent, const std::string& key, bool is_echo, Errors& errors) {
    const Json* const value = parent.optional(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    ObjectReader reader{*value, parent.path(key), errors};
    frame::StreamRequest stream;
    stream.frame_octets = reader.integer("frame_octets", 64, frame::frame_octets_max + net::ipv6::header_bytes);
    stream.trailer_octets = reader.integer("trailer_octets", 0, 64);
    stream.hop_limit = static_cast<std::uint8_t>(reader.integer("hop_limit", 1, 255));
    stream.marking = read_marking(reader);
    stream.extension_headers = read_extension_headers(reader);
    stream.dont_fragment = reader.boolean("dont_fragment");
    stream.dont_fragment_rule = read_word<frame::DontFragmentRule>(reader, "dont_fragment_rule",
                                                                   {{"kept", frame::DontFragmentRule::kept},
                                                                    {"rfc7915", frame::DontFragmentRule::rfc7915},
                                                                    {"rfc6145", frame::DontFragmentRule::rfc6145}});
    stream.without_checksum = read_word<bool>(reader, "udp_checksum", {{"computed", false}, {"zero", true}});
    read_end(reader, "source", stream.source, stream.source_edges, errors);
    read_end(reader, "destination", stream.destination, stream.destination_edges, errors);
    stream.source_tunnel = read_tunnel(reader, "source_tunnel", errors);
    stream.destination_tunnel = read_tunnel(reader, "destination_tunnel", errors);
    stream.source_peers = read_peers(reader, "source_peers", is_echo, errors);
    stream.destination_peers = read_peers(reader, "destination_peers", is_echo, errors);
    stream.source_ports = read_ports(reader, "source_ports", is_echo, errors);
    stream.destination_ports = read_ports(reader, "destination_ports", is_echo, errors);
    const std::string expect = reader.text("expect");
    if (expect != "gateway" && expect != "as_sent") {
        reader.problem("expect", "is unknown", "send gateway or as_sent");
    }
    stream.as_sent = expect == "as_sent";
    stream.hop_limit_decrement = static_cast<std::uint8_t>(reader.integer("hop_limit_decrement", 0, 254));
    if (const Json* const rules = reader.optional("translation")) {
        ObjectReader translation{*rules, reader.path("translation"), errors};
        stream.mapping = read_mapping(translation, reader.path("translation"), errors);
        stream.zero_checksum_for_ones = translation.boolean("zero_udp_checksum");
    }
    return stream;
}

trial::DirectionRequest read_direction(const Json& value, const std::string& where, const std::optional<trial::EchoRequest>& echo,
                                       Errors& errors) {
    ObjectReader reader{value, where, errors};
    trial::DirectionRequest direction;
    const std::string name = reader.text("direction");
    if (name != "forward" && name != "reverse") {
        reader.problem("direction", "is unknown", "send forward or reverse");
    }
    direction.direction = name == "reverse" ? trial::Direction::reverse : trial::Direction::forward;
    const bool has_no_rate = echo && echo->pace_without_reply && reader.optional("frames_per_second") == nullptr;
    direction.frames_per_second = has_no_rate ? 0 : reader.integer("frames_per_second", 1, frames_per_second_max);
    if (const Json* const load_step = reader.optional("step")) {
        ObjectReader step{*load_step, reader.path("step"), errors};
        direction.step = trial::RateStep{.after = read_time(step, "after_ns", 1),
                                         .frames_per_second = step.integer("frames_per_second", 1, frames_per_second_max)};
    }
    if (const Json* const load_bursts = reader.optional("bursts")) {
        ObjectReader bursts{*load_bursts, reader.path("bursts"), errors};
        direction.bursts = pace::BurstyTraffic{.frames = bursts.integer("frames", 1, 1'000'000),
                                               .frames_per_second = bursts.integer("frames_per_second", 1, frames_per_second_max)};
    }
    if (const Json* const load_flows = reader.optional("flow_start")) {
        ObjectReader flows{*load_flows, reader.path("flow_start"), errors};
        const std::uint64_t count = flows.integer("flows", 1, 1 << 20), rounds = flows.integer("rounds_between", 1, 1 << 20);
        direction.flow_start = pace::FlowStart{count, rounds};
    }
    direction.foreground_m = static_cast<std::uint32_t>(reader.integer("foreground_m", 0, 65536));
    direction.foreground_n = static_cast<std::uint32_t>(reader.integer("foreground_n", 1, 65536));
    direction.foreground = read_stream(reader, "foreground", echo.has_value(), errors);
    direction.background = read_stream(reader, "background", echo.has_value(), errors);
    return direction;
}

std::vector<net::Prefix> read_pool(ObjectReader& reader) {
    std::vector<net::Prefix> pool;
    for (const Json& text : reader.list("pool")) {
        const auto prefix = text.is_string() ? net::parse_prefix(text.get<std::string>()) : std::nullopt;
        if (prefix) {
            pool.push_back(*prefix);
        } else {
            reader.problem("pool", "holds something that is not a prefix", "send prefixes such as 198.19.0.1/32");
        }
    }
    return pool;
}

/// The customer edge that the gateway is.
std::optional<trial::EdgeRequest> read_gateway_edge(ObjectReader& parent, Errors& errors) {
    const Json* const edge = parent.optional("edge");
    if (edge == nullptr) {
        return std::nullopt;
    }
    ObjectReader rule{*edge, parent.path("edge"), errors};
    return trial::EdgeRequest{.rule = read_rule(rule), .ea = rule.integer("ea", 0, (std::uint64_t{1} << net::MapDomain::ea_bits_max) - 1)};
}

std::optional<trial::EchoRequest> read_echo(ObjectReader& parent, Errors& errors) {
    const Json* const value = parent.optional("echo");
    if (value == nullptr) {
        return std::nullopt;
    }
    using Request = trial::EchoRequest;
    ObjectReader reader{*value, parent.path("echo"), errors};
    Request request;
    request.shape = {.clients = reader.integer("clients", 1, Request::clients_max),
                     .window = reader.integer("window", 1, Request::window_max),
                     .count = reader.integer("count", 1, Request::count_max),
                     .destinations = reader.integer("destinations", 1, Request::destinations_max)};
    if (reader.optional("pool") != nullptr) {
        request.pool = read_pool(reader);
    }
    request.edge = read_gateway_edge(reader, errors);
    if (const Json* const closed_loop = reader.optional("closed_loop")) {
        ObjectReader loop{*closed_loop, reader.path("closed_loop"), errors};
        request.pace_without_reply = read_time(loop, "pace_without_reply_ns", 1);
    }
    request.timeout = std::chrono::nanoseconds{static_cast<std::int64_t>(reader.integer("timeout_ns", 1, echo_timeout_max))};
    return request;
}

std::optional<trial::ConnectionsRequest> read_connections(ObjectReader& parent, Errors& errors) {
    const Json* const value = parent.optional("connections");
    if (value == nullptr) {
        return std::nullopt;
    }
    ObjectReader reader{*value, parent.path("connections"), errors};
    trial::ConnectionsRequest request;
    request.phase = read_word<state::Phase>(reader, "phase", {{"establish", state::Phase::establish}, {"use", state::Phase::use}});
    request.initiator = read_word<trial::Side>(reader, "initiator", {{"left", trial::Side::left}, {"right", trial::Side::right}});
    request.count = reader.integer("count", 1, enumerate::Permutation::count_limit);
    request.order = read_order(reader);
    request.send_order = read_choice(reader, "send_order");
    request.read_order = read_choice(reader, "read_order");
    request.pool = read_pool(reader);
    request.edge = read_gateway_edge(reader, errors);
    return request;
}

/// Whatever is left out is not recorded.
trial::DelaysRequest read_delays(ObjectReader& parent, Errors& errors) {
    trial::DelaysRequest request;
    const Json* const value = parent.optional("delays");
    if (value == nullptr) {
        return request;
    }
    ObjectReader reader{*value, parent.path("delays"), errors};
    if (reader.optional("timeout_ns") != nullptr) {
        request.timeout = read_time(reader, "timeout_ns", 1);
    }
    if (const Json* const tags = reader.optional("tags")) {
        ObjectReader tags_reader{*tags, reader.path("tags"), errors};
        request.tags = trial::TagsRequest{.first = read_time(tags_reader, "first_ns"), .count = tags_reader.integer("count", 1, tags_max)};
    }
    request.variation = reader.boolean("variation");
    request.histogram = reader.boolean("histogram");
    return request;
}

/// The body of a trial, without "request" and "id".
trial::TrialRequest read_trial_body(ObjectReader& reader, Errors& errors) {
    trial::TrialRequest request;
    request.trial_number = static_cast<std::uint32_t>(reader.integer("trial_number", 0, 0xffff'ffff));
    request.seed = reader.integer("seed", 0, unlimited);
    request.duration = read_time(reader, "duration_ns", 1);
    {
        ObjectReader waits{reader.required("waits"), reader.path("waits"), errors};
        request.waits = {.settle = read_time(waits, "settle_ns"),
                         .learn = read_time(waits, "learn_ns"),
                         .drain = read_time(waits, "drain_ns"),
                         .rest = read_time(waits, "rest_ns")};
    }
    request.give_up_lateness = read_time(reader, "give_up_lateness_ns", 1);
    request.progress = read_time(reader, "progress_ns", 1'000'000);
    request.kept_frames_max = reader.integer("kept_frames_max", 0, 1024);
    request.delays = read_delays(reader, errors);
    request.connections = read_connections(reader, errors);
    request.echo = read_echo(reader, errors);
    std::size_t i = 0;
    for (const Json& direction : reader.list("directions")) {
        request.directions.push_back(
            read_direction(direction, reader.path("directions[" + std::to_string(i++) + "]"), request.echo, errors));
    }
    return request;
}

/// Reads the keys that every request has.
void read_head(ObjectReader& reader) {
    (void)reader.text("request");
    (void)reader.required("id");
}

/// Bytes as two hexadecimal digits each; none if the text is anything else.
std::optional<std::vector<std::byte>> from_hexadecimal(const std::string& text) {
    std::vector<std::byte> bytes(text.size() / 2);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const char* const digits = text.data() + 2 * i;
        std::uint8_t value = 0;
        const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
        if (error != std::errc{} || end != digits + 2) {
            return std::nullopt;
        }
        bytes[i] = std::byte{value};
    }
    return text.size() % 2 == 0 ? std::optional{std::move(bytes)} : std::nullopt;
}

/// The packets of one side of an exchange.
std::vector<std::vector<std::byte>> read_packets(ObjectReader& reader, const std::string& key) {
    constexpr std::size_t bytes_min = 20, bytes_max = 9000;
    std::vector<std::vector<std::byte>> packets;
    const Json& list = reader.list(key);
    if (list.size() > trial::ExchangeRequest::packets_max) {
        reader.problem(key, "has " + std::to_string(list.size()) + " packets",
                       "send " + std::to_string(trial::ExchangeRequest::packets_max) + " at most");
        return packets;
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
        auto packet = list[i].is_string() ? from_hexadecimal(list[i].get<std::string>()) : std::nullopt;
        const unsigned version = packet && packet->size() >= bytes_min ? std::to_integer<unsigned>(packet->front()) >> 4 : 0;
        if (!packet || packet->size() > bytes_max || (version != 4 && version != 6)) {
            reader.problem(key + "[" + std::to_string(i) + "]", "is not an IP packet of 20 to 9000 octets in hexadecimal digits",
                           "send one");
            continue;
        }
        packets.push_back(std::move(*packet));
    }
    return packets;
}

}  // namespace

void read_bare_request(const Json& message, Errors& errors) {
    ObjectReader reader{message, "", errors};
    read_head(reader);
}

trial::OpenRequest read_open_request(const Json& message, Errors& errors) {
    ObjectReader reader{message, "", errors};
    read_head(reader);
    trial::OpenRequest request;
    request.left = read_side(reader.required("left"), "left", errors);
    request.right = read_side(reader.required("right"), "right", errors);
    request.seed = reader.integer("seed", 0, unlimited);
    request.cores = read_cores(reader);
    const std::string huge_pages = reader.text("huge_pages");
    if (huge_pages != "auto" && huge_pages != "never") {
        reader.problem("huge_pages", "is unknown", "send auto or never");
    }
    request.huge_pages_allowed = huge_pages == "auto";
    return request;
}

trial::LayoutRequest read_layout_request(const Json& message, Errors& errors) {
    ObjectReader reader{message, "", errors};
    read_head(reader);
    trial::LayoutRequest request;
    for (const trial::Side side : {trial::Side::left, trial::Side::right}) {
        const auto i = static_cast<std::size_t>(side);
        ObjectReader side_reader{reader.required(trial::name_of(side)), trial::name_of(side), errors};
        request.ports[i] = side_reader.text("port");
        request.queues[i] = read_queues(side_reader);
    }
    request.cores = read_cores(reader);
    return request;
}

trial::ResolveRequest read_resolve_request(const Json& message, Errors& errors) {
    ObjectReader reader{message, "", errors};
    read_head(reader);
    trial::ResolveRequest request;
    const std::string side = reader.text("side");
    if (side != "left" && side != "right") {
        reader.problem("side", "is unknown", "send left or right");
    }
    request.side = side == "right" ? trial::Side::right : trial::Side::left;
    request.gateway = read_address(reader, "gateway");
    request.source = read_address(reader, "source");
    request.timeout = read_time(reader, "timeout_ns");
    return request;
}

trial::TrialRequest read_trial_request(const Json& message, Errors& errors) {
    ObjectReader reader{message, "", errors};
    read_head(reader);
    return read_trial_body(reader, errors);
}

trial::ExchangeRequest read_exchange_request(const Json& message, Errors& errors) {
    ObjectReader reader{message, "", errors};
    read_head(reader);
    trial::ExchangeRequest request;
    for (const trial::Side side : {trial::Side::left, trial::Side::right}) {
        request.packets[static_cast<std::size_t>(side)] = read_packets(reader, trial::name_of(side));
    }
    request.interval = read_time(reader, "interval_ns");
    request.wait = read_time(reader, "wait_ns");
    return request;
}

trial::FramesRequest read_frames_request(const Json& message, Errors& errors) {
    ObjectReader reader{message, "", errors};
    read_head(reader);
    trial::FramesRequest request;
    request.count = reader.integer("count", 1, 100'000);
    request.left_mac = read_mac(reader, "left_mac");
    request.right_mac = read_mac(reader, "right_mac");
    request.left_vlan_id = read_vlan(reader, "left_vlan_id");
    request.right_vlan_id = read_vlan(reader, "right_vlan_id");
    request.random_host_macs = {read_host_macs(reader, "left_host_macs"), read_host_macs(reader, "right_host_macs")};
    ObjectReader body{reader.required("trial"), "trial", errors};
    request.trial = read_trial_body(body, errors);
    return request;
}

}  // namespace gatemark::control
