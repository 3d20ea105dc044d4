#include "control/write_delays.hpp"

#include "base/wide.hpp"

#include <array>
#include <cmath>

namespace gatemark::control {

namespace {

using Json = nlohmann::json;

/// Of 100,000; p50 to p99.999.
constexpr std::array<std::uint64_t, 6> percentiles{50'000, 90'000, 99'000, 99'900, 99'990, 99'999};

/// To the nearest nanosecond.
std::int64_t nanoseconds(std::int64_t ticks, const pace::TickScale& scale) {
    const auto magnitude = static_cast<Wide>(ticks < 0 ? -ticks : ticks);
    const auto rounded = static_cast<std::int64_t>((magnitude * 1'000'000'000 + scale.ticks_per_second() / 2) / scale.ticks_per_second());
    return ticks < 0 ? -rounded : rounded;
}
std::int64_t nanoseconds(pace::Ticks ticks, const pace::TickScale& scale) {
    return nanoseconds(static_cast<std::int64_t>(ticks.value), scale);
}

Json or_null(const std::optional<pace::Ticks>& ticks, const pace::TickScale& scale) {
    return ticks ? Json(nanoseconds(*ticks, scale)) : Json{};
}

/// The buckets in use, lowest first; buckets that are equal to the nanosecond are merged.
template <class Recorded>
Json histogram_json(const Recorded& recorded, const pace::TickScale& scale) {
    std::vector<std::pair<std::int64_t, std::uint64_t>> buckets;
    recorded.visit([&](auto value, std::uint64_t count) {
        const std::int64_t time = nanoseconds(value, scale);
        if (!buckets.empty() && buckets.back().first == time) {
            buckets.back().second += count;
        } else {
            buckets.emplace_back(time, count);
        }
    });
    return buckets;
}

Json tags_json(const record::TagFacts& tags, std::uint64_t negative, const pace::TickScale& scale) {
    return {{"count", tags.count},
            {"received", tags.received},
            {"negative", negative},
            {"median_ns", or_null(tags.median, scale)},
            {"p999_ns", or_null(tags.p999, scale)}};
}

Json variation_json(const record::DelayVariation& variation, std::uint64_t offered, bool with_histogram, const pace::TickScale& scale) {
    const std::uint64_t pairs = variation.pairs(), neighbours = offered == 0 ? 0 : offered - 1;
    Json json{{"pairs", pairs},        {"skipped", neighbours > pairs ? neighbours - pairs : 0},
              {"minimum_ns", nullptr}, {"median_ns", nullptr},
              {"maximum_ns", nullptr}, {"histogram", Json::array()}};
    if (pairs != 0) {
        const std::int64_t lower = variation.of_rank((pairs + 1) / 2), upper = variation.of_rank(pairs / 2 + 1);
        json["minimum_ns"] = nanoseconds(variation.minimum(), scale);
        json["median_ns"] = nanoseconds(lower + (upper - lower) / 2, scale);
        json["maximum_ns"] = nanoseconds(variation.maximum(), scale);
    }
    if (with_histogram) {
        json["histogram"] = histogram_json(variation, scale);
    }
    return json;
}

/// Of `total` frames: those that are not among the samples rank above all samples, so a percentile
/// that falls on one of them is null.
Json percentiles_json(const record::DelayHistogram& delays, std::uint64_t total, const pace::TickScale& scale) {
    Json list = Json::array();
    for (const std::uint64_t percentile : percentiles) {
        const auto rank = static_cast<std::uint64_t>((static_cast<Wide>(total) * percentile + 99'999) / 100'000);
        const bool is_known = rank <= delays.samples();
        list.push_back({{"per_100000", percentile}, {"ns", is_known ? Json(nanoseconds(delays.of_rank(rank), scale)) : Json{}}});
    }
    return list;
}

}  // namespace

Json round_trips_json(const record::RoundTrips& round_trips, std::uint64_t requests, const pace::TickScale& scale) {
    const std::uint64_t samples = round_trips.samples();
    Json json{{"requests", requests},    {"samples", samples},    {"minimum_ns", nullptr},       {"mean_ns", nullptr},
              {"deviation_ns", nullptr}, {"maximum_ns", nullptr}, {"percentiles", Json::array()}};
    if (requests != 0) {
        json["percentiles"] = percentiles_json(round_trips.histogram(), requests, scale);
    }
    if (samples != 0) {
        const Wide divisor = static_cast<Wide>(samples) * scale.ticks_per_second();
        json["minimum_ns"] = nanoseconds(round_trips.histogram().minimum(), scale);
        json["mean_ns"] = static_cast<std::uint64_t>((round_trips.sum() * 1'000'000'000 + divisor / 2) / divisor);
        json["deviation_ns"] =
            static_cast<std::uint64_t>(std::llround(round_trips.deviation() * 1e9 / static_cast<double>(scale.ticks_per_second())));
        json["maximum_ns"] = nanoseconds(round_trips.histogram().maximum(), scale);
    }
    return json;
}

Json delay_json(const trial::ClassReport& report, bool with_histograms, const pace::TickScale& scale) {
    const record::ClassDelays& delays = report.delays;
    const std::uint64_t samples = delays.all.samples();
    Json json{{"samples", samples},
              {"negative", delays.negative},
              {"negative_maximum_ns", nanoseconds(delays.negative_maximum, scale)},
              {"minimum_ns", nullptr},
              {"maximum_ns", nullptr},
              {"percentiles", Json::array()},
              {"histogram", Json::array()},
              {"tags", nullptr},
              {"variation", nullptr}};
    if (samples != 0) {
        json["minimum_ns"] = nanoseconds(delays.all.minimum(), scale);
        json["maximum_ns"] = nanoseconds(delays.all.maximum(), scale);
        json["percentiles"] = percentiles_json(delays.all, samples, scale);
    }
    if (with_histograms) {
        json["histogram"] = histogram_json(delays.all, scale);
    }
    if (report.tags) {
        json["tags"] = tags_json(*report.tags, delays.negative_tags, scale);
    }
    if (delays.variation) {
        json["variation"] = variation_json(*delays.variation, report.offered, with_histograms, scale);
    }
    return json;
}

}  // namespace gatemark::control
