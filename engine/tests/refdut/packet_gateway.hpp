#pragma once

#include "refdut/corrupt.hpp"
#include "refdut/packets.hpp"
#include "refdut/translate.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string_view>

namespace gatemark::refdut {

inline std::string_view name_of(Drop drop) { return drop_names[static_cast<std::size_t>(drop)]; }

/// Where `check` finds something wrong.
inline std::vector<std::string> places_of(const TranslationConfig& config) {
    std::vector<std::string> places;
    for (const Error& error : check(config)) {
        places.push_back(error.where);
    }
    return places;
}

/// A translator, with a table if its mode has one, through which one packet goes at a time.
class PacketGateway {
public:
    struct Result {
        Drop drop = Drop::none;
        Notes notes;
        test::Bytes frame;
    };

    explicit PacketGateway(TranslationConfig config, NatLimits limits = {.capacity = 100000}) {
        EXPECT_EQ(check(config), Errors{});
        if (is_stateful(config.mode)) {
            table = std::make_unique<NatTable>(public_endpoints(config), limits);
        }
        translator = std::make_unique<Translator>(std::move(config), table.get());
    }
    Result pass(Side from, const test::SlowPacket& packet) { return pass(from, test::write_packet(packet)); }
    Result pass(Side from, const test::Bytes& frame) {
        Buffer buffer{frame};
        Result result;
        result.drop = translator->translate(from, buffer.packet, 0, result.notes);
        EXPECT_TRUE(buffer.is_sound());
        result.frame.assign(buffer.frame().begin(), buffer.frame().end());
        return result;
    }
    std::unique_ptr<NatTable> table;
    std::unique_ptr<Translator> translator;
};

struct Damaged {
    Fields fields;
    test::Bytes frame;
};

/// What leaves, damaged.
inline Damaged damaged(PacketGateway& gateway, Side from, const test::Bytes& frame, Field field) {
    Buffer buffer{frame};
    Notes notes;
    EXPECT_EQ(gateway.translator->translate(from, buffer.packet, 0, notes), Drop::none);
    const test::Bytes before{buffer.frame().begin(), buffer.frame().end()};
    const Fields fields = corrupt(field, buffer.packet, notes, gateway.table.get());
    EXPECT_TRUE(buffer.is_sound());
    EXPECT_EQ(fields.none(), std::ranges::equal(before, buffer.frame()));
    return {fields, {buffer.frame().begin(), buffer.frame().end()}};
}

}  // namespace gatemark::refdut
