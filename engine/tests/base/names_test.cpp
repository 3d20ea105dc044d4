#include "base/names.hpp"

#include <gtest/gtest.h>

namespace gatemark {
namespace {

enum class Single : std::uint8_t { only };
enum class Several : int { first, second_one, third_3 };

TEST(Names, AreTheEnumeratorsInTheirOrder) {
    EXPECT_EQ(names_of<Single>, (std::array<std::string_view, 1>{"only"}));
    EXPECT_EQ(names_of<Several>, (std::array<std::string_view, 3>{"first", "second_one", "third_3"}));
    static_assert(count_of<Several> == 3);
}

}  // namespace
}  // namespace gatemark
