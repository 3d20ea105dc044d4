#include "control/protocol_examples.hpp"
#include "control/read_requests.hpp"
#include "control/write_answers.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace gatemark::control {
namespace {

using Json = nlohmann::json;

/// Only integers, strings, booleans, lists and objects: both languages re-emit them exactly.
void expect_plain(const Json& value) {
    EXPECT_FALSE(value.is_number_float()) << value;
    if (value.is_structured()) {
        for (const auto& part : value) {
            expect_plain(part);
        }
    }
}

std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{GATEMARK_PROTOCOL_EXAMPLES}) {
        if (entry.path().extension() == ".json") {
            names.push_back(entry.path().stem());
        }
    }
    return names;
}

TEST(ProtocolExamples, EachIsOneMessageThatIsWrittenAsItWasRead) {
    EXPECT_GE(names().size(), 10U);
    for (const std::string& name : names()) {
        const Json message = example(name);
        ASSERT_TRUE(message.is_object()) << name;
        expect_plain(message);
        EXPECT_TRUE(message.contains("request") != message.contains("answer")) << name;
        EXPECT_EQ(Json::parse(message.dump()), message) << name;
        EXPECT_EQ(message.dump().find('\n'), std::string::npos) << name;
    }
}

TEST(ProtocolExamples, EveryRequestIsReadWithoutAProblem) {
    unsigned read = 0;
    for (const std::string& name : names()) {
        const Json message = example(name);
        const std::string kind = message.value("request", "");
        Errors errors;
        if (kind == "hello" || kind == "link" || kind == "connections" || kind == "close") {
            read_bare_request(message, errors);
        }
        if (kind == "open") {
            (void)read_open_request(message, errors);
        }
        if (kind == "layout") {
            (void)read_layout_request(message, errors);
        }
        if (kind == "resolve") {
            (void)read_resolve_request(message, errors);
        }
        if (kind == "trial") {
            (void)read_trial_request(message, errors);
        }
        if (kind == "exchange") {
            (void)read_exchange_request(message, errors);
        }
        if (kind == "frames") {
            (void)read_frames_request(message, errors);
        }
        read += kind.empty() ? 0U : 1U;
        for (const Error& error : errors) {
            ADD_FAILURE() << name << ": " << error.where << ": " << error.what;
        }
    }
    EXPECT_GE(read, 7U);
}

TEST(ProtocolExamples, TheFramesAnswerIsWhatTheFramesRequestGives) {
    Errors errors;
    const auto frames = trial::preview_frames(read_frames_request(example("frames_request"), errors));
    ASSERT_TRUE(std::holds_alternative<std::vector<trial::PreviewedFrame>>(frames)) << to_json(std::get<Errors>(frames)).dump(2);
    const Json written = to_json(std::get<std::vector<trial::PreviewedFrame>>(frames)), answer = example("frames_answer");
    ASSERT_FALSE(written.empty());
    ASSERT_FALSE(answer["frames"].empty());
    const auto keys_of = [](const Json& object) {
        std::vector<std::string> keys;
        for (const auto& [key, unused] : object.items()) {
            keys.push_back(key);
        }
        return keys;
    };
    EXPECT_EQ(keys_of(written[0]), keys_of(answer["frames"][0]));
}

TEST(ProtocolExamples, TheExchangeAnswerHasTheKeysThatTheEngineWrites) {
    trial::ExchangeReport report{.sent = {1, 0}, .arrived = {}, .not_kept = 0, .cancelled = false};
    const Json answer = example("exchange_answer");
    const std::string octets = answer["arrived"][0]["octets"];
    report.arrived.push_back({.side = trial::Side::right, .at = std::chrono::nanoseconds{31'250}, .bytes = {}});
    for (std::size_t i = 0; i < octets.size(); i += 2) {
        report.arrived[0].bytes.push_back(static_cast<std::byte>(std::stoi(octets.substr(i, 2), nullptr, 16)));
    }
    Json written = to_json(report);
    written["answer"] = "ok";
    written["id"] = 9;
    EXPECT_EQ(written, answer);
}

TEST(ProtocolExamples, AnswersHaveTheKeysThatTheEngineWrites) {
    // Every key that the engine writes is in the example, and the other way round; numbers may
    // differ.
    trial::TrialReport report;
    report.with_histograms = true;
    report.directions.resize(1);
    report.directions[0].lateness.add(pace::Ticks{5});
    for (trial::ClassReport* const part : {&report.directions[0].foreground, &report.directions[0].background}) {
        part->frame_octets = 84;
        part->loss.first_runs.push_back({1, 1});
        part->delays.all.add(pace::Ticks{5});
        part->delays.variation.emplace().add(3);
        part->tags = record::TagFacts{.count = 1, .received = 1, .median = pace::Ticks{5}, .p999 = pace::Ticks{5}};
    }
    record::LossTable& table = report.directions[0].foreground.loss_table.emplace();
    record::LossTable::Field& field = table.fields.emplace_back();
    field.heaviest.push_back({.name = "161", .count = {}});
    field.ranges.push_back({.first = "161", .last = "161"});
    field.bits.emplace_back();
    table.ages.emplace();
    report.directions[0].longest_loss_runs.push_back({1, 1});
    report.directions[0].late_bursts.push_back({1, 1, {}});
    report.phases.push_back({"settle", {}});
    report.kept_frames.push_back({});
    Json written = to_json(report, pace::TickScale{1'000'000'000});
    written["answer"] = "ok";
    written["id"] = 4;
    const std::function<void(const Json&, const Json&, const std::string&)> compare = [&](const Json& ours, const Json& theirs,
                                                                                          const std::string& where) {
        EXPECT_EQ(std::string{ours.type_name()}, std::string{theirs.type_name()}) << where;
        if (ours.is_array() && !ours.empty() && theirs.is_array() && !theirs.empty()) {
            compare(ours[0], theirs[0], where + "[0]");
        }
        const bool names_differ = where.ends_with("faults") || where.ends_with("icmp");
        if (!ours.is_object() || !theirs.is_object() || names_differ) {
            return;
        }
        for (const auto& [key, value] : ours.items()) {
            if (theirs.contains(key)) {
                compare(value, theirs[key], where + "." + key);
            } else {
                ADD_FAILURE() << where << "." << key << " is not in the example";
            }
        }
        for (const auto& [key, unused] : theirs.items()) {
            EXPECT_TRUE(ours.contains(key)) << where << "." << key << " is not written";
        }
    };
    compare(written, example("trial_answer"), "trial_answer");
    report.echo.emplace().steady.emplace();
    report.echo->clients.resize(1);
    for (record::RoundTrips* const times : {&report.echo->all, &report.echo->first, &report.echo->clients[0].round_trips}) {
        times->add(pace::Ticks{5});
    }
    compare(to_json(report, pace::TickScale{1'000'000'000})["echo"], example("trial_echo_answer")["echo"], "trial_echo_answer.echo");
    trial::Progress progress{.phase = "send", .elapsed = {}, .directions = {{}}};
    Json written_progress = to_json(progress);
    written_progress["answer"] = "progress";
    written_progress["id"] = 4;
    compare(written_progress, example("trial_progress"), "trial_progress");
    Json written_error = {{"answer", "error"}, {"id", 1}, {"errors", to_json(Errors{{"what", "where", "fix"}})}};
    compare(written_error, example("error_answer"), "error_answer");
    Json written_layout = to_json(trial::Layout{.queues = {1, 1}, .workers = {{0, {{}}}}, .why = {"why"}});
    written_layout["answer"] = "ok";
    written_layout["id"] = 3;
    compare(written_layout, example("layout_answer"), "layout_answer");
    compare(to_json(io::PortFacts{}), example("link_answer")["left"], "link_answer.left");
}

}  // namespace
}  // namespace gatemark::control
