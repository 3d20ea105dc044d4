#include "io/port_name.hpp"

#include <gtest/gtest.h>

#include <array>

namespace gatemark::io {
namespace {

struct Case {
    const char* text;
    PortKind kind;
    const char* argument;
};

TEST(PortName, EveryFormIsTakenApart) {
    constexpr std::array cases{
        Case{"pci:0000:01:00.0", PortKind::pci, "0000:01:00.0"},
        Case{"pci:0001:Ab:1f.7", PortKind::pci, "0001:Ab:1f.7"},
        Case{"af_xdp:eth1", PortKind::af_xdp, "eth1"},
        Case{"af_packet:gm1234-left", PortKind::af_packet, "gm1234-left"},
        Case{"af_packet:eth0.100", PortKind::af_packet, "eth0.100"},
        Case{"tap:gm-left", PortKind::tap, "gm-left"},
        Case{"memif:/run/m.sock", PortKind::memif, "/run/m.sock"},
        Case{"memif:/run/m.sock,role=server", PortKind::memif, "/run/m.sock,role=server"},
        Case{"ring", PortKind::ring, ""},
        Case{"null", PortKind::null, ""},
        Case{"pcap:out.pcap", PortKind::pcap, "out.pcap"},
        Case{"pcap:out.pcap,rx=in.pcap", PortKind::pcap, "out.pcap,rx=in.pcap"},
        Case{"vdev:net_null7,copy=1", PortKind::vdev, "net_null7,copy=1"},
    };
    for (const Case& each : cases) {
        const auto result = parse_port_name(each.text);
        ASSERT_EQ(error_of(result), nullptr) << each.text;
        EXPECT_EQ(std::get<PortName>(result), (PortName{.kind = each.kind, .text = each.text, .argument = each.argument})) << each.text;
    }
}

TEST(PortName, AnythingElseIsAnErrorThatListsTheKinds) {
    for (const char* text : {"",
                             ":",
                             "eth0",
                             "PCI:0000:01:00.0",
                             "pci",
                             "pci:",
                             "pci:01:00.0",
                             "pci:0000:01:00.0,x=1",
                             "pci:0000:01:00.g",
                             "af_packet",
                             "af_packet:",
                             "af_packet:a,qpairs=2",
                             "af_packet:sixteen-letters-",
                             "af_packet:a b",
                             "af_xdp:..",
                             "tap:a/b",
                             "ring:",
                             "ring:1",
                             "null:",
                             "memif:",
                             "memif:,role=server",
                             "memif:/x,role=boss",
                             "memif:/x,role=server,id=2",
                             "pcap:",
                             "pcap:a,rx=",
                             "pcap:a,tx=b",
                             "pcap:a,rx=b,rx=c",
                             "vdev:",
                             "vdev:crypto_null"}) {
        const auto result = parse_port_name(text);
        const Error* const error = error_of(result);
        ASSERT_NE(error, nullptr) << text;
        EXPECT_NE(error->where.find(text), std::string::npos) << text;
        EXPECT_FALSE(error->what.empty()) << text;
        EXPECT_NE(error->fix.find("af_packet:IF"), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace gatemark::io
