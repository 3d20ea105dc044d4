#include "state/connections_ahead.hpp"

#include "frame/streams.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gatemark::state {
namespace {

constexpr std::uint64_t known_connections = 1000;

frame::Stream responder_stream(enumerate::ConnectionChoice::Mode choice) {
    frame::StreamRequest request;
    request.source = test::varying_host("198.19.0.0", 2, frame::ValueMode::pseudorandom, 2, 6);
    request.destination = test::varying_host("10.0.0.0", 2, frame::ValueMode::pseudorandom, 2, 9);
    request.source_ports = {frame::ValueMode::pseudorandom, 80, 104};
    request.destination_ports = {frame::ValueMode::pseudorandom, 5000, 5004};
    const enumerate::TupleRanges ranges{
        .source_ports = {5000, 5}, .destination_ports = {80, 25}, .source_hosts = {2, 8}, .destination_hosts = {2, 5}};
    request.connections = frame::ConnectionTraffic{
        .role = frame::Role::responder, .set = {ranges, enumerate::Order::pseudorandom, known_connections, test::seed}, .choice = choice};
    return test::make_stream(request, {}, frame::signature::TrafficClass::foreground, frame::signature::Direction::reverse);
}

class ConnectionsAheadOf : public testing::TestWithParam<std::tuple<enumerate::ConnectionChoice::Mode, std::uint64_t>> {
protected:
    ConnectionsAheadOf() { EXPECT_EQ(table_.reset(known_connections), std::nullopt); }

    /// Asks for a burst from `first` on and compares it with the connection of each frame.
    void expect_burst(ConnectionsAhead& ahead, std::uint64_t first, std::size_t count, std::uint64_t step) const {
        std::vector<std::uint64_t> numbers(count);
        for (std::size_t k = 0; k < count; ++k) {
            numbers[k] = first + k * step;
        }
        ahead.put(numbers);
        for (std::size_t k = 0; k < count; ++k) {
            ASSERT_EQ(numbers[k], stream_.connection_of(first + k * step)) << "frame " << first + k * step;
        }
    }

    frame::Stream stream_ = responder_stream(std::get<0>(GetParam()));
    std::uint64_t step_ = std::get<1>(GetParam());
    StateTable table_;
};

TEST_P(ConnectionsAheadOf, AreThoseOfTheFramesWhateverTheirBursts) {
    ConnectionsAhead ahead{stream_, table_, step_};
    std::mt19937 random{7};
    std::uint64_t next = 3;
    for (int burst = 0; burst < 2000; ++burst) {
        const std::size_t count = burst % 3 == 0 ? 1 : burst % 3 == 1 ? ConnectionsAhead::block : 1 + random() % ConnectionsAhead::block;
        expect_burst(ahead, next, count, step_);
        next += count * step_;
    }
}

TEST_P(ConnectionsAheadOf, AreThoseOfTheFramesAlsoWhereTheirNumbersJump) {
    ConnectionsAhead ahead{stream_, table_, step_};
    std::mt19937_64 random{8};
    for (int burst = 0; burst < 500; ++burst) {
        const std::uint64_t first = random() % (std::uint64_t{1} << 40);
        expect_burst(ahead, first, 1 + random() % ConnectionsAhead::block, burst % 2 == 0 ? step_ : 1 + random() % 5);
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, ConnectionsAheadOf,
    testing::Combine(testing::Values(enumerate::ConnectionChoice::Mode::fixed, enumerate::ConnectionChoice::Mode::increasing,
                                     enumerate::ConnectionChoice::Mode::decreasing, enumerate::ConnectionChoice::Mode::pseudorandom),
                     testing::Values(std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3})));

}  // namespace
}  // namespace gatemark::state
