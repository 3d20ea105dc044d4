#pragma once

#include "pace/clock.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

struct rte_mbuf;

namespace gatemark::io {

/// Turns the time stamps that a port's hardware puts on arriving frames into times of the Tester's
/// clock.
///
/// The two clocks are compared repeatedly (`follow`), because oscillators differ by up to 100 ppm:
/// 12 ms in a trial of two minutes. Between comparisons the port's clock is assumed to run at the
/// rate of the latest period of at least 100 ms.
class ReceiveClock {
public:
    /// Reads the port's clock; false if it cannot.
    using Reader = std::function<bool(std::uint64_t& port_ticks)>;

    /// nullopt if the clock cannot be read or does not run; takes 50 ms.
    [[nodiscard]] static std::unique_ptr<ReceiveClock> start(Reader reader);

    /// Compares both clocks again. The control thread calls it every few milliseconds during a
    /// trial.
    void follow();
    /// Converts a time of the port's clock to the Tester's clock. Several receivers may call it
    /// while `follow` runs.
    [[nodiscard]] pace::Ticks to_tester(std::uint64_t port_ticks) const noexcept;
    /// Half of the time that the latest reading of both clocks took, which bounds its error.
    [[nodiscard]] pace::Ticks uncertainty() const noexcept { return {uncertainty_.load(std::memory_order_relaxed)}; }
    /// How far a conversion may have been off since `forget_error`. At each comparison the time
    /// that was told until then is that far from the one that is read, and both readings have an
    /// error.
    [[nodiscard]] pace::Ticks error() const noexcept { return error_; }
    void forget_error() noexcept { error_ = uncertainty(); }

private:
    struct Reading {
        std::uint64_t port = 0, tester = 0, width = 0;
    };

    explicit ReceiveClock(Reader reader) : reader_{std::move(reader)} {}
    /// Both clocks at one moment: the most precise of several readings.
    [[nodiscard]] std::optional<Reading> read() const;
    void publish(const Reading& anchor, double rate);

    Reader reader_;
    Reading base_;       ///< the start of the period that gives the rate
    pace::Ticks error_;  ///< of the control thread, as `follow`
    // What a receiver reads. It is consistent if the version is even, and the same before and
    // after.
    std::atomic<std::uint64_t> version_{0}, port_{0}, tester_{0};
    std::atomic<double> rate_{1};  ///< ticks of the Tester per tick of the port
    std::atomic<std::uint64_t> uncertainty_{0};
};

/// Reads the clock by which a port stamps frames.
[[nodiscard]] ReceiveClock::Reader port_clock_reader(std::uint16_t port_id);

/// The time stamp that the driver writes into a dynamic field of a buffer.
struct TimestampField {
    int offset = 0;
    std::uint64_t flag = 0;
    [[nodiscard]] static std::optional<TimestampField> find();
    /// nullopt: the hardware did not stamp this frame.
    [[nodiscard]] std::optional<std::uint64_t> of(const rte_mbuf& buffer) const noexcept;
};

}  // namespace gatemark::io
