#include "loop/echo_hand_over.hpp"
#include "loop/neighbor_mailbox.hpp"
#include "record/arrival_bitmap.hpp"
#include "state/state_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

/// What threads share without a lock, used by as many as may use it, at once. The thread sanitizer
/// watches; the results must be exact as well.
namespace gatemark {
namespace {

/// Runs work(0), work(1), ... work(count - 1) at the same time.
template <class Work>
void at_once(std::size_t count, Work&& work) {
    std::vector<std::jthread> threads;
    for (std::size_t number = 0; number < count; ++number) {
        threads.emplace_back([&work, number] { work(number); });
    }
}

TEST(SharedRecords, AFrameIsNewToOneReceiverOnly) {
    // Long enough for receivers to look at blocks behind them.
    constexpr std::uint64_t frames = (record::ArrivalBitmap::look_behind + 3) * record::ArrivalBitmap::block_frames;
    constexpr std::size_t receivers = 3;
    record::ArrivalBitmap bitmap;
    for (int trial = 0; trial < 3; ++trial) {
        bitmap.reset(frames);
        std::array<std::uint64_t, receivers> marked{};
        at_once(receivers, [&](std::size_t receiver) {
            for (std::uint64_t i = receiver; i < frames; i += 2) {  // frames of two receivers, and duplicates of a third
                marked[receiver] += bitmap.mark(i) ? 1 : 0;
            }
        });
        EXPECT_EQ(marked[0] + marked[1] + marked[2], frames);
        for (std::uint64_t block = 0; block < frames / record::ArrivalBitmap::block_frames; ++block) {
            const auto words = bitmap.words_of(block);
            EXPECT_TRUE(std::ranges::all_of(words, [](std::uint64_t word) { return word == record::ArrivalBitmap::full_word; }));
        }
    }
}

TEST(SharedRecords, AnEntryOfTheStateTableIsOneOfThoseWritten) {
    constexpr std::uint64_t connections = 512;
    constexpr int rounds = 40;
    state::StateTable table;
    ASSERT_EQ(table.reset(connections), std::nullopt);
    const auto endpoint = [](std::uint64_t connection, std::size_t receiver) {
        return state::Endpoint{.address = connection << 20 | receiver, .port = static_cast<std::uint16_t>(connection ^ (receiver << 12))};
    };
    std::array<std::uint64_t, 2> wrong{};
    at_once(4, [&](std::size_t number) {
        for (int round = 0; round < rounds; ++round) {
            for (std::uint64_t k = 0; k < connections; ++k) {
                if (number < 2) {
                    table.write(k, endpoint(k, number));        // two receivers learn
                } else if (const auto known = table.read(k)) {  // two senders answer
                    wrong[number - 2] += known == endpoint(k, 0) || known == endpoint(k, 1) ? 0 : 1;
                }
            }
        }
    });
    EXPECT_EQ(wrong[0] + wrong[1], 0U);
    for (std::uint64_t k = 0; k < connections; ++k) {
        EXPECT_TRUE(table.read(k));
    }
}

TEST(SharedRecords, LettersArriveWholeAndInOrder) {
    constexpr std::uint64_t letters = 20'000;
    loop::NeighborMailbox mailbox;
    std::uint64_t taken = 0, wrong = 0;
    std::atomic<bool> done{false};
    at_once(2, [&](std::size_t number) {
        if (number == 0) {
            std::array<std::byte, loop::NeighborMailbox::bytes_max> frame{};
            for (std::uint64_t i = 1; i <= letters; ++i) {
                const std::size_t bytes = 60 + i % 60;
                std::fill_n(frame.begin(), bytes, static_cast<std::byte>(i));
                std::memcpy(frame.data(), &i, sizeof i);
                const std::uint64_t dropped = mailbox.overflow();
                mailbox.put(std::span{frame}.first(bytes));
                if (mailbox.overflow() != dropped) {
                    std::this_thread::yield();  // or most letters would be dropped
                }
            }
            done = true;
            return;
        }
        std::uint64_t before = 0;
        while (true) {
            const bool last = done;
            const bool any = mailbox.take([&](const loop::NeighborMailbox::Letter& letter) {
                std::uint64_t i = 0;
                std::memcpy(&i, letter.data.data(), sizeof i);
                const auto rest = letter.frame().subspan(sizeof i);
                const bool whole = letter.bytes == 60 + i % 60 &&
                                   std::ranges::all_of(rest, [&](std::byte byte) { return byte == static_cast<std::byte>(i); });
                wrong += whole && i > before ? 0 : 1;
                before = i;
                ++taken;
                return true;
            });
            if (!any && last) {
                return;
            }
        }
    });
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(taken + mailbox.overflow(), letters);
}

TEST(SharedRecords, RequestsWaitForTheirAnswersWholeAndInOrder) {
    constexpr std::uint64_t requests = 20 * loop::AnswerQueue::capacity;
    loop::AnswerQueue queue;
    std::uint64_t taken = 0, wrong = 0;
    at_once(2, [&](std::size_t number) {
        if (number == 0) {  // the receiver
            for (std::uint64_t i = 0; i < requests;) {
                for (std::size_t room = std::min<std::size_t>(queue.room(), 32); room != 0 && i < requests; --room, ++i) {
                    queue.put({.index = i, .sent = {~i}, .source = {.address = i << 8, .identifier = static_cast<std::uint16_t>(i)}});
                }
            }
            return;
        }
        while (taken < requests) {  // the sender, which drops what its port took
            const std::size_t count = std::min<std::size_t>(queue.size(), 32);
            for (std::size_t i = 0; i < count; ++i) {
                const frame::EchoAnswer& answer = queue.at(i);
                const std::uint64_t index = taken + i;
                wrong += answer.index == index && answer.sent.value == ~index && answer.source.address == index << 8 &&
                                 answer.source.identifier == static_cast<std::uint16_t>(index)
                             ? 0
                             : 1;
            }
            queue.drop(count);
            taken += count;
        }
    });
    EXPECT_EQ(taken, requests);
    EXPECT_EQ(wrong, 0U);
}

/// Two receivers post replies of the same slots; the sender must see the last one of each, and
/// never one that is older than before.
TEST(SharedRecords, NoReplyOfASlotIsForgotten) {
    constexpr std::uint64_t slots = 5000, numbers = 60;
    loop::ReplyBoard board{slots};
    std::vector<std::uint64_t> seen(slots);
    std::uint64_t older = 0, complete = 0;
    at_once(3, [&](std::size_t number) {
        if (number < 2) {
            for (std::uint64_t reply = number; reply < numbers; reply += 2) {
                for (std::uint64_t slot = 0; slot < slots; ++slot) {
                    board.post(slot, reply);
                }
            }
            return;
        }
        while (complete < slots) {
            board.collect([&](std::size_t slot, std::uint64_t replied) {
                older += replied < seen[slot] ? 1 : 0;
                complete += replied == numbers && seen[slot] != numbers ? 1 : 0;
                seen[slot] = replied;
            });
        }
    });
    EXPECT_EQ(older, 0U);
    EXPECT_EQ(complete, slots);
}

TEST(SharedRecords, TheSteadyPartIsFromTheLastBeginningToTheFirstEnd) {
    constexpr std::uint64_t clients = 300;
    for (int trial = 0; trial < 50; ++trial) {
        loop::SteadyPart steady{clients};
        at_once(3, [&](std::size_t sender) {
            for (std::uint64_t client = sender; client < clients; client += 3) {
                steady.client_begins({100});
                steady.client_ends({1000 + client});
            }
        });
        EXPECT_TRUE(steady.exists());
        EXPECT_EQ(steady.begin().value, 100U);
        EXPECT_EQ(steady.end().value, 1000U);
    }
}

}  // namespace
}  // namespace gatemark
