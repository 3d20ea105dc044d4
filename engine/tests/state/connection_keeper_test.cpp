#include "state/connection_keeper.hpp"

#include "base/random.hpp"

#include <gtest/gtest.h>

#include <array>

namespace gatemark::state {
namespace {

using frame::MatchedFrames;

constexpr std::size_t kept_frames = frame::burst_frames_max, kept_frame_bytes = 64;
constexpr std::uint64_t kept_connections = 20;

/// Frames of a burst with addresses of a pool, most of them, and connections that come again.
class Bursts {
public:
    Bursts(net::Family family, const net::AddressPool& pool, std::uint64_t seed) : pool_{pool}, words_{seed, 0} {
        arrival_ = {.kind = frame::ArrivalKind::ours, .family = family, .vlan_id = {}, .ip = 0, .udp = 40, .payload = 48};
    }

    /// One in `one_in` frames has a source that is none.
    const MatchedFrames& next(std::uint64_t one_in) {
        matched_.count = kept_frames;
        for (std::size_t k = 0; k < kept_frames; ++k) {
            std::byte* const frame = frames_[k].data();
            pool_.write(frame + arrival_.source_address(), word() % pool_.count());
            store_big_endian(frame + arrival_.udp, static_cast<std::uint16_t>(1 + word() % 2));
            if (word() % one_in == 0) {
                word() % 2 == 0 ? store_big_endian(frame + arrival_.udp, std::uint16_t{0})
                                : void(frame[arrival_.source_address()] ^= std::byte{0x40});
            }
            matched_.frames[k] = frame;
            matched_.arrived.ports[k] = load_raw<std::uint32_t>(frame + arrival_.udp);
            matched_.connections[k] = word() % kept_connections;
        }
        return matched_;
    }
    [[nodiscard]] const frame::Arrival& arrival() const { return arrival_; }

private:
    std::uint64_t word() { return words_.at(place_++) >> 20; }

    const net::AddressPool& pool_;
    RandomSequence words_;
    std::uint64_t place_ = 0;
    frame::Arrival arrival_{};
    std::array<std::array<std::byte, kept_frame_bytes>, kept_frames> frames_{};
    MatchedFrames matched_;
};

/// The same, frame by frame.
std::size_t learned_in_turn(const ConnectionKeeper& keeper, const MatchedFrames& matched, const frame::Arrival& arrival) {
    std::size_t k = 0;
    while (k < matched.count && keeper.learn_correct(matched.frames[k], arrival, matched.connections[k])) {
        ++k;
    }
    return k;
}

class KeeperOfBursts : public testing::TestWithParam<std::tuple<const char*, Phase>> {};

TEST_P(KeeperOfBursts, LearnsWhatItLearnsFrameByFrame) {
    const auto& [prefixes, phase] = GetParam();
    std::vector<net::Prefix> blocks;
    for (const std::string_view text : {std::string_view{prefixes}.substr(0, std::string_view{prefixes}.find(' ')),
                                        std::string_view{prefixes}.substr(std::string_view{prefixes}.find(' ') + 1)}) {
        blocks.push_back(net::parse_prefix(std::string{text}).value());
    }
    const auto pool = std::get<net::AddressPool>(net::AddressPool::make(blocks, "pool"));
    StateTable one, other;
    ASSERT_EQ(one.reset(kept_connections), std::nullopt);
    ASSERT_EQ(other.reset(kept_connections), std::nullopt);
    const ConnectionKeeper in_bursts{phase, one, pool}, in_turn{phase, other, pool};
    Bursts bursts{pool.family(), pool, 7};
    std::array<std::size_t, 2> ended{};  // bursts that were learned from whole, and others
    for (int burst = 0; burst < 500; ++burst) {
        const MatchedFrames& matched = bursts.next(40);
        if (phase == Phase::use) {  // what most frames have is what is known
            for (std::size_t k = 0; k < kept_frames; ++k) {
                const auto address = pool.number_of(matched.frames[k] + bursts.arrival().source_address());
                const auto port = load_big_endian<std::uint16_t>(matched.frames[k] + bursts.arrival().udp);
                one.write(matched.connections[k], {.address = address.value_or(0), .port = port});
                other.write(matched.connections[k], {.address = address.value_or(0), .port = port});
            }
        }
        const std::size_t learned = in_bursts.learn_correct(matched, bursts.arrival());
        EXPECT_EQ(learned, learned_in_turn(in_turn, matched, bursts.arrival()));
        ++ended[learned == kept_frames ? 0 : 1];
        for (std::uint64_t connection = 0; connection < kept_connections; ++connection) {
            EXPECT_EQ(one.read(connection), other.read(connection));
        }
    }
    EXPECT_GT(ended[1], 100U);
    EXPECT_GT(phase == Phase::establish ? ended[0] : 1U, 0U);
}

INSTANTIATE_TEST_SUITE_P(Families, KeeperOfBursts,
                         testing::Combine(testing::Values("198.19.0.1/32 203.0.113.0/30", "2001:2:0:8000::1/128 2001:2:0:9000::/126"),
                                          testing::Values(Phase::establish, Phase::use)));

}  // namespace
}  // namespace gatemark::state
