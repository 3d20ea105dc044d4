#include "control/read_requests.hpp"
#include "control/write_answers.hpp"
#include "fuzz/holds.hpp"
#include "fuzz/reached.hpp"
#include "fuzz/script.hpp"
#include "trial/frame_preview.hpp"
#include "trial/layout.hpp"
#include "trial/machines.hpp"
#include "trial/trial_plan.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

/// Lines that are no requests, and requests damaged in any way: each is refused with reasons that
/// can be sent, or read; and what was read makes a plan or is refused, in an instant.
namespace gatemark::fuzz {
namespace {

using Json = nlohmann::json;

constexpr std::size_t changes_max = 6, depth_max = 12;
constexpr std::uint64_t previewed_max = 6;

constexpr std::array<std::string_view, 8> kind_names{"bare", "open", "layout", "resolve", "trial", "exchange", "frames", "no_json"};
constexpr std::array<std::string_view, 4> outcome_names{"refused", "read", "planned", "not_planned"};
Reached reached_outcomes{"request", outcome_names, kind_names.size()};
Reached reached_kinds{"kind", kind_names};

/// The requests of protocol/examples.
const std::vector<Json>& examples() {
    static const std::vector<Json> list = [] {
        std::vector<std::filesystem::path> paths;
        for (const auto& entry : std::filesystem::directory_iterator{GATEMARK_PROTOCOL_EXAMPLES}) {
            if (entry.path().stem().string().ends_with("_request")) {
                paths.push_back(entry.path());
            }
        }
        std::ranges::sort(paths);  // an input means the same everywhere
        std::vector<Json> requests;
        for (const auto& path : paths) {
            std::ifstream file{path};
            requests.push_back(Json::parse(file, nullptr, false));
            holds(requests.back().is_object(), "an example is an object");
        }
        return requests;
    }();
    return list;
}

std::string some_text(Script& script) {
    static constexpr std::array<const char*, 36> words{"",
                                                       "::",
                                                       "::/0",
                                                       "0.0.0.0/0",
                                                       "255.255.255.255/32",
                                                       "2001:db8::/32",
                                                       "2001:db8::/127",
                                                       "64:ff9b::/96",
                                                       "64:ff9b::/40",
                                                       "198.18.0.2",
                                                       "2001:2::2",
                                                       "fixed",
                                                       "increasing",
                                                       "decreasing",
                                                       "pseudorandom",
                                                       "random",
                                                       "cycle",
                                                       "establish",
                                                       "use",
                                                       "left",
                                                       "right",
                                                       "forward",
                                                       "reverse",
                                                       "gateway",
                                                       "as_sent",
                                                       "computed",
                                                       "none",
                                                       "kept",
                                                       "rfc7915",
                                                       "rfc6145",
                                                       "auto",
                                                       "never",
                                                       "ff:ff:ff:ff:ff:ff",
                                                       "45",
                                                       "vdev:net_ring0",
                                                       "0123456789abcdef0123456789abcdef0123456789abcdef"};
    const std::size_t word = script.below(words.size() + 4);
    if (word < words.size()) {
        return words[word];
    }
    const auto bytes = script.take(script.below(48));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Json some_value(Script& script) {
    static constexpr std::array<std::uint64_t, 12> edges{0,
                                                         1,
                                                         2,
                                                         255,
                                                         65535,
                                                         65536,
                                                         0xffff'ffff,
                                                         std::uint64_t{1} << 32,
                                                         std::uint64_t{1} << 40,
                                                         std::uint64_t{1} << 63,
                                                         ~std::uint64_t{0},
                                                         1280};
    switch (script.byte() % 10) {
        case 0: return nullptr;
        case 1: return script.one_in(2);
        case 2: return -static_cast<std::int64_t>(script.word());
        case 3: return 1.5;
        case 4: return Json::array();
        case 5: return Json::object();
        case 6: return edges[script.below(edges.size())];
        case 7: return std::uint64_t{script.word()};
        default: return some_text(script);
    }
}

/// Some part of a message, or all of it.
Json& some_part(Script& script, Json& message) {
    Json* part = &message;
    for (std::size_t depth = 0; depth < depth_max && part->is_structured() && !part->empty() && script.byte() % 8 != 0; ++depth) {
        auto child = part->begin();
        std::advance(child, static_cast<std::ptrdiff_t>(script.below(part->size())));
        part = &*child;
    }
    return *part;
}

void remove_child(Script& script, Json& part) {
    if (part.is_structured() && !part.empty()) {
        auto child = part.begin();
        std::advance(child, static_cast<std::ptrdiff_t>(script.below(part.size())));
        part.erase(child);
    }
}

void change(Script& script, Json& message) {
    Json& part = some_part(script, message);
    switch (script.byte() % 8) {
        case 0: remove_child(script, part); break;
        case 1: {
            Json copy = some_part(script, message);
            part = std::move(copy);
            break;
        }
        case 2:
            if (part.is_array()) {
                part.push_back(part.empty() || script.one_in(2) ? some_value(script) : part.front());
            } else if (part.is_object()) {
                const std::string key = some_text(script);
                part[key] = some_value(script);
            }
            break;
        case 3:
        case 4:
            if (part.is_number_unsigned()) {
                static constexpr std::array<std::uint64_t, 4> steps{1, ~std::uint64_t{0}, 2, 1000};
                part = part.get<std::uint64_t>() + steps[script.below(steps.size())];
            }
            break;
        default: part = some_value(script); break;
    }
}

/// Refused with reasons that the other half can read, or not.
bool is_refused(const Errors& errors) {
    for (const Error& error : errors) {
        holds(!error.what.empty() && !error.fix.empty(), "a refusal says what is wrong, and how to put it right");
    }
    holds(Json::parse(control::to_json(errors).dump(), nullptr, false).size() == errors.size(), "every reason can be sent");
    return !errors.empty();
}

template <class Value>
bool is_planned(const std::variant<Value, Errors>& planned) {
    const auto* const errors = std::get_if<Errors>(&planned);
    holds(errors == nullptr || is_refused(*errors), "what is not planned has a reason");
    return errors == nullptr;
}

void expect_sound(const trial::TrialPlan& plan) {
    holds(!plan.directions.empty() && plan.directions.size() <= 2, "a trial has one direction or two");
    for (const trial::DirectionPlan& direction : plan.directions) {
        holds(direction.frame_count != 0 && direction.frame_count <= trial::frame_count_limit, "a trial has frames, and no more than fit");
        holds(!direction.tags || (direction.tags->first < direction.frame_count && direction.tags->frames == direction.frame_count),
              "tags are within the trial");
    }
}

bool plans(const trial::TrialRequest& request) {
    const trial::LinkPlan links{{{{.source = *net::parse_mac("02:00:00:00:00:01"), .destination = *net::parse_mac("02:00:00:00:00:02")},
                                  {.source = *net::parse_mac("02:00:00:00:00:03"), .destination = *net::parse_mac("02:00:00:00:00:04")}}}};
    const auto plan = trial::make_trial_plan(request, links);
    if (const auto* const sound = std::get_if<trial::TrialPlan>(&plan)) {
        expect_sound(*sound);
    }
    return is_planned(plan);
}

bool previews(trial::FramesRequest& request) {
    request.count = std::min(request.count, previewed_max);  // 100,000 large ones take long, as they should
    const auto frames = trial::preview_frames(request);
    if (const auto* const list = std::get_if<std::vector<trial::PreviewedFrame>>(&frames)) {
        for (const trial::PreviewedFrame& frame : *list) {
            holds(!frame.sent.empty() && !frame.expected.empty(), "a frame has octets");
        }
    }
    return is_planned(frames);
}

bool lays_out(const trial::LayoutRequest& request) {
    static const trial::Machine machine = test::machine_of(8, 2, 2);
    static const std::array<io::PortOffer, 2> offers{};
    return is_planned(trial::decide_layout(request, offers, machine));
}

enum class Kind : std::uint8_t { bare, open, layout, resolve, trial, exchange, frames, no_json };

/// Notes whether a request was read and, for kinds of which something is planned, whether it was.
template <class Plan>
void note(Kind kind, const Errors& errors, Plan&& plan) {
    const auto group = static_cast<std::size_t>(kind);
    reached_kinds.note(kind);
    if (is_refused(errors)) {
        reached_outcomes.note(0, group);
    } else if constexpr (std::is_same_v<std::invoke_result_t<Plan>, bool>) {
        reached_outcomes.note(plan() ? 2 : 3, group);
    } else {
        reached_outcomes.note(1, group);
    }
}
constexpr auto nothing = [] {};

void read(const std::string& kind, const Json& message) {
    Errors errors;
    if (kind == "open") {
        (void)control::read_open_request(message, errors);
        note(Kind::open, errors, nothing);
    } else if (kind == "layout") {
        const trial::LayoutRequest request = control::read_layout_request(message, errors);
        note(Kind::layout, errors, [&] { return lays_out(request); });
    } else if (kind == "resolve") {
        (void)control::read_resolve_request(message, errors);
        note(Kind::resolve, errors, nothing);
    } else if (kind == "trial") {
        const trial::TrialRequest request = control::read_trial_request(message, errors);
        note(Kind::trial, errors, [&] { return plans(request); });
    } else if (kind == "exchange") {
        (void)control::read_exchange_request(message, errors);
        note(Kind::exchange, errors, nothing);
    } else if (kind == "frames") {
        trial::FramesRequest request = control::read_frames_request(message, errors);
        note(Kind::frames, errors, [&] { return previews(request); });
    } else {
        control::read_bare_request(message, errors);
        note(Kind::bare, errors, nothing);
    }
}

}  // namespace

void run(Script& script) {
    const std::size_t number = script.below(examples().size() + 1);
    if (number == examples().size()) {  // the input itself, as a line
        const auto bytes = script.take(~std::size_t{0});
        const Json message = Json::parse(std::string{reinterpret_cast<const char*>(bytes.data()), bytes.size()}, nullptr, false);
        if (message.is_discarded()) {
            reached_kinds.note(Kind::no_json);
            return;
        }
        for (const char* const kind : {"hello", "open", "layout", "resolve", "trial", "exchange", "frames"}) {
            read(kind, message);
        }
        return;
    }
    Json message = examples()[number];
    const std::string kind = message["request"].get<std::string>();
    for (std::size_t count = script.below(changes_max + 1); count > 0; --count) {
        change(script, message);
    }
    const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace);
    read(kind, Json::parse(line, nullptr, false));
}

}  // namespace gatemark::fuzz
