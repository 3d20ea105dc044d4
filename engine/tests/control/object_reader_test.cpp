#include "control/object_reader.hpp"

#include <gtest/gtest.h>

namespace gatemark::control {
namespace {

std::vector<std::string> places_of(const Errors& errors) {
    std::vector<std::string> places;
    for (const Error& error : errors) {
        places.push_back(error.where);
    }
    return places;
}

using Places = std::vector<std::string>;

TEST(ObjectReader, ReadsWhatIsThere) {
    const Json json = Json::parse(R"({"number":18446744073709551615,"text":"a","flag":true,"list":[1,2],"null":null})");
    Errors errors;
    {
        ObjectReader reader{json, "here", errors};
        EXPECT_EQ(reader.integer("number", 0, std::numeric_limits<std::uint64_t>::max()), 18446744073709551615U);
        EXPECT_EQ(reader.text("text"), "a");
        EXPECT_TRUE(reader.boolean("flag"));
        EXPECT_EQ(reader.list("list").size(), 2U);
        EXPECT_EQ(reader.optional("null"), nullptr);
        EXPECT_EQ(reader.optional("missing"), nullptr);
        EXPECT_TRUE(reader.required("null").is_null());
    }
    EXPECT_TRUE(errors.empty());
}

TEST(ObjectReader, ReportsEveryWrongTypeAndEveryUnknownKey) {
    const Json json = Json::parse(R"({"a":-1,"b":1.0,"c":"1","d":11,"e":1,"f":1,"g":{},"unknown":1,"also unknown":2})");
    Errors errors;
    {
        ObjectReader reader{json, "here", errors};
        for (const char* const key : {"a", "b", "c", "d", "missing"}) {
            EXPECT_EQ(reader.integer(key, 3, 10), 3U);
        }
        EXPECT_EQ(reader.text("e"), "");
        EXPECT_FALSE(reader.boolean("f"));
        EXPECT_TRUE(reader.list("g").empty());
    }
    EXPECT_EQ(places_of(errors), (Places{"here.a", "here.b", "here.c", "here.d", "here.missing", "here.e", "here.f", "here.g",
                                         "here.also unknown", "here.unknown"}));
}

TEST(ObjectReader, AnythingButAnObjectIsAProblem) {
    for (const char* const text : {"[]", "5", "null", "\"text\"", "true"}) {
        const Json json = Json::parse(text);
        Errors errors;
        { ObjectReader reader{json, "here", errors}; }
        EXPECT_EQ(places_of(errors), (Places{"here"})) << text;
    }
}

}  // namespace
}  // namespace gatemark::control
