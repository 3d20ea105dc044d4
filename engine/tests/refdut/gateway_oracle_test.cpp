#include "refdut/gateway.hpp"
#include "refdut/memory_forwarding_port.hpp"
#include "refdut/packets.hpp"
#include "refdut/ticks.hpp"

#include <gtest/gtest.h>

#include <random>

/// Random combinations of everything that a direction can do to frames, compared with a slow
/// account of the same rules: which frames leave, in which order, and what is counted.
namespace gatemark::refdut {
namespace {

using gatemark::test::read_packet, gatemark::test::SlowPacket, gatemark::test::write_packet;

using Kind = SelectorSpec::Kind;

constexpr std::uint64_t step = 1000, service_ticks = 10'000;
const net::MacAddress own_mac = *net::parse_mac("02:00:00:00:00:01"), peer_mac = *net::parse_mac("02:00:00:00:01:01");

struct Arrival {
    std::uint64_t time;
    std::uint16_t number;
};

/// What left, in order; 10000 is added to the number of a copy.
struct Account {
    std::vector<unsigned> out;
    std::uint64_t forwarded = 0, lost = 0, queue_full = 0, duplicated = 0, corrupted = 0, reordered = 0, reorder_short = 0;
};

/// Whether the i-th frame (from 0) that a selector was asked about is taken.
bool takes(const SelectorSpec& spec, std::uint64_t seed, std::uint64_t purpose, std::uint64_t i, std::uint64_t elapsed) {
    switch (spec.kind) {
        case Kind::every: return i % spec.count == spec.count - 1;
        case Kind::first: return i < spec.count;
        case Kind::window: return spec.from_ns <= elapsed && elapsed < spec.to_ns;
        case Kind::probability: return static_cast<double>(RandomSequence{seed, purpose}.at(i)) / 18446744073709551616.0 < spec.probability;
    }
    return false;
}

struct Plan {
    unsigned number = 0, by = 0;
    std::uint64_t due = 0;
    bool copy = false;
};

/// Lets the frames leave in order, each one held back until `by` others have overtaken it.
void send_in_order(const std::vector<Plan>& plans, Account& account) {
    std::vector<Plan> waiting;
    for (const Plan& plan : plans) {
        if (plan.by > 0) {
            waiting.push_back(plan);
            continue;
        }
        account.out.push_back(plan.number + (plan.copy ? 10'000 : 0));
        ++(plan.copy ? account.duplicated : account.forwarded);
        if (plan.copy) {
            continue;
        }
        std::erase_if(waiting, [&](Plan& held) {
            if (--held.by > 0) {
                return false;
            }
            account.out.push_back(held.number);
            ++account.reordered;
            ++account.forwarded;
            return true;
        });
    }
    for (const Plan& held : waiting) {
        account.out.push_back(held.number);
        ++account.reorder_short;
        ++account.forwarded;
    }
}

Account account_of(const Settings& settings, const std::vector<Arrival>& arrivals) {
    const DirectionSettings& direction = settings.directions[0];
    const ImpairmentSpec& spec = direction.impairments;
    Account account;
    std::vector<std::uint64_t> ends;
    std::array<std::uint64_t, 4> asked{};  // loss, corrupt, duplicate, reorder
    std::vector<Plan> plans;
    std::uint64_t delayed = 0;
    for (const Arrival& arrival : arrivals) {
        std::uint64_t due = arrival.time;
        if (direction.shaper.frames_per_second != 0) {
            const auto inside = static_cast<std::uint64_t>(std::ranges::count_if(ends, [&](auto end) { return end > arrival.time; }));
            if (inside > direction.shaper.queue_frames) {
                ++account.queue_full;
                continue;
            }
            due = std::max(arrival.time, ends.empty() ? 0 : ends.back()) + service_ticks;
            ends.push_back(due);
        }
        const std::uint64_t elapsed = arrival.time - arrivals[0].time;
        const auto any = [&](const std::vector<SelectorSpec>& specs, std::uint64_t purpose, std::uint64_t i) {
            bool taken = false;
            for (std::size_t k = 0; k < specs.size(); ++k) {
                taken = taken || takes(specs[k], settings.seed, purpose + k, i, elapsed);
            }
            return taken;
        };
        if (any(spec.loss, 0, asked[0]++)) {
            ++account.lost;
            continue;
        }
        Plan plan{.number = arrival.number};
        bool copied = false;
        if (!spec.corrupt.empty() && takes(spec.corrupt[0].selector, settings.seed, 2'000'000, asked[1]++, elapsed)) {
            ++account.corrupted;
        } else if (any(spec.duplicate, 1'000'000, asked[2]++)) {
            copied = true;
        } else if (!spec.reorder.empty() && takes(spec.reorder[0].selector, settings.seed, 3'000'000, asked[3]++, elapsed)) {
            plan.by = spec.reorder[0].by;
        }
        if (direction.delay.kind == DelaySpec::Kind::periodic) {
            due += direction.delay.values_ns[delayed++ % direction.delay.values_ns.size()];
        }
        if (direction.keep_order && !plans.empty()) {
            due = std::max(due, std::ranges::max(plans, {}, &Plan::due).due);
        }
        plan.due = due;
        plans.push_back(plan);
        if (copied) {
            plans.push_back({.number = plan.number, .due = due, .copy = true});
        }
    }
    std::ranges::stable_sort(plans, {}, &Plan::due);
    send_in_order(plans, account);
    return account;
}

SelectorSpec random_selector(std::mt19937_64& random) {
    switch (random() % 4) {
        case 0: return {.kind = Kind::every, .count = 1 + random() % 9};
        case 1: return {.kind = Kind::probability, .probability = static_cast<double>(random() % 5) / 10};
        case 2: return {.kind = Kind::first, .count = random() % 20 + 1};
        default: return {.kind = Kind::window, .from_ns = random() % 1'000'000, .to_ns = 1'000'000 + random() % 1'000'000};
    }
}

Settings random_settings(std::mt19937_64& random) {
    Settings settings;
    settings.seed = random();
    for (SideSettings& side : settings.sides) {
        side.peer_mac = peer_mac;
    }
    DirectionSettings& direction = settings.directions[0];
    if (random() % 2 == 0) {
        direction.shaper = {.frames_per_second = second / service_ticks, .queue_frames = random() % 50};
    }
    if (random() % 2 == 0) {
        direction.delay = {.kind = DelaySpec::Kind::periodic, .values_ns = {}};
        for (std::uint64_t i = 0; i <= random() % 5; ++i) {
            direction.delay.values_ns.push_back(random() % 300'000);
        }
    }
    direction.keep_order = random() % 2 == 0;
    ImpairmentSpec& spec = direction.impairments;
    for (auto* const list : {&spec.loss, &spec.duplicate}) {
        for (std::uint64_t i = random() % 3; i > 0; --i) {
            list->push_back(random_selector(random));
        }
    }
    if (random() % 2 == 0) {
        spec.reorder = {{.selector = random_selector(random), .by = static_cast<std::uint32_t>(1 + random() % 6)}};
    }
    if (random() % 2 == 0) {
        spec.corrupt = {{.selector = random_selector(random), .field = Field::hop_limit}};
    }
    return settings;
}

std::vector<Arrival> random_arrivals(std::mt19937_64& random) {
    std::vector<Arrival> arrivals;
    std::uint64_t time = 10 * second;
    for (std::uint16_t i = 0; i < 300; ++i) {
        time += random() % 3 == 0 ? 0 : random() % 15 * step;
        arrivals.push_back({.time = time, .number = i});
    }
    return arrivals;
}

MemoryForwardingPort::Bytes frame_of(std::uint16_t number) {
    SlowPacket packet = udp_packet("198.18.0.2", "198.19.0.2", 5000, number);
    packet.link_destination = own_mac;
    return write_packet(packet);
}

/// The frames of `port`, with copies marked as in Account.
std::vector<unsigned> numbers_of(const MemoryForwardingPort& port) {
    std::vector<unsigned> numbers;
    for (const auto& sent : port.sent) {
        const unsigned number = read_packet(sent).destination_port;
        numbers.push_back(number + (std::ranges::find(numbers, number) != numbers.end() ? 10'000 : 0));
    }
    return numbers;
}

TEST(RefdutGatewayOracle, RandomMixturesLeaveAndAreCountedAsTheRulesSay) {
    std::mt19937_64 random{20'240'607};
    for (int round = 0; round < 200; ++round) {
        const Settings settings = random_settings(random);
        const std::vector<Arrival> arrivals = random_arrivals(random);
        const Account expected = account_of(settings, arrivals);

        MemoryForwardingPort left, right;
        std::uint64_t now = 9 * second;
        const auto program = make_program(settings, {own_mac, own_mac}, second, nullptr);
        Gateway<MemoryForwardingPort, StoppedClock> gateway{*program, left, right, second, StoppedClock{&now}};
        Command command;
        const auto check_balance = [&] {
            gateway.execute(command);
            ASSERT_TRUE(command.snapshot.counts.directions[0].balanced());
        };
        std::size_t next = 0;
        for (now = 10 * second; next < arrivals.size() || now < arrivals.back().time + 5'000'000; now += step) {
            for (std::size_t burst = 0; next < arrivals.size() && arrivals[next].time == now; ++next, ++burst) {
                ASSERT_LT(burst, 32U);
                left.arrive(frame_of(arrivals[next].number));
            }
            gateway.poll();
            check_balance();
        }
        now += second;  // frames that wait to be overtaken leave
        gateway.poll();
        check_balance();

        ASSERT_EQ(numbers_of(right), expected.out) << "round " << round;
        const DirectionCounts& counts = command.snapshot.counts.directions[0];
        EXPECT_EQ(counts[DirectionCount::test_frames], arrivals.size());
        EXPECT_EQ(counts[DirectionCount::forwarded], expected.forwarded);
        EXPECT_EQ(counts[DirectionCount::lost], expected.lost);
        EXPECT_EQ(counts.own_drops[OwnDrop::queue_full], expected.queue_full);
        EXPECT_EQ(counts.dropped(), expected.queue_full);
        EXPECT_EQ(counts[DirectionCount::duplicated], expected.duplicated);
        EXPECT_EQ(counts.corrupted[Field::hop_limit], expected.corrupted);
        EXPECT_EQ(counts[DirectionCount::reordered], expected.reordered);
        EXPECT_EQ(counts[DirectionCount::reorder_short], expected.reorder_short);
        EXPECT_EQ(counts[DirectionCount::held], 0U);
        EXPECT_EQ(MemoryForwardingPort::in_use, 0U);
    }
}

}  // namespace
}  // namespace gatemark::refdut
