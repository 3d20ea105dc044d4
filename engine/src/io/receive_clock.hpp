#pragma once

#include "pace/clock.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

struct rte_mbuf;

namespace gatemark::io {

/// Turns the time stamps that a port's hardware puts on arriving frames into times of the Tester's clock.
///
/// The two clocks are read together again and again (`follow`), because crystals differ by up to 100 parts in a million: 12 ms in a trial
/// of two minutes. Between two readings the port's clock is taken to run as it did over the last stretch of at least 100 ms.
class ReceiveClock {
public:
    /// Reads the port's clock; false if it cannot.
    using Reader = std::function<bool(std::uint64_t& port_ticks)>;

    /// nullopt unless the clock can be read and runs; takes 50 ms.
    [[nodiscard]] static std::unique_ptr<ReceiveClock> start(Reader reader);

    /// Reads both clocks anew; by the control thread, every few milliseconds while a trial runs.
    void follow();
    /// The moment of the Tester's clock that the port's clock showed this. Several receivers may ask while `follow` runs.
    [[nodiscard]] pace::Ticks to_tester(std::uint64_t port_ticks) const noexcept;
    /// Half of the time that the latest reading of both clocks took: so far it may be off.
    [[nodiscard]] pace::Ticks uncertainty() const noexcept { return {uncertainty_.load(std::memory_order_relaxed)}; }

private:
    struct Reading {
        std::uint64_t port = 0, tester = 0, width = 0;
    };

    explicit ReceiveClock(Reader reader) : reader_{std::move(reader)} {}
    /// Both clocks at one moment: the narrowest of some tries.
    [[nodiscard]] std::optional<Reading> read() const;
    void publish(const Reading& anchor, double rate);

    Reader reader_;
    Reading base_;  ///< from which the rate is taken
    // What a receiver reads: consistent if the version was even, and the same before and after.
    std::atomic<std::uint64_t> version_{0}, port_{0}, tester_{0};
    std::atomic<double> rate_{1};  ///< ticks of the Tester for one of the port
    std::atomic<std::uint64_t> uncertainty_{0};
};

/// Reads the clock by which a port stamps frames.
[[nodiscard]] ReceiveClock::Reader port_clock_reader(std::uint16_t port_id);

/// The time stamp that the driver wrote into a buffer, where DPDK said at the start that it may.
struct TimestampField {
    int offset = 0;
    std::uint64_t flag = 0;
    [[nodiscard]] static std::optional<TimestampField> find();
    /// nullopt: the hardware did not stamp this frame.
    [[nodiscard]] std::optional<std::uint64_t> of(const rte_mbuf& buffer) const noexcept;
};

}  // namespace gatemark::io
