#include "refdut/config_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

namespace gatemark::refdut {

namespace {

constexpr std::uint64_t day_ns = std::uint64_t{86400} * 1'000'000'000;

struct Unit {
    std::string_view name;
    std::uint64_t ns;
};
constexpr std::array units{Unit{"ns", 1},
                           Unit{"us", 1'000},
                           Unit{"ms", 1'000'000},
                           Unit{"s", 1'000'000'000},
                           Unit{"min", std::uint64_t{60} * 1'000'000'000},
                           Unit{"h", std::uint64_t{3600} * 1'000'000'000}};

/// The number of insertions, deletions and replacements that turn one word into the other.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t k = 1; k <= b.size(); ++k) {
            const std::size_t above = row[k];
            row[k] = std::min({row[k] + 1, row[k - 1] + 1, diagonal + (a[i - 1] == b[k - 1] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

}  // namespace

std::string list_of(std::span<const std::string_view> words) {
    std::string list;
    for (const std::string_view word : words) {
        list += (list.empty() ? "" : ", ") + std::string{word};
    }
    return list;
}

std::optional<std::uint64_t> parse_duration(std::string_view text) {
    if (text == "0") {
        return 0;
    }
    const std::size_t digits = text.find_first_not_of("0123456789");
    std::uint64_t whole = 0, fraction = 0, fraction_unit = 1;
    if (digits == std::string_view::npos || digits == 0 || std::from_chars(text.data(), text.data() + digits, whole).ec != std::errc{} ||
        whole > day_ns) {
        return std::nullopt;
    }
    text.remove_prefix(digits);
    if (text.starts_with('.')) {
        std::size_t i = 1;
        for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
            if (i > 12) {
                return std::nullopt;
            }
            fraction = fraction * 10 + static_cast<std::uint64_t>(text[i] - '0');
            fraction_unit *= 10;
        }
        if (i == 1) {
            return std::nullopt;
        }
        text.remove_prefix(i);
    }
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const auto* const unit = std::ranges::find(units, text, &Unit::name);
    if (unit == units.end() || whole > day_ns / unit->ns || fraction * unit->ns % fraction_unit != 0) {
        return std::nullopt;
    }
    const std::uint64_t ns = whole * unit->ns + fraction * unit->ns / fraction_unit;
    return ns <= day_ns ? std::optional{ns} : std::nullopt;
}

std::string TableReader::where(std::string_view key) const { return path_.empty() ? std::string{key} : path_ + "." + std::string{key}; }

void TableReader::wrong(std::string_view key, std::string what, std::string fix) {
    errors_.push_back({.what = std::move(what), .where = where(key), .fix = std::move(fix)});
}

const toml::node* TableReader::node(std::string_view key) {
    known_.emplace(key);
    return table_.get(key);
}

std::optional<std::string> TableReader::text(std::string_view key) {
    const toml::node* const toml_node = node(key);
    if (toml_node == nullptr) {
        return std::nullopt;
    }
    if (const auto* const value = toml_node->as_string()) {
        return value->get();
    }
    wrong(key, "is not a text", "write it between \"quotation marks\"");
    return std::nullopt;
}

std::optional<std::uint64_t> TableReader::integer(std::string_view key, std::uint64_t minimum, std::uint64_t maximum) {
    const toml::node* const toml_node = node(key);
    if (toml_node == nullptr) {
        return std::nullopt;
    }
    const auto* const value = toml_node->as_integer();
    if (value != nullptr && value->get() >= 0 && static_cast<std::uint64_t>(value->get()) >= minimum &&
        static_cast<std::uint64_t>(value->get()) <= maximum) {
        return static_cast<std::uint64_t>(value->get());
    }
    wrong(key, value == nullptr ? "is not an integer" : std::to_string(value->get()) + " is out of range",
          "write " + std::to_string(minimum) + " to " + std::to_string(maximum));
    return std::nullopt;
}

std::optional<double> TableReader::probability(std::string_view key) {
    const toml::node* const toml_node = node(key);
    if (toml_node == nullptr) {
        return std::nullopt;
    }
    const std::optional<double> value = toml_node->is_number() ? toml_node->value<double>() : std::nullopt;
    if (value && *value >= 0 && *value <= 1) {
        return value;
    }
    wrong(key, "is not a probability", "write a number from 0 to 1");
    return std::nullopt;
}

std::optional<bool> TableReader::boolean(std::string_view key) {
    const toml::node* const toml_node = node(key);
    if (toml_node == nullptr) {
        return std::nullopt;
    }
    if (const auto* const value = toml_node->as_boolean()) {
        return value->get();
    }
    wrong(key, "is neither true nor false", "write true or false");
    return std::nullopt;
}

std::optional<std::uint64_t> TableReader::duration(std::string_view key) {
    const auto value = text(key);
    if (!value) {
        return std::nullopt;
    }
    const auto ns = parse_duration(*value);
    if (!ns) {
        wrong(key, "\"" + *value + "\" is not a duration",
              "write a number and ns, us, ms, s, min or h: \"100 us\"; at most 24 h, no part of a nanosecond");
    }
    return ns;
}

std::optional<std::size_t> TableReader::choice(std::string_view key, std::span<const std::string_view> words) {
    const auto value = text(key);
    if (!value) {
        return std::nullopt;
    }
    const auto match = std::ranges::find(words, *value);
    if (match == words.end()) {
        wrong(key, "\"" + *value + "\" is unknown", "write one of: " + list_of(words));
        return std::nullopt;
    }
    return static_cast<std::size_t>(match - words.begin());
}

std::optional<net::Address> TableReader::address(std::string_view key, net::Family family) {
    const auto value = text(key);
    if (!value) {
        return std::nullopt;
    }
    const auto address = net::parse_address(*value);
    if (!address || address->family != family) {
        wrong(key, "\"" + *value + "\" is not an address of this family",
              family == net::Family::ipv4 ? "write 198.18.0.1" : "write 2001:2::1");
        return std::nullopt;
    }
    return address;
}

std::optional<net::MacAddress> TableReader::mac(std::string_view key) {
    const auto value = text(key);
    if (!value) {
        return std::nullopt;
    }
    const auto mac = net::parse_mac(*value);
    if (!mac) {
        wrong(key, "\"" + *value + "\" is not an Ethernet address", "write 02:00:00:00:00:01");
    }
    return mac;
}

std::optional<net::Prefix> TableReader::prefix(std::string_view key) {
    const auto value = text(key);
    if (!value) {
        return std::nullopt;
    }
    const auto prefix = net::parse_prefix(*value);
    if (!prefix) {
        wrong(key, "\"" + *value + "\" is not a prefix", "write 198.19.0.0/24 or 2001:2::/64; the bits after the prefix must be zero");
    }
    return prefix;
}

const toml::table* TableReader::table(std::string_view key) {
    const toml::node* const toml_node = node(key);
    if (toml_node != nullptr && !toml_node->is_table()) {
        wrong(key, "is not a table", "write [" + where(key) + "] and its keys below");
        return nullptr;
    }
    return toml_node == nullptr ? nullptr : toml_node->as_table();
}

const toml::array* TableReader::array(std::string_view key) {
    const toml::node* const toml_node = node(key);
    if (toml_node != nullptr && !toml_node->is_array()) {
        wrong(key, "is not a list", "write it between [ and ]");
        return nullptr;
    }
    return toml_node == nullptr ? nullptr : toml_node->as_array();
}

std::vector<TableReader::Entry> TableReader::tables(std::string_view key) {
    std::vector<Entry> entries;
    const toml::array* const list = array(key);
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        if (const toml::table* const entry = (*list)[i].as_table()) {
            entries.push_back({.table = entry, .where = where(key, i)});
        } else {
            errors_.push_back({.what = "is not a table", .where = where(key, i), .fix = "write {key = value, ...}"});
        }
    }
    return entries;
}

void TableReader::finish() {
    for (const auto& [key, value] : table_) {
        const std::string_view name = key.str();
        if (known_.contains(name)) {
            continue;
        }
        const auto nearest = std::ranges::min_element(known_, {}, [&](const std::string& known) { return distance(name, known); });
        std::string fix = known_.empty() ? "leave it out" : "the nearest known key is " + *nearest + ", or leave it out";
        wrong(name, "is an unknown key", std::move(fix));
    }
}

}  // namespace gatemark::refdut
