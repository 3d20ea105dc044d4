#include "control/line_channel.hpp"

#include "control/pipes.hpp"

#include <gtest/gtest.h>

namespace gatemark::control {
namespace {

using namespace std::chrono_literals;

TEST(LineChannel, ReadsLinesAsTheyComeWhole) {
    test::Pipe in;
    LineChannel channel{in.reading(), -1};
    in.write("first\nsecond\nthi");
    EXPECT_EQ(channel.read(60s), "first");
    EXPECT_EQ(channel.read(60s), "second");
    EXPECT_EQ(channel.read(10ms), std::nullopt);
    EXPECT_FALSE(channel.ended());
    in.write("rd\n\n");
    EXPECT_EQ(channel.read(60s), "third");
    EXPECT_EQ(channel.read(60s), "");
}

TEST(LineChannel, WaitsNoLongerThanAsked) {
    test::Pipe in;
    LineChannel channel{in.reading(), -1};
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(channel.read(20ms), std::nullopt);
    EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 60s) << "it would wait for ever";
    in.write("there\n");
    EXPECT_EQ(channel.read(std::chrono::nanoseconds{-1}), "there");
    EXPECT_EQ(channel.read(0ns), std::nullopt);
}

TEST(LineChannel, EndsAfterTheLastWholeLine) {
    test::Pipe in;
    LineChannel channel{in.reading(), -1};
    in.write("last\nhalf");
    in.close_writing();
    EXPECT_EQ(channel.read(60s), "last");
    EXPECT_EQ(channel.read(std::chrono::nanoseconds{-1}), std::nullopt) << "half a line is none";
    EXPECT_TRUE(channel.ended());
    EXPECT_EQ(channel.read(60s), std::nullopt);
}

TEST(LineChannel, LinesThatCameBeforeTheEndAreStillRead) {
    test::Pipe in;
    LineChannel channel{in.reading(), -1};
    in.write("one\ntwo\n");
    in.close_writing();
    EXPECT_EQ(channel.read(60s), "one");
    EXPECT_FALSE(channel.ended());
    EXPECT_EQ(channel.read(60s), "two");
    EXPECT_EQ(channel.read(60s), std::nullopt);
    EXPECT_TRUE(channel.ended());
}

TEST(LineChannel, LinesThatWerePutBackAreReadFirst) {
    test::Pipe in;
    LineChannel channel{in.reading(), -1};
    in.write("early\nearlier\nlast\n");
    std::list<std::string> early;
    early.push_back(*channel.read(60s));
    early.push_back(*channel.read(60s));
    channel.put_back(std::move(early));
    in.close_writing();
    for (const char* const line : {"early", "earlier", "last"}) {
        EXPECT_FALSE(channel.ended());
        EXPECT_EQ(channel.read(60s), line);
    }
    EXPECT_EQ(channel.read(60s), std::nullopt);
    EXPECT_TRUE(channel.ended());
}

TEST(LineChannel, EndsAtOnceWhenItMust) {
    test::Pipe in, end;
    LineChannel channel{in.reading(), -1, end.reading()};
    in.write("first\nsecond\n");
    EXPECT_EQ(channel.read(60s), "first");
    EXPECT_EQ(channel.read(60s), "second");
    std::thread ending{[&] {
        std::this_thread::sleep_for(20ms);  // mostly, it waits by then
        end.write("!");
    }};
    EXPECT_EQ(channel.read(std::chrono::nanoseconds{-1}), std::nullopt);
    EXPECT_TRUE(channel.ended());
    ending.join();
}

TEST(LineChannel, TakesLongLinesAndWritesThem) {
    test::Pipe in, out;
    LineChannel channel{in.reading(), out.writing()};
    const std::string line(3'000'000, 'x');
    std::thread writer{[&] { in.write(line + "\nnext\n"); }};
    EXPECT_EQ(channel.read(60s), line);
    EXPECT_EQ(channel.read(60s), "next");
    writer.join();
    LineChannel other{out.reading(), -1};
    std::thread answering{[&] { channel.write(line); }};
    EXPECT_EQ(other.read(60s), line);
    answering.join();
}

TEST(LineChannel, ALineWithoutEndIsNotKeptForEver) {
    test::Pipe in;
    LineChannel channel{in.reading(), -1};
    std::thread writer{[&] { in.write_ignoring_errors(std::string(std::size_t{20} << 20, 'x')); }};
    EXPECT_EQ(channel.read(60s), std::nullopt);
    EXPECT_TRUE(channel.ended());
    in.close_reading();
    writer.join();
}

TEST(LineChannel, EndsWhenTheReaderIsGone) {
    test::Pipe in, out;
    LineChannel channel{in.reading(), out.writing()};
    out.close_reading();
    channel.write("into the void");
    EXPECT_TRUE(channel.ended());
}

}  // namespace
}  // namespace gatemark::control
