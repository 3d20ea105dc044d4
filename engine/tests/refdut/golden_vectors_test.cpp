#include "golden/vectors.hpp"

#include "refdut/packets.hpp"

#include <gtest/gtest.h>

namespace gatemark::refdut {
namespace {

using test::Golden;

/// What leaves: from the IP header on.
std::string passed(Translator& translator, Side from, const Golden& golden) {
    Buffer buffer{test::frame_of(golden)};
    Notes notes;
    EXPECT_EQ(translator.translate(from, buffer.packet, 0, notes), Drop::none) << golden.source;
    EXPECT_TRUE(buffer.is_sound());
    return test::to_hex(buffer.frame().subspan(14));
}

std::string text_of(const Golden& golden) { return test::to_hex(test::bytes_of(golden)); }

TEST(RefdutGolden, BorderRelayBothWays) {
    TranslationConfig config;
    config.mode = Mode::siit;
    config.pref64 = prefix_of(test::relay_prefix);
    config.eam = {eam_of(std::string{test::customer_ipv4} + "/32", std::string{test::customer_ipv6} + "/128")};
    Translator translator{config, nullptr};
    EXPECT_EQ(passed(translator, Side::left, test::relay_up_in), text_of(test::relay_up_out));
    EXPECT_EQ(passed(translator, Side::right, test::relay_down_in), text_of(test::relay_down_out));
}

}  // namespace
}  // namespace gatemark::refdut
