#include "io/receive_clock.hpp"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

namespace gatemark::io {

using namespace std::chrono_literals;

std::unique_ptr<ReceiveClock> ReceiveClock::start(Reader reader) {
    std::unique_ptr<ReceiveClock> clock{new ReceiveClock{std::move(reader)}};
    const auto first = clock->read();
    std::this_thread::sleep_for(50ms);
    const auto second = clock->read();
    if (!first || !second || second->port <= first->port || second->tester <= first->tester) {
        return nullptr;
    }
    clock->base_ = *second;
    clock->publish(*second, static_cast<double>(second->tester - first->tester) / static_cast<double>(second->port - first->port));
    return clock;
}

std::optional<ReceiveClock::Reading> ReceiveClock::read() const {
    const pace::CycleClock tester_clock;
    std::optional<Reading> best;
    for (int i = 0; i < 5; ++i) {
        std::uint64_t port = 0;
        const std::uint64_t before = tester_clock.now().value;
        if (!reader_(port)) {
            return std::nullopt;
        }
        const std::uint64_t after = tester_clock.now().value;
        if (!best || after - before < best->width) {
            best = Reading{.port = port, .tester = before + (after - before) / 2, .width = after - before};
        }
    }
    return best;
}

void ReceiveClock::follow() {
    const auto now = read();
    if (!now || now->port <= base_.port) {
        return;
    }
    const std::uint64_t told = to_tester(now->port).value;
    const std::uint64_t apart = std::max(told, now->tester) - std::min(told, now->tester);
    error_ = std::max(error_, pace::Ticks{apart + uncertainty().value + now->width / 2});
    constexpr std::uint64_t stretch_min = 200'000'000;  // Tester ticks: about 100 ms
    double rate = rate_.load(std::memory_order_relaxed);
    if (now->tester - base_.tester >= stretch_min) {
        rate = static_cast<double>(now->tester - base_.tester) / static_cast<double>(now->port - base_.port);
        base_ = *now;
    }
    publish(*now, rate);
}

void ReceiveClock::publish(const Reading& anchor, double rate) {
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    port_.store(anchor.port, std::memory_order_relaxed);
    tester_.store(anchor.tester, std::memory_order_relaxed);
    rate_.store(rate, std::memory_order_relaxed);
    version_.store(version + 2, std::memory_order_release);
    uncertainty_.store(anchor.width / 2, std::memory_order_relaxed);
}

pace::Ticks ReceiveClock::to_tester(std::uint64_t port_ticks) const noexcept {
    for (;;) {
        const std::uint64_t before = version_.load(std::memory_order_acquire);
        const std::uint64_t port = port_.load(std::memory_order_relaxed), tester = tester_.load(std::memory_order_relaxed);
        const double rate = rate_.load(std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) {
            // Within seconds of the anchor the product is exact to far less than a tick.
            const double since = static_cast<double>(static_cast<std::int64_t>(port_ticks - port)) * rate;
            return {tester + static_cast<std::uint64_t>(std::llround(since))};
        }
    }
}

ReceiveClock::Reader port_clock_reader(std::uint16_t port_id) {
    return [port_id](std::uint64_t& ticks) { return rte_eth_read_clock(port_id, &ticks) == 0; };
}

std::optional<TimestampField> TimestampField::find() {
    TimestampField field;
    if (rte_mbuf_dyn_rx_timestamp_register(&field.offset, &field.flag) != 0) {
        return std::nullopt;
    }
    return field;
}

std::optional<std::uint64_t> TimestampField::of(const rte_mbuf& buffer) const noexcept {
    if ((buffer.ol_flags & flag) == 0) {
        return std::nullopt;
    }
    return *RTE_MBUF_DYNFIELD(&buffer, offset, const rte_mbuf_timestamp_t*);
}

}  // namespace gatemark::io
