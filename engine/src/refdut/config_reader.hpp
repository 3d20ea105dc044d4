#pragma once

#include "base/result.hpp"
#include "net/address.hpp"

#include <toml++/toml.h>

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gatemark::refdut {

/// "100 us", "1.5 ms", "2 s", "5 min", "1 h", "7 ns": in nanoseconds, exact. A plain "0" is a valid
/// duration, too.
[[nodiscard]] std::optional<std::uint64_t> parse_duration(std::string_view text);

/// "a, b, c": for messages.
[[nodiscard]] std::string list_of(std::span<const std::string_view> words);

/// Reads the keys of one table of a TOML file. Problems go into a list, with the key as their
/// place, and reading continues, so that all of them are reported at once. Unknown keys are errors
/// (`finish`).
class TableReader {
public:
    /// `path` is the name of the table in messages; empty for the file itself.
    TableReader(const toml::table& table, std::string path, Errors& errors) : table_{table}, path_{std::move(path)}, errors_{errors} {}

    [[nodiscard]] bool has(std::string_view key) const { return table_.contains(key); }
    /// None if the key is missing, or if it is invalid and has been reported.
    [[nodiscard]] std::optional<std::string> text(std::string_view key);
    [[nodiscard]] std::optional<std::uint64_t> integer(std::string_view key, std::uint64_t minimum, std::uint64_t maximum);
    [[nodiscard]] std::optional<double> probability(std::string_view key);
    [[nodiscard]] std::optional<bool> boolean(std::string_view key);
    /// Nanoseconds, a day at most.
    [[nodiscard]] std::optional<std::uint64_t> duration(std::string_view key);
    /// Index of the word in `words`.
    [[nodiscard]] std::optional<std::size_t> choice(std::string_view key, std::span<const std::string_view> words);
    [[nodiscard]] std::optional<net::Address> address(std::string_view key, net::Family family);
    [[nodiscard]] std::optional<net::MacAddress> mac(std::string_view key);
    [[nodiscard]] std::optional<net::Prefix> prefix(std::string_view key);
    [[nodiscard]] const toml::table* table(std::string_view key);
    [[nodiscard]] const toml::array* array(std::string_view key);
    struct Entry {
        const toml::table* table;
        std::string where;
    };
    /// Tables of a list of tables.
    [[nodiscard]] std::vector<Entry> tables(std::string_view key);

    void wrong(std::string_view key, std::string what, std::string fix);
    void missing(std::string_view key, std::string fix) { wrong(key, "is missing", std::move(fix)); }
    [[nodiscard]] std::string where(std::string_view key) const;
    [[nodiscard]] std::string where(std::string_view key, std::size_t i) const { return where(key) + "[" + std::to_string(i) + "]"; }
    [[nodiscard]] Errors& errors() { return errors_; }
    /// Unknown keys are errors that name the nearest known key. A key is known if it was asked for.
    void finish();

private:
    [[nodiscard]] const toml::node* node(std::string_view key);

    const toml::table& table_;
    std::string path_;
    Errors& errors_;
    std::set<std::string, std::less<>> known_;
};

}  // namespace gatemark::refdut
