#include "control/server.hpp"

#include "control/pipes.hpp"
#include "control/protocol_examples.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gatemark::control {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

/// What a server without ports answers to these lines.
std::vector<Json> answers_to(const std::vector<std::string>& lines) {
    test::Pipe in, out;
    std::thread client{[&] {
        for (const std::string& line : lines) {
            in.write_ignoring_errors(line + "\n");
        }
        in.close_writing();
    }};
    std::vector<Json> answers;
    std::thread reader{[&] {
        LineChannel channel{out.reading(), -1};
        while (const auto line = channel.read(std::chrono::nanoseconds{-1})) {
            answers.push_back(Json::parse(*line, nullptr, false));
        }
    }};
    LineChannel channel{in.reading(), out.writing()};
    Server{channel, 1'000'000'000}.serve();
    in.close_reading();
    client.join();
    out.close_writing();
    reader.join();
    return answers;
}

TEST(Server, SaysWhoItIs) {
    const auto answers = answers_to({R"({"request":"hello","id":1})"});
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0]["answer"], "ok");
    EXPECT_EQ(answers[0]["id"], 1);
    EXPECT_EQ(answers[0]["protocol"], 22);
    EXPECT_EQ(answers[0]["tsc_hz"], 1'000'000'000);
    EXPECT_FALSE(answers[0]["cpus"].empty());
    EXPECT_TRUE(answers[0]["tsc_invariant"].is_boolean());
    EXPECT_GT(answers[0]["clock"]["resolution_ps"], 0);
    EXPECT_GT(answers[0]["clock"]["read_ps"], 0);
    for (const char* const key : {"version", "dpdk", "build"}) {
        EXPECT_TRUE(answers[0][key].is_string()) << key;
    }
}

TEST(Server, ShowsTheLayoutWithoutAPort) {
    const auto answers =
        answers_to({R"({"request":"layout","id":3,"left":{"port":"null","queues":3},"right":{"port":"ring","queues":null},"cores":[]})",
                    R"({"request":"layout","id":4,"left":{"port":"nul","queues":0},"right":{"port":"ring"},"cores":[-1]})",
                    R"({"request":"layout","id":5,"left":{"port":"nul","queues":null},"right":{"port":"ring"},"cores":[]})"});
    EXPECT_EQ(answers[0]["answer"], "ok") << answers[0];
    EXPECT_EQ(answers[0]["queues"]["left"], 3);
    EXPECT_EQ(answers[0]["queues"]["right"], answers[0]["workers"].size());
    EXPECT_FALSE(answers[0]["why"].empty());
    EXPECT_EQ(answers[1]["errors"].size(), 2U) << answers[1];
    EXPECT_EQ(answers[2]["errors"][0]["where"], "left.port") << answers[2];
}

TEST(Server, ShowsFramesWithoutAPort) {
    const auto answers = answers_to({example("frames_request").dump()});
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0]["answer"], "ok") << answers[0];
    EXPECT_EQ(answers[0]["frames"].size(), 4U);
    EXPECT_EQ(answers[0]["frames"][0]["sent"].get<std::string>().size(), 160U);
}

TEST(Server, ClosesOnRequest) {
    const auto answers = answers_to({R"({"request":"close","id":-7})", R"({"request":"hello","id":8})"});
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0], (Json{{"answer", "ok"}, {"id", -7}}));
}

TEST(Server, NeedsAnOpenPortForSomeRequests) {
    for (const char* const name : {"resolve_request", "trial_request", "link_request"}) {
        const auto answers = answers_to({example(name).dump()});
        ASSERT_EQ(answers.size(), 1U);
        EXPECT_EQ(answers[0]["answer"], "error");
        EXPECT_EQ(answers[0]["errors"].size(), 1U);
    }
}

TEST(Server, HostileLinesGetAnErrorAndTheNextRequestItsAnswer) {
    std::vector<std::string> lines{"x",
                                   "{",
                                   "[]",
                                   "null",
                                   "5",
                                   "\"hello\"",
                                   "{}",
                                   R"({"id":1})",
                                   R"({"request":"hello"})",
                                   R"({"request":"hello","id":"1"})",
                                   R"({"request":"hello","id":1.5})",
                                   R"({"request":5,"id":1})",
                                   R"({"request":null,"id":1})",
                                   R"({"request":"nothing","id":1})",
                                   R"({"request":"hello","id":1,"unknown":2})",
                                   R"({"request":"link","id":1,"left":null})",
                                   R"({"request":"close","id":1,"now":true})",
                                   R"({"request":"open","id":1})",
                                   R"({"request":"frames","id":1,"count":0,"trial":[]})",
                                   "\xff\xfe",
                                   std::string{"{\0}", 3},
                                   std::string(20000, '['),
                                   R"({"request":"open","id":1,"\u0000":"\ud83d\ude00"})",
                                   R"({"request":"\u0000","id":1})"};
    const std::size_t hostile = lines.size();
    lines.emplace_back("");                                // no line at all: no answer
    lines.emplace_back(R"({"request":"cancel","id":9})");  // too late: gets no answer
    lines.emplace_back(R"({"request":"hello","id":10})");
    const auto answers = answers_to(lines);
    ASSERT_EQ(answers.size(), hostile + 1);
    for (std::size_t i = 0; i < hostile; ++i) {
        EXPECT_EQ(answers[i]["answer"], "error") << i;
        EXPECT_FALSE(answers[i]["errors"].empty()) << i;
    }
    EXPECT_EQ(answers.back()["id"], 10);
    EXPECT_EQ(answers.back()["answer"], "ok");
}

TEST(Server, ReportsEveryProblemOfARequestAtOnce) {
    Json message = example("frames_request");
    message["count"] = 0;
    message["left_mac"] = "x";
    message["trial"]["seed"] = -1;
    const auto answers = answers_to({message.dump()});
    ASSERT_EQ(answers.size(), 1U);
    std::vector<std::string> places;
    for (const Json& error : answers[0]["errors"]) {
        places.push_back(error["where"]);
    }
    EXPECT_EQ(places, (std::vector<std::string>{"count", "left_mac", "trial.seed"}));
}

}  // namespace
}  // namespace gatemark::control
