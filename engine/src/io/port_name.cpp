#include "io/port_name.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace gatemark::io {
namespace {

constexpr std::size_t interface_name_bytes_max = 15;  // IFNAMSIZ without the final zero
constexpr std::string_view kinds_help =
    "use one of pci:0000:01:00.0, af_xdp:IF, af_packet:IF, tap:NAME, memif:PATH[,role=server], ring, null, pcap:OUT[,rx=IN], "
    "vdev:net_xxx[,args]";

struct Kind {
    std::string_view name;
    PortKind kind;
    bool takes_argument;
};

constexpr std::array kinds{
    Kind{"pci", PortKind::pci, true},    Kind{"af_xdp", PortKind::af_xdp, true}, Kind{"af_packet", PortKind::af_packet, true},
    Kind{"tap", PortKind::tap, true},    Kind{"memif", PortKind::memif, true},   Kind{"ring", PortKind::ring, false},
    Kind{"null", PortKind::null, false}, Kind{"pcap", PortKind::pcap, true},     Kind{"vdev", PortKind::vdev, true},
};

/// domain:bus:device.function in hexadecimal digits, as `lspci -D` prints it.
bool is_pci_address(std::string_view text) {
    constexpr std::string_view shape = "xxxx:xx:xx.x";
    return text.size() == shape.size() && std::equal(text.begin(), text.end(), shape.begin(), [](char character, char expected) {
               return expected == 'x' ? std::isxdigit(static_cast<unsigned char>(character)) != 0 : character == expected;
           });
}

bool is_interface_name(std::string_view text) {
    return !text.empty() && text.size() <= interface_name_bytes_max && text != "." && text != ".." &&
           std::ranges::none_of(
               text, [](char c) { return c == '/' || c == ',' || c == ':' || c == '=' || std::isspace(static_cast<unsigned char>(c)); });
}

/// The option that may follow the first comma must be one of `allowed`; whatever stands before it
/// is a path.
bool is_path_with_option(std::string_view text, std::initializer_list<std::string_view> allowed, bool value_follows) {
    const std::size_t comma = text.find(',');
    const std::string_view path = text.substr(0, comma);
    if (path.empty()) {
        return false;
    }
    if (comma == std::string_view::npos) {
        return true;
    }
    const std::string_view option = text.substr(comma + 1);
    if (option.find(',') != std::string_view::npos) {
        return false;
    }
    return std::ranges::any_of(allowed, [&](std::string_view form) {
        return value_follows ? option.starts_with(form) && option.size() > form.size() : option == form;
    });
}

std::optional<std::string> what_is_wrong(PortKind kind, std::string_view argument) {
    switch (kind) {
        case PortKind::pci:
            if (!is_pci_address(argument)) {
                return "is not a PCI address such as 0000:01:00.0";
            }
            break;
        case PortKind::af_xdp:
        case PortKind::af_packet:
        case PortKind::tap:
            if (!is_interface_name(argument)) {
                return "is not the name of an interface (1 to 15 characters)";
            }
            break;
        case PortKind::memif:
            if (!is_path_with_option(argument, {"role=server", "role=client"}, false)) {
                return "is not PATH, PATH,role=server or PATH,role=client";
            }
            break;
        case PortKind::pcap:
            if (!is_path_with_option(argument, {"rx="}, true)) {
                return "is not OUT or OUT,rx=IN (files; no commas in their names)";
            }
            break;
        case PortKind::vdev:
            if (!argument.starts_with("net_")) {
                return "is not a DPDK virtual device such as net_tap0,iface=x";
            }
            break;
        case PortKind::ring:
        case PortKind::null: break;
    }
    return std::nullopt;
}

Error port_error(std::string_view text, const std::string& what) {
    return Error{.what = what, .where = "port \"" + std::string{text} + "\"", .fix = std::string{kinds_help}};
}

}  // namespace

Result<PortName> parse_port_name(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view kind_name = text.substr(0, colon);
    const auto* const match = std::ranges::find(kinds, kind_name, &Kind::name);
    if (match == kinds.end()) {
        return port_error(text, "unknown kind of port");
    }
    if (match->takes_argument != (colon != std::string_view::npos)) {
        return port_error(text,
                          match->takes_argument ? "this kind of port needs a colon and a name" : "this kind of port takes no argument");
    }
    const std::string argument{colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1)};
    if (const auto wrong = what_is_wrong(match->kind, argument)) {
        return port_error(text, "\"" + argument + "\" " + *wrong);
    }
    return PortName{.kind = match->kind, .text = std::string{text}, .argument = argument};
}

}  // namespace gatemark::io
